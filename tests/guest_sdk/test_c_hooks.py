"""The shipped hooks written in C, called with real contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookcell_sandbox.limits import Limits

from .shipped import GUESTS

if TYPE_CHECKING:
    from .bare_guest import Answer

PLAIN_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 10**12)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="@+(0123456789"))
    | st.binary(max_size=9),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abé€"), inner),
)
"""Values that hold no secret, whatever they look like."""


def redact(result: object, **config: bool) -> Answer:
    return GUESTS["redact"].call("post_tool_call", result={"result": result}, config=config)


def redacted(result: object, **config: bool) -> object:
    outcome = redact(result, **config).outcome
    assert outcome is not None, "nothing was masked"
    assert list(outcome) == ["result"]
    return outcome["result"]


def guard(tool: str, args: object, *config: object) -> dict[str, object] | None:
    extra = {"config": config[0]} if config else {}
    return GUESTS["guard"].call("pre_tool_call", toolName=tool, args=args, **extra).outcome


def defaults(tool: str, args: object, config: object) -> dict[str, object] | None:
    return GUESTS["defaults"].call("pre_tool_call", toolName=tool, args=args, config=config).outcome


class TestRedact:
    @pytest.mark.parametrize(
        ("text", "masked"),
        [
            ("write to ivo.castell+x@mail.example.com.", "write to [email]."),
            ("<a@b.co>", "<[email]>"),
            ("jörg@müller.example", "[email]"),
            ("邮箱a@b.co谢谢", "邮箱[email]谢谢"),
            ("a@b.co,c@d.org", "[email],[email]"),
            ("a@b.co.1", "[email].1"),
            ("card 4111 1111 1111 1111, exp 12/29", "card [card], exp 12/29"),
            ("4111-1111-1111-1111", "[card]"),
            ("id_4111111111111111x", "id_[card]x"),
            ("3782 822463 10005", "[card]"),
            ("3056 930902 5904", "[card]"),
            ("4000 0000 0000 0000 006 7", "[card] 7"),
            ("4111 1111 1111 1111 123", "[card] 123"),
            ("12 4111 1111 1111 1111", "12 [card]"),
            ("+1 (202) 555-0143 or (202) 555-0178", "[phone] or [phone]"),
            ("202.555.0143", "[phone]"),
            ("+44 20 7946 0958", "[phone]"),
            ('{"email": "a@b.co", "n": 1}', '{"email": "[email]", "n": 1}'),
        ],
    )
    def test_a_secret_in_a_string_is_masked(self, text: str, masked: str) -> None:
        assert redacted(text) == masked

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "nothing to see",
            "a@b",  # no dot
            "@example.com",
            "a@b.c",  # a last label of one letter
            "a@.co",
            "4111 1111 1111 1112",  # the check digit is wrong
            "1700000000000",  # a time in milliseconds
            "0.4111111111111111",
            "4111 1111-1111 1111",  # two separators
            "2025-03-14T12:00:00+00:00",
            "555-0143",
            "\u0000\u2028@\ud7ff",
        ],
    )
    def test_what_only_looks_like_a_secret_stays(self, text: str) -> None:
        """SEMANTICS P2: an outcome of nothing changes nothing."""
        assert redact(text).outcome is None

    @pytest.mark.parametrize(("digits", "hit"), [(7, False), (8, True), (15, True), (16, False)])
    def test_an_international_number_has_8_to_15_digits(self, digits: int, hit: bool) -> None:
        assert (redact("+" + "1234567890123456"[:digits]).outcome is not None) is hit

    @pytest.mark.parametrize(("digits", "hit"), [(12, False), (13, True), (19, True), (20, False)])
    def test_a_card_number_has_13_to_19_digits(self, digits: int, hit: bool) -> None:
        card = next(c for c in (f"4{'0' * (digits - 2)}{last}" for last in range(10)) if _luhn(c))
        assert (redact(card).outcome is not None) is hit

    def test_every_depth_is_searched_and_the_rest_stays_as_it_was(self) -> None:
        value = {
            "rows": [{"mail": "a@b.co", "ok": True, "n": -5, "x": 1.5, "none": None}, [["c@d.org"]], b"e@f.org"],
            "big": 2**63,
            "t": "plain",
        }
        assert redacted(value) == {
            "rows": [{"mail": "[email]", "ok": True, "n": -5, "x": 1.5, "none": None}, [["[email]"]], b"e@f.org"],
            "big": 2**63,
            "t": "plain",
        }

    def test_masked_keys_stay_apart(self) -> None:
        assert redacted({"a@b.co": 1, "c@d.org": 2}) == {"[email 1]": 1, "[email 2]": 2}

    def test_a_whole_number_that_is_a_card_is_masked(self) -> None:
        value = [4111111111111111, 4111111111111112, 1700000000000, -4111111111111111]
        assert redacted(value) == ["[card]", *value[1:]]

    def test_config_switches_each_kind_off(self) -> None:
        text = "a@b.co 4111111111111111 +12025550143"
        assert redacted(text, email=False) == "a@b.co [card] [phone]"
        assert redacted(text, card=False) == "[email] 4111111111111111 [phone]"
        assert redacted(text, phone=False) == "[email] [card] +12025550143"
        assert redact(text, email=False, card=False, phone=False).outcome is None

    def test_a_tool_error_is_searched_where_there_is_no_result(self) -> None:
        settled = {"result": None, "error": {"kind": "tool", "message": "no customer a@b.co"}}
        answer = GUESTS["redact"].call("post_tool_call", result=settled)
        assert answer.outcome == {"result": "no customer [email]"}

    @pytest.mark.parametrize("result", [None, "text", [], {}, {"result": None}, {"requiresApproval": True}])
    def test_a_result_of_another_shape_is_left_alone(self, result: object) -> None:
        assert GUESTS["redact"].call("post_tool_call", result=result).outcome is None

    def test_the_log_counts_and_never_repeats_what_was_masked(self) -> None:
        assert redact("a@b.co c@d.org 4111111111111111").log == "masked email=2 card=1\n"

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**63), 10**12)
            | st.floats(allow_nan=False)
            | st.text(st.characters(codec="utf-8", exclude_characters="@+(0123456789"))
            | st.binary(max_size=9),
            lambda inner: st.lists(inner) | st.dictionaries(st.text("abé€"), inner),
        )
    )
    def test_any_value_without_a_secret_is_left_alone(self, value: object) -> None:
        assert redact(value).outcome is None

    @given(st.lists(st.text("xyz .,\n\té€😀", min_size=1), min_size=2, max_size=5))
    def test_only_the_secret_goes_whatever_stands_round_it(self, pieces: list[str]) -> None:
        # A space on both sides: letters before an address are part of it.
        assert redacted(" a@b.co ".join(pieces)) == " [email] ".join(pieces)

    def test_a_megabyte_of_prose_takes_a_tenth_of_its_budget_and_no_second_copy(self) -> None:
        payload = _settled("The quick brown fox jumps over the lazy dog, 12 times. " * 20_000)
        answer = GUESTS["redact"].call_raw("post_tool_call", payload)
        assert answer.outcome is None
        assert answer.fuel < Limits().fuel_for(len(payload)) // 5
        assert answer.memory_bytes < len(payload) + 3 * 65_536

    def test_a_megabyte_of_hits_fits_the_default_memory(self) -> None:
        text = "write to a@b.co at once, or not; " * 32_000
        answer = GUESTS["redact"].call_raw("post_tool_call", _settled(text), fuel=10**9)
        assert answer.outcome == {"result": text.replace("a@b.co", "[email]")}

    @pytest.mark.parametrize(
        "text", ["@", "a@a.", "4444-4444-", "4444-444-", "+1.2.3.4.5.6.7.", "(444) 444 ", "a@b.co ", "4" * 19 + " "]
    )
    def test_64_kib_made_to_be_slow_stays_within_the_default_fuel(self, text: str) -> None:
        """Each byte is looked at a bounded number of times: at most 300 fuel, where the default gives 50 and a base."""
        GUESTS["redact"].call_raw("post_tool_call", _settled(text * (65_536 // len(text))))

    def test_no_memory_for_the_outcome_is_an_error_and_not_a_trap(self) -> None:
        payload = _settled("a@b.co " * 20_000)
        answer = GUESTS["redact"].call_raw("post_tool_call", payload, fuel=10**9, memory_bytes=5 * 65_536)
        assert answer.outcome == {"error": {"name": "OutOfMemory", "message": "no memory for the outcome"}}


class TestGuard:
    RULES: ClassVar = {
        "deny": [{"tool": "shell", "reason": "no shell"}, {"tool": "delete_*"}],
        "limits": [
            {"tool": "refund_*", "argument": "amount", "max": 100, "min": 1},
            {"tool": "order", "argument": "line.count", "max": 3, "reason": "too many"},
        ],
    }

    def test_a_named_tool_is_denied_with_the_rules_reason(self) -> None:
        """SEMANTICS P4."""
        assert guard("shell", {}, self.RULES) == {"deny": "no shell"}

    def test_a_prefix_denies_and_the_reason_names_the_tool(self) -> None:
        assert guard("delete_all", {}, self.RULES) == {"deny": "tool delete_all is not allowed"}

    @pytest.mark.parametrize("tool", ["shells", "shel", "undelete_x", "delete", ""])
    def test_another_name_passes(self, tool: str) -> None:
        assert guard(tool, {}, self.RULES) is None

    @pytest.mark.parametrize(
        ("amount", "why"),
        [
            (100, None),
            (100.0, None),
            (101, "above the limit"),
            (100.00001, "above the limit"),
            (2**64 - 1, "above the limit"),
            (1, None),
            (0, "below the limit"),
            (-(2**63), "below the limit"),
            ("50", "not a number"),
            (None, "not a number"),
            (True, "not a number"),
            ([50], "not a number"),
        ],
    )
    def test_an_argument_keeps_its_bounds_or_the_call_is_denied(self, amount: object, why: str | None) -> None:
        outcome = guard("refund_order", {"amount": amount}, self.RULES)
        if why is None:
            assert outcome is None
        else:
            assert outcome is not None
            assert why in str(outcome["deny"])
            assert "refund_order: argument amount" in str(outcome["deny"])

    def test_a_nan_is_refused(self) -> None:
        outcome = guard("refund_order", {"amount": float("nan")}, self.RULES)
        assert outcome == {"deny": "refund_order: argument amount is above the limit"}

    def test_a_missing_argument_is_not_the_guards_business(self) -> None:
        assert guard("refund_order", {}, self.RULES) is None
        assert guard("order", {"line": "x"}, self.RULES) is None

    def test_a_dot_reaches_into_an_argument(self) -> None:
        assert guard("order", {"line": {"count": 3}}, self.RULES) is None
        assert guard("order", {"line": {"count": 4}}, self.RULES) == {"deny": "too many"}

    def test_an_allow_list_refuses_everything_else_and_does_not_overrule_a_deny(self) -> None:
        rules = {"allow": ["find_*", "delete_old"], "deny": [{"tool": "delete_*", "reason": "no"}]}
        assert guard("find_books", {}, rules) is None
        assert guard("get_order", {}, rules) == {"deny": "tool get_order is not on the list of allowed tools"}
        assert guard("delete_old", {}, rules) == {"deny": "no"}
        assert guard("find_books", {}, {"allow": []}) is not None

    def test_an_empty_reason_still_denies(self) -> None:
        """SEMANTICS P4: the key's presence decides."""
        assert guard("x", {}, {"deny": [{"tool": "x", "reason": ""}]}) == {"deny": ""}

    def test_without_config_only_what_deletes_is_denied(self) -> None:
        assert guard("delete_customer", {}) == {"deny": "tool delete_customer deletes, which no config of guard allows"}
        assert guard("get_customer", {}) is None
        assert guard("delete_customer", {}, {}) is None

    @pytest.mark.parametrize(
        "config",
        ["text", [], {"deny": "x"}, {"deny": [1]}, {"deny": [{}]}, {"allow": {"a": 1}}, {"allow": [1]}, {"limits": 1},
         {"limits": [{"tool": "x"}]}, {"limits": [{"argument": "a"}]},
         {"limits": [{"tool": "x", "argument": "a", "max": "1"}]}],
    )  # fmt: skip
    def test_a_wrong_config_is_an_error_and_never_an_allow(self, config: object) -> None:
        outcome = guard("x", {"a": 1}, config)
        assert outcome is not None
        assert outcome["error"]["name"] == "ConfigInvalid"  # type: ignore[index]

    def test_a_long_or_many_lined_tool_name_is_cut_and_cannot_forge_a_log_line(self) -> None:
        tool = "€" * 50 + "\ndenied nothing"
        answer = GUESTS["guard"].call("pre_tool_call", toolName=f"a\n{tool}", args={}, config={"allow": []})
        assert answer.log == f"denied a {'€' * 32}\n"
        assert answer.outcome == {"deny": f"tool a\n{'€' * 32} is not on the list of allowed tools"}


class TestDefaults:
    CONFIG: ClassVar = {
        "rules": [
            {"tool": "find_*", "args": {"limit": 5, "nested": {"a": [1, None]}}},
            {"tool": "find_books", "args": {"limit": 9, "lang": "en"}},
        ]
    }

    def test_what_is_missing_is_added_and_the_first_rule_counts(self) -> None:
        """SEMANTICS P6: input replaces the whole, so what was there is repeated."""
        outcome = defaults("find_books", {"query": "sea"}, self.CONFIG)
        assert outcome == {"input": {"query": "sea", "limit": 5, "nested": {"a": [1, None]}, "lang": "en"}}

    def test_what_is_there_stays_and_null_is_there(self) -> None:
        args = {"limit": None, "nested": 0, "lang": "de"}
        assert defaults("find_books", args, self.CONFIG) is None
        assert defaults("find_x", {"limit": 1}, self.CONFIG) == {"input": {"limit": 1, "nested": {"a": [1, None]}}}

    @pytest.mark.parametrize("have", [14, 15])
    def test_the_input_is_a_right_map_on_both_sides_of_the_short_form(self, have: int) -> None:
        args = {f"a{i}": i for i in range(have)}
        outcome = defaults("t", args, {"rules": [{"tool": "t", "args": {"z": 1}}]})
        assert outcome == {"input": {**args, "z": 1}}

    def test_another_tool_or_no_config_changes_nothing(self) -> None:
        assert defaults("get", {}, self.CONFIG) is None
        assert defaults("find_books", {}, None) is None
        assert defaults("find_books", {}, {"rules": []}) is None

    def test_each_addition_is_logged(self) -> None:
        """SEMANTICS G5."""
        answer = GUESTS["defaults"].call("pre_tool_call", toolName="find_x", args={}, config=self.CONFIG)
        assert answer.log == "find_x: added limit nested\n"

    @pytest.mark.parametrize("rules", [1, [1], [{"tool": "x"}], [{"args": {}}], [{"tool": 1, "args": {}}]])
    def test_a_wrong_config_is_an_error(self, rules: object) -> None:
        outcome = defaults("x", {}, {"rules": rules})
        assert outcome == {"error": {"name": "ConfigInvalid", "message": "rules is not a list of {tool, args}"}}

    def test_args_that_are_not_a_map_are_an_error(self) -> None:
        outcome = defaults("x", [1], self.CONFIG)
        assert outcome == {"error": {"name": "ContextInvalid", "message": "args is not a map"}}


def _settled(result: object) -> bytes:
    return msgpack.packb({"point": "post_tool_call", "result": {"result": result}})


def _luhn(digits: str) -> bool:
    doubled = [int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0
