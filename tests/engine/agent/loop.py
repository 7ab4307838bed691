"""Small agents with scripted models, for the loop's rooms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import anyio
import pytest

from hookcell.agent import Agent, Event, Tool, TurnResult, TurnStream, create_agent, define_tool, mock_model

from ..fake_sandbox import FakeSandbox, host  # noqa: TID252 tests are no package that could be named

__all__ = [
    "ANY",
    "BACKENDS",
    "FakeSandbox",
    "agent_of",
    "calling",
    "contents",
    "drained",
    "host",
    "send",
    "tool",
    "watching",
]

ANY: Final = {"type": "object"}
"""A schema that takes every map."""

BACKENDS: Final = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def tool(name: str = "f", execute: Callable[..., Any] = lambda args: "ok", *, input: object = ANY, **more: Any) -> Tool:  # noqa: A002
    """A tool that takes any arguments, unless ``input`` says otherwise."""
    return define_tool(name, input=input, execute=execute, **more)


def calling(*calls: str, args: object = None, **more: Any) -> dict[str, Any]:
    """A model's turn that calls these tools, each with the same arguments."""
    return {"toolCalls": [{"name": name, "args": {} if args is None else args, **more} for name in calls]}


def agent_of(turns: Iterable[Any], *tools: Tool, **options: Any) -> Agent:
    return create_agent(provider=mock_model(turns), tools=tools, **options)


def send(agent: Agent, content: Any = "hi", backend: str = "asyncio", **options: Any) -> TurnResult:
    async def main() -> TurnResult:
        return await agent.send(content, **options)

    return anyio.run(main, backend=backend)


def contents(result: TurnResult) -> list[object]:
    """What the tool messages of a turn say."""
    return [message["content"] for message in result.messages if message["role"] == "tool"]


async def drained(stream: TurnStream) -> list[Any]:
    """The events of a stream, read to its end."""
    return [event async for event in stream]


def watching(kinds: type[Event] | tuple[type[Event], ...] = Event) -> tuple[list[Any], Callable[[Event], None]]:
    """A list of events of these kinds, and the listener that fills it."""
    seen: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, kinds):
            seen.append(event)

    return seen, listen
