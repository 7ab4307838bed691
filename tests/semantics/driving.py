"""Small drivers: the hooks of one point on a full context, and one tool call from start to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio

from hookcell import (
    AgentHook,
    Decision,
    GuestHook,
    History,
    HookRegistry,
    RunFacts,
    SettledCall,
    ToolCall,
    ToolPipeline,
    run_point_sync,
    tool_schema,
)

__all__ = ["ARGS", "CALL", "FILLED", "SCHEMA", "Settled", "facts", "run", "settle"]

SCHEMA: Final = tool_schema(
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "default": 20}},
        "required": ["path"],
        "additionalProperties": False,
    }
)
ARGS: Final = {"path": "a.txt"}
"""What the model gave."""

FILLED: Final = {"path": "a.txt", "lines": 20}
"""The same after validation."""

CALL: Final = ToolCall(id="c1", name="read", args=ARGS)

_TOOL: Final = {"toolCallId": "c1", "toolName": "read", "args": FILLED, "toolCall": CALL.wire()}
_OWN: Final[Mapping[str, Mapping[str, object]]] = {
    "pre_tool_call": _TOOL,
    "post_tool_call": {**_TOOL, "result": {"result": "text"}, "origin": "tool"},
    "pre_generate": {"request": {"model": "m"}, "streaming": False},
    "post_generate": {"request": {"model": "m"}, "result": {"text": "hello"}, "streaming": False},
    "before_prompt": {"prompt": "be kind"},
    "before_tool": {"call": {"id": "c1", "name": "read", "args": FILLED}},
    "after_tool": {"result": {"name": "read", "args": FILLED, "output": "text", "isError": False}},
    "after_response": {"response": "hello"},
    "on_error": {"error": {"name": "ValueError", "message": "bad"}},
}


def facts(**more: Any) -> RunFacts:
    """A run with a short conversation and some metadata."""
    messages: list[dict[str, object]] = [{"role": "system", "content": "rules"}, {"role": "user", "content": "hi"}]
    return RunFacts(**{"messages": History(messages), "metadata": {"seeded": 1}, "session_id": "s1", **more})


def run(
    point: str,
    *hooks: AgentHook | GuestHook,
    on: RunFacts | None = None,
    own: Mapping[str, object] | None = None,
    **options: Any,
) -> Decision:
    """The hooks of one point, in this order, on a full context.

    Args:
        point: The point.
        hooks: The hooks.
        on: The run, which hooks change; default a fresh one.
        own: The point's own fields where they are not the usual ones.
        options: As `run_point_sync`.
    """
    on = on or facts()
    fields = {**_OWN[point], **(own or {})}
    return run_point_sync(HookRegistry(hooks), point, on.at(point, fields), run=on, **options)


@dataclass(frozen=True, kw_only=True)
class Settled:
    """A settled call, and the arguments of each execution of its tool."""

    call: SettledCall
    executed: list[dict[str, object]]

    @property
    def error(self) -> tuple[str, str, str | None]:
        """Kind, message and hook of the tool error that stands."""
        error = self.call.result.error
        assert error is not None
        return error.kind, error.message, error.hook


def settle(
    *hooks: AgentHook | GuestHook,
    call: ToolCall = CALL,
    tool: Callable[[dict[str, object]], object] = lambda _: "text",
    rules: Any = None,
    on: RunFacts | None = None,
    **options: Any,
) -> Settled:
    """One tool call through hooks, rules and its tool, whose result is ``"text"`` unless ``tool`` says otherwise.

    Args:
        hooks: The hooks in order.
        call: The model's call.
        tool: What the tool does.
        rules: The host's rules, as `ToolPipeline.call` takes them.
        on: The run; default a fresh one.
        options: As `ToolPipeline`.
    """
    executed: list[dict[str, object]] = []

    def execute(args: dict[str, object]) -> object:
        executed.append(args)
        return tool(args)

    pipeline = ToolPipeline(hooks=HookRegistry(hooks), run=on or facts(), **options)

    async def main() -> SettledCall:
        return await pipeline.call(call, execute, schema=SCHEMA, rules=rules)

    return Settled(call=anyio.run(main), executed=executed)
