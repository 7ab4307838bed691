"""Outcomes: the rules of P2, P4 to P6, P8, P12, P13 and C2 to C4, for guests' bytes and host values alike."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell.codec import Malformed
from hookcell.outcomes import (
    ABSENT,
    EVENTS,
    PATCH_OPERATIONS,
    Outcome,
    ThrownError,
    check_outcome,
    read_outcome,
)
from hookcell.points import POINTS

PRE = POINTS["pre_tool_call"]
POST = POINTS["post_tool_call"]
GENERATE = POINTS["pre_generate"]


def read(value: object, point: str = "pre_tool_call", *, streaming: bool = False) -> Outcome:
    return read_outcome(msgpack.packb(value), POINTS[point], streaming=streaming)


def fault(value: object, point: str = "pre_tool_call", *, streaming: bool = False) -> Malformed:
    with pytest.raises(Malformed) as caught:
        read(value, point, streaming=streaming)
    assert len(str(caught.value)) < 1_000
    return caught.value


def test_an_empty_map_changes_nothing() -> None:
    """SEMANTICS P2."""
    assert read({}) == Outcome()


def test_no_bytes_are_no_outcome() -> None:
    with pytest.raises(Malformed, match="return 0 for nothing"):
        read_outcome(b"", PRE)


@pytest.mark.parametrize("reason", ["", "because"])
def test_the_presence_of_deny_decides_not_its_text(reason: str) -> None:
    """SEMANTICS P4."""
    assert read({"deny": reason}).deny == reason


@pytest.mark.parametrize("value", [None, True, 1, [], {}])
def test_a_deny_that_is_no_string_is_a_failure_and_no_allow(value: object) -> None:
    assert fault({"deny": value}).path == "/deny"


@pytest.mark.parametrize("value", [None, "", 0, False, [], {"a": 1}])
def test_any_result_is_a_value_and_only_an_absent_key_keeps(value: object) -> None:
    """SEMANTICS P5, P9."""
    assert read({"result": value}).result == value
    assert read({"result": value}, "post_tool_call").result == value
    assert read({}).result is ABSENT


def test_input_is_a_map_and_replaces_the_whole() -> None:
    """SEMANTICS P6 and issue 2, case (l): what it leaves out is not kept."""
    assert read({"input": {"a": 1}}).input == {"a": 1}
    for value in (None, [], "a", 1):
        assert fault({"input": value}).path == "/input"


@pytest.mark.parametrize(
    "pair",
    [{"deny": "", "result": 1}, {"deny": "", "input": {}}, {"result": None, "input": {}}, {"deny": "", "error": {}}],
)
def test_two_deciding_keys_are_invalid(pair: dict[str, Any]) -> None:
    """SEMANTICS P8."""
    assert "at once" in fault(pair).reason


@pytest.mark.parametrize("point", POINTS)
def test_a_point_takes_its_own_keys_and_no_other(point: str) -> None:
    """SEMANTICS P8, P12, P13: every key of every point of the table."""
    good: dict[str, Any] = {
        "deny": "no",
        "result": 1,
        "input": {},
        "replace": {"id": "1", "name": "a", "args": {}} if point == "before_tool" else "text",
        "patch": [],
        "storage": None,
        "events": [],
        "meta": {},
        "error": {"name": "E", "message": "m"},
    }
    for key, value in good.items():
        if key in POINTS[point].keys:
            read({key: value}, point, streaming=True)
        else:
            assert fault({key: value}, point, streaming=True).path == f"/{key}"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ({"hookSpecificOutput": {"deny": "x"}}, "put 'deny' at the top"),
        ({"hookSpecificOutput": {"decision": {"deny": "x"}}}, "put 'deny' at the top"),
        ({"outcomes": [{"deny": "x"}]}, "allowed: "),
        ({"Deny": "x"}, "did you mean 'deny'?"),
        ({"denny": "x"}, "did you mean 'deny'?"),
        ({"reslut": 1}, "did you mean 'result'?"),
        ({"permissionDecision": "deny"}, 'return {"deny": reason}'),
        ({"decision": "block", "reason": "x"}, 'return {"deny": reason}'),
        ({"allow": False}, 'return {"deny": reason}'),
        ({"updatedInput": {}}, 'return {"input": args}'),
        ({"args": {}}, 'return {"input": args}'),
        ({"metadata": {}}, "by a patch"),
        ({"\x1b[2J" + "x" * 5_000: 1}, "allowed: deny, error, input, patch, result, storage"),
    ],
)
def test_an_unknown_key_is_a_failure_and_the_hint_says_what_to_write(value: dict[str, Any], hint: str) -> None:
    """SEMANTICS P8 and issue 2, case (j): a deny at the wrong nesting is no allow."""
    found = fault(value)
    assert found.hint
    assert hint in found.hint
    assert str(found).isprintable()


def test_a_deny_beside_an_unknown_key_is_a_failure_too() -> None:
    assert fault({"deny": "x", "why": "y"}).path == "/why"


def test_a_thrown_error_makes_nothing_else_count() -> None:
    """SEMANTICS, "Points": logs aside, which are not in the outcome."""
    thrown = {"name": "TypeError", "message": "boom", "stack": "at hook"}
    outcome = read({"error": thrown, "patch": "not even a list", "storage": 1})
    assert outcome == Outcome(error=ThrownError(name="TypeError", message="boom", stack="at hook"))


@pytest.mark.parametrize(
    ("error", "path"),
    [
        (None, "/error"),
        ("boom", "/error"),
        ({"name": "E"}, "/error"),
        ({"name": 1, "message": ""}, "/error/name"),
        ({"name": "", "message": None}, "/error/message"),
        ({"name": "", "message": "", "stack": 1}, "/error/stack"),
        ({"name": "", "message": "", "cause": 1}, "/error/cause"),
    ],
)
def test_an_error_is_name_message_and_perhaps_a_stack(error: object, path: str) -> None:
    assert fault({"error": error}).path == path


def test_an_unknown_key_beside_an_error_is_invalid() -> None:
    assert fault({"error": {"name": "", "message": ""}, "deny!": ""}).path == "/deny!"


@pytest.mark.parametrize("key", ["patch", "meta", "error"])
def test_null_is_no_absent_key(key: str) -> None:
    assert fault({key: None}, "before_tool").path == f"/{key}"
    assert fault({"events": None}, "pre_generate", streaming=True).path == "/events"


def test_storage_is_any_value_and_null_empties_it() -> None:
    """SEMANTICS G3."""
    assert read({"storage": None}).storage is None
    assert read({"storage": {"n": 1}}).storage == {"n": 1}
    assert read({}).storage is ABSENT


def test_events_need_a_streamed_run() -> None:
    """SEMANTICS P13."""
    events = [{"type": "compaction.start"}, {"type": "compaction.done", "removed": 3}]
    assert read({"events": events}, "pre_generate", streaming=True).events == tuple(events)
    assert fault({"events": events}, "pre_generate").path == "/events"
    assert fault({"events": []}, "post_generate").path == "/events"


@pytest.mark.parametrize(
    ("event", "path"),
    [
        ("compaction.start", "/events/0"),
        ({}, "/events/0"),
        ({"type": 1}, "/events/0/type"),
        ({"type": "tool.done"}, "/events/0/type"),
    ],
)
def test_no_other_event_can_be_forged(event: object, path: str) -> None:
    """SEMANTICS P13."""
    assert fault({"events": [event]}, "pre_generate", streaming=True).path == path


def test_event_count_is_met_and_not_passed() -> None:
    event = {"type": "compaction.start"}
    assert len(read({"events": [event] * EVENTS}, "pre_generate", streaming=True).events) == EVENTS
    assert "limit 100" in fault({"events": [event] * (EVENTS + 1)}, "pre_generate", streaming=True).reason


def test_a_patch_keeps_its_own_members_alone() -> None:
    """RFC 6902, section 4: other members are ignored."""
    patch = [
        {"op": "add", "path": "/args/a", "value": None, "from": "/b"},
        {"op": "remove", "path": "/args/b", "value": 1},
    ]
    assert read({"patch": patch}).patch == (
        {"op": "add", "path": "/args/a", "value": None},
        {"op": "remove", "path": "/args/b"},
    )


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("add", "/patch/0"),
        ({}, "/patch/0"),
        ({"op": "add", "path": "/a"}, "/patch/0"),
        ({"op": "replace", "path": "/a"}, "/patch/0"),
        ({"op": "add", "value": 1}, "/patch/0"),
        ({"op": "add", "path": 1, "value": 1}, "/patch/0/path"),
        ({"op": None, "path": "/a"}, "/patch/0/op"),
        ({"op": "move", "from": "/a", "path": "/b"}, "/patch/0/op"),
        ({"op": "copy", "from": "/a", "path": "/b"}, "/patch/0/op"),
        ({"op": "test", "path": "/a", "value": 1}, "/patch/0/op"),
    ],
)
def test_a_patch_holds_add_remove_and_replace_of_the_right_shape(operation: object, path: str) -> None:
    """SEMANTICS P2."""
    assert fault({"patch": [operation]}).path == path


def test_patch_operations_are_met_and_not_passed() -> None:
    operation = {"op": "remove", "path": "/args/a"}
    assert len(read({"patch": [operation] * PATCH_OPERATIONS}).patch) == PATCH_OPERATIONS
    assert "1_001 items (limit 1_000)" in fault({"patch": [operation] * (PATCH_OPERATIONS + 1)}).reason


CALL = {"id": "1", "name": "a", "args": {}}


@pytest.mark.parametrize(
    ("point", "value"),
    [
        ("before_prompt", ""),
        ("before_tool", CALL),
        ("after_tool", ""),
        ("after_tool", {"output": None, "isError": True}),
        ("after_tool", {"output": [1]}),
        ("after_response", "text"),
        ("on_error", "text"),
        ("on_error", 0),
        ("on_error", None),
        ("on_error", {"a": []}),
    ],
)
def test_replace_takes_a_value_of_the_points_type(point: str, value: object) -> None:
    """SEMANTICS C2, C4: empty strings, zero and false are values."""
    assert read({"replace": value}, point).replace == value


@pytest.mark.parametrize(
    ("point", "value", "path"),
    [
        ("before_prompt", None, "/replace"),
        ("before_prompt", ["a"], "/replace"),
        ("before_tool", None, "/replace"),
        ("before_tool", "a", "/replace"),
        ("before_tool", {"id": "1", "name": "a"}, "/replace"),
        ("before_tool", CALL | {"args": []}, "/replace/args"),
        ("before_tool", CALL | {"id": 1}, "/replace/id"),
        ("before_tool", CALL | {"type": "function"}, "/replace/type"),
        ("after_tool", None, "/replace"),
        ("after_tool", 1, "/replace"),
        ("after_tool", {"isError": True}, "/replace"),
        ("after_tool", {"output": "", "isError": None}, "/replace/isError"),
        ("after_tool", {"output": "", "name": "x"}, "/replace/name"),
        ("after_response", None, "/replace"),
        ("after_response", {}, "/replace"),
    ],
)
def test_a_replacement_of_another_type_is_invalid(point: str, value: object, path: str) -> None:
    """SEMANTICS C2 (null only where the type admits it), C3, C4."""
    assert fault({"replace": value}, point).path == path


# Host hooks: the same rules on Python values


def test_a_host_hooks_outcome_and_map_keep_the_same_rules() -> None:
    patch = ({"op": "add", "path": "/args/a", "value": 1},)
    given_outcome = Outcome(input={"a": 1}, patch=patch, storage=None)
    assert check_outcome(given_outcome, PRE) == given_outcome
    assert check_outcome({"input": {"a": 1}, "patch": list(patch), "storage": None}, PRE) == given_outcome
    assert check_outcome(None, PRE) == check_outcome(Outcome(), PRE) == Outcome()
    thrown = Outcome(error=ThrownError(name="E", message="m"))
    assert check_outcome(thrown, PRE) == thrown


@pytest.mark.parametrize(
    "value",
    [
        "deny",
        7,
        ["deny"],
        {1: 2},
        {"deny": 1},
        Outcome(deny="a", result=1),
        Outcome(replace="x"),
        Outcome(meta={"a": 1}),
        Outcome(deny=None),  # type: ignore[arg-type]
        Outcome(patch=[{"op": "test"}]),  # type: ignore[arg-type]
    ],
)
def test_a_host_hooks_broken_outcome_is_malformed(value: object) -> None:
    with pytest.raises(Malformed):
        check_outcome(value, PRE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["deny", "result", "input", "replace", "patch", "storage", "events", "meta", "error", "x"])


@settings(deadline=None)
@given(value=st.dictionaries(KEYS, JSON, max_size=3), point=st.sampled_from(sorted(POINTS)), streaming=st.booleans())
def test_whatever_a_hook_returns_is_an_outcome_or_malformed(value: dict[str, Any], point: str, streaming: bool) -> None:
    try:
        outcome = check_outcome(value, POINTS[point], streaming=streaming)
    except Malformed:
        return
    assert value.keys() <= POINTS[point].keys
    if "error" not in value:
        assert (outcome.deny is not ABSENT) == ("deny" in value)
