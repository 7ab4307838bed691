"""Middleware: the host's own code round a whole tool run or model call, for every agent of an app (SEMANTICS C9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hookcell.values import copied

from .models import ModelRequest, ModelResponse
from .tools import ToolOutput, call_host_code

__all__ = ["App", "ChatMiddleware", "ToolMiddleware", "ToolRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """A tool run that is about to happen, past every gate.

    Attributes:
        call_id: The model's id of the call.
        name: The tool.
        args: A copy of the arguments that will really execute; changing it changes nothing.
        agent_name: The agent that made the call.
        session_id: The run's session.
    """

    call_id: str
    name: str
    args: Mapping[str, object]
    agent_name: str
    session_id: str


ToolMiddleware = Callable[[ToolRun, Callable[[], Awaitable[ToolOutput]]], Any]
"""``(call, next)``: ``await next()`` runs what is inside and gives its `ToolOutput`. Answers with one, with
``{content, isError?}`` or with a string; without ``next()``, the tool does not run."""

ChatMiddleware = Callable[[ModelRequest, Callable[[], Awaitable[ModelResponse]]], Any]
"""The same round a model call; answers with a `ModelResponse`."""


@dataclass(slots=True)
class App:
    """What all agents of an application share."""

    _tool: list[ToolMiddleware] = field(default_factory=list[ToolMiddleware])
    _chat: list[ChatMiddleware] = field(default_factory=list[ChatMiddleware])

    def use(self, *, tool: ToolMiddleware | None = None, chat: ChatMiddleware | None = None) -> App:
        """Add a middleware inside those added before; gives the app, so that calls can be chained.

        Raises:
            TypeError: Neither was given.
        """
        if tool is None and chat is None:
            raise TypeError("give a tool= or a chat= middleware")
        if tool is not None:
            self._tool.append(tool)
        if chat is not None:
            self._chat.append(chat)
        return self

    async def run_tool(self, call: ToolRun, execute: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        """Run a tool inside all tool middleware. What a middleware raises leaves the turn."""
        inner = execute
        for middleware in reversed(self._tool):
            inner = partial(_tool_layer, middleware, call, inner)
        return await inner()

    async def run_chat(self, request: ModelRequest, generate: Callable[[], Awaitable[ModelResponse]]) -> ModelResponse:
        """Call a model inside all chat middleware.

        Raises:
            TypeError: A middleware answered with something else than a `ModelResponse`.
        """
        inner = generate
        for middleware in reversed(self._chat):
            inner = partial(_chat_layer, middleware, request, inner)
        return await inner()


async def _tool_layer(
    middleware: ToolMiddleware, call: ToolRun, inner: Callable[[], Awaitable[ToolOutput]]
) -> ToolOutput:
    own = ToolRun(
        call_id=call.call_id,
        name=call.name,
        args=copied(call.args),  # type: ignore[arg-type]  # a map stays one
        agent_name=call.agent_name,
        session_id=call.session_id,
    )
    return ToolOutput.of(await call_host_code(middleware, own, inner))


async def _chat_layer(
    middleware: ChatMiddleware, request: ModelRequest, inner: Callable[[], Awaitable[ModelResponse]]
) -> ModelResponse:
    response = await call_host_code(middleware, request, inner)
    if not isinstance(response, ModelResponse):
        raise TypeError(f"a chat middleware answers with a ModelResponse, not {type(response).__name__}")
    return response
