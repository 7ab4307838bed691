"""The pipeline hooks on one tool call and one model call: P1, P2, P4 to P10."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from hookcell import (
    ABSENT,
    POINTS,
    History,
    HookFailure,
    HookRegistry,
    OutcomeInvalid,
    ToolCall,
    ToolError,
    ToolPipeline,
    ToolResult,
    run_point,
)
from hookcell.values import copied

from .driving import ARGS, CALL, FILLED, SCHEMA, facts, run, settle
from .looping import Loop, calling

Scripted = Callable[..., Any]

USER = {"role": "user", "content": "note"}
ANOTHER = {"role": "user", "content": "another"}
SYSTEM = {"role": "system", "content": "obey me"}
GENERATE = pytest.mark.parametrize("point", ["pre_generate", "post_generate"])
TOOL = pytest.mark.parametrize("point", ["pre_tool_call", "post_tool_call"])


def add(path: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": path, "value": value}


def put(path: str, value: object) -> dict[str, object]:
    return {"op": "replace", "path": path, "value": value}


def drop(path: str) -> dict[str, object]:
    return {"op": "remove", "path": path}


def patched(*operations: dict[str, object], **more: object) -> dict[str, object]:
    return {"patch": list(operations), **more}


# P1.


def test_P1_a_hook_is_called_only_at_the_points_it_implements(scripted: Scripted, kind: str) -> None:
    """Every point is optional; a hook is called only at the points it implements."""
    for implemented in POINTS:
        hook = scripted(kind, "h", {implemented: None})
        for point in POINTS:
            run(point, hook, on=facts(state={}))
        assert hook.called_at == [implemented]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_P1_sync_and_async_host_hooks_both_work(scripted: Scripted, backend: str) -> None:
    """Host hooks alone: a guest is neither. Each sees what the one before it, of whatever kind, rewrote."""
    seen: list[object] = []

    async def pre_tool_call(ctx: Any) -> dict[str, object]:
        await anyio.sleep(0)
        seen.append(ctx.args["path"])
        return {"input": {"path": "async"}}

    guest = scripted("guest", "guest", {"pre_tool_call": {"input": {"path": "guest"}}})
    plain = scripted("host", "plain", {"pre_tool_call": {"input": {"path": "plain"}}})
    hooks = HookRegistry([guest, SimpleNamespace(name="async", pre_tool_call=pre_tool_call), plain])
    context = facts().context({"args": ARGS})
    decision = anyio.run(run_point, hooks, "pre_tool_call", context, backend=backend)
    assert seen == ["guest"]
    assert [args["path"] for args in plain.saw("args")] == ["async"]
    assert decision.args == {"path": "plain"}


# P2.


@pytest.mark.parametrize("nothing", [None, {}, {"patch": []}], ids=repr)
def test_P2_an_outcome_of_nothing_changes_nothing(scripted: Scripted, kind: str, nothing: object) -> None:
    for point in POINTS:
        on = facts(state={"rounds": 1})
        hook, after = scripted(kind, "h", {point: nothing}), scripted("guest", "after", {point: None})
        decision = run(point, hook, after, on=on)
        assert (decision.kind, decision.value, decision.fields, decision.appended) == ("proceed", ABSENT, {}, ())
        assert decision.trace[0].wrote == ()
        assert after.saw("messages") == [list(facts().messages)]
        assert (on.messages, on.metadata, on.state) == (facts().messages, {"seeded": 1}, {"rounds": 1})


def test_P2_changes_of_args_messages_and_metadata_change_the_run(scripted: Scripted, kind: str) -> None:
    """In place: for host hooks by mutation, for guest hooks by patch."""
    on = facts()
    changes = patched(
        put("/args/path", "b.txt"), add("/metadata/note", [1]), drop("/metadata/seeded"), add("/messages/-", USER)
    )
    hook, after = scripted(kind, "h", {"pre_tool_call": changes}), scripted(kind, "after", {"pre_tool_call": None})
    settled = settle(hook, after, on=on)
    assert settled.executed == [{"path": "b.txt", "lines": 20}]
    assert on.metadata == {"note": [1]}
    assert settled.call.appended == (USER,)
    assert hook.saw("args") == [FILLED]
    assert after.saw("args") == [{"path": "b.txt", "lines": 20}]
    assert after.saw("metadata") == [{"note": [1]}]
    assert after.saw("messages")[0][-1] == USER
    assert settled.call.gate.rewritten_by == ("h",)


def test_P2_a_change_of_the_request_changes_the_run(scripted: Scripted, kind: str) -> None:
    request = {"model": "m", "temperature": 1, "stop": ["a"]}
    changes = patched(put("/request/temperature", 0), add("/request/maxTokens", 5), drop("/request/stop"))
    hook, after = scripted(kind, "h", {"pre_generate": changes}), scripted(kind, "after", {"pre_generate": None})
    run("pre_generate", hook, after, own={"request": request})
    assert request == {"model": "m", "temperature": 0, "maxTokens": 5}
    assert after.saw("request") == [request]


@pytest.mark.parametrize("op", ["move", "copy", "test", "Add", ""])
def test_P2_a_patch_holds_add_remove_and_replace_alone(scripted: Scripted, op: str) -> None:
    """RFC 6902 ``add``, ``remove``, ``replace`` only. A guest's matter: a host hook has no patch."""
    on = facts()
    bad = {"op": op, "path": "/metadata/x", "from": "/metadata/seeded", "value": 1}
    hook = scripted("guest", "h", {"pre_tool_call": patched(bad)})
    with pytest.raises(OutcomeInvalid) as caught:
        run("pre_tool_call", hook, on=on)
    assert caught.value.path == "/patch/0/op"
    assert on.metadata == {"seeded": 1}


@pytest.mark.parametrize("last", [drop("/metadata/absent"), put("/args/absent", 1), add("/toolName", "x")], ids=str)
def test_P2_a_patch_is_applied_whole_or_not_at_all(scripted: Scripted, last: dict[str, object]) -> None:
    """▸ A guest's matter: what a host hook did before it failed is P11's."""
    on = facts()
    good = [add("/metadata/note", 1), put("/args/path", "b.txt"), add("/messages/-", USER)]
    hook = scripted("guest", "h", {"pre_tool_call": patched(*good, last)}, on_failure="skip")
    after = scripted("guest", "after", {"pre_tool_call": None})
    settled = settle(hook, after, on=on)
    assert [failure.path for failure in settled.call.gate.decision.failures] == ["/patch/3"]
    assert (after.saw("args"), after.saw("metadata")) == ([FILLED], [{"seeded": 1}])
    assert settled.executed == [FILLED]
    assert (on.metadata, settled.call.appended) == ({"seeded": 1}, ())


def test_P2_a_patch_comes_first_and_then_input_replaces_args_whole(scripted: Scripted, kind: str) -> None:
    """▸ What the patch did elsewhere stands; what it did to args does not."""
    on = facts()
    outcome = patched(add("/metadata/note", 1), put("/args/lines", 3), input={"path": "b.txt"})
    hook = scripted(kind, "h", {"pre_tool_call": outcome})
    assert settle(hook, on=on).executed == [{"path": "b.txt", "lines": 20}]
    assert on.metadata == {"seeded": 1, "note": 1}


ELSEWHERE = {
    "pre_tool_call": ["/toolName", "/toolCall", "/toolCallId", "/sessionId", "/request"],
    "post_tool_call": ["/args", "/result", "/origin"],
    "pre_generate": ["/streaming", "/agentId"],
    "post_generate": ["/request", "/result"],
    "before_prompt": ["/metadata", "/prompt"],
    "before_tool": ["/call"],
    "after_tool": ["/result"],
    "after_response": ["/response", "/messages"],
    "on_error": ["/error", "/data"],
}


@pytest.mark.parametrize(("point", "path"), [(point, path) for point, paths in ELSEWHERE.items() for path in paths])
def test_P2_a_patch_outside_the_points_paths_is_an_invalid_outcome(
    scripted: Scripted, kind: str, point: str, path: str
) -> None:
    """▸ A host hook that sets such a field throws at once, which is a failure too (P11)."""
    on = facts(state={})
    hook = scripted(kind, "h", {point: patched(put(path, {"x": 1}))}, on_failure="skip")
    after = scripted("guest", "after", {point: None})
    watching = scripted("guest", "alone", {point: None})
    failure = run(point, hook, after, on=on).failures[0]
    run(point, watching)
    assert failure.code == ("outcome_invalid" if kind == "guest" else "threw")
    field = path[1:]
    assert after.saw(field) == watching.saw(field)


@TOOL
def test_P2_G4_a_patch_on_a_field_the_hook_did_not_receive_is_an_invalid_outcome(
    scripted: Scripted, point: str
) -> None:
    """▸ Guests alone: a host hook receives every field."""
    on = facts()
    for operation in (add("/metadata/x", 1), put("/metadata", {})):
        hook = scripted("guest", "h", {point: patched(operation)}, needs=["toolName"])
        with pytest.raises(OutcomeInvalid, match="did not receive"):
            run(point, hook, on=on)
        assert hook.seen == [(point, {"toolName": "read"})]
    assert on.metadata == {"seeded": 1}
    run(point, scripted("guest", "h", {point: patched(add("/metadata/x", 1))}, needs=["metadata"]), on=on)
    assert on.metadata == {"seeded": 1, "x": 1}


@TOOL
@pytest.mark.parametrize(
    "operation",
    [
        drop("/messages/1"),
        add("/messages/0", USER),
        put("/messages/1", USER),
        put("/messages", []),
        add("/messages/-", {"role": "stranger", "content": "x"}),
        add("/messages/-", "text"),
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']} {operation.get('value')}",
)
def test_P2_messages_are_append_only_at_tool_points(
    scripted: Scripted, kind: str, point: str, operation: dict[str, object]
) -> None:
    """▸ Nothing of the rest of such an outcome counts either."""
    on = facts()
    hook = scripted(kind, "h", {point: patched(operation)})
    with pytest.raises(OutcomeInvalid) as caught:
        run(point, hook, on=on)
    assert caught.value.hook == "h"
    assert on.messages == facts().messages
    assert hook.saw("messages") == [list(facts().messages)]


def test_P2_what_is_added_at_tool_points_waits_for_the_batchs_results(scripted: Scripted, kind: str) -> None:
    """▸ The pipeline hands it over in order and keeps it out of the history; hooks of the same chain see it."""
    on = facts()
    one = scripted(kind, "one", {"pre_tool_call": patched(add("/messages/-", USER)), "post_tool_call": None})
    two = scripted(
        kind, "two", {point: patched(add("/messages/-", ANOTHER)) for point in ("pre_tool_call", "post_tool_call")}
    )
    settled = settle(one, two, on=on)
    assert [len(messages) for messages in two.saw("messages")] == [3, 2]
    assert settled.call.appended == (USER, ANOTHER, ANOTHER)
    assert on.messages == facts().messages


def test_P2_what_was_added_stands_after_the_results_of_the_batch(scripted: Scripted, kind: str) -> None:
    """▸ As the model is sent it: the results of both calls, then each call's notes in the order they were added."""
    notes = {
        point: patched(add("/messages/-", {"role": "user", "content": point}))
        for point in ("pre_tool_call", "post_tool_call")
    }
    calls = [{"id": id_, "name": "read", "args": ARGS} for id_ in ("c1", "c2")]
    loop = Loop(scripted(kind, "h", notes), turns=[calling(*calls), "hello"])
    loop.send()
    sent = [message.get("toolCallId", message["content"]) for message in loop.model.calls[-1].messages[-6:]]
    assert sent == ["c1", "c2", *notes, *notes]


@GENERATE
def test_P2_edits_at_generate_points_persist_in_the_history(scripted: Scripted, kind: str, point: str) -> None:
    """▸ In the very list that the run keeps."""
    on = facts()
    history = on.messages
    hook = scripted(kind, "h", {point: patched(put("/messages/1/content", "edited"), add("/messages/-", USER))})
    after = scripted(kind, "after", {point: patched(drop("/messages/1"))})
    run(point, hook, after, on=on)
    assert after.saw("messages") == [
        [{"role": "system", "content": "rules"}, {"role": "user", "content": "edited"}, USER]
    ]
    assert on.messages is history
    assert history == [{"role": "system", "content": "rules"}, USER]


CALLING = {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "read", "args": {}}]}
ANSWER = {"role": "tool", "toolCallId": "c1", "name": "read", "content": "text"}


@GENERATE
@pytest.mark.parametrize(
    "operations",
    [
        [add("/messages/-", {"role": "nobody", "content": "x"})],
        [add("/messages/-", {"role": "user"})],
        [add("/messages/-", ANSWER)],
        [add("/messages/-", CALLING)],
        [add("/messages/-", CALLING), add("/messages/-", USER), add("/messages/-", ANSWER)],
        [add("/messages/-", CALLING), add("/messages/-", ANSWER), add("/messages/-", ANSWER)],
        [add("/messages/-", CALLING), add("/messages/-", {**ANSWER, "toolCallId": "c2"})],
    ],
    ids=["role", "content", "answer alone", "call alone", "between", "twice", "other id"],
)
def test_P2_edited_messages_are_shape_checked(
    scripted: Scripted, kind: str, point: str, operations: list[dict[str, object]]
) -> None:
    """▸ Roles, call and result pairing. A host hook under ``skip`` works on a copy, so nothing of it stays."""
    on = facts()
    hook = scripted(kind, "h", {point: patched(*operations)}, on_failure="skip")
    assert [failure.code for failure in run(point, hook, on=on).failures] == ["outcome_invalid"]
    assert on.messages == facts().messages
    good = scripted(kind, "h", {point: patched(add("/messages/-", CALLING), add("/messages/-", ANSWER))})
    run(point, good, on=on)
    assert on.messages[2:] == [CALLING, ANSWER]


@GENERATE
@pytest.mark.parametrize(
    "operation",
    [
        add("/messages/-", SYSTEM),
        put("/messages/0/content", "no rules"),
        put("/messages/0/role", "user"),
        put("/messages/1/role", "system"),
        drop("/messages/0"),
        put("/messages", [USER]),
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_P2_system_messages_stay_unless_the_host_grants_it(
    scripted: Scripted, kind: str, point: str, operation: dict[str, object]
) -> None:
    """▸ A guest has no grant unless it is given one; a host hook is the host's own and has it unless it is taken."""
    refused = scripted(kind, "h", {point: patched(operation)}, on_failure="skip", edits_system_messages=False)
    on = facts()
    assert [failure.code for failure in run(point, refused, on=on).failures] == ["outcome_invalid"]
    assert on.messages == facts().messages
    run(point, scripted(kind, "h", {point: patched(operation)}, edits_system_messages=True), on=on)
    assert on.messages != facts().messages


@pytest.mark.parametrize(("of", "failures"), [("guest", 1), ("host", 0)])
def test_P2_the_grant_is_off_for_guests_and_on_for_host_hooks(scripted: Scripted, of: str, failures: int) -> None:
    """▸ Unless the host grants it."""
    hook = scripted(of, "h", {"pre_generate": patched(add("/messages/-", SYSTEM))}, on_failure="skip")
    assert len(run("pre_generate", hook).failures) == failures


MARKED = [
    {"role": "user", "content": "hi"},
    {**CALLING, "metadata": {"modelArgs": {"c1": {"path": "a.txt"}}, "note": 1}},
    {**ANSWER, "metadata": {"replacedByHook": "cache"}},
]


@GENERATE
@pytest.mark.parametrize("granted", [False, True])
@pytest.mark.parametrize(
    "operation",
    [
        put("/messages/1/metadata/modelArgs/c1/path", "forged"),
        drop("/messages/1/metadata/modelArgs"),
        put("/messages/2/metadata/replacedByHook", "forged"),
        drop("/messages/2/metadata"),
        add("/messages/0/metadata", {"replacedByHook": "forged"}),
        add("/messages/-", {**USER, "metadata": {"modelArgs": {"c9": {}}}}),
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_P2_guests_never_touch_the_engines_marks(
    scripted: Scripted, point: str, granted: bool, operation: dict[str, object]
) -> None:
    """▸ Nor ever, for guests, whatever the host grants; what stands beside a mark is theirs to edit."""
    on = facts(messages=History(copied(MARKED)))
    hook = scripted("guest", "h", {point: patched(operation)}, edits_system_messages=granted)
    with pytest.raises(OutcomeInvalid):
        run(point, hook, on=on)
    assert hook.saw("messages") == [MARKED]
    assert on.messages == MARKED
    beside = patched(put("/messages/1/metadata/note", 2), put("/messages/2/content", "cut"))
    run(point, scripted("guest", "h", {point: beside}), on=on)
    assert (on.messages[1]["metadata"]["note"], on.messages[2]["content"]) == (2, "cut")


@TOOL
def test_P2_guests_add_no_message_with_a_mark(scripted: Scripted, point: str) -> None:
    """▸ At tool points as well."""
    for metadata in ({"replacedByHook": "forged"}, {"modelArgs": {"c1": {}}}):
        hook = scripted("guest", "h", {point: patched(add("/messages/-", {**USER, "metadata": metadata}))})
        with pytest.raises(OutcomeInvalid):
            run(point, hook)
    free = {**USER, "metadata": {"source": "h"}}
    assert run(point, scripted("guest", "h", {point: patched(add("/messages/-", free))})).appended == (free,)


# P4.


@pytest.mark.parametrize("reason", ["not here", ""])
def test_P4_a_deny_keeps_the_tool_from_running_and_tells_the_model(scripted: Scripted, kind: str, reason: str) -> None:
    """The model gets a tool error of kind ``denied``. ▸ The key's presence decides: an empty reason still denies."""
    asked: list[object] = []
    guard = scripted(kind, "guard", {"pre_tool_call": {"deny": reason}})
    settled = settle(guard, rules=lambda *question: asked.append(question))
    assert (settled.executed, asked) == ([], [])
    assert settled.error == ("denied", reason, "guard")
    assert settled.call.message() == {"role": "tool", "toolCallId": "c1", "name": "read", "content": reason}
    assert guard.saw("args") == [FILLED]


def test_P4_it_is_the_same_tool_error_that_a_human_deny_gives(scripted: Scripted, kind: str) -> None:
    """What the model is sent does not tell one from the other; the error names the hook for the host."""
    human = ToolResult(error=ToolError(kind="denied", message="no"), origin="denied")
    by_human = settle(rules=lambda *_: human).call
    by_hook = settle(scripted(kind, "guard", {"pre_tool_call": {"deny": "no"}})).call
    assert by_hook.message() == by_human.message()
    assert (by_hook.result.origin, by_hook.result.error.kind) == (by_human.result.origin, by_human.result.error.kind)
    assert (by_hook.result.error.hook, by_human.result.error.hook) == ("guard", None)


def test_P4_the_decision_says_which_hook_denied_and_why(scripted: Scripted, kind: str) -> None:
    """What the loop's permission-decision listener gets: ``hook`` and ``reason``."""
    decision = settle(scripted(kind, "guard", {"pre_tool_call": {"deny": "not here"}})).call.gate.decision
    assert (decision.kind, decision.denied_by, decision.reason) == ("denied", "guard", "not here")


# P5.


@pytest.mark.parametrize("value", ["cached", None, "", 0, False, [], {"rows": [1]}], ids=repr)
def test_P5_a_result_stands_in_for_the_run(scripted: Scripted, kind: str, value: object) -> None:
    """The tool does not run, no rule is asked, value is its result. ▸ ``null`` is a value; only an absent key keeps."""
    asked: list[object] = []
    cache = scripted(kind, "cache", {"pre_tool_call": {"result": value}})
    settled = settle(cache, rules=lambda *question: asked.append(question))
    assert (settled.executed, asked) == ([], [])
    assert (settled.call.result.result, settled.call.result.error, settled.call.result.origin) == (value, None, "hook")
    assert settled.call.content == value


def test_P5_the_tool_message_says_which_hook_replaced_the_run(scripted: Scripted, kind: str) -> None:
    """Its metadata, and the ``tool.done`` event's, carry ``replacedByHook``; a result that a tool gave has none."""
    replaced = settle(scripted(kind, "cache", {"pre_tool_call": {"result": "cached"}})).call
    assert replaced.metadata == {"replacedByHook": "cache"}
    assert replaced.message()["metadata"] == {"replacedByHook": "cache"}
    assert "metadata" not in settle(scripted(kind, "cache", {"pre_tool_call": None})).call.message()
    assert "metadata" not in settle(scripted(kind, "post", {"post_tool_call": {"result": "cut"}})).call.message()


# P6.


def test_P6_the_call_runs_with_a_hooks_input(scripted: Scripted, kind: str) -> None:
    """Whole, not merged. ▸ ``args`` becomes the validated dump, defaults filled; the model's own call never changes."""
    hook = scripted(kind, "h", {"pre_tool_call": {"input": {"path": "b.txt"}}, "post_tool_call": None})
    settled = settle(hook, call=ToolCall(id="c1", name="read", args={"path": "a.txt", "lines": 3}))
    assert settled.executed == [{"path": "b.txt", "lines": 20}]
    assert settled.call.gate.args == {"path": "b.txt", "lines": 20}
    assert hook.saw("args") == [{"path": "a.txt", "lines": 3}, {"path": "b.txt", "lines": 20}]
    original = {"id": "c1", "name": "read", "args": {"path": "a.txt", "lines": 3}}
    assert hook.saw("toolCall") == [original, original]


@pytest.mark.parametrize("bad", [{}, {"path": 1}, {"path": "a", "other": 1}, {"path": "a", "lines": "3"}], ids=repr)
def test_P6_a_mismatch_is_a_validation_error_that_names_the_hook(
    scripted: Scripted, kind: str, bad: dict[str, object]
) -> None:
    """And the tool does not run."""
    settled = settle(scripted(kind, "rewriter", {"pre_tool_call": {"input": bad}}))
    assert settled.executed == []
    kind_, message, hook = settled.error
    assert (kind_, hook) == ("validation", "rewriter")
    assert "'rewriter'" in message
    assert message == settled.call.content


def test_P6_arguments_are_validated_after_each_hook(scripted: Scripted, kind: str) -> None:
    """▸ A hook that would mend what the one before it broke never gets to; one that sees it sees defaults filled."""
    breaks = scripted(kind, "breaks", {"pre_tool_call": {"input": {"path": 1}}})
    mends = scripted(kind, "mends", {"pre_tool_call": {"input": {"path": "b.txt"}}})
    assert settle(breaks, mends).error[2] == "breaks"
    assert mends.seen == []
    after = scripted(kind, "after", {"pre_tool_call": None})
    settle(mends, after)
    assert after.saw("args") == [{"path": "b.txt", "lines": 20}]


def test_P6_patch_and_input_are_validated_once_and_together(scripted: Scripted, kind: str) -> None:
    """▸ The patch alone would not fit; the input replaces what it made."""
    spoils = put("/args/path", 1)
    both = scripted(kind, "h", {"pre_tool_call": patched(spoils, input={"path": "b.txt"})})
    assert settle(both).executed == [{"path": "b.txt", "lines": 20}]
    alone = scripted(kind, "h", {"pre_tool_call": patched(spoils)})
    assert settle(alone).error[0] == "validation"


@pytest.mark.parametrize("more", [{"input": {"path": 1}}, {"result": "mine"}, {"deny": "no"}], ids=repr)
def test_P6_the_first_mismatch_ends_the_chain_and_drops_the_whole_outcome(
    scripted: Scripted, kind: str, more: dict[str, object]
) -> None:
    """▸ Its notes, its messages and its decision too; what the hooks before it did stands."""
    on = facts()
    first = scripted(kind, "first", {"pre_tool_call": patched(add("/metadata/first", 1), input={"path": "b.txt"})})
    spoils = patched(put("/args/path", 1), add("/metadata/note", 1), add("/messages/-", USER), **more)
    bad = scripted(kind, "bad", {"pre_tool_call": spoils})
    after = scripted(kind, "after", {"pre_tool_call": None, "post_tool_call": None})
    settled = settle(first, bad, after, on=on)
    assert settled.executed == []
    assert (settled.error[0], settled.error[2]) == ("validation", "bad")
    assert after.called_at == ["post_tool_call"]
    assert after.saw("args") == [{"path": "b.txt", "lines": 20}]
    assert after.saw("origin") == ["validation"]
    assert on.metadata == {"seeded": 1, "first": 1}
    assert settled.call.appended == ()


# P7.


def test_P7_hooks_run_one_at_a_time_in_registration_order(scripted: Scripted, kind: str) -> None:
    """Host hooks and guests in one order: each sees what the ones before it did, and not what later ones do."""
    kinds = {"c": kind, "a": "guest", "b": "host"}
    hooks = [scripted(kinds[name], name, {"pre_tool_call": {"input": {"path": f"by {name}"}}}) for name in kinds]
    settled = settle(*hooks)
    assert [entry.hook for entry in settled.call.gate.decision.trace] == ["c", "a", "b"]
    assert [hook.saw("args")[0]["path"] for hook in hooks] == ["a.txt", "by c", "by a"]


@pytest.mark.parametrize("first", [{"deny": ""}, {"result": None}], ids=repr)
def test_P7_the_first_deny_or_result_skips_the_pre_hooks_after_it(
    scripted: Scripted, kind: str, first: dict[str, object]
) -> None:
    """The post-hooks of the same hooks still run (P10)."""
    before = scripted(kind, "before", {"pre_tool_call": None})
    decides = scripted(kind, "decides", {"pre_tool_call": first})
    after = scripted(kind, "after", {"pre_tool_call": {"deny": "too late"}, "post_tool_call": None})
    settled = settle(before, decides, after)
    assert (len(before.seen), len(decides.seen)) == (1, 1)
    assert after.called_at == ["post_tool_call"]
    assert settled.call.gate.decision.hook == "decides"


def test_P7_inputs_chain(scripted: Scripted, kind: str) -> None:
    """Each hook sees the last one's as ``args``."""
    hooks = [
        scripted(kind, f"h{lines}", {"pre_tool_call": {"input": {"path": "x", "lines": lines}}}) for lines in (1, 2, 3)
    ]
    settled = settle(*hooks)
    assert [hook.saw("args")[0]["lines"] for hook in hooks] == [20, 1, 2]
    assert settled.executed == [{"path": "x", "lines": 3}]
    assert settled.call.gate.rewritten_by == ("h1", "h2", "h3")


def test_P7_each_post_hook_sees_the_result_an_earlier_one_replaced(scripted: Scripted, kind: str) -> None:
    hooks = [scripted(kind, name, {"post_tool_call": {"result": name}}) for name in "abc"]
    settled = settle(*hooks)
    assert [hook.saw("result")[0]["result"] for hook in hooks] == ["text", "a", "b"]
    assert settled.call.content == "c"


# P8.


DECIDING = {"deny": "no", "result": 1, "input": {"path": "b.txt"}, "replace": "x"}
TWO = [{a: DECIDING[a], b: DECIDING[b]} for a in DECIDING for b in DECIDING if a < b]


@pytest.mark.parametrize("outcome", TWO, ids=lambda outcome: " and ".join(outcome))
def test_P8_two_decisions_in_one_outcome_are_a_failure(
    scripted: Scripted, kind: str, outcome: dict[str, object]
) -> None:
    """▸ Of that hook (P11), never a silent allow."""
    hook = scripted(kind, "h", {"pre_tool_call": outcome})
    with pytest.raises(OutcomeInvalid) as caught:
        settle(hook)
    assert (caught.value.hook, caught.value.point) == ("h", "pre_tool_call")
    assert len(hook.seen) == 1


@pytest.mark.parametrize("key", ["Deny", "hookSpecificOutput", "decision", "", "deny "])
@pytest.mark.parametrize("point", ["pre_tool_call", "post_tool_call", "pre_generate", "post_generate"])
def test_P8_an_unknown_key_is_a_failure(scripted: Scripted, kind: str, point: str, key: str) -> None:
    """▸ A deny under another name must not pass for nothing."""
    with pytest.raises(OutcomeInvalid) as caught:
        run(point, scripted(kind, "h", {point: {key: "no"}}))
    assert (caught.value.hook, caught.value.point) == ("h", point)


@pytest.mark.parametrize("point", ["before_prompt", "before_tool", "after_tool", "after_response", "on_error"])
def test_P8_an_unknown_key_is_a_failure_of_an_agent_class_guest(scripted: Scripted, point: str) -> None:
    """▸ Guests alone: what a host hook returns there is the value itself (C2)."""
    for outcome in ({"Replace": "x"}, {"deny": "no"}, {"result": 1}, {"input": {}}, {"replace": "x", "deny": "no"}):
        with pytest.raises(OutcomeInvalid):
            run(point, scripted("guest", "h", {point: outcome}))


FOREIGN = {
    "pre_tool_call": [{"replace": "x"}, {"meta": {}}, {"events": []}],
    "post_tool_call": [{"deny": "no"}, {"input": {}}, {"replace": "x"}, {"meta": {}}],
    "pre_generate": [{"deny": "no"}, {"result": 1}, {"input": {}}, {"replace": "x"}, {"meta": {}}],
    "post_generate": [{"deny": "no"}, {"result": 1}, {"input": {}}, {"replace": "x"}, {"meta": {}}],
}


@pytest.mark.parametrize(("point", "outcome"), [(point, each) for point, all_ in FOREIGN.items() for each in all_])
def test_P8_a_key_that_the_point_does_not_allow_is_a_failure(
    scripted: Scripted, kind: str, point: str, outcome: dict[str, object]
) -> None:
    """▸ A failure of that hook, and nothing of the outcome counts."""
    on = facts()
    outcome = {**outcome, "patch": [add("/metadata/note", 1)]} if kind == "guest" else outcome
    with pytest.raises(OutcomeInvalid):
        run(point, scripted(kind, "h", {point: outcome}), on=on)
    assert (on.messages, on.metadata) == (facts().messages, {"seeded": 1})


@pytest.mark.parametrize("outcome", ["no", 1, False, ["deny"]], ids=repr)
def test_P8_an_outcome_that_is_no_map_is_a_failure(scripted: Scripted, kind: str, outcome: object) -> None:
    """▸ Never a silent allow."""
    with pytest.raises(OutcomeInvalid):
        run("pre_tool_call", scripted(kind, "h", {"pre_tool_call": outcome}))


# P9.


@pytest.mark.parametrize("value", ["cut", None, "", {"rows": []}], ids=repr)
def test_P9_a_post_hooks_result_replaces_what_the_model_sees(scripted: Scripted, kind: str, value: object) -> None:
    """The tool's run is untouched."""
    hook = scripted(kind, "h", {"post_tool_call": {"result": value}})
    settled = settle(hook, tool=lambda _: "secret")
    assert hook.saw("result") == [{"result": "secret"}]
    assert settled.executed == [FILLED]
    assert settled.call.content == value
    assert "secret" not in str(settled.call.message())
    assert settled.call.result.origin == "tool"


def test_P9_the_error_mark_stays(scripted: Scripted, kind: str) -> None:
    """▸ A post-hook changes the text of a failed tool, not that it failed."""

    def broken(_: object) -> object:
        raise FileNotFoundError("/home/secret")

    hook, after = (scripted(kind, name, {"post_tool_call": {"result": name}}) for name in ("h", "after"))
    settled = settle(hook, after, tool=broken)
    assert settled.error[0] == "tool"
    assert settled.call.content == "after"
    assert after.saw("result")[0]["error"] == hook.saw("result")[0]["error"]
    assert after.saw("result")[0]["result"] == "h"


def test_P9_a_pre_hooks_result_may_be_replaced_too(scripted: Scripted, kind: str) -> None:
    """▸ It applies where the tool or a hook made the result."""
    pre = scripted(kind, "pre", {"pre_tool_call": {"result": "cached"}})
    post = scripted(kind, "post", {"post_tool_call": {"result": "cut"}})
    settled = settle(pre, post)
    assert post.saw("result") == [{"result": "cached"}]
    assert settled.call.content == "cut"


REFUSED = ToolResult(error=ToolError(kind="refused", message="differs"), origin="refused")
PAUSED = ToolResult(requires_approval=True, origin="approval")


def _settled_as(scripted: Scripted, origin: str, *hooks: Any) -> Any:
    """A call that ends with this origin, and these hooks after it."""
    denies = scripted("host", "denies", {"pre_tool_call": {"deny": "no"}})
    gives = scripted("host", "gives", {"pre_tool_call": {"result": "cached"}})
    fails = scripted("host", "fails", {"pre_tool_call": {"!throw": {"name": "E", "message": "m"}}}, on_failure="deny")
    verdict = {"refused": REFUSED, "approval": PAUSED}.get(origin)
    first = {"denied": [denies], "hook": [gives], "hook_failed": [fails]}.get(origin, [])
    call = ToolCall(id="c1", name="read", args={"path": 1}) if origin == "validation" else CALL
    return settle(*first, *hooks, call=call, rules=lambda *_: verdict)


@pytest.mark.parametrize("origin", ["denied", "validation", "hook_failed", "refused", "approval"])
def test_P9_the_engines_own_errors_and_the_approval_pause_stand(scripted: Scripted, kind: str, origin: str) -> None:
    """▸ And the trace says that the replacement was ignored."""
    hook, after = (scripted(kind, name, {"post_tool_call": {"result": "fine"}}) for name in ("h", "after"))
    settled, untouched = _settled_as(scripted, origin, hook, after), _settled_as(scripted, origin)
    assert settled.call.result == untouched.call.result
    assert settled.call.content == untouched.call.content
    assert hook.saw("result") == after.saw("result")
    assert [entry.notes for entry in settled.call.post.trace] == [(f"result ignored: origin {origin} stands (P9)",)] * 2


# P10.


@pytest.mark.parametrize("origin", ["tool", "hook", "denied", "validation", "hook_failed", "refused", "approval"])
def test_P10_post_hooks_see_every_call_and_who_settled_it(scripted: Scripted, kind: str, origin: str) -> None:
    """▸ After a deny, a pre-hook's result, a validation error, a refusal and at the approval pause too."""
    audit = scripted(kind, "audit", {"post_tool_call": None})
    settled = _settled_as(scripted, origin, audit)
    assert audit.saw("origin") == [origin]
    result = audit.saw("result")[0]
    assert result == settled.call.result.wire()
    errors = {"denied", "validation", "hook_failed", "refused"}
    assert result.get("error", {}).get("kind") == (origin if origin in errors else None)
    assert ("requiresApproval" in result) == (origin == "approval")
    assert len(settled.executed) == (origin == "tool")


def test_P10_a_validation_error_that_a_hook_made_is_seen_too(scripted: Scripted, kind: str) -> None:
    """▸ So that an audit hook sees every call."""
    audit = scripted(kind, "audit", {"post_tool_call": None})
    settle(scripted(kind, "bad", {"pre_tool_call": {"input": {}}}), audit)
    assert audit.saw("origin") == ["validation"]
    assert audit.saw("result")[0]["error"]["hook"] == "bad"


def test_P10_the_halves_of_a_call_work_alone(scripted: Scripted, kind: str) -> None:
    """▸ A loop that pauses between them loses no post-hook."""
    audit = scripted(kind, "audit", {"pre_tool_call": None, "post_tool_call": None})
    pipeline = ToolPipeline(hooks=HookRegistry([audit]), run=facts())
    gate = pipeline.before_execution_sync(CALL, schema=SCHEMA)
    assert audit.called_at == ["pre_tool_call"]
    pipeline.after_execution_sync(gate, ToolResult(result="later"))
    assert audit.saw("result") == [ABSENT, {"result": "later"}]


def test_P8_P11_an_invalid_outcome_goes_by_the_hooks_policy(scripted: Scripted, kind: str) -> None:
    """▸ A failure of that hook (P11)."""
    both = {"pre_tool_call": {"deny": "no", "result": 1}}
    closed = settle(scripted(kind, "h", both, on_failure="deny"))
    assert (closed.executed, closed.error[0]) == ([], "hook_failed")
    skipped = settle(scripted(kind, "h", both, on_failure="skip"))
    assert skipped.executed == [FILLED]
    assert isinstance(skipped.call.gate.decision.failures[0], HookFailure)
