"""The compile children of one compiler: how many, what each may cost, and who waits."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .compile_link import ChildLost, CompileLink
from .errors import SandboxBusy, SandboxUnusable
from .limits import MIB

if TYPE_CHECKING:
    from collections.abc import Generator

    from .settings import EngineSettings

__all__ = ["Children", "CompileLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileLimits:
    """What compiling may cost. A module that needs more is refused with ``compile_limit``.

    Attributes:
        cpu_seconds: CPU time of one module, counted in whole seconds, so up to one more. QuickJS (1 MB, about the
            largest honest module) takes three; 60 KB of nested loops take minutes.
        wall_seconds: Time of one module by the clock, which also ends a child that hangs.
        address_space_bytes: Of the child, Python and wasmtime included: 50 MiB at rest, 150 MiB with QuickJS. A child
            that is left with more than a quarter of it is replaced.
        module_bytes: The most that is sent to the child; admission has its own, lower bound.
        artifact_bytes: The most that compiled code may have.
        workers: Children, so compiles at once.
        queue: Callers that may wait for a child; one more is told `SandboxBusy`.
        queue_wait_seconds: How long one of them waits before it is told so.
        rejected: Digests that are remembered as refused, so that a bomb costs one compile. The oldest is forgotten.
    """

    cpu_seconds: int = 10
    wall_seconds: float = 30.0
    address_space_bytes: int = 1024 * MIB
    module_bytes: int = 64 * MIB
    artifact_bytes: int = 64 * MIB
    workers: int = 1
    queue: int = 16
    queue_wait_seconds: float = 30.0
    rejected: int = 1_024

    def __post_init__(self) -> None:
        for name, least, most in (
            ("cpu_seconds", 1, 3_600),
            ("wall_seconds", 0.05, 3_600),
            ("address_space_bytes", 256 * MIB, 64 * 1024 * MIB),
            ("module_bytes", 8, 1024 * MIB),
            ("artifact_bytes", 1, 1024 * MIB),
            ("workers", 1, 16),
            ("queue", 0, 10_000),
            ("queue_wait_seconds", 0, 3_600),
            ("rejected", 0, 1_000_000),
        ):
            value: float = getattr(self, name)
            if type(value) is not int and not (
                type(value) is float and name.endswith(("wall_seconds", "wait_seconds"))
            ):
                raise TypeError(f"{name} is {value!r}; give a whole number")
            if not least <= value <= most:
                raise ValueError(f"{name} is {value:_}; give a number from {least:_} to {most:_}")


class Children:
    """The compile children: at most ``workers``, lent one at a time, with a bounded queue before them."""

    def __init__(self, settings: EngineSettings, limits: CompileLimits) -> None:
        self._settings = settings
        self._limits = limits
        self._owner = os.getpid()
        self._free = threading.Condition()
        self._waiting = 0
        self._lent: set[CompileLink] = set()
        self._taken: set[object] = set()
        self._idle: list[CompileLink] = []
        self._checked = False
        self._closed = False

    def check(self) -> None:
        """Raise `SandboxUnusable` unless a child can be had here at all."""
        if os.getpid() != self._owner:
            raise SandboxUnusable(
                "this compiler was inherited over a fork and its child belongs to the parent; make a new one"
            )
        if self._closed:
            raise SandboxUnusable("the compiler is closed; make a new one")

    @contextlib.contextmanager
    def borrow(self) -> Generator[CompileLink]:
        """A ready child, for this caller alone."""
        self.check()
        place = object()
        child: CompileLink | None = None
        try:
            self._take(place)
            child = self._idle_child() or self._new_child()
            yield child
        except ChildLost:
            # Lost because it was closed under the caller: say that.
            self.check()
            raise
        finally:
            with self._free:
                self._taken.discard(place)
                keep = False
                if child is not None:
                    self._lent.discard(child)
                    keep = not child.spent and not self._closed
                    if keep:
                        self._idle.append(child)
                self._free.notify()
            if child is not None and not keep:
                child.close()

    def close(self) -> None:
        """End them all. In a process that inherited them it touches none: they are the parent's."""
        if os.getpid() != self._owner:
            return
        with self._free:
            self._closed = True
            children = [*self._idle, *self._lent]
            self._idle.clear()
            self._free.notify_all()
        for child in children:
            child.close()

    def _take(self, place: object) -> None:
        """Wait for one of the places, in a queue of bounded length and for a bounded time."""
        limits = self._limits
        until = time.monotonic() + limits.queue_wait_seconds
        with self._free:
            if len(self._taken) >= limits.workers and self._waiting >= limits.queue:
                raise SandboxBusy(f"{self._waiting} callers already wait for a compile; try again later")
            self._waiting += 1
            try:
                while len(self._taken) >= limits.workers:
                    left = until - time.monotonic()
                    if left <= 0:
                        raise SandboxBusy(
                            f"no compile child came free in {limits.queue_wait_seconds:g} s; try again later"
                        )
                    self._free.wait(left)
                    self.check()
                self._taken.add(place)
            finally:
                self._waiting -= 1
                # One who was woken and leaves by an exception passes it on; a wake too many does no harm.
                self._free.notify()

    def _idle_child(self) -> CompileLink | None:
        while True:
            with self._free:
                if not self._idle:
                    return None
                child = self._idle.pop()
                self._lent.add(child)
            if child.alive:
                return child
            # Ended while nobody used it, so by somebody else's hand.
            with self._free:
                self._lent.discard(child)
            child.close()

    def _new_child(self) -> CompileLink:
        child = CompileLink(self._settings, self._limits, self_check=not self._checked)
        self._checked = True
        with self._free:
            if not self._closed:
                self._lent.add(child)
                return child
        child.close()
        self.check()
        raise ChildLost("closed")
