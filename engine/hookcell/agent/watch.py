"""Listeners and the stream: they watch a turn and cannot change it (SEMANTICS P19)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from .events import Event, PermissionDecision
from .tools import call_host_code

__all__ = ["OnEvent", "OnPermissionDecision", "Watch"]

_log: Final = logging.getLogger(__name__)

OnEvent = Callable[[Event], Any]
OnPermissionDecision = Callable[[PermissionDecision], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who watches a turn. Listeners may be plain or ``async`` and are awaited; what one throws is logged and no more.

    Attributes:
        on_event: Told of every event.
        on_permission_decision: Told of every permission decision.
        stream: Takes the events of a streamed run; None in a plain one.
    """

    on_event: OnEvent | None = None
    on_permission_decision: OnPermissionDecision | None = None
    stream: Callable[[Event], Awaitable[None]] | None = None

    @property
    def streaming(self) -> bool:
        """Whether the run is streamed."""
        return self.stream is not None

    async def emit(self, event: Event) -> None:
        """Tell of an event."""
        if self.on_event is not None:
            await _tell(self.on_event, event)
        if self.stream is not None:
            await self.stream(event)

    async def decided(self, decision: PermissionDecision) -> None:
        """Tell of a permission decision."""
        if self.on_permission_decision is not None:
            await _tell(self.on_permission_decision, decision)


async def _tell(listener: Callable[[Any], Any], what: object) -> None:
    try:
        await call_host_code(listener, what)
    except Exception:
        _log.exception("the listener %r failed; the run goes on", listener)
