"""What a model says is made fit for contexts where it comes in: one odd answer must not fail every turn after it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from hookcell import ToolCall
from hookcell.agent import MockModel, ModelResponse, create_agent, define_tool, mock_model
from hookcell.tool_result import ToolError

from ..fake_sandbox import FakeSandbox  # noqa: TID252 tests are no package that could be named


class Odd(MockModel):
    """A scripted model whose first answer is not scripted."""

    def __init__(self, first: ModelResponse) -> None:
        super().__init__(["done", "again"])
        self._first: ModelResponse | None = first

    async def generate(self, request: Any, on_text: Any, /) -> ModelResponse:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await super().generate(request, on_text)


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"n": 2**70}, "/args/n is a whole number over 64 bits"),
        ({"t": "\ud800"}, "/args/t is a string with a lone surrogate"),
        ({"x": float("nan")}, "/args/x is a NaN"),
        (deep(100), "nested over"),
    ],
)
@pytest.mark.parametrize("tool", ["read", "unknown"])
def test_arguments_that_cannot_cross_are_a_validation_error(args: dict[str, object], why: str, tool: str) -> None:
    """The model is told and goes on; a guest that sees the conversation sees what is wrong with them."""
    sandbox, executed = FakeSandbox(), []
    guest = sandbox.guest("g", pre_generate=lambda _: None, post_tool_call=lambda _: None)
    call = ToolCall(id="c1", name=tool, args=args)
    agent = create_agent(
        provider=Odd(ModelResponse(tool_calls=[call])),
        tools=[define_tool("read", input={"type": "object"}, execute=executed.append)],
        hooks=[guest],
    )
    result = anyio.run(agent.send, "hi")
    assert (result.text, executed) == ("done", [])
    shown = result.messages[1]
    assert shown["toolCalls"] == [{"id": "c1", "name": tool, "args": {}}]
    assert why in str(shown["metadata"])
    assert [call.context.get("origin") for call in sandbox.calls] == [None, "validation", None]


def test_text_ids_and_names_with_lone_surrogates_are_made_whole() -> None:
    sandbox = FakeSandbox()
    guest = sandbox.guest("g", pre_generate=lambda _: None)
    call = ToolCall(id="\ud800", name="re\ud800ad", args={})
    agent = create_agent(provider=Odd(ModelResponse(text="a\ud800b", tool_calls=[call])), hooks=[guest])
    result = anyio.run(agent.send, "hi")
    message = result.messages[1]
    assert message["content"] == "a?b"
    assert message["toolCalls"] == [{"id": "call_0", "name": "re?ad", "args": {}}]
    assert anyio.run(agent.send, "more").text == "again"


class Broken(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "message"),
    [(Broken(), "Broken: (its message cannot be read: ValueError)"), (OSError("\ud800"), "OSError: ?")],
)
def test_what_a_tool_throws_is_told_whatever_it_says(error: Exception, message: str) -> None:
    assert ToolError.of_exception(error).message == message

    def throws(_: object) -> None:
        raise error

    tool = define_tool("read", input={"type": "object"}, execute=throws)
    model = mock_model([{"toolCalls": [{"name": "read", "args": {}}]}, "done"])
    guest = FakeSandbox().guest("g", post_tool_call=lambda _: None, pre_generate=lambda _: None)
    result = anyio.run(create_agent(provider=model, tools=[tool], hooks=[guest]).send, "hi")
    assert result.messages[2]["content"] == message
