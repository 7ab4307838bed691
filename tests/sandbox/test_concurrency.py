"""Many callers at once: threads, tasks, slots, and the lane of an event loop."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import anyio
import anyio.lowlevel
import pytest

from hookcell_sandbox import (
    DeadlineExceeded,
    EngineSettings,
    FuelExhausted,
    GuestTrap,
    Limits,
    OutputTooLarge,
    Program,
    ProtocolViolation,
    Sandbox,
    SandboxBusy,
)
from hookcell_sandbox.lane import Lane, current_lane

Load = Callable[[str], Program]
LoadInto = Callable[[Sandbox, str], Program]
ENDLESS = Limits(fuel=2**50, deadline_ms=3_600_000)


@pytest.fixture
def few(load_into_sandbox: LoadInto) -> Iterator[tuple[Sandbox, Program, Program]]:
    """A sandbox with two slots that does not wait for one, an endless program and a plain one."""
    with Sandbox(settings=EngineSettings(slots=2), wait_ms=0) as sandbox:
        yield sandbox, load_into_sandbox(sandbox, "greedy"), load_into_sandbox(sandbox, "plain")


def test_two_hundred_threads_of_good_and_bad_hooks_each_get_their_own_right_answer(
    sandbox: Sandbox, load: Load
) -> None:
    """Public report (c): one sandbox, one program, many threads."""
    programs = {name: load(name) for name in ("plain", "traps", "greedy", "bounds", "start")}
    expected: dict[tuple[str, str], type[Exception] | None] = {
        ("plain", "echo"): None,
        ("plain", "work"): None,
        ("start", "echo"): None,
        ("traps", "divide"): GuestTrap,
        ("traps", "recurse"): GuestTrap,
        ("greedy", "spin"): FuelExhausted,
        ("bounds", "huge"): OutputTooLarge,
        ("bounds", "one_beyond"): ProtocolViolation,
    }
    limits = Limits(fuel=10_000_000, deadline_ms=120_000)

    def call(number: int) -> None:
        choose = random.Random(number)
        for turn in range(10):
            (name, entry), error = choose.choice(list(expected.items()))
            payload = f"{number}/{turn}".encode()
            if error is None:
                assert sandbox.run_sync(programs[name], entry, payload, limits).output == payload
            else:
                with pytest.raises(error):
                    sandbox.run_sync(programs[name], entry, payload, limits)

    start = threading.Barrier(200)

    def together(number: int) -> None:
        start.wait()
        call(number)

    # 200 callers over 64 slots: the wait for a slot is long enough here that none gives up.
    sandbox._wait_ms, before = 120_000, sandbox._wait_ms
    try:
        with ThreadPoolExecutor(200) as threads:
            list(threads.map(together, range(200)))
    finally:
        sandbox._wait_ms = before
    assert sandbox.taken == 0


class TestSlots:
    @pytest.mark.anyio
    async def test_n_calls_run_at_once_and_one_more_is_refused_after_the_wait(
        self, few: tuple[Sandbox, Program, Program]
    ) -> None:
        sandbox, greedy, plain = few
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(sandbox.run, greedy, "spin", b"", ENDLESS)
            while sandbox.taken < 2:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(SandboxBusy, match="all 2 slots") as caught:
                await sandbox.run(plain, "echo", b"")
            assert caught.value.code == "busy"
            with pytest.raises(SandboxBusy):
                sandbox.run_sync(plain, "echo", b"")
            tasks.cancel_scope.cancel()
        assert (await sandbox.run(plain, "echo", b"x")).output == b"x"

    @pytest.mark.anyio
    async def test_a_caller_that_waits_gets_the_slot_that_comes_free(self, load_into_sandbox: LoadInto) -> None:
        with Sandbox(settings=EngineSettings(slots=1), wait_ms=60_000) as sandbox:
            greedy, plain = load_into_sandbox(sandbox, "greedy"), load_into_sandbox(sandbox, "plain")

            async def hold_the_slot() -> None:
                with pytest.raises(DeadlineExceeded):
                    await sandbox.run(greedy, "spin", b"", Limits(fuel=2**50, deadline_ms=20))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(hold_the_slot)
                while not sandbox.taken:
                    await anyio.lowlevel.checkpoint()
                assert (await sandbox.run(plain, "echo", b"late")).output == b"late"


class TestLane:
    @pytest.mark.anyio
    async def test_one_slice_runs_in_each_turn_of_the_loop_however_many_guests_are_endless(
        self, sandbox: Sandbox, load: Load
    ) -> None:
        """Ten endless guests must not make another task ten slices late."""
        slices_since_turn = most = 0
        greedy = load("greedy")
        slices = sandbox._slices

        def counted(*arguments: object) -> Iterator[None]:
            nonlocal slices_since_turn, most
            inner = slices(*arguments)  # type: ignore[arg-type]  # the same arguments
            while True:
                slices_since_turn += 1
                most = max(most, slices_since_turn)
                try:
                    next(inner)
                except StopIteration as end:
                    return end.value
                yield

        sandbox._slices = counted  # type: ignore[assignment, method-assign]  # a counter in front of it
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(sandbox.run, greedy, "spin", b"", ENDLESS)
                for _ in range(200):
                    slices_since_turn = 0
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        finally:
            del sandbox._slices
        assert most == 1

    @pytest.mark.anyio
    async def test_endless_guests_share_the_lane_fairly_with_a_long_one(self, sandbox: Sandbox, load: Load) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(sandbox.run, load("greedy"), "spin", b"", ENDLESS)
            done = await sandbox.run(load("plain"), "work", b"through", Limits(deadline_ms=60_000))
            assert done.output == b"through"
            tasks.cancel_scope.cancel()

    @pytest.mark.anyio
    async def test_short_calls_in_a_row_give_the_loop_a_turn_now_and_then(self, sandbox: Sandbox, load: Load) -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            while turns < 5:  # ends only if the calls let the other task run
                await sandbox.run(load("plain"), "echo", b"x")
            tasks.cancel_scope.cancel()

    @pytest.mark.anyio
    async def test_a_waiter_that_is_cancelled_leaves_the_queue(self, sandbox: Sandbox, load: Load) -> None:
        greedy, plain = load("greedy"), load("plain")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sandbox.run, greedy, "spin", b"", ENDLESS)
            for _ in range(50):
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await sandbox.run(greedy, "spin", b"", ENDLESS)
            assert (await sandbox.run(plain, "echo", b"x", Limits(deadline_ms=60_000))).output == b"x"
            tasks.cancel_scope.cancel()
        assert not current_lane()._held
        assert not current_lane()._waiting

    def test_a_loop_that_ended_leaves_no_lane_behind_for_the_next(self, sandbox: Sandbox, load: Load) -> None:
        lanes: list[Lane] = []

        async def call() -> None:
            lanes.append(current_lane())
            assert (await sandbox.run(load("plain"), "echo", b"x")).output == b"x"

        for backend in ("asyncio", "asyncio", "trio", "asyncio"):
            anyio.run(call, backend=backend)
        assert len({id(lane) for lane in lanes}) == 4

    def test_without_a_loop_the_error_is_pythons_own(self, sandbox: Sandbox, load: Load) -> None:
        coroutine = sandbox.run(load("plain"), "echo", b"x")
        with pytest.raises(RuntimeError, match=r"no running event loop|async context"):
            coroutine.send(None)


class TestCancellation:
    @pytest.mark.anyio
    @pytest.mark.parametrize("times", [1, 2, 100])
    async def test_a_call_can_be_cancelled_each_time(self, sandbox: Sandbox, load: Load, times: int) -> None:
        """Public report (e): cancelling works the second time."""
        for _ in range(times):
            with anyio.move_on_after(0.002) as scope:
                await sandbox.run(load("greedy"), "spin", b"", ENDLESS)
            assert scope.cancelled_caught
            assert sandbox.taken == 0
            assert (await sandbox.run(load("plain"), "echo", b"x")).output == b"x"

    @pytest.mark.anyio
    async def test_a_call_in_a_cancelled_scope_ends_at_its_first_slice(self, sandbox: Sandbox, load: Load) -> None:
        for _ in range(2_000):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await sandbox.run(load("greedy"), "spin", b"", ENDLESS)
        assert sandbox.taken == 0

    @pytest.mark.anyio
    async def test_the_deadline_holds_for_an_awaited_call(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(DeadlineExceeded):
            await sandbox.run(load("greedy"), "spin", b"", Limits(fuel=2**50, deadline_ms=10))

    def test_a_coroutine_that_is_dropped_in_the_middle_gives_its_slot_back(self, sandbox: Sandbox, load: Load) -> None:
        async def main() -> None:
            coroutine = sandbox.run(load("greedy"), "spin", b"", ENDLESS)
            coroutine.send(None)
            assert sandbox.taken == 1
            coroutine.close()
            assert sandbox.taken == 0

        anyio.run(main)
