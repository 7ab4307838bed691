"""A turn as an async iterator of its events.

The turn runs in a task of its own beside the reader's, so that no cancel scope of either is open in the other's code:
an async generator with a task group inside could be left in the middle, and its scopes with it. The turn waits until
each event is taken. When the reader is cancelled, closes the stream or forgets it, the turn is cancelled.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
from anyio.lowlevel import EventLoopToken, current_token

from .events import Event, TurnDone

if TYPE_CHECKING:
    from types import TracebackType

    from .result import TurnResult

__all__ = ["TurnStream"]

Start = Callable[[Callable[[Event], Awaitable[None]]], "Awaitable[TurnResult]"]

# asyncio keeps weak references to tasks only.
_tasks: Final[set[asyncio.Task[None]]] = set()

# The streamed turns that this code runs inside of.
_inside: ContextVar[frozenset[_Background]] = ContextVar("hookcell_streams", default=frozenset())


class _Background:
    """The turn's side of a stream. It knows nothing of the reader, so that a reader that is forgotten is noticed."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._send, self.events = anyio.create_memory_object_stream[Event](0)
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()
        self.error: BaseException | None = None
        self.result: TurnResult | None = None

    async def run(self) -> None:
        _inside.set(_inside.get() | {self})
        try:
            with self.scope:
                self.result = await self._start(self._put)
        except BaseException as error:
            # Told to the reader, be it a tool's SystemExit: nobody else awaits this task, and trio breaks if it fails.
            self.error = error
        finally:
            self.finish()

    def finish(self) -> None:
        """The turn is over, or never began. An event is sent only when it is taken, so that none is lost by this."""
        self._send.close()
        self.events.close()
        self.done.set()

    def forget(self) -> None:
        """The reader is gone, or will read no more."""
        self.scope.cancel()
        self.events.close()

    async def _put(self, event: Event) -> None:
        # A reader that is gone has cancelled the turn; what it still tells on its way out is for nobody.
        with suppress(anyio.BrokenResourceError):
            await self._send.send(event)


class TurnStream:
    """The events of one turn, in order. Iterate it once; as a context manager it also ends a turn that is left early.

    ``async for event in agent.stream("…"): …`` runs the turn to its end. What leaves the turn is raised at the end of
    the iteration, as `Agent.send` would raise it.
    """

    def __init__(self, start: Start) -> None:
        self._start = start
        self._background: _Background | None = None
        self._token: EventLoopToken | None = None
        self._closed = False

    @property
    def result(self) -> TurnResult:
        """What the turn came to, once it is over.

        Raises:
            RuntimeError: It is not.
        """
        if self._background is None or self._background.result is None:
            raise RuntimeError("the turn is not over; iterate the stream to its end")
        return self._background.result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._closed:
            raise StopAsyncIteration
        if self._background is None:
            self._background = _Background(self._start)
            self._token = current_token()
            _spawn(self._background)
        background = self._background
        try:
            event = await background.events.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):  # the second where it ended between two events
            await self.aclose()
            if background.error is not None:
                raise background.error from background.error.__cause__
            raise StopAsyncIteration from None
        except BaseException:
            await self.aclose()  # the reader was cancelled, and with it the turn
            raise
        if isinstance(event, TurnDone):
            background.result = event.result  # for a reader that leaves here, before the turn's task is through
        return event

    async def aclose(self) -> None:
        """End the turn, if it is not over: cancel it and wait until it is gone. Inside the turn, it does not wait."""
        self._closed = True
        background = self._background
        if background is None:
            return
        background.forget()
        if background in _inside.get():
            return  # a listener or a tool that ends its own turn would wait for itself
        with anyio.CancelScope(shield=True):
            await background.done.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        background, token = getattr(self, "_background", None), getattr(self, "_token", None)
        if background is not None and token is not None and not background.done.is_set():
            with suppress(RuntimeError):  # the loop is gone, and the turn with it
                _soon(token, background.forget)


def _spawn(background: _Background) -> None:
    """Start a turn in a task beside the present one, in a copy of its context."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio

        trio.lowlevel.spawn_system_task(background.run, context=contextvars.copy_context())
    else:
        task = loop.create_task(background.run())
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
        task.add_done_callback(lambda _: background.finish())  # a task that is cancelled before it began runs nothing


def _soon(token: EventLoopToken, function: Callable[[], None]) -> None:
    """Call a function on its event loop, from whatever thread the garbage collector runs in.

    Raises:
        RuntimeError: The loop is over.
    """
    native: Any = token.native_token
    if isinstance(native, asyncio.AbstractEventLoop):
        native.call_soon_threadsafe(function)
    else:
        native.run_sync_soon(function)
