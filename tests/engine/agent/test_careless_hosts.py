"""What careless hosts and odd middleware do to a run: each was found by someone who tried to break it."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from hookcell import HookFailure, HookRegistry, RunFacts, ToolCall, ToolPipeline, run_point
from hookcell.agent import (
    App,
    RunState,
    TurnDone,
    TurnResult,
    Usage,
    create_agent,
    define_tool,
    mock_model,
)

from ..fake_sandbox import FakeSandbox, host  # noqa: TID252 tests are no package that could be named

ANY = {"type": "object"}


def calls(name: str, call_id: str, **more: Any) -> Any:
    args = {"task": "x"} if name == "sub" else {"n": 1}
    return {"toolCalls": [{"name": name, "args": args, "id": call_id}], **more}


def paying(ran: list[object], turns: list[Any], **more: Any) -> Any:
    """An agent with a sub-agent whose tool needs approval."""
    pay = define_tool("pay", input=ANY, execute=ran.append, needs_approval=True)
    sub = create_agent(name="sub", provider=mock_model(turns), tools=[pay])
    lead = [calls("sub", "s", usage=Usage(input_tokens=10)), {"text": "done", "usage": Usage(input_tokens=10)}]
    return create_agent(provider=mock_model(lead), sub_agents=[sub], **more)


def approved(agent: Any) -> TurnResult:
    async def main() -> TurnResult:
        paused = await agent.send("go")
        return await agent.resume(paused.pending, {"s/p": "approve"})

    return anyio.run(main)


def test_tokens_that_a_sub_agent_used_before_it_waited_count_once() -> None:
    used = Usage(input_tokens=10)
    agent = paying([], [calls("pay", "p", usage=used), {"text": "ok", "usage": used}])
    assert approved(agent).usage == Usage(input_tokens=40)


def test_a_middleware_that_asks_again_does_not_run_what_was_approved_twice() -> None:
    ran: list[object] = []

    async def retry(_: object, proceed: Any) -> Any:
        output = await proceed()
        return await proceed() if output.is_error else output

    turns = [calls("pay", "p"), RuntimeError("503"), "ok"]
    assert approved(paying(ran, turns, app=App().use(tool=retry))).text == "done"
    assert ran == [{"n": 1}]


def test_a_users_lone_surrogate_fails_no_guest() -> None:
    sandbox = FakeSandbox()
    guest = sandbox.guest("g", pre_generate=lambda _: None)
    run = RunState()
    agent = create_agent(provider=mock_model(["a", "b"]), hooks=[guest])
    for text in ("hi \ud800", "hi"):
        anyio.run(lambda text=text: agent.send(text, state=run))
    assert [message["content"] for message in sandbox.calls[1].context["messages"]] == ["hi ?", "a", "hi"]
    with pytest.raises(ValueError, match="/content/0/text is a string with a lone surrogate"):
        anyio.run(lambda: agent.send([{"type": "text", "text": "\ud800"}], state=run))


@pytest.mark.parametrize("answer", ["\ud800", {"content": float("nan")}, {"content": object()}, {"content": 2**70}])
def test_a_middlewares_answer_that_cannot_cross_is_a_tool_error(answer: object) -> None:
    sandbox = FakeSandbox()
    guest = sandbox.guest("g", pre_generate=lambda _: None, post_tool_call=lambda _: None)
    tool = define_tool("read", input=ANY, execute=lambda _: "text")
    app = App().use(tool=lambda _call, _proceed: answer)
    agent = create_agent(provider=mock_model([calls("read", "c"), "done"]), tools=[tool], hooks=[guest], app=app)
    assert anyio.run(agent.send, "hi").text == "done"
    assert sandbox.calls[1].context["result"]["error"]["kind"] == "tool"


def test_a_step_of_its_own_rewrites_no_message_of_the_run() -> None:
    """C8: even where a model once gave a call the name that the step's call has."""

    class Step:
        async def run(self, _: object, ctx: Any) -> object:
            return (await ctx.call_tool("wipe", {"disk": "sda"})).content

    read = define_tool("read", input=ANY, execute=lambda _: "text")
    wipe = define_tool("wipe", input=ANY, execute=lambda _: "wiped")
    first = create_agent(provider=mock_model([calls("read", "step_1"), "ok"]), tools=[read])
    second = create_agent(provider=mock_model([]), tools=[wipe], agent_class=Step)
    run = RunState()

    async def main() -> tuple[str, object]:
        await first.send("hi", state=run)
        before = json.dumps(list(run.history))
        return before, (await second.send("go", state=run)).output

    before, output = anyio.run(main)
    assert (output, json.dumps(list(run.history))) == ("wiped", before)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_hooks_failure_in_a_task_group_of_the_tools_rejects_the_run_too(backend: str) -> None:
    def stop(_: object) -> None:
        raise ValueError("policy says stop")

    inner = HookRegistry([host("bad", pre_generate=stop)])

    async def in_a_group(_: object) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(run_point, inner, "pre_generate", RunFacts().context({"request": {}}))

    pipeline = ToolPipeline(hooks=HookRegistry(), run=RunFacts())
    with pytest.raises(ExceptionGroup) as caught:
        anyio.run(pipeline.call, ToolCall(id="c", name="t", args={}), in_a_group, backend=backend)
    assert caught.group_contains(HookFailure)


def test_a_turn_cancelled_while_it_tells_of_its_pause_leaves_a_run_to_go_on_with() -> None:
    async def never(event: object) -> None:
        if isinstance(event, TurnDone) and event.result.pending is not None:
            told.set()
            await anyio.sleep_forever()

    pay = define_tool("pay", input=ANY, execute=lambda _: "paid", needs_approval=True)
    agent = create_agent(provider=mock_model([calls("pay", "p"), "done"]), tools=[pay], on_event=never)
    run = RunState()

    async def main() -> TurnResult:
        nonlocal told
        told = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: agent.send("hi", state=run))
            await told.wait()
            group.cancel_scope.cancel()
        return await agent.send("again", state=run)

    told: Any = None
    result = anyio.run(main)
    assert result.text == "done"
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "user", "assistant"]


def test_what_a_middleware_does_to_a_request_is_not_done_to_the_run() -> None:
    def redact(request: Any, proceed: Any) -> Any:
        for message in request.messages:
            if message["role"] == "user":
                message["content"] = "[redacted]"
        for tool in request.tools:
            tool.parameters.clear()
        return proceed()

    tool = define_tool("read", input={"type": "object", "required": ["f"]}, execute=lambda _: "text")
    model = mock_model(["done"])
    agent = create_agent(provider=model, tools=[tool], app=App().use(chat=redact))
    result = anyio.run(agent.send, "secret")
    assert model.calls[0].messages[0]["content"] == "[redacted]"
    assert result.messages[0]["content"] == "secret"
    assert tool.schema.document["required"] == ["f"]
