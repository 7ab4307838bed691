"""The context that each point has in the table unless a case says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hookcell.values import copied

__all__ = ["ARGS", "CALL", "MESSAGES", "METADATA", "REQUEST", "STATE", "context_of"]

ARGS: Final = {"path": "a.txt", "lines": [1, 2], "more": {"deep": [{"n": 1}]}}
CALL: Final = {"id": "c1", "name": "read", "args": ARGS}
MESSAGES: Final[list[dict[str, Any]]] = [
    {"role": "system", "content": "rules"},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "text", "text": "hello"}], "metadata": {"at": 1}},
]
METADATA: Final = {"seeded": 1, "list": ["a"]}
REQUEST: Final = {"model": "m", "temperature": 0.5, "stop": ["a", "b"], "headers": {"x-a": "b"}}
STATE: Final = {"n": 1, "list": ["a"], "map": {"a/b": 1, "~": 2}}

_COMMON: Final = {"agentId": "agent-1", "agentName": "acts", "sessionId": "session-1", "metadata": METADATA}
_TOOL: Final = {"toolCallId": "c1", "toolName": "read", "args": ARGS, "toolCall": CALL}
_OWN: Final[Mapping[str, Mapping[str, object]]] = {
    "pre_tool_call": _TOOL,
    "post_tool_call": {**_TOOL, "result": {"result": "text"}, "origin": "tool"},
    "pre_generate": {"request": REQUEST, "streaming": False},
    "post_generate": {"request": REQUEST, "result": {"text": "hello", "usage": {"tokens": 3}}, "streaming": False},
    "before_prompt": {"prompt": "be kind"},
    "before_tool": {"call": CALL},
    "after_tool": {"result": {"name": "read", "args": ARGS, "output": "text", "isError": True}},
    "after_response": {"response": "hello"},
    "on_error": {"error": {"name": "ValueError", "message": "bad", "hook": "other"}},
}
_AGENT_CLASS: Final = ("before_prompt", "before_tool", "after_tool", "after_response", "on_error")


def context_of(point: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """A fresh context. ``state.history`` is the very list under ``messages`` (C7)."""
    context: dict[str, Any] = copied({**_COMMON, "messages": MESSAGES, **_OWN[point], **own})  # type: ignore[assignment]
    if point in _AGENT_CLASS:
        state = context.get("state", copied(STATE))
        context["state"] = {**state, "history": context["messages"]}
        context.setdefault("data", {"canDeploy": False})
    return context
