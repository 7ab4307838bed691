"""The rules of pre_tool_call and post_tool_call (SEMANTICS P2, P4-P10), for host and guest hooks alike."""

from __future__ import annotations

from typing import Any

import pytest

from hookcell import (
    ABSENT,
    Decision,
    History,
    HookRegistry,
    HookThrew,
    OutcomeInvalid,
    RunFacts,
    run_point_sync,
    tool_schema,
)

from .fake_sandbox import Answer, FakeSandbox, either, host

SCHEMA = tool_schema(
    {
        "type": "object",
        "properties": {"command": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
        "required": ["command"],
        "additionalProperties": False,
    }
)

BOTH = pytest.mark.parametrize("kind", ["host", "guest"])


def _pre(
    kind: str, *answers: Answer, args: dict[str, Any] | None = None, validated: bool = True, **more: object
) -> Decision:
    """Run these pre-hooks, named h0, h1, …, on one call."""
    sandbox = FakeSandbox()
    hooks = HookRegistry(either(kind, sandbox, f"h{i}", pre_tool_call=answer) for i, answer in enumerate(answers))
    context = RunFacts().context({"toolName": "run", "args": {"command": "a"} if args is None else args, **more})
    return run_point_sync(hooks, "pre_tool_call", context, validate_args=SCHEMA.validate if validated else None)


def _post(kind: str, *answers: Answer, result: dict[str, Any], origin: str = "tool") -> Decision:
    sandbox = FakeSandbox()
    hooks = HookRegistry(either(kind, sandbox, f"h{i}", post_tool_call=answer) for i, answer in enumerate(answers))
    context = RunFacts().context({"toolName": "run", "args": {}, "result": result, "origin": origin})
    return run_point_sync(hooks, "post_tool_call", context)


@BOTH
def test_an_outcome_of_nothing_changes_nothing(kind: str) -> None:
    """SEMANTICS P2."""
    for nothing in (None, {}):
        decision = _pre(kind, lambda _, nothing=nothing: nothing)
        assert decision.kind == "proceed"
        assert decision.args == {"command": "a"}
        assert decision.fields == {}
        assert decision.trace[0].outcome == "nothing"
        assert decision.rewritten_by == ()


@BOTH
def test_a_deny_decides_and_names_its_hook(kind: str) -> None:
    """SEMANTICS P4."""
    decision = _pre(kind, lambda _: {"deny": "not here"})
    assert (decision.kind, decision.denied_by, decision.reason) == ("denied", "h0", "not here")


@BOTH
def test_an_empty_reason_still_denies(kind: str) -> None:
    """SEMANTICS P4: the key's presence decides."""
    decision = _pre(kind, lambda _: {"deny": ""})
    assert (decision.kind, decision.reason) == ("denied", "")


@BOTH
@pytest.mark.parametrize("value", [None, "", 0, False, [], {"rows": []}])
def test_a_result_replaces_the_call_whatever_its_value(kind: str, value: object) -> None:
    """SEMANTICS P5: null is a value; only an absent key keeps."""
    decision = _pre(kind, lambda _: {"result": value})
    assert (decision.kind, decision.replaced_by, decision.value) == ("replaced", "h0", value)


@BOTH
@pytest.mark.parametrize("first", [{"deny": "no"}, {"result": 1}])
def test_the_first_deny_or_result_skips_the_pre_hooks_after_it(kind: str, first: dict[str, Any]) -> None:
    """SEMANTICS P7."""
    ran: list[str] = []
    decision = _pre(kind, lambda _: first, lambda _: ran.append("second"))
    assert ran == []
    assert [entry.hook for entry in decision.trace] == ["h0"]


@BOTH
def test_input_replaces_the_arguments_whole(kind: str) -> None:
    """SEMANTICS P2, P6; issue case (l): a field that is left out is gone, and the rest is validated."""
    decision = _pre(kind, lambda _: {"input": {"command": "b"}}, args={"command": "a", "limit": 3})
    assert decision.args == {"command": "b", "limit": 10}
    assert decision.rewritten_by == ("h0",)
    decision = _pre(kind, lambda _: {"input": {"limit": 3}}, args={"command": "a", "limit": 3})
    assert decision.kind == "validation"


@BOTH
def test_inputs_chain(kind: str) -> None:
    """SEMANTICS P7: each hook sees the last one's input as args."""
    seen: list[object] = []

    def add(context: dict[str, Any]) -> dict[str, Any]:
        seen.append(context["args"]["command"])
        return {"input": {"command": context["args"]["command"] + "+"}}

    decision = _pre(kind, add, add, add)
    assert seen == ["a", "a+", "a++"]
    assert decision.args == {"command": "a+++", "limit": 10}
    assert decision.rewritten_by == ("h0", "h1", "h2")


@BOTH
def test_an_input_that_changes_nothing_is_no_rewrite(kind: str) -> None:
    """SEMANTICS P2: the trace says what the hook returned, the decision what came of it."""
    decision = _pre(kind, lambda _: {"input": {"command": "a"}}, args={"command": "a", "limit": 10})
    assert decision.rewritten_by == ()
    assert decision.trace[0].outcome == "input"


@BOTH
def test_a_rewrite_stays_when_the_next_hook_returns_nothing(kind: str) -> None:
    """SEMANTICS P2; issue case (k)."""
    decision = _pre(kind, lambda _: {"input": {"command": "safe"}}, lambda _: None)
    assert decision.args == {"command": "safe", "limit": 10}


@BOTH
def test_arguments_become_the_validated_dump(kind: str) -> None:
    """SEMANTICS P6: defaults filled."""
    assert _pre(kind, lambda _: {"input": {"command": "b"}}).args == {"command": "b", "limit": 10}


@BOTH
def test_the_first_mismatch_ends_the_chain_and_drops_the_whole_outcome(kind: str) -> None:
    """SEMANTICS P6."""
    ran: list[str] = []
    patch = [
        {"op": "add", "path": "/metadata/seen", "value": True},
        {"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "x"}},
    ]
    decision = _pre(kind, lambda _: {"input": {"command": 1}, "patch": patch}, lambda _: ran.append("second"))
    assert decision.kind == "validation"
    assert decision.mismatch is not None
    assert (decision.mismatch.hook, decision.mismatch.path) == ("h0", "/command")
    assert decision.args == {"command": "a"}
    assert decision.fields == {}
    assert decision.appended == ()
    assert decision.rewritten_by == ()
    assert (decision.trace[0].outcome, decision.trace[0].wrote) == ("mismatch", ())
    assert ran == []


@BOTH
def test_patch_and_input_are_validated_once_and_together(kind: str) -> None:
    """SEMANTICS P2, P6: the patch alone would not fit, the input replaces what it made."""
    patch = [{"op": "replace", "path": "/args/command", "value": 1}]
    assert _pre(kind, lambda _: {"patch": patch, "input": {"command": "b"}}).kind == "proceed"
    assert _pre(kind, lambda _: {"patch": patch}).kind == "validation"


@BOTH
def test_a_mismatch_counts_before_a_result_of_the_same_outcome(kind: str) -> None:
    """SEMANTICS P6: the whole outcome is dropped, its result too."""
    patch = [{"op": "replace", "path": "/args/command", "value": 1}]
    decision = _pre(kind, lambda _: {"patch": patch, "result": "mine"})
    assert (decision.kind, decision.value) == ("validation", ABSENT)


def test_bytes_in_rewritten_arguments_are_a_mismatch_and_no_crash() -> None:
    """SEMANTICS P6: bytes cross the door, and no JSON Schema describes them."""
    assert _pre("guest", lambda _: {"input": {"command": b"\xff"}}).kind == "validation"


@BOTH
def test_without_a_schema_arguments_go_as_the_hooks_left_them(kind: str) -> None:
    assert _pre(kind, lambda _: {"input": {"x": [1]}}, validated=False).args == {"x": [1]}


@BOTH
def test_a_patch_rewrites_args_and_metadata(kind: str) -> None:
    """SEMANTICS P2."""
    patch = [
        {"op": "replace", "path": "/args/command", "value": "b"},
        {"op": "add", "path": "/metadata/note", "value": 1},
    ]
    decision = _pre(kind, lambda _: {"patch": patch})
    assert decision.args == {"command": "b", "limit": 10}
    assert decision.fields["metadata"] == {"note": 1}
    assert decision.trace[0].outcome == "changed"
    assert set(decision.trace[0].wrote) == {"/args/command", "/metadata/note"}


@BOTH
def test_a_patch_is_applied_whole_or_not_at_all(kind: str) -> None:
    """SEMANTICS P2."""
    metadata: dict[str, object] = {}
    patch = [
        {"op": "add", "path": "/metadata/note", "value": 1},
        {"op": "remove", "path": "/metadata/absent"},
    ]
    with pytest.raises(OutcomeInvalid) as caught:
        _pre(kind, lambda _: {"patch": patch}, metadata=metadata)
    assert caught.value.path == "/patch/1"
    assert metadata == {}


@BOTH
@pytest.mark.parametrize("path", ["/toolName", "/toolCall/args", "/sessionId", "/request/model", "/state/x"])
def test_a_patch_outside_the_points_paths_is_an_invalid_outcome(kind: str, path: str) -> None:
    """SEMANTICS P2."""
    with pytest.raises(OutcomeInvalid):
        _pre(kind, lambda _: {"patch": [{"op": "add", "path": path, "value": 1}]})


def test_a_patch_on_a_field_the_hook_did_not_receive_is_an_invalid_outcome() -> None:
    """SEMANTICS P2, G4."""
    sandbox = FakeSandbox()
    patch = [{"op": "add", "path": "/metadata/x", "value": 1}]
    guest = sandbox.guest("g", {"needs": ["args"]}, pre_tool_call=lambda _: {"patch": patch})
    with pytest.raises(OutcomeInvalid, match="did not receive"):
        run_point_sync(HookRegistry([guest]), "pre_tool_call", RunFacts().context({"args": {}}))


@BOTH
@pytest.mark.parametrize(
    "outcome",
    [
        {"deny": "x", "result": 1},
        {"deny": "x", "input": {}},
        {"result": 1, "input": {}},
        {"hookSpecificOutput": {"deny": "x"}},
        {"Deny": "x"},
        {"deny": None},
        {"deny": {"reason": "x"}},
        {"input": "command"},
        {"replace": "x"},
        {"meta": {}},
        {"events": []},
        {"patch": None},
    ],
    ids=repr,
)
def test_a_bad_outcome_is_a_failure_and_never_a_silent_allow(kind: str, outcome: dict[str, Any]) -> None:
    """SEMANTICS P8; issue case (j): a deny at the wrong nesting."""
    with pytest.raises(OutcomeInvalid) as caught:
        _pre(kind, lambda _: dict(outcome))
    assert (caught.value.hook, caught.value.point, caught.value.code) == ("h0", "pre_tool_call", "outcome_invalid")
    assert caught.value.trace[0].failure == "outcome_invalid"


def test_an_outcome_that_is_no_map_is_invalid_from_a_host_hook() -> None:
    """SEMANTICS P8: ``return "no"`` is no deny and must not pass for nothing."""
    for returned in ("no", 1, False, [], {"deny"}):
        hooks = HookRegistry([host("h", pre_tool_call=lambda _, returned=returned: returned)])
        with pytest.raises(OutcomeInvalid):
            run_point_sync(hooks, "pre_tool_call", {"args": {}})


@BOTH
def test_a_hook_that_throws_rejects_the_run(kind: str) -> None:
    """SEMANTICS P11."""
    thrown = {"error": {"name": "Boom", "message": "out of order"}} if kind == "guest" else RuntimeError("out of order")
    with pytest.raises(HookThrew) as caught:
        _pre(kind, lambda _: thrown)
    assert caught.value.message == "out of order"
    assert caught.value.hook == "h0"
    if kind == "host":
        assert caught.value.__cause__ is thrown


@BOTH
def test_nothing_else_of_an_outcome_counts_beside_an_error(kind: str) -> None:
    """SEMANTICS, "Every outcome may also hold"."""
    metadata: dict[str, object] = {}
    error = {"error": {"name": "E", "message": "m"}, "patch": [{"op": "add", "path": "/metadata/x", "value": 1}]}
    hooks = HookRegistry([FakeSandbox().guest("h0", pre_tool_call=lambda _: error)])
    if kind == "host":
        hooks = HookRegistry([host("h0", pre_tool_call=lambda _: error)])
    with pytest.raises(HookThrew):
        run_point_sync(hooks, "pre_tool_call", RunFacts(metadata=metadata).context({"args": {}}))
    assert metadata == {}


# Messages at tool points.


@BOTH
def test_added_messages_wait_and_later_hooks_of_the_chain_see_them(kind: str) -> None:
    """SEMANTICS P2: what is added stands after the results of that batch of calls."""
    history = History([{"role": "user", "content": "hi"}])
    seen: list[int] = []

    def add(context: dict[str, Any]) -> dict[str, Any]:
        seen.append(len(context["messages"]))
        message = {"role": "user", "content": f"note {len(seen)}"}
        return {"patch": [{"op": "add", "path": "/messages/-", "value": message}]}

    decision = _pre(kind, add, add, messages=history)
    assert seen == [1, 2]
    assert [message["content"] for message in decision.appended] == ["note 1", "note 2"]
    assert history == [{"role": "user", "content": "hi"}]
    assert decision.trace[0].wrote == ("/messages/-",)


@BOTH
@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/messages/0/content", "value": "edited"},
        {"op": "remove", "path": "/messages/0"},
        {"op": "add", "path": "/messages/0", "value": {"role": "user", "content": "first"}},
        {"op": "replace", "path": "/messages", "value": []},
        {"op": "add", "path": "/messages/-", "value": {"role": "stranger", "content": "x"}},
        {"op": "add", "path": "/messages/-", "value": "text"},
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_messages_are_append_only_at_tool_points(kind: str, operation: dict[str, Any]) -> None:
    """SEMANTICS P2."""
    history = History([{"role": "user", "content": "hi"}])
    with pytest.raises(OutcomeInvalid):
        _pre(kind, lambda _: {"patch": [operation]}, messages=history)
    assert history == [{"role": "user", "content": "hi"}]


# post_tool_call.


@BOTH
def test_each_post_hook_sees_the_result_an_earlier_one_replaced(kind: str) -> None:
    """SEMANTICS P7, P9."""
    decision = _post(kind, *[lambda c: {"result": c["result"]["result"] + "!"}] * 3, result={"result": "a"})
    assert (decision.kind, decision.replaced_by, decision.value) == ("replaced", "h2", "a!!!")
    assert decision.fields["result"] == {"result": "a!!!"}


@BOTH
def test_the_error_mark_stays_when_a_post_hook_replaces(kind: str) -> None:
    """SEMANTICS P9."""
    error = {"kind": "tool", "message": "secret path"}
    decision = _post(kind, lambda _: {"result": "it failed"}, result={"result": None, "error": error})
    assert decision.fields["result"] == {"result": "it failed", "error": error}


@BOTH
@pytest.mark.parametrize("origin", ["tool", "hook"])
def test_a_replacement_applies_where_the_tool_or_a_hook_made_the_result(kind: str, origin: str) -> None:
    """SEMANTICS P9."""
    assert _post(kind, lambda _: {"result": 2}, result={"result": 1}, origin=origin).value == 2


@BOTH
@pytest.mark.parametrize("origin", ["denied", "validation", "hook_failed", "refused", "approval"])
def test_the_engines_own_errors_and_the_approval_pause_stand(kind: str, origin: str) -> None:
    """SEMANTICS P9: the trace says that the replacement was ignored."""
    result = {"result": None, "error": {"kind": "denied", "message": "no"}}
    decision = _post(kind, lambda _: {"result": "ok"}, result=result, origin=origin)
    assert (decision.kind, decision.value) == ("proceed", ABSENT)
    assert "result" not in decision.fields
    assert "ignored" in decision.trace[0].notes[0]
    assert origin in decision.trace[0].notes[0]


@BOTH
@pytest.mark.parametrize(
    "outcome", [{"deny": "x"}, {"input": {}}, {"patch": [{"op": "add", "path": "/args/x", "value": 1}]}]
)
def test_a_post_hook_cannot_deny_or_rewrite(kind: str, outcome: dict[str, Any]) -> None:
    """SEMANTICS P8, G7."""
    with pytest.raises(OutcomeInvalid):
        _post(kind, lambda _: outcome, result={"result": 1})


# Host hooks that change their context in place.


def test_a_host_hook_rewrites_args_by_mutation() -> None:
    """SEMANTICS P2, P6: as real as ``input``, and validated like it."""

    def mutate(ctx: Any) -> None:
        ctx.args["command"] = "b"

    decision = run_point_sync(
        HookRegistry([host("h", pre_tool_call=mutate)]),
        "pre_tool_call",
        {"args": {"command": "a"}},
        validate_args=SCHEMA.validate,
    )
    assert decision.args == {"command": "b", "limit": 10}
    assert decision.rewritten_by == ("h",)
    assert decision.trace[0].wrote == ("/args",)


def test_a_host_hook_that_only_looks_rewrites_nothing() -> None:
    """SEMANTICS P2: reading is no write, so nothing is validated again and nobody is named."""

    def look(ctx: Any) -> None:
        assert ctx.args == {"n": 1}
        assert ctx.tool_name == "run"
        assert ctx.subagent is None

    def refuse(_: object) -> object:
        raise AssertionError

    hooks = HookRegistry([host("h", pre_tool_call=look)])
    decision = run_point_sync(hooks, "pre_tool_call", {"args": {"n": 1}, "toolName": "run"}, validate_args=refuse)
    assert decision.rewritten_by == ()
    assert decision.trace[0].outcome == "nothing"


def test_a_change_from_1_to_true_is_a_change() -> None:
    """They are equal in Python and are two values on the wire, so the schema must see it."""

    def mutate(ctx: Any) -> None:
        ctx.args["limit"] = True

    decision = run_point_sync(
        HookRegistry([host("h", pre_tool_call=mutate)]),
        "pre_tool_call",
        {"args": {"command": "a", "limit": 1}},
        validate_args=SCHEMA.validate,
    )
    assert decision.kind == "validation"


def test_a_mismatch_drops_a_host_hooks_mutations_too() -> None:
    """SEMANTICS P6."""
    args, metadata = {"command": "a"}, {"kept": {"deep": 1}}

    def mutate(ctx: Any) -> None:
        ctx.args["command"] = 1
        ctx.metadata["kept"]["deep"] = 2
        ctx.metadata["new"] = 3
        ctx.messages.append({"role": "user", "content": "x"})

    facts = RunFacts(metadata=metadata)
    decision = run_point_sync(
        HookRegistry([host("h", pre_tool_call=mutate)]),
        "pre_tool_call",
        facts.context({"args": args}),
        validate_args=SCHEMA.validate,
    )
    assert decision.kind == "validation"
    assert args == decision.args == {"command": "a"}
    assert metadata == {"kept": {"deep": 1}}
    assert facts.messages == []


def test_a_host_hook_appends_messages_by_mutation() -> None:
    """SEMANTICS P2: and they wait for the batch's results like a guest's."""
    facts = RunFacts(messages=History([{"role": "user", "content": "hi"}]))
    message = {"role": "user", "content": "note"}
    hooks = HookRegistry([host("h", pre_tool_call=lambda ctx: ctx.messages.append(message))])
    decision = run_point_sync(hooks, "pre_tool_call", facts.context({"args": {}}))
    assert decision.appended == (message,)
    assert len(facts.messages) == 1


def test_a_guest_sees_what_a_host_hook_edited_after_another_hook_added_a_message() -> None:
    """An addition gives the chain a list of its own, and the messages in it are still the run's."""
    facts = RunFacts(messages=History([{"role": "user", "content": "secret"}]))
    facts.messages.encoded()
    added = {"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "x"}}

    def redact(ctx: Any) -> None:
        ctx.messages[0]["content"] = "***"

    guest = FakeSandbox().guest("adds", pre_tool_call=lambda _: {"patch": [added]})
    run_point_sync(HookRegistry([guest, host("redact", pre_tool_call=redact)]), "pre_tool_call", facts.context({}))
    assert b"secret" not in facts.messages.encoded()


def test_a_host_hook_cannot_remove_messages_at_a_tool_point() -> None:
    """SEMANTICS P2."""
    facts = RunFacts(messages=History([{"role": "user", "content": "hi"}]))
    hooks = HookRegistry([host("h", pre_tool_call=lambda ctx: ctx.messages.clear())])
    with pytest.raises(OutcomeInvalid, match="only be added"):
        run_point_sync(hooks, "pre_tool_call", facts.context({"args": {}}))
    assert len(facts.messages) == 1


def test_what_a_host_hook_does_to_read_only_fields_is_lost() -> None:
    """SEMANTICS: ``toolCall`` is the model's original call and never changes."""
    call = {"id": "1", "name": "run", "args": {"command": "a"}}

    def mutate(ctx: Any) -> None:
        ctx.tool_call["args"]["command"] = "b"

    hooks = HookRegistry([host("h", pre_tool_call=mutate)])
    run_point_sync(hooks, "pre_tool_call", {"args": {}, "toolCall": call})
    assert call["args"] == {"command": "a"}
    with pytest.raises(HookThrew, match="cannot be set"):
        run_point_sync(
            HookRegistry([host("h", pre_tool_call=lambda ctx: setattr(ctx, "tool_name", "x"))]),
            "pre_tool_call",
            {"args": {}, "toolName": "run"},
        )


def test_a_field_that_became_another_type_is_an_invalid_outcome() -> None:
    """SEMANTICS P2: the context keeps its shape."""
    for field in ("args", "metadata", "messages"):
        hooks = HookRegistry([host("h", pre_tool_call=lambda ctx, field=field: setattr(ctx, field, 5))])
        with pytest.raises(OutcomeInvalid, match="must stay"):
            run_point_sync(hooks, "pre_tool_call", RunFacts().context({"args": {}}))
