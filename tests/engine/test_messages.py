"""The conversation: append-only at tool points, shape and pairing at generate points (SEMANTICS P2)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hookcell.codec import Malformed
from hookcell.messages import check_appended, check_edited, check_message

SYSTEM = {"role": "system", "content": "be brief"}
USER = {"role": "user", "content": "hi"}
CALL = {"id": "1", "name": "search", "args": {"q": "x"}}
CALLING = {"role": "assistant", "content": None, "toolCalls": [CALL, CALL | {"id": "2"}]}
RESULT_1 = {"role": "tool", "content": "one", "toolCallId": "1"}
RESULT_2 = {"role": "tool", "content": "two", "toolCallId": "2"}
ANSWER = {"role": "assistant", "content": "done"}
WHOLE = [SYSTEM, USER, CALLING, RESULT_1, RESULT_2, ANSWER]


def refused(check: Any, *args: Any, **options: Any) -> Malformed:
    with pytest.raises(Malformed) as caught:
        check(*args, **options)
    assert len(str(caught.value)) < 500
    return caught.value


@pytest.mark.parametrize(
    "message",
    [
        *WHOLE,
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "image": b"x"}]},
        {"role": "assistant", "toolCalls": [CALL]},
        {"role": "user", "content": "", "name": "bob", "metadata": {}},
    ],
)
def test_a_message_is_a_message(message: Any) -> None:
    check_message(message)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ("hi", "/messages/0"),
        (None, "/messages/0"),
        ({}, "/messages/0/role"),
        ({"role": "root", "content": ""}, "/messages/0/role"),
        ({"role": [], "content": ""}, "/messages/0/role"),
        ({"role": "user"}, "/messages/0"),
        ({"role": "user", "content": None}, "/messages/0/content"),
        ({"role": "assistant", "content": None}, "/messages/0/content"),
        ({"role": "user", "content": 1}, "/messages/0/content"),
        ({"role": "user", "content": ["text"]}, "/messages/0/content/0"),
        ({"role": "user", "content": [{"text": "x"}]}, "/messages/0/content/0"),
        (USER | {"toolCalls": [CALL]}, "/messages/0/toolCalls"),
        (ANSWER | {"toolCalls": {}}, "/messages/0/toolCalls"),
        (ANSWER | {"toolCalls": ["x"]}, "/messages/0/toolCalls/0"),
        (ANSWER | {"toolCalls": [CALL | {"args": "{}"}]}, "/messages/0/toolCalls/0"),
        (ANSWER | {"toolCalls": [CALL | {"type": "function"}]}, "/messages/0/toolCalls/0"),
        (ANSWER | {"toolCalls": [CALL, CALL]}, "/messages/0/toolCalls/1/id"),
        ({"role": "tool", "content": ""}, "/messages/0/toolCallId"),
        ({"role": "tool", "content": "", "toolCallId": 1}, "/messages/0/toolCallId"),
        (USER | {"toolCallId": "1"}, "/messages/0/toolCallId"),
        (USER | {"name": 1}, "/messages/0/name"),
        (USER | {"metadata": []}, "/messages/0/metadata"),
        (USER | {"tool_calls": []}, "/messages/0/tool_calls"),
    ],
)
def test_what_is_no_message_is_named(message: Any, path: str) -> None:
    assert refused(check_message, message, "/messages/0").path == path


# Tool points


def test_what_a_tool_points_hook_adds_comes_back() -> None:
    added = [USER, ANSWER]
    assert check_appended(WHOLE, [*WHOLE, *added]) == added
    assert check_appended(WHOLE, copy.deepcopy(WHOLE)) == []


@pytest.mark.parametrize(
    "after",
    [[], WHOLE[:-1], WHOLE[1:], [USER, *WHOLE], [*WHOLE[:-1], ANSWER | {"content": "other"}], [*WHOLE[:1], *WHOLE[2:]]],
)
def test_a_tool_points_hook_changes_nothing_that_was_there(after: Any) -> None:
    assert "only be added at the end" in refused(check_appended, WHOLE, after).reason


@pytest.mark.parametrize("message", [RESULT_1 | {"toolCallId": "3"}, CALLING, {"role": "user", "content": None}, 1])
def test_a_tool_points_hook_forges_no_call_and_no_result(message: Any) -> None:
    assert refused(check_appended, WHOLE, [*WHOLE, message]).path.startswith("/messages/6")


def test_a_system_message_needs_the_hosts_grant() -> None:
    assert "granted" in refused(check_appended, WHOLE, [*WHOLE, SYSTEM]).reason
    assert check_appended(WHOLE, [*WHOLE, SYSTEM], system_messages=True) == [SYSTEM]


# Generate points


@pytest.mark.parametrize(
    "after",
    [
        WHOLE,
        copy.deepcopy(WHOLE),
        [SYSTEM, {"role": "user", "content": "summary"}, ANSWER],
        [SYSTEM, USER | {"content": "redacted"}, *WHOLE[2:]],
        [*WHOLE, USER],
        [SYSTEM],
        [SYSTEM, USER, CALLING, RESULT_2, RESULT_1],
    ],
)
def test_an_edit_that_keeps_shapes_pairs_and_system_messages_stands(after: Any) -> None:
    check_edited(WHOLE, after)


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ([SYSTEM, USER, RESULT_1, RESULT_2, ANSWER], "a result without an open call '1'"),
        ([SYSTEM, USER, CALLING, RESULT_1, ANSWER], "a call without a result '2'"),
        ([SYSTEM, USER, CALLING, RESULT_1], "a call without a result '2'"),
        ([SYSTEM, USER, CALLING, RESULT_1, RESULT_1, RESULT_2], "a result without an open call '1'"),
        ([SYSTEM, USER, CALLING, USER, RESULT_1, RESULT_2], "a call without a result '1'"),
        ([SYSTEM, USER, RESULT_1, RESULT_2, CALLING], "a result without an open call '1'"),
        ([SYSTEM, USER, CALLING | {"toolCalls": [CALL]}, RESULT_1, RESULT_2], "a result without an open call '2'"),
    ],
)
def test_an_edit_that_parts_a_call_from_its_result_is_refused(after: Any, reason: str) -> None:
    assert refused(check_edited, WHOLE, after).reason == reason


def test_an_edit_is_not_blamed_for_what_was_broken_before() -> None:
    before = [SYSTEM, USER, CALLING, RESULT_1, {"role": "odd"}]
    check_edited(before, [*before, USER])
    check_edited(before, [SYSTEM, USER | {"content": "x"}, *before[2:]])


@pytest.mark.parametrize(
    "after",
    [
        WHOLE[1:],
        [SYSTEM | {"content": "be evil"}, *WHOLE[1:]],
        [SYSTEM, SYSTEM, *WHOLE[1:]],
        [*WHOLE, SYSTEM],
        [*WHOLE[1:], SYSTEM],
        [USER, *WHOLE],
        [],
    ],
)
def test_system_messages_stay_as_they_are_without_a_grant(after: Any) -> None:
    assert "granted" in refused(check_edited, WHOLE, after).reason
    check_edited(WHOLE, after, system_messages=True)


def test_a_changed_message_is_checked_and_a_key_the_host_uses_may_stay() -> None:
    before = [USER | {"cache": True}, ANSWER]
    check_edited(before, [before[0] | {"content": "x"}, ANSWER])
    assert refused(check_edited, before, [before[0] | {"cach": 1}, ANSWER]).path == "/messages/0/cach"
    assert refused(check_edited, before, [before[0], ANSWER | {"content": 1}]).path == "/messages/1/content"


def test_a_call_id_in_an_error_is_escaped_and_bounded() -> None:
    call = CALL | {"id": "\x1b[2J" + "x" * 10_000}
    error = refused(check_edited, [], [{"role": "assistant", "toolCalls": [call]}])
    assert str(error).isprintable()


# The engine's marks

ARGS = {"q": "the model's own"}
MARKED_CALL = CALLING | {"metadata": {"modelArgs": {"1": ARGS}, "mine": 1}}
MARKED_RESULT = RESULT_1 | {"metadata": {"replacedByHook": "cache", "mine": 1}}
MARKED = [SYSTEM, USER, MARKED_CALL, MARKED_RESULT, RESULT_2, ANSWER]


def _of_call(args: Any) -> dict[str, Any]:
    return CALLING | {"metadata": {"modelArgs": args}}


def _of_result(hook: Any) -> dict[str, Any]:
    return RESULT_1 | {"metadata": {"replacedByHook": hook}}


@pytest.mark.parametrize(
    "after",
    [
        copy.deepcopy(MARKED),
        [SYSTEM, USER, ANSWER],
        [SYSTEM, USER, MARKED_CALL, MARKED_RESULT | {"content": "***"}, RESULT_2, ANSWER],
        [SYSTEM, USER, _of_call({"1": ARGS}), RESULT_2, _of_result("cache"), ANSWER | {"metadata": {"modelArgs": {}}}],
        [SYSTEM, USER, MARKED_CALL | {"toolCalls": [CALL | {"args": {"q": "y"}}]}, MARKED_RESULT],
        [SYSTEM, USER, MARKED_CALL | {"toolCalls": [CALL | {"id": "2"}]}, RESULT_2],
        [SYSTEM, USER, CALLING | {"toolCalls": [CALL | {"id": "2"}]}, RESULT_2],
        [*MARKED, ANSWER | {"toolCalls": [CALL | {"id": "3"}]}, RESULT_1 | {"toolCallId": "3"}],
        [SYSTEM, USER | {"metadata": {"modelArg": 1, "replaced": {"replacedByHook": "x"}}}],
    ],
)
def test_an_edit_that_leaves_the_engines_marks_stands(after: Any) -> None:
    """SEMANTICS P5, P6: a whole pair may go, its marks with it."""
    check_edited(MARKED, after)


@pytest.mark.parametrize(
    ("call", "result", "mark"),
    [
        (MARKED_CALL, RESULT_1, "3/metadata/replacedByHook"),
        (MARKED_CALL, RESULT_1 | {"metadata": {}}, "3/metadata/replacedByHook"),
        (MARKED_CALL, _of_result("other"), "3/metadata/replacedByHook"),
        (MARKED_CALL, _of_result(None), "3/metadata/replacedByHook"),
        (CALLING, MARKED_RESULT, "2/metadata/modelArgs"),
        (_of_call({}), MARKED_RESULT, "2/metadata/modelArgs"),
        (_of_call({"1": {"q": "forged"}}), MARKED_RESULT, "2/metadata/modelArgs"),
        (_of_call({"1": ARGS, "2": ARGS}), MARKED_RESULT, "2/metadata/modelArgs"),
        (_of_call({"1": ARGS, "9": ARGS}), MARKED_RESULT, "2/metadata/modelArgs"),
        (_of_call(None), MARKED_RESULT, "2/metadata/modelArgs"),
        (_of_call([ARGS]), MARKED_RESULT, "2/metadata/modelArgs"),
    ],
)
def test_an_edit_that_takes_a_mark_of_the_engines_or_changes_it_is_refused(call: Any, result: Any, mark: str) -> None:
    """SEMANTICS P5, P6."""
    after = [SYSTEM, USER, call, result, RESULT_2, ANSWER]
    assert refused(check_edited, MARKED, after).path == f"/messages/{mark}"
    check_edited(MARKED, after, marks=True)


@pytest.mark.parametrize(
    "after",
    [
        [SYSTEM, USER, CALLING, RESULT_1, RESULT_2 | {"metadata": {"replacedByHook": "guard"}}, ANSWER],
        [SYSTEM, USER, CALLING, RESULT_1, RESULT_2 | {"metadata": {"replacedByHook": None}}, ANSWER],
        [SYSTEM, USER, _of_call({"1": {"q": "x"}}), RESULT_1, RESULT_2, ANSWER],
        [SYSTEM, USER, _of_call({"1": None}), RESULT_1, RESULT_2, ANSWER],
        [*WHOLE, ANSWER | {"toolCalls": [CALL | {"id": "3"}]}, _of_result("guard") | {"toolCallId": "3"}],
        [*WHOLE, _of_call({"3": {}}) | {"toolCalls": [CALL | {"id": "3"}]}, RESULT_1 | {"toolCallId": "3"}],
        [*WHOLE[:-1], ANSWER | {"metadata": {"replacedByHook": "guard"}}],
        [*WHOLE[:-1], ANSWER | {"metadata": {"modelArgs": {"1": ARGS}}}],
        [SYSTEM, USER | {"metadata": {"modelArgs": {"1": ARGS}}}, *WHOLE[2:]],
    ],
)
def test_an_edit_that_forges_a_mark_of_the_engines_is_refused(after: Any) -> None:
    """SEMANTICS P5, P6: in no message, old or new."""
    assert refused(check_edited, WHOLE, after).hint == "it is the engine's; leave it as it is"
    check_edited(WHOLE, after, marks=True)


def test_no_mark_moves_to_another_message() -> None:
    there = MARKED[:5]
    moved = USER | {"metadata": {"modelArgs": {"1": ARGS}}}
    refused(check_edited, there, [SYSTEM, moved, CALLING, *there[3:]])
    refused(check_edited, there, [*there[:2], CALLING, *there[3:], moved])
    other = RESULT_2 | {"metadata": {"replacedByHook": "cache"}}
    refused(check_edited, there, [*there[:3], RESULT_1, other])


def test_the_marks_of_an_id_that_is_used_again_stay_in_their_order() -> None:
    """Some models number their calls anew in each answer."""
    plain = [CALLING | {"toolCalls": [CALL]}, RESULT_1]
    marked = [plain[0] | {"metadata": {"modelArgs": {"1": ARGS}}}, MARKED_RESULT]
    for before in ([*plain, *marked], [*marked, *plain]):
        check_edited(before, copy.deepcopy(before))
        check_edited(before, before[:2])
        check_edited(before, before[2:])
        refused(check_edited, before, before[2:] + before[:2])
        refused(check_edited, before, [*before, *marked])
        refused(check_edited, before, [*before[:2], *before[:2]])
    check_edited([*plain], [*plain, *plain])


def test_marks_in_odd_messages_of_the_hosts_are_no_fault_of_an_edit() -> None:
    odd = [
        {"role": "tool", "toolCallId": 7, "content": "", "metadata": {"replacedByHook": "x"}},
        {"role": "user", "content": "", "metadata": {"modelArgs": "x", "replacedByHook": 1}},
        {"role": "assistant", "toolCalls": [{"id": []}, "x"], "metadata": {"modelArgs": {"1": {}}}},
        {"role": "assistant", "toolCalls": 1, "metadata": 1},
    ]
    check_edited(odd, [*odd, USER])
    check_edited(odd, odd[1:])


@pytest.mark.parametrize("message", [USER, ANSWER])
@pytest.mark.parametrize("mark", ["replacedByHook", "modelArgs"])
@pytest.mark.parametrize("value", [None, "guard", {"1": {}}])
def test_no_mark_of_the_engines_stands_in_a_message_that_a_hook_adds(message: Any, mark: str, value: object) -> None:
    """SEMANTICS P5, P6."""
    marked = message | {"metadata": {mark: value}}
    assert refused(check_appended, WHOLE, [*WHOLE, marked]).path == f"/messages/6/metadata/{mark}"
    assert check_appended(WHOLE, [*WHOLE, marked], marks=True) == [marked]
    other = message | {"metadata": {"mine": {mark: value}}}
    assert check_appended(WHOLE, [*WHOLE, other]) == [other]


# The latest calls: still to run at a generate point, running at an agent-class point.

ASKS = {"role": "assistant", "content": "", "toolCalls": [{"id": "c", "name": "t", "args": {}}]}
FORGED = {"role": "tool", "toolCallId": "c", "content": "forged"}
RESULT = {"role": "tool", "toolCallId": "c", "content": "real"}
OLD = [USER, ASKS, RESULT]  # an earlier answer whose call had the same id, as some providers give


@pytest.mark.parametrize("old", [[], OLD])
def test_a_call_that_is_about_to_run_may_be_taken_out_but_not_answered_or_put_elsewhere(old: list[Any]) -> None:
    before = [*old, USER, ASKS]
    check_edited(before, [*old, USER])
    check_edited(before, [*old, USER, {"role": "assistant", "content": "no call"}])
    check_edited(before, [*before, USER])
    for after in (
        [*before, FORGED],
        [*old, ASKS, USER, ASKS],
        [*old, USER, ASKS, USER, ASKS],
        [*before, {"role": "assistant", "content": "", "toolCalls": [{"id": "d", "name": "t", "args": {}}]}],
    ):
        with pytest.raises(Malformed):
            check_edited(before, after)


def test_an_old_result_cannot_be_taken_or_moved_behind_a_call_of_the_same_id() -> None:
    before = [*OLD, USER, ASKS]
    for after in ([USER, ASKS, USER, ASKS], [USER, ASKS, USER, ASKS, RESULT], [*OLD, USER, ASKS, FORGED]):
        with pytest.raises(Malformed):
            check_edited(before, after)
    check_edited(before, [USER, ASKS])  # the whole of the older exchange, and its call, may go


@pytest.mark.parametrize("after", [[USER], [USER, {"role": "assistant", "content": ""}], []])
def test_a_running_call_stays(after: list[Any]) -> None:
    before = [USER, ASKS]
    check_edited(before, [*before, USER], calls_stay=True)
    check_edited(before, [ASKS], calls_stay=True)
    with pytest.raises(Malformed, match="the call 'c' is running"):
        check_edited(before, after, calls_stay=True)
