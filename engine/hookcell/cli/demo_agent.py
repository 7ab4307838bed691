"""The demo's second half: the same hooks in an agent that runs as you watch, with a scripted model for the network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import anyio

from hookcell.agent import (
    Event,
    Tool,
    ToolDone,
    ToolFailed,
    ToolStarted,
    TurnDone,
    create_agent,
    define_tool,
    mock_model,
)
from hookcell_sandbox.guest_text import escape

from .guests import Asked, load_guests, sandbox_for

if TYPE_CHECKING:
    from hookcell.hook import GuestHook
    from hookcell.schemas import Schema

    from .terminal import Terminal

__all__ = ["demo_agent"]

_QUESTION: Final = "PL-1099 was charged twice. Refund it, and find me books by the sea."

_CALLS: Final = (
    {"name": "refund_order", "args": {"orderId": "PL-1099", "amount": 420, "reason": "charged twice"}},
    {"name": "get_order", "args": {"orderId": "PL-1099"}},
    {"name": "find_books", "args": {"query": "sea"}},
)
"""What the scripted model wants: one call for each hook to have its say on."""

_ANSWER: Final = "I may not refund that much, but here are two books."

_RESULTS: Final[Mapping[str, object]] = {
    "refund_order": {"refunded": True},
    "get_order": {"orderId": "PL-1099", "phone": "+1 202 555 0143"},
    "find_books": ["The Sea, the Sea", "The Waves"],
}

_RESULT_CHARACTERS: Final = 60


def demo_agent(asked: Asked, schemas: Mapping[str, Schema], terminal: Terminal) -> None:
    """Run one turn and print what happens in it.

    Raises:
        CommandFailed: The hooks cannot be loaded.
    """
    with sandbox_for(asked.limits, terminal) as sandbox:
        lines = anyio.run(_turn, load_guests(asked, sandbox), schemas)
    for line in (f"  user     {_QUESTION}", *lines):
        terminal.print(line)


async def _turn(hooks: list[GuestHook], schemas: Mapping[str, Schema]) -> list[str]:
    model = mock_model([{"toolCalls": _CALLS}, _ANSWER])
    tools = [_tool(name, schemas[name].document) for name in _RESULTS]
    agent = create_agent(prompt="You run a bookshop's desk.", provider=model, tools=tools, hooks=hooks)
    lines: list[str] = []
    async for event in agent.stream(_QUESTION):
        lines += _lines(event)
    return lines


def _tool(name: str, parameters: Mapping[str, object]) -> Tool:
    def execute(_args: object) -> object:
        return _RESULTS[name]

    return define_tool(name, input=parameters, execute=execute)


def _lines(event: Event) -> Iterator[str]:
    """What is to be said of an event. Hooks had a hand in all of it, so all of it is escaped."""
    match event:
        case ToolStarted():
            yield f"  runs     {event.tool} {_short(event.args)}"
        case ToolDone():
            yield f"  result   {event.tool} {_short(event.content)}"
        case ToolFailed():
            by = f" by {event.error.hook}" if event.error.hook else ""
            yield f"  {event.error.kind}{by}  {event.tool}"
            yield f"           {escape(event.error.message, characters=_RESULT_CHARACTERS)}"
        case TurnDone():
            yield f"  agent    {escape(event.result.text)}"
        case _:
            pass


def _short(value: object) -> str:
    return escape(json.dumps(value), characters=_RESULT_CHARACTERS)
