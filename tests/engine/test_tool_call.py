"""One tool call from the model's arguments to what the model sees (SEMANTICS P3-P6, P9-P11)."""

from __future__ import annotations

from typing import Any

import anyio
import pydantic
import pytest

from hookcell import (
    Gate,
    History,
    HookRegistry,
    HookThrew,
    RunFacts,
    Schema,
    SettledCall,
    ToolCall,
    ToolError,
    ToolPipeline,
    ToolResult,
    add_results,
    assistant_message,
    run_point_sync,
    show_final_args,
    tool_schema,
)

from .fake_sandbox import FakeSandbox, either, host

SCHEMA = tool_schema(
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "default": 20}},
        "required": ["path"],
        "additionalProperties": False,
    }
)
CALL = ToolCall(id="c1", name="read", args={"path": "a.txt"})
BOTH = pytest.mark.parametrize("kind", ["host", "guest"])


def _pipeline(*hooks: Any, facts: RunFacts | None = None) -> ToolPipeline:
    registry = HookRegistry()
    for hook in hooks:
        registry.register(hook)
    return ToolPipeline(hooks=registry, run=facts or RunFacts())


def _settle(pipeline: ToolPipeline, call: ToolCall = CALL, **options: Any) -> tuple[SettledCall, list[object]]:
    """Run one call whose tool echoes its arguments; also what it was executed with."""
    executed: list[object] = []

    async def execute(args: dict[str, object]) -> object:
        await anyio.sleep(0)
        executed.append(args)
        return {"echo": args}

    async def main() -> SettledCall:
        return await pipeline.call(call, execute, schema=SCHEMA, **options)

    return anyio.run(main), executed


def _audit(seen: list[tuple[str, object]]) -> Any:
    """A hook that watches every call settle."""

    def post_tool_call(ctx: Any, result: dict[str, Any]) -> None:
        seen.append((ctx.origin, result.get("error", {}).get("kind")))

    return host("audit", post_tool_call=post_tool_call)


def test_a_call_that_nobody_touches_runs_with_validated_arguments() -> None:
    """SEMANTICS P3."""
    settled, executed = _settle(_pipeline())
    assert executed == [{"path": "a.txt", "lines": 20}]
    assert settled.result == ToolResult(result={"echo": {"path": "a.txt", "lines": 20}})
    assert settled.content == {"echo": {"path": "a.txt", "lines": 20}}
    assert settled.metadata == {}
    assert settled.gate.decision is not None


@BOTH
def test_the_order_of_one_call(kind: str) -> None:
    """SEMANTICS P3: validation, pre-hooks, rules, execution, post-hooks."""
    order: list[object] = []
    hook = either(
        kind,
        FakeSandbox(),
        "h",
        pre_tool_call=lambda c: order.append(("pre", c["args"])),
        post_tool_call=lambda c: order.append(("post", c["origin"])),
    )

    def rules(call: ToolCall, args: dict[str, object]) -> None:
        order.append(("rules", call.args, args))

    _, executed = _settle(_pipeline(hook), rules=rules)
    filled = {"path": "a.txt", "lines": 20}
    assert order == [("pre", filled), ("rules", {"path": "a.txt"}, filled), ("post", "tool")]
    assert executed == [filled]


@pytest.mark.parametrize("args", [{}, {"path": 1}, {"path": "a", "other": 1}, "not json", None, [1], {1: "x"}])
def test_arguments_that_fail_the_first_validation_skip_the_pre_hooks(args: object) -> None:
    """SEMANTICS P3, P10: post-hooks see the error."""
    ran: list[str] = []
    seen: list[tuple[str, object]] = []
    pre = host("pre", pre_tool_call=lambda _: ran.append("pre"))
    settled, executed = _settle(_pipeline(pre, _audit(seen)), ToolCall(id="c", name="read", args=args))
    assert (ran, executed) == ([], [])
    assert seen == [("validation", "validation")]
    assert settled.gate.decision is None
    error = settled.result.error
    assert error is not None
    assert (error.kind, error.hook, settled.result.origin) == ("validation", None, "validation")
    assert settled.content == error.message


@BOTH
@pytest.mark.parametrize("reason", ["not here", ""])
def test_a_deny_is_a_tool_error_of_kind_denied(kind: str, reason: str) -> None:
    """SEMANTICS P4: an empty reason still denies."""
    seen: list[tuple[str, object]] = []
    hook = either(kind, FakeSandbox(), "guard", pre_tool_call=lambda _: {"deny": reason})
    asked: list[object] = []
    settled, executed = _settle(_pipeline(hook, _audit(seen)), rules=lambda *a: asked.append(a))
    assert (executed, asked) == ([], [])
    assert settled.result == ToolResult(error=ToolError(kind="denied", message=reason, hook="guard"), origin="denied")
    assert settled.result.wire() == {
        "result": None,
        "error": {"kind": "denied", "message": reason, "hook": "guard"},
    }
    assert seen == [("denied", "denied")]
    assert settled.content == reason


@BOTH
@pytest.mark.parametrize("value", ["cached", None])
def test_a_pre_hooks_result_runs_nothing_and_asks_nobody(kind: str, value: object) -> None:
    """SEMANTICS P5: null is a value."""
    seen: list[tuple[str, object]] = []
    hook = either(kind, FakeSandbox(), "cache", pre_tool_call=lambda _: {"result": value})
    asked: list[object] = []
    settled, executed = _settle(_pipeline(hook, _audit(seen)), rules=lambda *a: asked.append(a))
    assert (executed, asked) == ([], [])
    assert settled.content == value
    assert settled.result.origin == "hook"
    assert settled.metadata == {"replacedByHook": "cache"}
    assert seen == [("hook", None)]


@BOTH
def test_a_mismatch_that_a_hook_made_names_the_hook(kind: str) -> None:
    """SEMANTICS P6."""
    seen: list[tuple[str, object]] = []
    hook = either(kind, FakeSandbox(), "rewrite", pre_tool_call=lambda _: {"input": {"path": 1}})
    settled, executed = _settle(_pipeline(hook, _audit(seen)))
    error = settled.result.error
    assert executed == []
    assert error is not None
    assert (error.kind, error.hook) == ("validation", "rewrite")
    assert "'rewrite'" in error.message
    assert "/path" in error.message
    assert seen == [("validation", "validation")]


@BOTH
def test_the_tool_runs_with_what_a_hook_rewrote_and_the_rules_see_it(kind: str) -> None:
    """SEMANTICS P6, P15."""
    hook = either(kind, FakeSandbox(), "rewrite", pre_tool_call=lambda _: {"input": {"path": "b.txt"}})
    ruled: list[object] = []
    settled, executed = _settle(_pipeline(hook), rules=lambda _call, args: ruled.append(args))
    assert executed == ruled == [{"path": "b.txt", "lines": 20}]
    assert settled.gate.args == {"path": "b.txt", "lines": 20}
    assert settled.gate.call.args == {"path": "a.txt"}


def test_the_rules_settle_a_call_before_it_runs() -> None:
    """SEMANTICS P3, P10: a refusal and the approval pause are seen by post-hooks."""
    for verdict in (
        ToolResult(error=ToolError(kind="refused", message="no"), origin="refused"),
        ToolResult(requires_approval=True, origin="approval"),
    ):
        seen: list[tuple[str, object]] = []

        async def rules(_call: ToolCall, _args: object, verdict: ToolResult = verdict) -> ToolResult:
            return verdict

        settled, executed = _settle(_pipeline(_audit(seen)), rules=rules)
        assert executed == []
        assert settled.result == verdict
        assert seen[0][0] == verdict.origin


def test_what_a_tool_raises_is_a_tool_error_that_post_hooks_see() -> None:
    """SEMANTICS P9, P10: and a replacement keeps its mark."""
    seen: list[tuple[str, object]] = []

    def execute(_: object) -> object:
        raise FileNotFoundError("/home/secret")

    hide = host("hide", post_tool_call=lambda _ctx, _result: {"result": "no such file"})

    async def main() -> SettledCall:
        return await _pipeline(_audit(seen), hide).call(CALL, execute)

    settled = anyio.run(main)
    assert seen == [("tool", "tool")]
    assert settled.result.error is not None
    assert settled.result.error.kind == "tool"
    assert settled.content == "no such file"


@BOTH
def test_a_post_hook_replaces_what_the_model_sees(kind: str) -> None:
    """SEMANTICS P9: the tool's run is untouched, and the result is not marked as a pre-hook's (P5)."""
    hook = either(kind, FakeSandbox(), "redact", post_tool_call=lambda _: {"result": "***"})
    settled, executed = _settle(_pipeline(hook))
    assert len(executed) == 1
    assert settled.content == "***"
    assert settled.result.origin == "tool"
    assert settled.post.replaced_by == "redact"
    assert settled.metadata == {}


@BOTH
def test_a_post_hook_cannot_undo_a_deny(kind: str) -> None:
    """SEMANTICS P9, G7."""
    sandbox = FakeSandbox()
    settled, _ = _settle(
        _pipeline(
            either(kind, sandbox, "guard", pre_tool_call=lambda _: {"deny": "no"}),
            either(kind, sandbox, "undo", post_tool_call=lambda _: {"result": "yes"}),
        )
    )
    assert settled.content == "no"
    assert settled.result.error is not None
    assert settled.trace[-1].notes


@pytest.mark.parametrize("point", ["pre_tool_call", "post_tool_call"])
def test_a_failure_under_deny_is_an_error_of_its_own_kind(point: str) -> None:
    """SEMANTICS P11: what the hook wrote stays out of what the model reads."""
    thrown = {"error": {"name": "E", "message": "the secret is 42"}}
    guest = FakeSandbox().guest("bad", options={"on_failure": "deny"}, **{point: lambda _: thrown})
    settled, executed = _settle(_pipeline(guest))
    assert len(executed) == (point == "post_tool_call")
    error = settled.result.error
    assert error is not None
    assert (error.kind, error.hook, settled.result.origin) == ("hook_failed", "bad", "hook_failed")
    assert settled.result.result is None
    assert "42" not in error.message
    assert "threw" in error.message


@pytest.mark.parametrize("point", ["pre_tool_call", "post_tool_call"])
def test_a_failure_under_raise_rejects_the_run(point: str) -> None:
    """SEMANTICS P11: it never becomes a tool result."""
    thrown = {"error": {"name": "E", "message": "m"}}
    with pytest.raises(HookThrew):
        _settle(_pipeline(FakeSandbox().guest("bad", **{point: lambda _: thrown})))


def test_messages_added_before_and_after_come_back_in_order_and_wait() -> None:
    """SEMANTICS P2."""
    sandbox = FakeSandbox()

    def add(text: str) -> dict[str, Any]:
        return {"patch": [{"op": "add", "path": "/messages/-", "value": {"role": "user", "content": text}}]}

    facts = RunFacts(messages=History([{"role": "user", "content": "hi"}]))
    hook = sandbox.guest("h", pre_tool_call=lambda _: add("one"), post_tool_call=lambda _: add("two"))
    settled, _ = _settle(_pipeline(hook, facts=facts))
    assert [message["content"] for message in settled.appended] == ["one", "two"]
    assert len(facts.messages) == 1


def test_the_contexts_fields() -> None:
    """SEMANTICS, "Points": the tool's schema and the model's own call."""
    sandbox = FakeSandbox()
    guest = sandbox.guest("g", pre_tool_call=lambda _: {"input": {"path": "b"}}, post_tool_call=lambda _: None)
    _settle(_pipeline(guest, facts=RunFacts(agent_id="a", agent_name="n", session_id="s", metadata={"m": 1})))
    pre, post = (call.context for call in sandbox.calls)
    common = {"agentId": "a", "agentName": "n", "sessionId": "s", "messages": [], "metadata": {"m": 1}}
    own = {
        "toolCallId": "c1",
        "toolName": "read",
        "toolCall": {"id": "c1", "name": "read", "args": {"path": "a.txt"}},
        "toolSchema": SCHEMA.document,
    }
    args = {"path": "a.txt", "lines": 20}
    assert pre == {"point": "pre_tool_call", "args": args, **common, **own}
    args = {"path": "b", "lines": 20}
    result = {"result": {"echo": args}}
    assert post == {"point": "post_tool_call", "args": args, "result": result, "origin": "tool", **common, **own}


def test_a_replayer_has_no_executor() -> None:
    """The halves stand alone, in a plain thread too."""
    sandbox = FakeSandbox()
    pipeline = _pipeline(
        sandbox.guest(
            "g",
            pre_tool_call=lambda _: {"input": {"path": "b"}},
            post_tool_call=lambda c: {"result": c["result"]["result"].upper()},
        )
    )
    gate = pipeline.before_execution_sync(CALL)
    assert gate.runs
    assert gate.args == {"path": "b"}
    settled = pipeline.after_execution_sync(gate, ToolResult(result="recorded"))
    assert settled.content == "RECORDED"
    assert [entry.point for entry in settled.trace] == ["pre_tool_call", "post_tool_call"]


def test_gates_run_serially_and_executions_in_parallel() -> None:
    """SEMANTICS P3: what a host loop does with the halves."""
    order: list[str] = []
    hook = host(
        "h",
        pre_tool_call=lambda ctx: order.append(f"pre {ctx.tool_call_id}"),
        post_tool_call=lambda ctx, _: order.append(f"post {ctx.tool_call_id}"),
    )
    pipeline = _pipeline(hook)
    both_started = 0

    async def main() -> None:
        started = anyio.Event()

        async def execute(gate: Gate) -> None:
            nonlocal both_started
            both_started += 1
            if both_started == 2:
                started.set()
            await started.wait()

        gates = [await pipeline.before_execution(ToolCall(id=i, name="t", args={})) for i in "12"]
        async with anyio.create_task_group() as tasks:
            for gate in gates:
                tasks.start_soon(execute, gate)
        for gate in gates:
            await pipeline.after_execution(gate, ToolResult(result=1))

    anyio.run(main)
    assert order == ["pre 1", "pre 2", "post 1", "post 2"]


def test_a_call_is_settled_once() -> None:
    pipeline = _pipeline(host("h", pre_tool_call=lambda _: {"deny": "no"}))
    gate = pipeline.before_execution_sync(CALL)
    with pytest.raises(TypeError, match="settled before execution"):
        pipeline.after_execution_sync(gate, ToolResult(result=1))
    with pytest.raises(TypeError, match="give its result"):
        _pipeline().after_execution_sync(_pipeline().before_execution_sync(CALL))


def test_a_pydantic_model_is_a_schema() -> None:
    """SEMANTICS P6: args become the validated dump."""

    class Arguments(pydantic.BaseModel):
        path: str
        lines: int = 20

    gate = _pipeline().before_execution_sync(CALL, schema=tool_schema(Arguments))
    assert gate.args == {"path": "a.txt", "lines": 20}


def test_a_cancelled_execution_is_no_tool_error() -> None:
    seen: list[tuple[str, object]] = []

    async def main() -> None:
        with anyio.CancelScope() as scope:

            async def execute(_: object) -> None:
                scope.cancel()
                await anyio.sleep_forever()

            await _pipeline(_audit(seen)).call(CALL, execute)
        assert scope.cancelled_caught

    anyio.run(main)
    assert seen == []


def test_a_hook_failure_inside_a_tool_rejects_the_run() -> None:
    """SEMANTICS P11, P17: a sub-agent runs inside a tool, and its hooks' failures are no tool results either."""

    async def execute(_: object) -> None:
        thrown = {"error": {"name": "E", "message": "m"}}
        inner = _pipeline(FakeSandbox().guest("inner", pre_tool_call=lambda _: thrown))
        await inner.before_execution(CALL)

    with pytest.raises(HookThrew) as caught:
        anyio.run(_pipeline().call, CALL, execute)
    assert caught.value.hook == "inner"


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_a_tool_that_edits_its_arguments_leaves_the_models_call_alone(schema: Any) -> None:
    """SEMANTICS: ``toolCall`` is the model's original call and never changes."""
    call = ToolCall(id="1", name="read", args={"path": "a", "lines": 1})

    async def main() -> SettledCall:
        return await _pipeline().call(call, lambda args: args.clear(), schema=schema)

    anyio.run(main)
    assert call.args == {"path": "a", "lines": 1}


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_a_tool_that_edits_its_arguments_changes_no_record(schema: Schema | None) -> None:
    """Post-hooks see, and the decision keeps, what the tool was given."""
    seen: list[object] = []
    rewrite = host("rewrite", pre_tool_call=lambda _: {"input": {"path": "b.txt"}})
    audit = host("audit", post_tool_call=lambda ctx, _: seen.append(ctx.args))

    def execute(args: dict[str, Any]) -> None:
        args.clear()

    settled = anyio.run(lambda: _pipeline(rewrite, audit).call(CALL, execute, schema=schema))
    assert settled.gate.decision is not None
    assert settled.gate.decision.args == settled.gate.args == seen[0]
    assert settled.gate.args["path"] == "b.txt"  # type: ignore[index]  # a map


def test_a_plain_list_of_messages_is_as_right_as_a_history() -> None:
    """Both kinds of hook edit it in place at a generate point, and add to it behind a batch's results."""
    sandbox = FakeSandbox()
    more = {"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "guest"}}
    guest = sandbox.guest("guest", pre_generate=lambda _: {"patch": [more]}, pre_tool_call=lambda _: {"patch": [more]})

    def append(ctx: Any) -> None:
        ctx.messages.append({"role": "user", "content": "host"})

    hooks = HookRegistry([host("host", pre_generate=append, pre_tool_call=append), guest])
    conversations: list[list[dict[str, Any]]] = []
    for messages in ([{"role": "user", "content": "hi"}], History([{"role": "user", "content": "hi"}])):
        run = RunFacts(messages=messages)
        run_point_sync(hooks, "pre_generate", run.context({"request": {}}), run=run)
        pipeline = ToolPipeline(hooks=hooks, run=run)
        gate = pipeline.before_execution_sync(CALL, schema=SCHEMA)
        messages.append(assistant_message("", [CALL]))
        show_final_args(messages, gate)
        add_results(messages, [pipeline.after_execution_sync(gate, ToolResult(result="text"))])
        conversations.append(list(messages))
    assert conversations[0] == conversations[1]
    assert [each["content"] for each in conversations[0]] == ["hi", "host", "guest", "", "text", "host", "guest"]
    assert [len(call.context["messages"]) for call in sandbox.calls] == [2, 4, 2, 4]
