"""Permission rules: which calls they match, which of them counts, and what no call can slip past (SEMANTICS P3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookcell.agent import Permissions, Rule, allow, ask, deny

STRICT = pytest.mark.parametrize("rule", [deny, ask])


def matches(rule: Rule, /, tool: str = "t", **args: object) -> bool:
    return rule.matches(tool, args)


@pytest.mark.parametrize(
    ("pattern", "tool", "fits"),
    [
        ("*", "anything", True),
        ("read_*", "read_file", True),
        ("read_*", "read_", True),
        ("read_*", "unread_file", False),
        ("read_?", "read_12", False),
        ("[rw]*", "write", True),
        ("[!rw]*", "write", False),
        ("read", "Read", False),
        ("READ", "read", False),
        ("", "", True),
        ("", "a", False),
        ("[", "[", True),
    ],
)
def test_a_tool_pattern_is_read_as_in_a_shell_and_case_counts(pattern: str, tool: str, fits: bool) -> None:
    assert deny(pattern).matches(tool, {}) is fits


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        ("rm *", "rm -rf\n/", True),
        ("*secret*", "a\nsecret\nb", True),
        ("secret", "secret\n", False),
        ("secret", "\nsecret", False),
        ("/etc/*", "/etc/a/../../b", True),
        ("*", "", True),
        ("/etc/*", "/ETC/passwd", False),
        ("*.env", "caf\u00e9.env", True),
        ("e\u0301", "\u00e9", False),
    ],
)
def test_a_pattern_covers_the_whole_text_with_every_line_of_it(pattern: str, value: str, fits: bool) -> None:
    assert matches(deny("*", args={"x": pattern}), x=value) is fits


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("1", 1),
        ("-7", -7),
        ("1.5", 1.5),
        ("1*", 10**30),
        ("true", "true"),
        ("1", "1"),
    ],
)
def test_numbers_and_constants_are_compared_as_json_writes_them(pattern: str, value: object) -> None:
    assert matches(deny("*", args={"x": pattern}), x=value)
    assert matches(allow("*", args={"x": pattern}), x=value)


@pytest.mark.parametrize(("pattern", "value"), [("True", True), ("None", None), ("1", True), ("0", False), ("1", 11)])
def test_python_s_spelling_and_python_s_equality_are_not_json_s(pattern: str, value: object) -> None:
    assert not matches(deny("*", args={"x": pattern}), x=value)


@pytest.mark.parametrize(("written", "value"), [("1", 1.0), ("100", 1e2), ("0", -0.0), ("-3", -3.0)])
def test_a_whole_number_with_a_fraction_does_not_slip_past_a_rule_about_it(written: str, value: float) -> None:
    """JSON Schema's ``integer`` takes 1.0, and so does a tool."""
    assert matches(deny("*", args={"x": written}), x=value)


def test_every_named_argument_must_match() -> None:
    rule = deny("*", args={"x": "1", "y": "2"})
    assert matches(rule, x=1, y=2, z=3)
    assert not matches(rule, x=1, y=3)
    assert not matches(rule, x=1)


@pytest.mark.parametrize("effect", [allow, ask, deny])
@pytest.mark.parametrize("args", [{}, {"y": "1"}, {"o": {}}, {"o": {"y": 1}}, {"o": "text"}, {"o": None}, {"o": 5}])
def test_an_absent_argument_does_not_match(effect: Any, args: Mapping[str, object]) -> None:
    assert not effect("*", args={"o.x": "*"}).matches("t", args)


@pytest.mark.parametrize("value", [[], ["rm"], {}, {"a": 1}, ("rm",), b"rm", date(2026, 1, 1)])
def test_what_no_pattern_can_judge_matches_where_the_rule_is_strict_alone(value: object) -> None:
    assert matches(deny("*", args={"x": "never this"}), x=value)
    assert matches(ask("*", args={"x": "never this"}), x=value)
    assert not matches(allow("*", args={"x": "*"}), x=value)


def test_a_path_with_dots_goes_into_maps() -> None:
    rule = deny("*", args={"a.b.c": "1"})
    assert matches(rule, a={"b": {"c": 1}})
    assert not matches(rule, a={"b": {"c": 2}})
    assert not matches(rule, a={"b": 1})


@STRICT
@pytest.mark.parametrize(
    "args",
    [
        {"o": [{"force": True}]},
        {"o": ({"force": True},)},
        {"o": []},
        {"o": {"force": [True]}},
    ],
)
def test_a_list_on_the_way_hides_nothing_from_a_strict_rule(rule: Any, args: Mapping[str, object]) -> None:
    assert rule("*", args={"o.force": "true"}).matches("t", args)
    assert not allow("*", args={"o.force": "*"}).matches("t", args)


@STRICT
@pytest.mark.parametrize(
    "args",
    [
        {"a.b": True},
        {"a": {"b": True}},
        {"a.b": False, "a": {"b": True}},
        {"a.b": True, "a": {"b": False}},
    ],
)
def test_a_name_with_a_dot_does_not_hide_the_path_behind_it(rule: Any, args: Mapping[str, object]) -> None:
    """A model that may add arguments of its own could otherwise put a harmless one before the real one."""
    assert rule("*", args={"a.b": "true"}).matches("t", args)


def test_an_allowing_rule_needs_each_meaning_of_a_path_to_match() -> None:
    rule = allow("*", args={"a.b": "true"})
    assert rule.matches("t", {"a.b": True})
    assert rule.matches("t", {"a.b": True, "a": {"b": True}})
    assert not rule.matches("t", {"a.b": True, "a": {"b": False}})
    assert not rule.matches("t", {"a.b": False, "a": {"b": True}})


def test_dots_may_stand_anywhere_in_a_path() -> None:
    rule = deny("*", args={"a.b.c": "1"})
    assert rule.matches("t", {"a.b": {"c": 1}})
    assert rule.matches("t", {"a": {"b.c": 1}})
    assert deny("*", args={"": "1"}).matches("t", {"": 1})
    assert deny("*", args={".": "1"}).matches("t", {"": {"": 1}})


RULES = st.sampled_from([allow("*"), ask("*", reason="a"), deny("*", reason="d"), deny("other"), allow("t")])


@given(st.lists(RULES, max_size=6))
def test_the_strictest_rule_counts_in_any_order(rules: list[Rule]) -> None:
    order = ("allow", "ask", "deny")
    strictest = max((order.index(rule.effect) for rule in rules if rule.matches("t", {})), default=0)
    for each in (rules, rules[::-1]):
        assert Permissions.of(each).judge("t", {}).effect == order[strictest]


@given(st.lists(RULES, max_size=4), RULES, st.sampled_from(["ask", "deny"]))
def test_a_rule_more_never_loosens_what_other_rules_say(rules: list[Rule], added: Rule, default: Any) -> None:
    order = ("allow", "ask", "deny")
    before = Permissions(rules=tuple(rules), default=default)
    after = Permissions(rules=(*rules, added), default=default)
    if any(rule.matches("t", {}) for rule in rules):
        assert order.index(after.judge("t", {}).effect) >= order.index(before.judge("t", {}).effect)


def test_the_default_holds_where_no_rule_matches_and_says_why_it_denies() -> None:
    assert Permissions().judge("t", {}).effect == "allow"
    closed = Permissions(rules=(allow("read"),), default="deny")
    assert closed.judge("read", {}).effect == "allow"
    denied = closed.judge("write", {})
    assert (denied.effect, denied.reason) == ("deny", "no permission rule allows it")
    asked = Permissions(default="ask").judge("t", {})
    assert (asked.effect, asked.reason) == ("ask", "")


def test_a_host_gives_rules_or_permissions_or_nothing() -> None:
    given_whole = Permissions(default="deny")
    assert Permissions.of(given_whole) is given_whole
    assert Permissions.of(None) == Permissions()
    assert Permissions.of(rule for rule in [deny("t")]) == Permissions(rules=(deny("t"),))


@pytest.mark.parametrize("effect", ["Deny", "DENY", "denied", "", "block", None])
def test_an_effect_that_is_none_is_told_at_once(effect: Any) -> None:
    """As a default it would stop no call."""
    with pytest.raises(ValueError, match="no effect"):
        Rule(effect=effect, tool="*")
    with pytest.raises(ValueError, match="no effect"):
        Permissions(default=effect)


@pytest.mark.parametrize("pattern", [1, True, None, 1.5, ["a"], b"a"])
def test_a_pattern_that_is_no_text_is_told_at_once(pattern: Any) -> None:
    with pytest.raises(TypeError, match="a pattern is text"):
        deny("*", args={"x": pattern})
    with pytest.raises(TypeError, match="a pattern is text"):
        allow(pattern)


def test_a_value_that_json_does_not_have_is_never_allowed() -> None:
    assert not matches(allow("*", args={"x": "*"}), x=object())
    assert matches(deny("*", args={"x": "a"}), x=object())
