"""The one lane through which all guests of an event loop go, slice by slice.

Between two slices the loop gets a turn. Were each guest to yield on its own, ten long ones would still run ten slices
in a row in each turn of the loop; through one lane it is one, so another task is late by one slice, not by ten. A short
guest finds the lane free, finishes in its first slice and never waits.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections import deque
from collections.abc import Generator
from time import perf_counter_ns
from typing import Any, Final, TypeVar

import anyio
import anyio.lowlevel

__all__ = ["Lane", "current_lane"]

_T = TypeVar("_T")

_TURN_NS: Final = 1_000_000
"""How long guests may run in place, one finished call after the other, before the loop gets a turn: 1 ms."""


class Lane:
    """First come, first served. Held while a slice runs and over the loop's turn after it."""

    __slots__ = ("_held", "_loop", "_ran_ns", "_waiting")

    def __init__(self, loop: object) -> None:
        self._loop = weakref.ref(loop)
        self._held = False
        self._ran_ns = 0
        self._waiting: deque[anyio.Event] = deque()

    def serves(self, loop: object) -> bool:
        """Whether this is the lane of that running loop."""
        return self._loop() is loop

    async def drive(self, slices: Generator[None, None, _T]) -> _T:
        """Run a generator to its end, at most one slice in each turn of the loop, and give back what it returns.

        A cancellation arrives between two slices and closes the generator.
        """
        if self._held or self._ran_ns > _TURN_NS:
            await self._enter()
        else:
            self._held = True
        held = True
        try:
            while True:
                started = perf_counter_ns()
                try:
                    next(slices)
                except StopIteration as end:
                    return end.value
                finally:
                    self._ran_ns += perf_counter_ns() - started
                await self._turn()
                if self._waiting:
                    held = False
                    self._leave()
                    await self._enter()
                    held = True
        finally:
            slices.close()
            if held:
                self._leave()

    async def _enter(self) -> None:
        if self._held:
            called = anyio.Event()
            self._waiting.append(called)
            try:
                await called.wait()
            except BaseException:
                if called.is_set():
                    self._leave()
                else:
                    self._waiting.remove(called)
                raise
        self._held = True
        if self._ran_ns > _TURN_NS:
            try:
                await self._turn()
            except BaseException:
                self._leave()
                raise

    def _leave(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()  # handed over, so it stays held
        else:
            self._held = False

    async def _turn(self) -> None:
        # Twice: a timer that came due during the slice is queued behind this task's first continuation, so after one
        # checkpoint it would wait for a second slice.
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        self._ran_ns = 0


_here = threading.local()


def current_lane() -> Lane:
    """The lane of the event loop that runs in this thread, asyncio's or trio's."""
    loop = _running_loop()
    lane: Lane | None = getattr(_here, "lane", None)
    if lane is None or not lane.serves(loop):
        # A loop that ended in the middle of a slice leaves its lane held; the next loop has one of its own.
        lane = _here.lane = Lane(loop)
    return lane


def _running_loop() -> object:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        trio: Any = sys.modules.get("trio")
        if trio is None:
            raise
        return trio.lowlevel.current_trio_token()
