"""Middleware: its order, what it sees and may answer, and what it cannot change (SEMANTICS C9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import FrozenInstanceError
from typing import Any

import anyio
import pytest

from hookcell.agent import (
    App,
    ModelRequest,
    ModelResponse,
    TextDelta,
    ToolFailed,
    ToolOutput,
    ToolRun,
    Usage,
    allow,
    ask,
    create_agent,
    deny,
    mock_model,
)

from .loop import BACKENDS, agent_of, calling, contents, drained, host, send, tool, watching

Next = Callable[[], Awaitable[Any]]


def test_a_middleware_is_inside_those_added_before_it() -> None:
    order: list[str] = []

    def layer(name: str) -> Callable[..., Any]:
        async def middleware(_: object, proceed: Next) -> Any:
            order.append(f"{name} in")
            answer = await proceed()
            order.append(f"{name} out")
            return answer

        return middleware

    app = App().use(tool=layer("a"), chat=layer("A")).use(tool=layer("b")).use(chat=layer("B"))
    send(agent_of([calling("f"), "done"], tool("f", lambda _: order.append("tool")), app=app))
    chat = ["A in", "B in", "B out", "A out"]
    assert order == [*chat, "a in", "b in", "tool", "b out", "a out", *chat]


def test_an_app_without_a_middleware_to_use_is_told() -> None:
    with pytest.raises(TypeError, match="tool= or a chat="):
        App().use()


def test_it_sees_the_call_as_it_will_execute_and_can_change_nothing_of_it() -> None:
    seen: list[ToolRun] = []
    ran: list[object] = []

    async def spoil(call: ToolRun, proceed: Next) -> Any:
        seen.append(call)
        call.args["deep"]["x"] = "spoilt"  # type: ignore[index]
        with pytest.raises(FrozenInstanceError):
            call.name = "other"  # type: ignore[misc]
        return await proceed()

    async def inner(call: ToolRun, proceed: Next) -> Any:
        assert call.args == {"deep": {"x": 2}}
        return await proceed()

    rewrite = host("rewrite", pre_tool_call=lambda ctx: {"input": {"deep": {"x": 2}}})
    app = App().use(tool=spoil).use(tool=inner)
    turns = [calling("f", args={"deep": {"x": 1}}, id="c"), "done"]
    send(agent_of(turns, tool("f", ran.append), app=app, hooks=[rewrite], name="boss"), session_id="s")
    assert ran == [{"deep": {"x": 2}}]
    assert (seen[0].call_id, seen[0].name, seen[0].agent_name, seen[0].session_id) == ("c", "f", "boss", "s")


@pytest.mark.parametrize(
    ("answer", "seen", "error"),
    [
        ("text", "text", False),
        ("", "", False),
        ({"content": "x"}, "x", False),
        ({"content": None}, "", False),
        ({"content": {"a": 1}, "isError": False}, '{"a": 1}', False),
        ({"content": "no", "isError": True}, "no", True),
        ({"content": {"why": "no"}, "isError": True}, '{"why": "no"}', True),
        (ToolOutput(content=[1]), "[1]", False),
        (ToolOutput(content="no", is_error=True), "no", True),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_it_may_answer_in_the_tool_s_place(kind: str, answer: object, seen: object, error: bool) -> None:
    ran: list[object] = []

    async def later(_: ToolRun, proceed: Next) -> object:
        return answer

    app = App().use(tool=later if kind == "async" else lambda _, proceed: answer)
    failed, listen = watching(ToolFailed)
    result = send(agent_of([calling("f"), "done"], tool("f", ran.append), app=app, on_event=listen))
    assert (contents(result), result.text, ran) == ([seen], "done", [])
    assert [event.error.kind for event in failed] == ["tool"] * error


@pytest.mark.parametrize(
    "answer",
    [
        None,
        5,
        ["text"],
        {},
        {"isError": True},
        {"content": "x", "error": True},
        {"content": "x", "is_error": True},
        {"content": "no", "isError": 1},
        {"content": "no", "isError": "true"},
        {"content": "no", "isError": None},
        ModelResponse(text="x"),
    ],
)
def test_what_is_no_answer_ends_the_turn_and_is_never_taken_for_a_success(answer: object) -> None:
    with pytest.raises(TypeError, match="a tool middleware"):
        send(agent_of([calling("f"), "done"], tool(), app=App().use(tool=lambda _, proceed: answer)))


def test_a_plain_middleware_may_hand_on_what_next_gives() -> None:
    app = App().use(tool=lambda _, proceed: proceed(), chat=lambda _, proceed: proceed())
    assert contents(send(agent_of([calling("f"), "done"], tool(), app=app))) == ["ok"]


def test_next_runs_the_tool_as_often_as_it_is_awaited() -> None:
    ran: list[object] = []

    async def retry(_: ToolRun, proceed: Next) -> Any:
        first = await proceed()
        return await proceed() if first.is_error else first

    def flaky(_: object) -> str:
        ran.append(1)
        if len(ran) == 1:
            raise OSError("down")
        return "up"

    assert contents(send(agent_of([calling("f"), "done"], tool("f", flaky), app=App().use(tool=retry)))) == ["up"]


def test_what_the_tool_raised_is_an_output_to_it_and_what_it_raises_itself_leaves_the_turn() -> None:
    outputs: list[ToolOutput] = []

    def broken(_: object) -> None:
        raise ValueError("tool")

    async def fail(_: ToolRun, proceed: Next) -> Any:
        outputs.append(await proceed())
        raise KeyError("middleware")

    with pytest.raises(KeyError, match="middleware"):
        send(agent_of([calling("f"), "done"], tool("f", broken), app=App().use(tool=fail)))
    assert outputs == [ToolOutput(content="ValueError: tool", is_error=True)]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"permissions": [deny("f")]}, 0),
        ({"guardrails": [lambda call, args: "no"]}, 0),
        ({"hooks": [host("h", pre_tool_call=lambda ctx: {"deny": "no"})]}, 0),
        ({"hooks": [host("h", pre_tool_call=lambda ctx: {"result": 1})]}, 0),
        ({"permissions": [ask("f")]}, 0),
        ({"permissions": [allow("f")]}, 1),
    ],
)
def test_it_is_asked_about_calls_that_passed_every_gate_alone(options: dict[str, Any], asked: int) -> None:
    calls: list[ToolRun] = []

    async def count(call: ToolRun, proceed: Next) -> Any:
        calls.append(call)
        return await proceed()

    send(agent_of([calling("f"), "done"], tool(), app=App().use(tool=count), **options))
    assert len(calls) == asked


def test_a_chat_middleware_answers_with_a_response_and_nothing_else() -> None:
    model = mock_model(["model"])
    cached = App().use(chat=lambda request, proceed: ModelResponse(text="cached", usage=Usage(input_tokens=9)))
    result = send(create_agent(provider=model, app=cached))
    # What no model was asked is not counted.
    assert (result.text, model.calls, result.usage) == ("cached", [], Usage())
    for answer in (None, "text", {"text": "x"}):
        with pytest.raises(TypeError, match="a chat middleware answers with a ModelResponse"):
            send(create_agent(provider=model, app=App().use(chat=lambda request, proceed, a=answer: a)))


def test_a_chat_middleware_sees_the_request_as_hooks_left_it() -> None:
    seen: list[ModelRequest] = []

    async def look(request: ModelRequest, proceed: Next) -> Any:
        seen.append(request)
        return await proceed()

    def cold(ctx: Any) -> None:
        ctx.request["temperature"] = 0

    send(agent_of(["x"], app=App().use(chat=look), hooks=[host("cold", pre_generate=cold)], prompt="P"))
    assert seen[0].options == {"temperature": 0}
    assert [message["role"] for message in seen[0].messages] == ["system", "user"]


class Whole:
    """A provider that does not stream."""

    async def generate(self, request: ModelRequest, on_text: Any, /) -> ModelResponse:
        return ModelResponse(text="secret")


@BACKENDS
@pytest.mark.parametrize("asks", [True, False])
def test_a_stream_tells_the_text_that_middleware_gave_in_place_of_the_model_s(backend: str, asks: bool) -> None:
    async def redact(_: ModelRequest, proceed: Next) -> ModelResponse:
        return ModelResponse(text="[hidden]") if not asks or "secret" in (await proceed()).text else ModelResponse()

    agent = create_agent(provider=Whole(), app=App().use(chat=redact))

    events = anyio.run(lambda: drained(agent.stream("hi")), backend=backend)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["[hidden]"]
    assert events[-1].result.text == "[hidden]"


@BACKENDS
@pytest.mark.parametrize("count", [1, 2])
def test_a_sub_agent_s_pause_comes_through_a_middleware_s_task_group(backend: str, count: int) -> None:
    """Where one watches the clock beside the tool, say: a pause is no failure of that group."""

    async def grouped(_: ToolRun, proceed: Next) -> Any:
        answers: list[Any] = []

        async def run() -> None:
            answers.append(await proceed())

        async with anyio.create_task_group() as outer, anyio.create_task_group() as group:
            outer.start_soon(anyio.lowlevel.checkpoint)
            group.start_soon(run)
        return answers[0]

    turns: list[Any] = [calling(*["inner"] * count, args={"task": "t"}), "done"]
    inner = agent_of([calling("f")] * count + ["sub"] * count, tool("f"), name="inner", permissions=[ask("f")])
    lead = agent_of(turns, sub_agents=[inner], app=App().use(tool=grouped))

    async def main() -> Any:
        paused = await lead.send("hi")
        assert paused.pending is not None
        assert [call.tool for call in paused.pending.calls] == ["f"] * count
        return await lead.resume(paused.pending, {call.id: "approve" for call in paused.pending.calls})

    assert contents(anyio.run(main, backend=backend)) == ["sub"] * count


@BACKENDS
def test_a_pause_beside_a_failure_in_a_group_is_no_pause(backend: str) -> None:
    inner = agent_of([calling("f")], tool(), name="inner", permissions=[ask("f")])

    async def both(_: ToolRun, proceed: Next) -> Any:
        async def fail() -> None:
            raise ValueError("beside")

        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            await proceed()

    lead = agent_of([calling("inner", args={"task": "t"})], sub_agents=[inner], app=App().use(tool=both))

    async def main() -> None:
        with pytest.raises(BaseExceptionGroup) as caught:
            await lead.send("hi")
        assert caught.value.subgroup(ValueError)

    anyio.run(main, backend=backend)
