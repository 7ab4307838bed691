"""A turn as a stream: read to its end, left at every place and in every way, and nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from hookcell.agent import (
    Agent,
    App,
    ModelResponse,
    RunBusy,
    RunState,
    TextDelta,
    ToolDone,
    ToolStarted,
    TurnDone,
    TurnFailed,
    create_agent,
)
from hookcell.agent import stream as stream_module

from .loop import BACKENDS, agent_of, calling, drained, host, send, tool, watching

TURNS: tuple[Any, ...] = (calling("f"), "one two three")


def agent_with_tool(execute: Callable[..., Any] = lambda _: "ok", **options: Any) -> Agent:
    return agent_of(TURNS, tool("f", execute), **options)


@contextmanager
def nothing_left() -> Iterator[None]:
    """No task of a turn is left, and nothing was dropped that should have been closed (a warning is an error here)."""
    caught: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, caught.append
    try:
        yield
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert [each.exc_value for each in caught] == []
    assert stream_module._tasks == set()


def run(main: Callable[[], Awaitable[Any]], backend: str) -> Any:
    with nothing_left():
        return anyio.run(main, backend=backend)


async def gone(ended: anyio.Event) -> None:
    """Wait until the turn noticed."""
    gc.collect()
    with anyio.fail_after(10):
        await ended.wait()


class Endless:
    """A provider that tells words until it is cancelled."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.words = 0

    async def generate(self, request: Any, on_text: Any, /) -> ModelResponse:
        try:
            while True:
                await on_text("word ")
                self.words += 1
        finally:
            self.ended.set()


# To the end.


@BACKENDS
def test_events_come_in_order_and_the_last_has_the_result(backend: str) -> None:
    agent = agent_with_tool()
    stream = agent.stream("hi")
    events = run(lambda: drained(stream), backend)
    assert [type(event) for event in events] == [ToolStarted, ToolDone, TextDelta, TextDelta, TextDelta, TurnDone]
    assert stream.result is events[-1].result
    assert stream.result.text == "one two three"


@BACKENDS
def test_the_result_before_the_end_is_an_error(backend: str) -> None:
    stream = agent_with_tool().stream("hi")

    async def main() -> None:
        with pytest.raises(RuntimeError, match="not over"):
            _ = stream.result
        await anext(stream)
        with pytest.raises(RuntimeError, match="not over"):
            _ = stream.result
        await drained(stream)
        assert stream.result.text == "one two three"

    run(main, backend)


@BACKENDS
def test_a_stream_is_iterated_once(backend: str) -> None:
    stream = agent_with_tool().stream("hi")

    async def main() -> None:
        assert len(await drained(stream)) == 6
        assert await drained(stream) == []
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    run(main, backend)


@BACKENDS
def test_one_that_is_never_iterated_runs_nothing_and_holds_no_run(backend: str) -> None:
    ran: list[object] = []
    state = RunState()

    async def main() -> None:
        agent = agent_with_tool(ran.append)
        left = agent.stream("hi", state=state)
        closed = agent.stream("hi", state=state)
        await closed.aclose()
        assert await drained(closed) == []
        async with agent.stream("hi", state=state):
            pass
        del left
        assert (ran, list(state.history)) == ([], [])
        assert (await agent.send("hi", state=state)).text == "one two three"

    run(main, backend)


@BACKENDS
def test_the_turn_goes_no_further_than_its_reader(backend: str) -> None:
    """A slow reader is waited for: nothing is heaped up."""
    provider = Endless()

    async def main() -> None:
        async with create_agent(provider=provider).stream("hi") as stream:
            for taken in range(1, 6):
                await anext(stream)
                await anyio.wait_all_tasks_blocked()
                assert provider.words == taken

    run(main, backend)


@BACKENDS
def test_two_streams_of_one_agent_are_two_turns(backend: str) -> None:
    async def main() -> None:
        first, second = agent_of(["a", "b"]).stream("hi"), agent_of(["c"]).stream("hi")
        texts = [event.text for event in (await anext(first), await anext(second))]  # type: ignore[attr-defined]
        rest = [*await drained(second), *await drained(first)]
        assert texts == ["a", "c"]
        assert [event.type for event in rest] == ["turn.done", "turn.done"]

    run(main, backend)


@BACKENDS
def test_two_streams_on_one_run_are_one_too_many(backend: str) -> None:
    async def main() -> None:
        state = RunState()
        agent = agent_of(["a b"])
        async with agent.stream("hi", state=state) as first:
            await anext(first)
            with pytest.raises(RunBusy):
                await drained(agent.stream("hi", state=state))
            with pytest.raises(RunBusy):
                await agent.send("hi", state=state)
            assert [event.type for event in await drained(first)] == ["text.delta", "turn.done"]

    run(main, backend)


# Errors.


@BACKENDS
def test_what_leaves_the_turn_is_raised_at_the_end_once(backend: str) -> None:
    error, cause = OSError("network"), ValueError("cause")
    error.__cause__ = cause

    async def main() -> None:
        stream = agent_of([error]).stream("hi")
        event = await anext(stream)
        assert isinstance(event, TurnFailed)
        assert event.error is error
        with pytest.raises(OSError, match="network") as caught:
            await anext(stream)
        assert (caught.value, caught.value.__cause__) == (error, cause)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        with pytest.raises(RuntimeError, match="not over"):
            _ = stream.result

    run(main, backend)


@BACKENDS
@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_a_program_reaches_the_reader(raised: BaseException, backend: str) -> None:
    """Not the event loop: trio breaks on what leaves a task that nobody waits for."""

    def end(_: object) -> None:
        raise raised

    async def main() -> None:
        with pytest.raises(type(raised)) as caught:
            await drained(agent_with_tool(end).stream("hi"))
        assert caught.value is raised

    run(main, backend)


@BACKENDS
def test_an_error_of_the_reader_s_own_is_its_own(backend: str) -> None:
    async def read(stream: Any) -> None:
        async with stream:
            async for _ in stream:
                raise KeyError("reader")

    async def main() -> None:
        provider = Endless()
        with pytest.raises(KeyError, match="reader"):
            await read(create_agent(provider=provider).stream("hi"))
        assert provider.ended.is_set()

    run(main, backend)


@BACKENDS
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_listener_that_throws_is_logged_and_no_more(kind: str, backend: str, caplog: Any) -> None:
    def plain(_: object) -> None:
        raise ValueError("listener")

    async def later(_: object) -> None:
        raise ValueError("listener")

    agent = agent_with_tool(on_event=plain if kind == "plain" else later)
    events = run(lambda: drained(agent.stream("hi")), backend)
    assert [event.type for event in events][-1] == "turn.done"
    assert len([record for record in caplog.records if "the run goes on" in record.message]) == len(events)


# Left early.


async def by_break(stream: Any) -> None:
    async for _ in stream:
        break


async def by_close(stream: Any) -> None:
    await anext(stream)
    await stream.aclose()
    await stream.aclose()


async def by_context(stream: Any) -> None:
    async with stream:
        await anext(stream)


async def by_cancellation(stream: Any) -> None:
    with anyio.CancelScope() as scope:
        await anext(stream)
        scope.cancel()
        await anext(stream)


async def by_cancellation_of_a_task(stream: Any) -> None:
    reads = anyio.Event()

    async def read() -> None:
        async for _ in stream:
            reads.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await reads.wait()
        group.cancel_scope.cancel()


async def by_timeout(stream: Any) -> None:
    with anyio.move_on_after(0):
        await drained(stream)


WAYS = pytest.mark.parametrize(
    "leave", [by_break, by_close, by_context, by_cancellation, by_cancellation_of_a_task, by_timeout]
)


@BACKENDS
@WAYS
def test_a_reader_that_leaves_ends_the_turn_and_the_run_goes_on(leave: Callable[..., Any], backend: str) -> None:
    state = RunState()

    async def main() -> None:
        provider = Endless()
        await leave(create_agent(provider=provider).stream("hi", state=state))
        if leave is not by_timeout:  # that one may be gone before the model is asked
            await gone(provider.ended)
        await anyio.wait_all_tasks_blocked()
        assert (await agent_of(["next"]).send("again", state=state)).text == "next"

    run(main, backend)
    assert [message["role"] for message in state.history][-2:] == ["user", "assistant"]


@BACKENDS
@WAYS
def test_a_reader_that_leaves_in_the_middle_of_a_tool_leaves_a_whole_conversation(
    leave: Callable[..., Any], backend: str
) -> None:
    state = RunState()

    async def main() -> None:
        ended = anyio.Event()

        async def wait(_: object) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        with anyio.move_on_after(10):
            await leave(agent_of([calling("f", "f"), "x"], tool("f", wait)).stream("hi", state=state))
        await anyio.wait_all_tasks_blocked()
        assert (await agent_of(["next"]).send("again", state=state)).text == "next"

    run(main, backend)
    calls = [each["id"] for m in state.history for each in m.get("toolCalls", ())]  # type: ignore[attr-defined]
    assert [message["toolCallId"] for message in state.history if message["role"] == "tool"] == calls


@BACKENDS
def test_a_reader_may_leave_at_each_event(backend: str) -> None:
    async def main() -> None:
        for count in range(1, 7):
            state = RunState()
            agent = agent_with_tool()
            async with agent.stream("hi", state=state) as stream:
                for _ in range(count):
                    event = await anext(stream)
            if isinstance(event, TurnDone):
                assert stream.result is event.result
            assert (await agent_of(["next"]).send("again", state=state)).text == "next"

    run(main, backend)


@BACKENDS
@pytest.mark.parametrize("wait", [False, True])
def test_a_reader_may_leave_at_the_last_event_and_has_the_result(wait: bool, backend: str) -> None:
    async def main() -> None:
        stream = agent_of(["a"]).stream("hi")
        async for event in stream:
            if isinstance(event, TurnDone):
                break
        assert stream.result.text == "a"
        if wait:
            await anyio.wait_all_tasks_blocked()
        assert stream.result.text == "a"

    run(main, backend)


@BACKENDS
def test_a_stream_that_is_forgotten_ends_its_turn(backend: str) -> None:
    async def main() -> None:
        provider = Endless()
        stream = create_agent(provider=provider).stream("hi")
        await anext(stream)
        del stream
        await gone(provider.ended)

    run(main, backend)


@BACKENDS
def test_it_may_be_forgotten_in_another_thread(backend: str) -> None:
    async def main() -> None:
        provider = Endless()
        held = [create_agent(provider=provider).stream("hi")]
        await anext(held[0])
        thread = threading.Thread(target=held.clear)
        thread.start()
        await anyio.to_thread.run_sync(thread.join)
        await gone(provider.ended)

    run(main, backend)


@BACKENDS
def test_a_garbage_collector_in_the_middle_takes_no_stream_that_is_read(backend: str) -> None:
    async def main() -> None:
        words = 0
        async for _ in agent_of(["a b c d e f"]).stream("hi"):
            gc.collect()
            words += 1
        assert words == 7

    run(main, backend)


@BACKENDS
@pytest.mark.parametrize("taken", [1, 6])
def test_a_stream_may_outlive_its_event_loop(taken: int, backend: str) -> None:
    async def main() -> Any:
        stream = agent_with_tool().stream("hi")
        for _ in range(taken):
            await anext(stream)
        return stream

    with nothing_left():
        stream = anyio.run(main, backend=backend)
        del stream
        gc.collect()


def test_an_event_loop_that_ends_before_the_turn_began_ends_all_the_same() -> None:
    """Its task is cancelled before it ran one step, and the reader, cancelled too, waits for it."""

    async def main() -> None:
        readers.append(asyncio.ensure_future(drained(agent_of(["a"]).stream("hi"))))

    readers: list[Any] = []
    with nothing_left():
        asyncio.run(main())
    assert readers[0].cancelled()


@BACKENDS
def test_a_reader_that_is_cancelled_at_once_is_gone_at_once(backend: str) -> None:
    async def main() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await drained(agent_of(["a"]).stream("hi"))
        assert scope.cancelled_caught

    run(main, backend)


@BACKENDS
def test_an_async_generator_round_a_stream_may_be_left_too(backend: str) -> None:
    """As a web framework does with its responses: the task group is never open in the reader's code."""

    async def texts(provider: Endless) -> AsyncIterator[str]:
        async with create_agent(provider=provider).stream("hi") as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    yield event.text

    async def main() -> None:
        provider = Endless()
        generator = texts(provider)
        assert await anext(generator) == "word "
        await generator.aclose()  # type: ignore[attr-defined]
        assert provider.ended.is_set()

    run(main, backend)


@BACKENDS
def test_a_turn_that_is_shielded_tells_nobody_and_fails_nowhere(backend: str) -> None:
    """What it still tells after its reader left is no error of its own."""
    heard: list[object] = []
    told, listen = watching(TextDelta)

    async def main() -> None:
        ended = anyio.Event()

        async def shielded(_: object, proceed: Any) -> Any:
            with anyio.CancelScope(shield=True):
                answer = await proceed()
            ended.set()
            return answer

        turns = [calling("sub", args={"task": "t"}), "done"]
        sub, app = agent_of(["a b c"], name="sub"), App().use(tool=shielded)
        hook = host("h", on_error=lambda *arguments: heard.append(arguments))
        async with agent_of(turns, sub_agents=[sub], app=app, hooks=[hook], on_event=listen).stream("hi") as stream:
            while not told:
                await anext(stream)
        assert ended.is_set()

    run(main, backend)
    assert ([event.text for event in told], heard) == (["a ", "b ", "c"], [])


@BACKENDS
def test_a_turn_has_none_of_its_reader_s_deadlines(backend: str) -> None:
    """The reader's scope is not the turn's: what is cancelled is the reader, and the turn with it, not in its place."""
    heard: list[object] = []

    async def main() -> None:
        provider = Endless()
        agent = create_agent(provider=provider, hooks=[host("h", on_error=lambda *a: heard.append(a))])
        with anyio.move_on_after(0.01) as scope:
            await drained(agent.stream("hi"))
        assert scope.cancelled_caught
        assert provider.ended.is_set()

    run(main, backend)
    assert heard == []


# Ended from the inside.


@BACKENDS
@pytest.mark.parametrize("at", ["turn.start", "tool.start", "text.delta", "turn.done"])
def test_a_listener_may_close_the_stream_of_its_own_turn(at: str, backend: str) -> None:
    """It would otherwise wait for the end of what waits for it."""

    async def main() -> None:
        async def close(event: Any) -> None:
            if event.type == at or at == "turn.start":
                await stream.aclose()

        stream = agent_with_tool(on_event=close).stream("hi")
        with anyio.fail_after(10):
            events = await drained(stream)
        assert at not in [event.type for event in events]

    run(main, backend)


@BACKENDS
@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_tool_may_close_the_stream_of_its_own_turn(kind: str, backend: str) -> None:
    async def main() -> None:
        async def close(_: object) -> None:
            await stream.aclose()

        def close_from_a_thread(_: object) -> None:
            anyio.from_thread.run(stream.aclose)

        stream = agent_with_tool(close if kind == "async" else close_from_a_thread).stream("hi")
        with anyio.fail_after(10):
            events = await drained(stream)
        assert [event.type for event in events] == ["tool.start"]

    run(main, backend)


@BACKENDS
def test_another_task_may_close_a_stream_that_is_being_read(backend: str) -> None:
    async def main() -> None:
        started = anyio.Event()

        async def wait(_: object) -> None:
            started.set()
            await anyio.sleep_forever()

        stream = agent_with_tool(wait).stream("hi")
        async with anyio.create_task_group() as group:
            group.start_soon(drained, stream)
            await started.wait()
            await stream.aclose()

    run(main, backend)


# Inside one another.


@BACKENDS
def test_a_tool_may_read_a_stream_of_another_agent(backend: str) -> None:
    async def main() -> None:
        async def inner(_: object) -> str:
            events = await drained(agent_of(["inner"]).stream("x"))
            return events[-1].result.text

        events = await drained(agent_with_tool(inner).stream("hi"))
        assert [event.content for event in events if isinstance(event, ToolDone)] == ["inner"]

    run(main, backend)


@BACKENDS
def test_parallel_calls_tell_their_events_through_one_stream(backend: str) -> None:
    async def main() -> None:
        subs = [agent_of(["s t u"], name=f"s{n}") for n in range(3)]
        agent = agent_of([calling("s0", "s1", "s2", args={"task": "t"}), "done"], sub_agents=subs)
        events = await drained(agent.stream("hi"))
        told = [(event.agent, event.text) for event in events if isinstance(event, TextDelta)]
        for n in range(3):
            assert [text for name, text in told if name == f"s{n}"] == ["s ", "t ", "u"]

    run(main, backend)


@BACKENDS
def test_resumed_turns_stream_as_well(backend: str) -> None:
    async def main() -> None:
        agent = agent_of(TURNS, tool(needs_approval=True))
        paused = await drained(agent.stream("hi"))
        assert [event.type for event in paused] == ["approval.required", "turn.done"]
        pending = paused[-1].result.pending
        stream = agent.resume_stream(pending, {call.id: "approve" for call in pending.calls})
        events = await drained(stream)
        assert [event.type for event in events] == ["tool.start", "tool.done", *["text.delta"] * 3, "turn.done"]
        assert stream.result.text == "one two three"

    run(main, backend)


def test_streams_in_many_threads_each_have_their_loop() -> None:
    agent = agent_of(["a"] * 16)
    texts: list[str] = []

    def read() -> None:
        texts.append(anyio.run(lambda: drained(agent.stream("hi")))[-1].result.text)

    threads = [threading.Thread(target=read) for _ in range(8)]
    with nothing_left():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == ["a"] * 8


PROGRAM = """
import asyncio, gc, sys
import anyio
from hookcell.agent import create_agent, mock_model

async def main():
    agent = create_agent(provider=mock_model(["a b c"] * 3))
    async for event in agent.stream("left at once"):
        break
    held = agent.stream("left open")
    await anext(held)
    async for event in agent.stream("read"):
        pass
    return held

anyio.run(main, backend=sys.argv[1])
gc.collect()
"""


@BACKENDS
def test_a_program_that_leaves_streams_behind_ends_without_a_word(backend: str) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, backend]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_plain_turn_starts_no_task() -> None:
    with nothing_left():
        assert send(agent_with_tool()).text == "one two three"
