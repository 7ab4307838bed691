"""An agent with one tool in the reference loop, and a scripted hook in one of the forms that agent-class hooks have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio

from hookcell.agent import Event, Tool, TurnResult, create_agent, define_tool, mock_model

from .driving import ARGS, SCHEMA

Scripted = Callable[..., Any]
Script = Mapping[str, Any]

METHODS = ["before_prompt", "before_tool", "after_tool", "after_response", "on_error"]
ON_THE_WAY = METHODS[:4]
CALL = {"id": "c1", "name": "read", "args": ARGS}
THROW = {"!throw": {"name": "Boom", "message": "it broke"}}


class Loop:
    """An agent with the tool ``read``, and what happened in it.

    Args:
        hooks: Its hooks, in order.
        agent_class: Its class.
        turns: What its model says: by default it calls ``read`` once, then answers ``"hello"``.
        tool: What ``read`` does, given its arguments; by default it gives ``"text"``.
        tool_options: Further arguments of its definition.
        tools: Further tools.
        options: As `create_agent`.
    """

    def __init__(
        self,
        *hooks: Any,
        agent_class: object = None,
        turns: Any = None,
        tool: Callable[[Any], object] = lambda _: "text",
        tool_options: Mapping[str, Any] | None = None,
        tools: Sequence[Tool] = (),
        **options: Any,
    ) -> None:
        self.executed: list[Any] = []
        self.events: list[Event] = []
        self.model = mock_model([calling(), "hello"] if turns is None else turns)

        async def execute(args: Any) -> object:
            self.executed.append(args)
            return tool(args)

        read = define_tool("read", input=SCHEMA.document, execute=execute, **(tool_options or {}))
        self.agent = create_agent(
            **{
                "name": "acts",
                "prompt": "be kind",
                "provider": self.model,
                "tools": [read, *tools],
                "hooks": hooks,
                "agent_class": agent_class,
                "on_event": self.events.append,
                **options,
            }
        )

    def send(self, content: str = "hi", *, backend: str = "asyncio", **options: Any) -> TurnResult:
        """One turn on a loop of its own."""

        async def main() -> TurnResult:
            return await self.agent.send(content, **options)

        return anyio.run(main, backend=backend)

    @property
    def prompts(self) -> list[object]:
        """The first message of each model call."""
        return [call.messages[0]["content"] for call in self.model.calls]

    @property
    def last_sent(self) -> Mapping[str, object]:
        """The last message that the model was sent."""
        return self.model.calls[-1].messages[-1]


def calling(*calls: Mapping[str, object]) -> dict[str, Any]:
    """A model's turn that makes these calls, one of ``read`` by default."""
    return {"toolCalls": list(calls or (CALL,))}


def acting(scripted: Scripted, form: str, script: Script, **options: Any) -> tuple[Any, dict[str, Any]]:
    """A scripted hook in this form, and a maker's arguments for `Loop`: ``hooks`` or ``agent_class``."""
    hook = scripted("guest" if form == "guest" else "host", "acts", script, **options)
    return hook, {"agent_class": hook.implementation} if form == "class" else {"hooks": [hook]}


def loop_with(scripted: Scripted, form: str, script: Script, **options: Any) -> tuple[Any, Loop]:
    """A scripted hook in this form, and the loop it acts in."""
    hook, where = acting(scripted, form, script)
    return hook, Loop(**where, **options)


def watching(*points: str) -> dict[str, Any]:
    """The script of a hook that implements these points and changes nothing."""
    return dict.fromkeys(points)


def raises(error: Exception) -> Callable[..., Any]:
    """A function that raises it, whatever it is called with."""

    def function(*_arguments: object) -> Any:
        raise error

    return function


DOWN = ValueError("down")
