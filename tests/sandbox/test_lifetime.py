"""What comes to an end, and how: interrupts, forks, closing, exit, garbage, a signal handler, a misfit library."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Generator, Iterator
from types import FrameType

import anyio
import psutil
import pytest

from hookcell_sandbox import (
    Completion,
    DeadlineExceeded,
    EngineSettings,
    GuestError,
    GuestTrap,
    Limits,
    Program,
    Sandbox,
    SandboxBusy,
    SandboxUnusable,
    native,
)
from hookcell_sandbox import sandbox as sandbox_module
from hookcell_sandbox.call import IsolatedCall

Load = Callable[[str], Program]
LoadInto = Callable[[Sandbox, str], Program]
ENDLESS = Limits(fuel=2**50, deadline_ms=3_600_000)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture
def eight(load_into_sandbox: LoadInto) -> Iterator[tuple[Sandbox, list[tuple[Program, str]]]]:
    """A sandbox of eight slots, and guests that are short, long, endless, and that trap."""
    with Sandbox(settings=EngineSettings(slots=8), wait_ms=0) as sandbox:
        plain, greedy, traps, start = (load_into_sandbox(sandbox, n) for n in ("plain", "greedy", "traps", "start"))
        calls = [(plain, "echo"), (plain, "work"), (greedy, "spin"), (traps, "divide"), (start, "echo")]
        yield sandbox, calls


def all_slots_are_free(sandbox: Sandbox, program: Program) -> bool:
    """By wasmtime's own count: eight calls can be suspended at once, and a ninth cannot start."""
    suspended = [sandbox._slices(program, "spin", b"", ENDLESS) for _ in range(8)]
    for call in suspended:
        next(call)
    with pytest.raises(SandboxBusy):
        sandbox.run_sync(program, "spin", b"", ENDLESS)
    for call in suspended:
        call.close()
    return sandbox.taken == 0


def finish(call: Generator[None, None, Completion]) -> Completion:
    while True:
        try:
            next(call)
        except StopIteration as end:
            return end.value


class TestInterrupts:
    @pytest.mark.parametrize(
        "interrupts", [2_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["short", "long"]
    )
    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
    def test_an_interrupt_at_any_moment_loses_no_slot_store_or_fiber(
        self,
        eight: tuple[Sandbox, list[tuple[Program, str]]],
        interrupts: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Interrupts fall between any two bytecodes, also while an earlier one is cleaned up, and stay in cycles with
        their tracebacks, so that the cyclic collector meets suspended calls too."""
        sandbox, calls = eight
        # pytest's own hook keeps an interrupt that fell into a destructor, and with its traceback the call in it.
        monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
        choose = random.Random(interrupts)
        limits = Limits(fuel=2**50, deadline_ms=3)
        cycles: list[object] = []
        seen = 0

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            while seen < interrupts:
                program, entry = choose.choice(calls)
                try:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-6, 60e-6 if entry == "echo" else 400e-6))
                        sandbox.run_sync(program, entry, b"payload", limits)
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt as caught:
                    seen += 1
                    if choose.random() < 0.3:
                        cycle: list[object] = [caught]
                        cycle.append(cycle)
                        cycles.append(cycle)
                        del cycle
                    if len(cycles) > 4:
                        cycles.clear()
                except GuestError:
                    pass
                except SandboxBusy:  # the cycles hold them all
                    cycles.clear()
                    gc.collect()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        cycles.clear()
        gc.collect()
        assert all_slots_are_free(sandbox, calls[2][0])

    def test_suspended_calls_in_garbage_cycles_are_collected_in_the_right_order(
        self, eight: tuple[Sandbox, list[tuple[Program, str]]]
    ) -> None:
        """A store that went before its future would abort the process."""
        sandbox, calls = eight
        for _ in range(200):
            for _ in range(8):
                call = sandbox._slices(calls[2][0], "spin", b"", ENDLESS)
                next(call)
                instance = call.gi_frame.f_locals["instance"]
                cycle: list[object] = [call, instance, instance.store, instance.future]
                cycle.append(cycle)
                del call, instance, cycle
            gc.collect()
            assert sandbox.taken == 0

    def test_a_call_that_runs_in_one_thread_cannot_be_driven_by_another(
        self, eight: tuple[Sandbox, list[tuple[Program, str]]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sandbox, calls = eight
        inside, leave = threading.Event(), threading.Event()
        real = IsolatedCall._slices

        def slow(self: IsolatedCall, *arguments: object) -> Iterator[None]:
            inside.set()
            leave.wait()
            return real(self, *arguments)  # type: ignore[arg-type, return-value]  # the same arguments

        monkeypatch.setattr(IsolatedCall, "_slices", slow)
        call = sandbox._slices(calls[2][0], "spin", b"", ENDLESS)
        thread = threading.Thread(target=lambda: next(call))
        thread.start()
        inside.wait()
        for step in (lambda: next(call), call.close):
            with pytest.raises(ValueError, match="generator already executing"):
                step()
        leave.set()
        thread.join()
        call.close()
        assert sandbox.taken == 0

    def test_a_destructor_that_calls_a_guest_while_a_slot_is_taken_does_not_deadlock(
        self, eight: tuple[Sandbox, list[tuple[Program, str]]]
    ) -> None:
        """The collector may run a destructor wherever something is allocated, also under the pool's lock."""
        sandbox, calls = eight
        outputs: list[bytes | None] = []

        class Last:
            def __del__(self) -> None:
                outputs.append(sandbox.run_sync(calls[0][0], "echo", b"last").output)

        with sandbox._pool._lock:
            last: list[object] = [Last()]
            last.append(last)
            del last
            gc.collect()
        assert outputs == [b"last"]

    def test_a_suspended_call_moves_to_another_thread(self, eight: tuple[Sandbox, list[tuple[Program, str]]]) -> None:
        sandbox, calls = eight
        call = sandbox._slices(calls[1][0], "work", b"moved", Limits(deadline_ms=60_000))
        outputs: list[bytes | None] = []

        def step() -> None:
            try:
                next(call)
            except StopIteration as end:
                outputs.append(end.value.output)

        while not outputs:
            thread = threading.Thread(target=step)
            thread.start()
            thread.join()
        assert outputs == [b"moved"]


class TestClosing:
    def test_a_closed_sandbox_says_so(self, load_into_sandbox: LoadInto) -> None:
        sandbox = Sandbox()
        program = load_into_sandbox(sandbox, "plain")
        sandbox.close()
        sandbox.close()
        for use in (
            lambda: sandbox.run_sync(program, "echo", b""),
            lambda: anyio.run(sandbox.run, program, "echo", b""),
            lambda: load_into_sandbox(sandbox, "plain"),
        ):
            with pytest.raises(SandboxUnusable, match="closed; make a new one"):
                use()

    def test_a_call_in_flight_comes_to_its_end(self, load_into_sandbox: LoadInto) -> None:
        sandbox = Sandbox()
        call = sandbox._slices(load_into_sandbox(sandbox, "plain"), "work", b"x", Limits(deadline_ms=60_000))
        next(call)
        sandbox.close()
        assert finish(call).output == b"x"

    def test_a_program_of_another_sandbox_is_refused(self, sandbox: Sandbox, load_into_sandbox: LoadInto) -> None:
        with Sandbox(settings=EngineSettings(slots=1)) as other, pytest.raises(ValueError, match="another sandbox"):
            sandbox.run_sync(load_into_sandbox(other, "plain"), "echo", b"")

    def test_a_program_outlives_its_last_name_while_a_call_runs(self, sandbox: Sandbox, load: Load) -> None:
        call = sandbox._slices(load("plain"), "work", b"x", Limits(deadline_ms=60_000))
        next(call)
        gc.collect()
        assert finish(call).output == b"x"

    @pytest.mark.parametrize("wait", [-1])
    def test_a_negative_wait_is_refused(self, wait: int) -> None:
        with pytest.raises(ValueError, match="wait_ms is -1"):
            Sandbox(wait_ms=wait)


@LINUX
class TestProcesses:
    def test_a_fork_gets_a_clear_error_and_can_make_its_own(self, sandbox: Sandbox, load: Load) -> None:
        """With a call suspended over the fork: the child drops it without touching the parent's store."""
        plain = load("plain")
        suspended = sandbox._slices(load("greedy"), "spin", b"", ENDLESS)
        next(suspended)
        child = os.fork()
        if not child:  # pragma: no cover - in the child
            code = 1
            try:
                try:
                    sandbox.run_sync(plain, "echo", b"")
                except SandboxUnusable as error:
                    del suspended
                    gc.collect()
                    code = 0 if "forked" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        next(suspended)
        suspended.close()
        assert sandbox.run_sync(plain, "echo", b"still").output == b"still"
        assert sandbox.taken == 0

    @staticmethod
    def python(script: str, *flags: str) -> subprocess.CompletedProcess[str]:
        prelude = """
            import gc, os, sys, threading, wasmtime, anyio
            from hookcell_sandbox import *
            WAT = '''(module (memory (export "memory") 2)
              (func (export "hook_alloc") (param i32) (result i32) (i32.const 65536))
              (func (export "echo") (param i32 i32) (result i64)
                (i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32)) (i64.extend_i32_u (local.get 1))))
              (func (export "beyond") (param i32 i32) (result i64) (i64.load (i32.const 0x7fffffff)))
              (func (export "spin") (param i32 i32) (result i64) (loop $again (br $again)) (i64.const 0)))'''
            POLICY = AdmissionPolicy(entry_points=frozenset({"echo", "beyond", "spin"}))
            def load(sandbox): return sandbox.load(bytes(wasmtime.wat2wasm(WAT)), POLICY)
        """
        source = textwrap.dedent(prelude) + textwrap.dedent(script)
        return subprocess.run([sys.executable, *flags, "-c", source], capture_output=True, text=True, timeout=120)

    def test_a_child_of_a_fork_works_with_a_sandbox_of_its_own(self) -> None:
        done = self.python("""
            first = Sandbox(); program = load(first)
            assert first.run_sync(program, "echo", b"parent").output == b"parent"
            child = os.fork()
            if not child:
                second = Sandbox(); program = load(second)
                for _ in range(1000): assert second.run_sync(program, "echo", b"child").output == b"child"
                assert second.taken == 0
                second.close(); sys.stdout.flush(); os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            assert first.run_sync(program, "echo", b"parent").output == b"parent"
        """)
        assert (done.stdout.strip(), done.stderr, done.returncode) == ("0", "", 0)

    def test_use_while_the_interpreter_shuts_down_is_a_clear_error(self) -> None:
        done = self.python("""
            import atexit
            def late():
                try: sandbox.run_sync(program, "echo", b"")
                except SandboxUnusable as error: print(error)
            atexit.register(late)  # before the sandbox's own, so it runs after it
            from hookcell_sandbox import sandbox as module
            atexit.unregister(module._at_exit); atexit.register(module._at_exit)
            sandbox = Sandbox(); program = load(sandbox)
        """)
        assert (done.stdout.strip(), done.returncode) == ("the interpreter is shutting down", 0)

    def test_exit_with_calls_suspended_and_daemon_threads_in_guests_is_clean(self) -> None:
        done = self.python("""
            sandbox = Sandbox(); program = load(sandbox); endless = Limits(fuel=2**50, deadline_ms=3_600_000)
            kept = [sandbox._slices(program, "spin", b"", endless) for _ in range(4)]
            for call in kept: next(call)
            def spin(): sandbox.run_sync(program, "spin", b"", endless)
            for _ in range(4): threading.Thread(target=spin, daemon=True).start()
            while sandbox.taken < 8: pass
            print("leaving")
        """)
        assert (done.stdout.strip(), done.returncode) == ("leaving", 0)

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_faulthandler_does_not_let_a_guest_kill_the_host(self, when: str) -> None:
        done = self.python(f"""
            import faulthandler
            if {when!r} == "before": faulthandler.enable()
            sandbox = Sandbox(); program = load(sandbox)
            if {when!r} == "after": faulthandler.enable()
            try: sandbox.run_sync(program, "beyond", b"")
            except GuestTrap as error: print(error.trap)
        """)
        assert (done.stdout.strip(), done.stderr, done.returncode) == ("memory_out_of_bounds", "", 0)

    def test_python_warns_of_nothing_in_development_mode(self) -> None:
        done = self.python(
            """
            with Sandbox() as sandbox:
                program = load(sandbox)
                assert sandbox.run_sync(program, "echo", b"x").output == b"x"
                for backend in ("asyncio", "trio"): anyio.run(sandbox.run, program, "echo", b"x", backend=backend)
            """,
            "-X",
            "dev",
            "-W",
            "error",
        )
        assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


class TestLibrary:
    def test_the_installed_wasmtime_fits(self) -> None:
        assert native.faults() == []

    @pytest.mark.parametrize("installed", ["49.0.0", "50.0.0", "51.0.0", "60.1.2"])
    def test_a_version_outside_the_range_is_one_plain_error(
        self, monkeypatch: pytest.MonkeyPatch, installed: str
    ) -> None:
        monkeypatch.setattr(sandbox_module, "version", lambda _: installed)
        with pytest.raises(SandboxUnusable, match=rf"wasmtime {installed} does not fit.*Install wasmtime>=50.0.1,<51"):
            sandbox_module._check_library.__wrapped__()

    def test_a_layout_or_a_function_that_differs_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(native, "_LAYOUTS", (("wasmtime_val_t", native._Vector),))
        monkeypatch.setitem(native._RESULTS, "wasmtime_no_such_function", None)
        assert native.faults() == [
            "no function wasmtime_no_such_function",
            "wasmtime_val_t has 32 bytes, not 16",
        ]


def rss() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


MIB = 2**20


class TestSoak:
    @pytest.mark.parametrize("calls", [100_000])
    def test_memory_stays_flat_over_many_calls(self, sandbox: Sandbox, load: Load, calls: int) -> None:
        """Public report (d): 10⁵ create/free cycles with flat memory, failures among them."""
        plain, traps, logs = load("plain"), load("traps"), load("logs")
        limits = Limits(fuel=50_000, deadline_ms=60_000)

        def some(count: int) -> None:
            for number in range(count):
                sandbox.run_sync(plain, "echo", b"x" * 100, limits)
                if number % 10 == 0:
                    with pytest.raises(GuestTrap):
                        sandbox.run_sync(traps, "unreachable", b"", limits)
                    with pytest.raises(GuestTrap):
                        sandbox.run_sync(logs, "says_and_traps", b"", limits)

        some(calls // 10)
        before = rss()
        some(calls)
        assert rss() - before < 4 * MIB

    def test_memory_stays_flat_over_many_cancellations(self, sandbox: Sandbox, load: Load) -> None:
        greedy = load("greedy")

        async def cancel(count: int) -> None:
            for _ in range(count):
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await sandbox.run(greedy, "spin", b"", ENDLESS)

        anyio.run(cancel, 1_000)
        before = rss()
        anyio.run(cancel, 10_000)
        assert rss() - before < 4 * MIB

    def test_memory_stays_flat_over_many_loads(self, load_into_sandbox: LoadInto) -> None:
        """10⁴ load/close cycles of a program, and some of a whole sandbox."""
        with Sandbox(settings=EngineSettings(slots=2)) as sandbox:

            def some(count: int) -> None:
                for _ in range(count):
                    program = load_into_sandbox(sandbox, "plain")
                    sandbox.run_sync(program, "echo", b"x")

            some(500)
            before = rss()
            some(10_000)
            assert rss() - before < 6 * MIB

    def test_memory_stays_flat_over_many_sandboxes(self, load_into_sandbox: LoadInto) -> None:
        def some(count: int) -> None:
            for _ in range(count):
                with Sandbox(settings=EngineSettings(slots=2)) as sandbox:
                    sandbox.run_sync(load_into_sandbox(sandbox, "plain"), "echo", b"x")

        some(5)
        before = rss()
        some(20)
        assert rss() - before < 6 * MIB


def test_a_deadline_is_met_while_python_threads_are_busy(sandbox: Sandbox, load: Load) -> None:
    """No ticker thread that could starve under the GIL: the running call looks at the clock itself."""
    stop = threading.Event()

    def burn() -> None:
        while not stop.is_set():
            sum(range(1000))

    threads = [threading.Thread(target=burn) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        with pytest.raises(DeadlineExceeded):
            sandbox.run_sync(load("greedy"), "spin", b"", Limits(fuel=2**50, deadline_ms=20))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
