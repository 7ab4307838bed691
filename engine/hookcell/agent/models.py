"""What the loop asks of a model, and the scripted model that tests use.

A provider is one method. It is given the request as hooks and middleware left it, and answers with one assistant
message; text may come in pieces on the way.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypedDict, cast

from hookcell.shapes import is_map
from hookcell.tool_result import ToolCall
from hookcell.values import copied

__all__ = [
    "MockModel",
    "ModelRequest",
    "ModelResponse",
    "OnText",
    "Provider",
    "ScriptedTurn",
    "ToolDefinition",
    "Usage",
    "mock_model",
]

OnText = Callable[[str], Awaitable[None]]
"""Takes a piece of the answer's text as it arrives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as the model is told of it; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call.

    Attributes:
        messages: The system prompt first, if there is one, then the conversation:
            ``{role, content, toolCalls?, toolCallId?, name?}``. What messages keep as ``metadata`` stays out.
        tools: What the model may call.
        options: ``model, temperature, topP, maxTokens, stop, toolChoice, headers`` as far as the host or a hook set
            them, and whatever else the host put into the agent's request.
        notes: What the provider left with its answers that stand in ``messages`` and call tools, by the id of each
            one's first call.
    """

    messages: Sequence[Mapping[str, object]]
    tools: Sequence[ToolDefinition] = ()
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    notes: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, as the provider counts them; 0 where it does not say. Usages add up."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens, output_tokens=self.output_tokens + other.output_tokens
        )

    def wire(self) -> dict[str, object]:
        """``{inputTokens, outputTokens}``."""
        return {"inputTokens": self.input_tokens, "outputTokens": self.output_tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """What the model answered.

    Attributes:
        text: Its text; may stand beside tool calls.
        tool_calls: What it wants called. An id that is empty or not unique is replaced by the loop. ``args`` that are
            no map with string keys, such as text that was no JSON, become a validation error that the model sees.
        usage: Tokens.
        finish_reason: The provider's own word.
        notes: JSON values for the provider's own use when it is asked again, such as its reasoning, which some want to
            see between tool calls. They stay with the run, out of the conversation and of every hook's sight; those of
            an answer that calls no tool are dropped.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    notes: Mapping[str, object] = field(default_factory=dict[str, object])


class Provider(Protocol):
    """A model."""

    async def generate(self, request: ModelRequest, on_text: OnText | None, /) -> ModelResponse:
        """One answer.

        Args:
            request: What to send.
            on_text: In a streamed run, to be awaited with each piece of text as it arrives; None otherwise. A provider
                that does not stream may leave it alone: the loop then passes the text on whole.

        Raises:
            Exception: Whatever goes wrong with the model; it leaves the turn (C6).
        """
        ...


class ScriptedTurn(TypedDict, total=False):
    """One answer of a `MockModel`. ``toolCalls`` are ``{name, args, id?}``."""

    text: str
    toolCalls: Sequence[Mapping[str, object]]
    usage: Usage


class MockModel:
    """A model that says what it was told to, for tests without a network.

    Attributes:
        calls: What it was sent, one a call, as it was at that moment.
    """

    def __init__(self, turns: Iterable[str | ScriptedTurn | Exception]) -> None:
        self._turns = list(turns)
        self.calls: list[ModelRequest] = []

    async def generate(self, request: ModelRequest, on_text: OnText | None, /) -> ModelResponse:
        """The next turn of the script; text in a streamed run comes word by word.

        Raises:
            LookupError: The script is over.
            Exception: The turn is an exception.
        """
        place = len(self.calls)
        self.calls.append(
            ModelRequest(
                messages=cast("Sequence[Mapping[str, object]]", copied(list(request.messages))),
                tools=request.tools,
                options=cast("Mapping[str, object]", copied(dict(request.options))),
            )
        )
        if place >= len(self._turns):
            raise LookupError(f"the mock model was called {place + 1} times and has {len(self._turns)} turns; add one")
        turn = self._turns[place]
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            turn = ScriptedTurn(text=turn)
        text = turn.get("text", "")
        if on_text is not None:
            for word in re.findall(r"\S+\s*|\s+", text):
                await on_text(word)
        calls = [_call(each, f"call_{place + 1}_{index + 1}") for index, each in enumerate(turn.get("toolCalls", ()))]
        return ModelResponse(text=text, tool_calls=calls, usage=turn.get("usage", Usage()))


def mock_model(turns: Iterable[str | ScriptedTurn | Exception]) -> MockModel:
    """A scripted model.

    Args:
        turns: Its answers in order: a text, ``{"text": …, "toolCalls": [{"name": …, "args": {…}, "id"?: …}]}``, or an
            exception to raise.
    """
    return MockModel(turns)


def _call(given: Mapping[str, object], fallback_id: str) -> ToolCall:
    if not is_map(given) or not given.keys() <= {"id", "name", "args"} or not isinstance(given.get("name"), str):
        raise TypeError(f"a scripted tool call is {{name, args, id?}}, not {given!r}")
    args = given.get("args", {})
    return ToolCall(id=str(given.get("id", fallback_id)), name=cast("str", given["name"]), args=copied(args))
