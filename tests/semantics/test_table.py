"""Every rule has a test, and the document says which."""

from __future__ import annotations

from .table import SEMANTICS, claims_by_rule, rules_in, with_table

# Authoring is the editor's; what it compiles is a hook like any other.
WITHOUT = {"P20"}


def test_the_rules_are_numbered_without_a_gap() -> None:
    rules = rules_in(SEMANTICS.read_text("utf-8"))
    assert rules == [
        f"{letter}{number}" for letter, most in (("P", 20), ("C", 10), ("G", 8)) for number in range(1, most + 1)
    ]


def test_every_rule_has_a_test() -> None:
    rules = set(rules_in(SEMANTICS.read_text("utf-8")))
    tested = set(claims_by_rule())
    assert tested <= rules, "a test names a rule that is not there"
    assert rules - tested == WITHOUT, "a rule has no test, or one in WITHOUT has one by now: take it out"


def test_the_table_is_what_the_tests_say() -> None:
    text = SEMANTICS.read_text("utf-8")
    assert text == with_table(text), "run: python tests/semantics/table.py"
