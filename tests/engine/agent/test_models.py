"""Models: the scripted one's promises, and what the loop makes of providers that keep none."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from hookcell import ToolCall
from hookcell.agent import (
    ModelRequest,
    ModelResponse,
    RunState,
    TextDelta,
    ToolFailed,
    TurnFailed,
    Usage,
    create_agent,
    mock_model,
)
from hookcell.agent.turn import _with_ids

from .loop import BACKENDS, agent_of, calling, contents, drained, host, send, tool, watching


class Gives:
    """A provider that answers with these values, whatever they are, and raises those that are exceptions."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[ModelRequest] = []

    async def generate(self, request: ModelRequest, on_text: Any, /) -> Any:
        await anyio.lowlevel.checkpoint()
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def call(id: str = "", name: str = "f", args: object = None) -> ToolCall:  # noqa: A002
    return ToolCall(id=id, name=name, args={} if args is None else args)


# The scripted model.


def test_the_mock_says_its_turns_in_order_and_tells_when_they_are_over() -> None:
    model = mock_model(["a"])
    agent = create_agent(provider=model)
    assert send(agent).text == "a"
    with pytest.raises(LookupError, match="called 2 times and has 1 turns"):
        send(agent)


def test_the_mock_raises_what_it_was_told_to() -> None:
    error = ConnectionError("down")
    with pytest.raises(ConnectionError) as caught:
        send(agent_of([error]))
    assert caught.value is error


@pytest.mark.parametrize(
    "given", [{"args": {}}, {"name": 5}, {"name": "f", "arguments": {}}, "f", {"name": "f", "type": "function"}]
)
def test_a_scripted_call_that_is_none_is_a_mistake_of_the_test_s(given: Any) -> None:
    with pytest.raises(TypeError, match="a scripted tool call"):
        send(agent_of([{"toolCalls": [given]}], tool()))


def test_the_mock_keeps_requests_as_they_were_when_it_was_asked() -> None:
    model = mock_model([calling("f", args={"a": [1]}), "done"])

    def edit(ctx: Any, result: Any) -> None:
        ctx.messages[0]["content"] = "edited"

    agent = create_agent(provider=model, tools=[tool()], request={"stop": ["x"]}, hooks=[host("h", post_generate=edit)])
    send(agent, "original")
    assert [request.messages[0]["content"] for request in model.calls] == ["original", "edited"]
    model.calls[0].options["stop"].append("y")  # type: ignore[attr-defined]
    assert agent.request == {"stop": ["x"]}


@pytest.mark.parametrize("text", ["", " ", "one", "one two\n\nthree ", "\n", " lead", "é\u2003x"])
def test_streamed_words_add_up_to_the_text(text: str) -> None:
    events = anyio.run(lambda: drained(agent_of([text]).stream("hi")))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    assert events[-1].result.text == text


# Ids of calls.


@pytest.mark.parametrize(
    "ids",
    [
        ["", ""],
        ["", "call_0"],
        ["call_1", ""],
        ["a", "a", "a"],
        ["a/b", "a"],
        ["/", "//", ""],
        ["call_1", "", "call_1", "call_2", "", "call_3"],
        ["call_2", "call_1", "", "", ""],
    ],
)
def test_every_call_has_an_id_of_its_own_without_a_slash(ids: list[str]) -> None:
    named = [each.id for each in _with_ids([call(each) for each in ids])]
    assert len(set(named)) == len(ids)
    assert all(each and "/" not in each for each in named)
    # One that does stays.
    for given, got in zip(ids, named, strict=True):
        if ids.count(given) == 1 and given and "/" not in given and not given.startswith("call_"):
            assert got == given


@BACKENDS
@pytest.mark.parametrize("ids", [["x", "x"], ["", ""], ["a/b", "a/b"]])
def test_calls_with_one_id_are_calls_of_their_own(ids: list[str], backend: str) -> None:
    provider = Gives(
        ModelResponse(tool_calls=[call(each, args={"n": n}) for n, each in enumerate(ids)]), ModelResponse(text="done")
    )
    agent = create_agent(provider=provider, tools=[tool("f", lambda args: args["n"])])
    result = send(agent, backend=backend)
    assert contents(result) == ["0", "1"]
    assistant = result.messages[1]
    shown = [each["id"] for each in assistant["toolCalls"]]  # type: ignore[index,attr-defined]
    answered = [message["toolCallId"] for message in result.messages if message["role"] == "tool"]
    assert shown == answered
    assert len(set(shown)) == 2


def test_an_id_that_comes_again_in_a_later_answer_is_that_answer_s() -> None:
    rewrite = host("rewrite", pre_tool_call=lambda ctx: {"input": {"n": ctx.args["n"] + 10}})
    turns = [calling("f", id="same", args={"n": 1}), calling("f", id="same", args={"n": 2}), "done"]
    result = send(agent_of(turns, tool("f", lambda args: args["n"]), hooks=[rewrite]))
    assert contents(result) == ["11", "12"]
    shown = [message["toolCalls"][0]["args"] for message in result.messages if "toolCalls" in message]  # type: ignore[index]
    assert shown == [{"n": 11}, {"n": 12}]


# What is no call of a tool.


@pytest.mark.parametrize("args", ["{broken", "", None, 5, True, [1], [["a", 1]], {1: "a"}, {None: 1}, ("a",)])
def test_arguments_that_are_no_map_are_an_error_that_the_model_sees(args: object) -> None:
    ran: list[object] = []
    provider = Gives(
        ModelResponse(tool_calls=[ToolCall(id="c", name="f", args=args)]),
        ModelResponse(text="done"),
    )
    asked: list[object] = []
    pre = host("h", pre_tool_call=asked.append)
    failed, listen = watching(ToolFailed)
    agent = create_agent(provider=provider, tools=[tool("f", ran.append)], hooks=[pre], on_event=listen)
    result = send(agent)
    assert result.text == "done"
    assert (ran, asked) == ([], [])
    assert [event.error.kind for event in failed] == ["validation"]
    # A map stands in the message, and what the model wrote beside it.
    assistant = provider.asked[1].messages[1]
    assert assistant["toolCalls"] == [{"id": "c", "name": "f", "args": {}}]
    odd_key = "/args is a map with a key of type {}, which cannot cross - make every key a string"
    kept = odd_key.format(type(next(iter(args))).__name__) if isinstance(args, dict) else args
    assert result.messages[1]["metadata"] == {"modelArgs": {"c": kept}}


@pytest.mark.parametrize("name", ["nope", "", "F", "f ", "f\n", "\u202ef", "x" * 10_000])
def test_a_tool_that_there_is_not_is_an_error_that_names_those_there_are(name: str) -> None:
    ran: list[object] = []
    result = send(agent_of([calling(name, "f"), "done"], tool("f", ran.append), tool("g")))
    error, _ = contents(result)
    assert str(error).startswith("there is no tool '")
    assert str(error).endswith("there is f, g")
    assert len(str(error)) < 2_000
    assert "\n" not in str(error)
    assert "\u202e" not in str(error)
    assert len(ran) == 1


def test_an_agent_without_tools_says_that_it_has_none() -> None:
    assert contents(send(agent_of([calling("f"), "done"]))) == ["there is no tool 'f'; there is none"]


# What is no answer.


@BACKENDS
def test_an_answer_with_nothing_in_it_is_an_empty_one(backend: str) -> None:
    agent = create_agent(provider=Gives(ModelResponse()))

    events = anyio.run(lambda: drained(agent.stream("hi")), backend=backend)
    assert [event.type for event in events] == ["turn.done"]
    result = events[0].result
    assert (result.text, result.usage) == ("", Usage())
    assert result.messages[-1] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize("answer", [None, "text", {"text": "x"}, mock_model([])])
def test_a_provider_that_answers_with_something_else_is_named_for_it(answer: object) -> None:
    run = RunState()
    with pytest.raises(TypeError, match=f"a provider answers with a ModelResponse, not {type(answer).__name__}"):
        send(create_agent(provider=Gives(answer)), state=run)
    assert [message["role"] for message in run.history] == ["user"]


@BACKENDS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("at", [0, 1])
def test_what_a_provider_raises_leaves_the_turn_and_a_next_one_goes_on(at: int, streamed: bool, backend: str) -> None:
    error = OSError("network")
    provider = Gives(*[ModelResponse(tool_calls=[call("c")])][:at], error, ModelResponse(text="later"))
    failed, listen = watching(TurnFailed)
    agent = create_agent(provider=provider, tools=[tool()], on_event=listen)
    run = RunState()

    async def main() -> str:
        with pytest.raises(OSError, match="network") as caught:
            await (drained(agent.stream("hi", state=run)) if streamed else agent.send("hi", state=run))
        assert caught.value is error
        return (await agent.send("again", state=run)).text

    assert anyio.run(main, backend=backend) == "later"
    assert [event.error for event in failed] == [error]


class Pieces:
    """A provider whose pieces of text are not the text that it answers with."""

    def __init__(self, pieces: list[str], text: str) -> None:
        self.pieces, self.text = pieces, text

    async def generate(self, request: ModelRequest, on_text: Any, /) -> ModelResponse:
        for piece in self.pieces if on_text else ():
            await on_text(piece)
        return ModelResponse(text=self.text)


@pytest.mark.parametrize(
    ("pieces", "text", "told"),
    [([], "all", ["all"]), ([""], "all", [""]), (["a", "b"], "all", ["a", "b"]), (["a"], "", ["a"]), ([], "", [])],
)
def test_text_that_did_not_come_in_pieces_is_told_whole_and_the_answer_is_what_was_returned(
    pieces: list[str], text: str, told: list[str]
) -> None:
    agent = create_agent(provider=Pieces(pieces, text))

    events = anyio.run(lambda: drained(agent.stream("hi")))
    assert [event.text for event in events if isinstance(event, TextDelta)] == told
    assert events[-1].result.text == text
    # A plain run asks for no pieces.
    assert send(agent).text == text


def test_usages_add_up_over_the_calls_of_a_turn() -> None:
    used = Usage(input_tokens=3, output_tokens=2)
    turns = [{**calling("f"), "usage": used}, {"text": "done", "usage": used}]
    assert send(agent_of(turns, tool())).usage == Usage(input_tokens=6, output_tokens=4)


def test_a_cancellation_that_a_provider_raises_itself_ends_a_stream_with_it() -> None:
    """It must not look like a turn that came to its end."""
    run = RunState()

    async def main() -> None:
        agent = create_agent(provider=Gives(asyncio.CancelledError("by nobody")))
        with pytest.raises(asyncio.CancelledError, match="by nobody"):
            await drained(agent.stream("hi", state=run))

    asyncio.run(main())
