"""Compilation: what it may cost, whose fault a failure is, and that a compile is never done twice for nothing."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import wasmtime
import wasmtime._ffi as ffi

from hookcell_sandbox import compile_link
from hookcell_sandbox.artifacts import ArtifactCache
from hookcell_sandbox.compile_link import CompileLink, Refusal
from hookcell_sandbox.compiler import CompileLimits, Compiler, unenforced
from hookcell_sandbox.errors import ModuleRejected, SandboxBusy, SandboxError, SandboxUnusable
from hookcell_sandbox.limits import KIB, MIB
from hookcell_sandbox.settings import EngineSettings, config

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = EngineSettings()
QUICK = CompileLimits(cpu_seconds=1, address_space_bytes=256 * MIB)

linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's limits as Linux has them")


def leb(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def section(code: int, *entries: bytes) -> bytes:
    body = leb(len(entries)) + b"".join(entries)
    return bytes([code]) + leb(len(body)) + body


def module_with(body: bytes, *block_types: bytes) -> bytes:
    """A module of one function () -> () and types for its blocks from 1 on."""
    types = section(1, b"\x60\0\0", *block_types)
    return b"\0asm\1\0\0\0" + types + section(3, b"\0") + section(10, leb(len(body)) + body)


FOUR_TO_FOUR = b"\x60" + leb(4) + b"\x7f" * 4 + leb(4) + b"\x7f" * 4
A_THOUSAND = b"\x60" + leb(1_000) + b"\x7f" * 1_000 + leb(0)
A_THOUSAND_LOCALS = leb(1) + leb(1_000) + b"\x7f"


def nested(block: bytes, count: int, inside: bytes = b"") -> bytes:
    return block * count + inside + b"\x0b" * count


def copies(count: int) -> bytes:
    return b"".join(b"\x20" + leb(n % 1_000) + b"\x21" + leb((n * 7 + 1) % 1_000) for n in range(count))


def branches(count: int) -> bytes:
    return b"".join(
        b"\x20" + leb(n % 1_000) + b"\x04\x40\x41\1\x21" + leb(n * 13 % 1_000) + b"\x0b" for n in range(count)
    )


# All but the last are within what admission takes for a body, 128 KiB, and most of `ModuleLimits` besides.
BOMBS = {
    "30,000 nested loops": module_with(b"\0" + nested(b"\x03\x40", 30_000) + b"\x0b"),
    "20,000 nested ifs": module_with(b"\0" + nested(b"\x41\0\x04\x40", 20_000) + b"\x0b"),
    "40,000 nested blocks with parameters": module_with(
        b"\0" + b"\x41\0" * 4 + nested(b"\x02\x01", 40_000) + b"\x1a" * 4 + b"\x0b", FOUR_TO_FOUR
    ),
    "40,000 nested loops with parameters": module_with(
        b"\0" + b"\x41\0" * 4 + nested(b"\x03\x01", 40_000) + b"\x1a" * 4 + b"\x0b", FOUR_TO_FOUR
    ),
    "1,000 locals through 20,000 loops": module_with(
        A_THOUSAND_LOCALS + nested(b"\x03\x40", 20_000, copies(12_000)) + b"\x0b"
    ),
    "1,000 locals through 9,000 branches": module_with(
        A_THOUSAND_LOCALS + b"\x03\x40" + branches(9_000) + b"\x41\1\x0d\0\x0b\x0b"
    ),
    "1,000 parameters to each of 1,500 blocks": module_with(
        b"\0" + (b"\x41\0" * 1_000 + b"\x03\x01" + b"\x1a" * 1_000 + b"\x0b") * 1_500 + b"\x0b", A_THOUSAND
    ),
}
LOOPS = BOMBS["30,000 nested loops"]


def wasm(wat: str) -> bytes:
    return bytes(wasmtime.wat2wasm(f"(module {wat})"))


def answering(number: int) -> bytes:
    return wasm(f'(memory 1) (data (i32.const 0) "hello") (func (export "answer") (result i32) (i32.const {number}))')


def digest(module: bytes) -> str:
    return hashlib.sha256(module).hexdigest()


def answer(engine: wasmtime.Engine, module: wasmtime.Module) -> int:
    store = wasmtime.Store(engine)
    store.set_fuel(1_000)
    entry = wasmtime.Instance(store, module, []).exports(store)["answer"]
    assert isinstance(entry, wasmtime.Func)
    return entry(store)


@pytest.fixture(scope="module")
def engine() -> wasmtime.Engine:
    return wasmtime.Engine(config(SETTINGS))


@contextmanager
def compiler(limits: CompileLimits = QUICK, cache: ArtifactCache | None = None) -> Iterator[Compiler]:
    made = Compiler(SETTINGS, limits=limits, cache=cache)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The children that were started, in order."""
    started: list[subprocess.Popen[bytes]] = []
    real = compile_link._start

    def start(*args: object, **kwargs: object) -> subprocess.Popen[bytes]:
        process = real(*args, **kwargs)  # type: ignore[arg-type]
        started.append(process)
        return process

    monkeypatch.setattr(compile_link, "_start", start)
    return started


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The modules that children were given, in order."""
    given: list[bytes] = []
    real = CompileLink.compile

    def compile_(self: CompileLink, module: bytes) -> object:
        given.append(module)
        return real(self, module)

    monkeypatch.setattr(CompileLink, "compile", compile_)
    return given


def refusal(made: Compiler, engine: wasmtime.Engine, module: bytes) -> str:
    """The code of the one finding that a module is refused with."""
    with pytest.raises(ModuleRejected) as caught:
        made.load(engine, module, digest(module))
    assert caught.value.digest == digest(module)
    (finding,) = caught.value.findings
    assert finding.hint or finding.value
    return finding.code


def test_a_module_is_compiled_loaded_and_answers(engine: wasmtime.Engine) -> None:
    with compiler() as made:
        assert answer(engine, made.load(engine, answering(42), digest(answering(42)))) == 42


def test_the_childs_artifact_loads_in_a_pooled_engine(tmp_path: Path) -> None:
    pooled = config(SETTINGS)
    pool = ffi.wasmtime_pooling_allocation_config_new()
    ffi.wasmtime_pooling_allocation_config_total_memories_set(pool, 4)
    ffi.wasmtime_pooling_allocation_config_max_memory_size_set(pool, SETTINGS.memory_bytes)
    ffi.wasmtime_pooling_allocation_strategy_set(pooled.ptr(), pool)
    ffi.wasmtime_pooling_allocation_config_delete(pool)
    engine = wasmtime.Engine(pooled)
    for cache in (None, ArtifactCache(tmp_path / "cache")):
        with compiler(cache=cache) as made:
            assert answer(engine, made.load(engine, answering(42), digest(answering(42)))) == 42


def test_one_warm_child_serves_module_after_module_also_after_an_invalid_one(
    engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]]
) -> None:
    with compiler() as made:
        for number in range(5):
            assert answer(engine, made.load(engine, answering(number), digest(answering(number)))) == number
            assert refusal(made, engine, answering(number)[:-1]) == "invalid_module"
    assert len(starts) == 1


@linux
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_a_compile_limit_and_the_next_module_compiles(engine: wasmtime.Engine, bomb: str) -> None:
    with compiler() as made:
        assert refusal(made, engine, BOMBS[bomb]) == "compile_limit"
        assert answer(engine, made.load(engine, answering(42), digest(answering(42)))) == 42


@linux
def test_a_bomb_costs_once(engine: wasmtime.Engine, jobs: list[bytes]) -> None:
    with compiler() as made:
        for _ in range(3):
            assert refusal(made, engine, LOOPS) == "compile_limit"
    assert jobs == [LOOPS]


def test_as_many_refusals_are_remembered_as_the_limit_says(engine: wasmtime.Engine, jobs: list[bytes]) -> None:
    first, second, third = (answering(number)[:-1] for number in range(3))
    with compiler(CompileLimits(rejected=2)) as made:
        for module in (first, second, first, second):
            assert refusal(made, engine, module) == "invalid_module"
        assert jobs == [first, second]
        assert refusal(made, engine, third) == "invalid_module"
        # The one that was asked for longest ago was forgotten.
        assert refusal(made, engine, second) == "invalid_module"
        assert jobs == [first, second, third]
        assert refusal(made, engine, first) == "invalid_module"
        assert jobs == [first, second, third, first]


def test_the_clock_ends_a_compile_too(engine: wasmtime.Engine) -> None:
    with (
        compiler(CompileLimits(wall_seconds=0.05, cpu_seconds=100)) as made,
        pytest.raises(ModuleRejected, match=r"compile_limit.*took too long \(limit 0.05 s\)"),
    ):
        made.load(engine, LOOPS, digest(LOOPS))


@linux
def test_the_refusal_names_the_limit_that_was_met(engine: wasmtime.Engine) -> None:
    for limits, said in (
        (CompileLimits(cpu_seconds=1), r"too much CPU time \(limit 1 s\)"),
        (CompileLimits(address_space_bytes=256 * MIB), r"SIGABRT.*\(limit 268_435_456 bytes of memory\)"),
    ):
        with compiler(limits) as made, pytest.raises(ModuleRejected, match=rf"\[compile_limit\].*{said}"):
            made.load(engine, LOOPS, digest(LOOPS))


def test_an_artifact_is_held_to_its_size_on_both_sides_of_the_limit(engine: wasmtime.Engine) -> None:
    module = answering(42)
    size = len(wasmtime.Module(engine, module).serialize())
    with compiler(CompileLimits(artifact_bytes=size)) as made:
        assert answer(engine, made.load(engine, module, digest(module))) == 42
    with (
        compiler(CompileLimits(artifact_bytes=size - 1)) as made,
        pytest.raises(ModuleRejected, match=rf"\[compile_limit\].*{size:_} \(limit {size - 1:_}\)"),
    ):
        made.load(engine, module, digest(module))


def test_a_module_is_held_to_its_size_on_both_sides_of_the_limit(engine: wasmtime.Engine, jobs: list[bytes]) -> None:
    module = answering(42)
    with compiler(CompileLimits(module_bytes=len(module))) as made:
        assert answer(engine, made.load(engine, module, digest(module))) == 42
    with compiler(CompileLimits(module_bytes=len(module) - 1)) as made:
        assert refusal(made, engine, module) == "compile_limit"
    assert jobs == [module]


@pytest.mark.parametrize("text", [b"", b"(module)", b"\0", b"\0asm\2\0\0\0", b"\0asm\x0d\0\1\0"])
def test_what_is_not_a_core_module_never_reaches_a_child(
    engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]], text: bytes
) -> None:
    with compiler() as made:
        assert refusal(made, engine, text) == "invalid_module"
    assert starts == []


def test_names_in_wasmtimes_message_are_escaped_and_bounded(engine: wasmtime.Engine) -> None:
    hostile = "\x1b[2J\n\u202e" + "A" * 5_000
    name = hostile.encode()
    # A name section for function 0, whose body does not type-check.
    names = b"\4name" + b"\1" + leb(3 + len(leb(len(name))) - 1 + len(name)) + b"\1\0" + leb(len(name)) + name
    module = module_with(b"\0\x6a\x0b") + b"\0" + leb(len(names)) + names
    with compiler() as made, pytest.raises(ModuleRejected) as caught:
        made.load(engine, module, digest(module))
    said = str(caught.value)
    assert "AAAA" in said, "the name does not show, so this proves nothing"
    assert said.isprintable()
    assert len(said) < 1_000


def test_what_a_child_says_of_a_module_is_escaped_and_bounded_whatever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"\x1b[2J\xff\n\xe2\x80\xae" + b"A" * 4_000
    monkeypatch.setattr(
        compile_link,
        "_BOOTSTRAP",
        f"import os, struct; say = lambda s, b: os.write(1, struct.pack('<cQQ', s, 0, len(b)) + b); "
        f"say(b'R', b''); os.read(0, 100); say(b'I', {body!r})",
    )
    link = CompileLink(SETTINGS, QUICK, self_check=False)
    refused = link.compile(answering(1))
    link.close()
    assert isinstance(refused, Refusal)
    assert refused.finding.what.startswith("\\x1b[2J\ufffd \\u202eAAA")
    assert str(refused.finding).isprintable()
    assert len(refused.finding.what) < 500


def test_a_digest_of_other_bytes_is_refused(engine: wasmtime.Engine) -> None:
    with compiler() as made, pytest.raises(ValueError, match="not the sha256"):
        made.load(engine, answering(1), digest(answering(2)))


def test_a_cached_artifact_needs_no_child(
    engine: wasmtime.Engine, tmp_path: Path, starts: list[subprocess.Popen[bytes]]
) -> None:
    for _ in range(2):
        with compiler(cache=ArtifactCache(tmp_path / "cache")) as made:
            assert answer(engine, made.load(engine, answering(42), digest(answering(42)))) == 42
    assert len(starts) == 1


def test_a_poisoned_cache_file_is_compiled_again(engine: wasmtime.Engine, tmp_path: Path, jobs: list[bytes]) -> None:
    module = answering(42)
    with compiler(cache=ArtifactCache(tmp_path / "cache")) as made:
        made.load(engine, module, digest(module))
        (path,) = (tmp_path / "cache").iterdir()
        good = path.read_bytes()
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        assert answer(engine, made.load(engine, module, digest(module))) == 42
        assert jobs == [module, module]
        (path,) = (tmp_path / "cache").iterdir()
        assert path.read_bytes() == good


def test_a_cache_that_takes_nothing_does_not_stop_a_load(
    engine: wasmtime.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ArtifactCache, "store", lambda *_: False)
    with compiler(cache=ArtifactCache(tmp_path / "cache")) as made:
        assert answer(engine, made.load(engine, answering(42), digest(answering(42)))) == 42


@linux
def test_loads_and_refusals_leave_no_descriptor_and_no_child_behind(engine: wasmtime.Engine, tmp_path: Path) -> None:
    module = answering(42)
    with compiler(cache=ArtifactCache(tmp_path / "cache")) as made:
        made.load(engine, module, digest(module))
        before = len(list(Path("/proc/self/fd").iterdir()))
        for number in range(200):
            made.load(engine, module, digest(module))
            refusal(made, engine, answering(number)[:-1])
        assert refusal(made, engine, BOMBS["40,000 nested loops with parameters"]) == "compile_limit"
        made.start()
        assert len(list(Path("/proc/self/fd").iterdir())) == before
        made.close()
        # The child's three pipes.
        assert len(list(Path("/proc/self/fd").iterdir())) == before - 3


def while_compiling(
    made: Compiler, engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]], act: object
) -> BaseException | None:
    """Run ``act`` while a child works on a bomb; what the load came to."""
    assert callable(act)
    came_to: list[BaseException | None] = []
    sent = threading.Event()
    real = CompileLink._talk

    def talk(self: CompileLink, module: bytes | None) -> object:
        if module is not None:
            sent.set()
        return real(self, module)

    def load() -> None:
        try:
            made.load(engine, LOOPS, digest(LOOPS))
            came_to.append(None)
        except BaseException as error:
            came_to.append(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompileLink, "_talk", talk)
        thread = threading.Thread(target=load)
        thread.start()
        assert sent.wait(60)
        act(starts[-1])
        thread.join(60)
    assert not thread.is_alive()
    return came_to[0]


PATIENT = CompileLimits(cpu_seconds=1_000, wall_seconds=1_000)


@linux
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGXCPU])
def test_a_death_that_hostile_code_can_bring_about_is_the_modules(
    engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]], sent: signal.Signals
) -> None:
    with compiler(PATIENT) as made:
        error = while_compiling(made, engine, starts, lambda child: child.send_signal(sent))
        assert isinstance(error, ModuleRejected)
        assert [finding.code for finding in error.findings] == ["compile_limit"]
        assert answer(engine, made.load(engine, answering(42), digest(answering(42)))) == 42
    assert len(starts) == 2


@linux
def test_any_other_death_is_not_held_against_the_module(
    engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]]
) -> None:
    with compiler(PATIENT) as made:
        for _ in range(2):
            error = while_compiling(made, engine, starts, lambda child: child.send_signal(signal.SIGTERM))
            assert isinstance(error, SandboxError)
            assert not isinstance(error, ModuleRejected)
            assert "SIGTERM" in str(error)
    assert len(starts) == 2


@linux
def test_a_child_killed_while_idle_is_replaced_unnoticed(
    engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]]
) -> None:
    with compiler() as made:
        made.load(engine, answering(1), digest(answering(1)))
        starts[0].kill()
        starts[0].wait()
        assert answer(engine, made.load(engine, answering(2), digest(answering(2)))) == 2
    assert len(starts) == 2


def test_close_ends_idle_children_and_busy_ones_and_blames_no_module(
    engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]]
) -> None:
    with compiler(PATIENT) as made:
        error = while_compiling(made, engine, starts, lambda _: made.close())
        assert isinstance(error, SandboxUnusable)
        with pytest.raises(SandboxUnusable, match="closed"):
            made.load(engine, answering(1), digest(answering(1)))
        made.close()
    with compiler() as made:
        made.start()
    assert [child.returncode is not None for child in starts] == [True, True]


def test_a_child_ends_when_its_standard_input_does(starts: list[subprocess.Popen[bytes]]) -> None:
    link = CompileLink(SETTINGS, QUICK, self_check=False)
    (child,) = starts
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(60) == 0
    link.close()


@linux
def test_no_child_outlives_a_host_that_was_killed() -> None:
    host = textwrap.dedent(
        """
        import os, signal
        from hookcell_sandbox import compile_link
        from hookcell_sandbox.compiler import CompileLimits
        from hookcell_sandbox.settings import EngineSettings
        link = compile_link.CompileLink(EngineSettings(), CompileLimits(), self_check=False)
        os.write(1, str(link._process.pid).encode())
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    ran = subprocess.run([sys.executable, "-c", host], capture_output=True, check=False)
    assert ran.returncode == -signal.SIGKILL
    try:
        child = os.pidfd_open(int(ran.stdout))
    except ProcessLookupError:
        return
    ended = select.poll()
    ended.register(child, select.POLLIN)
    try:
        assert ended.poll(60_000), "the child outlived its host"
    finally:
        os.close(child)


def test_threads_that_ask_for_one_module_share_one_compile(
    engine: wasmtime.Engine, jobs: list[bytes], tmp_path: Path
) -> None:
    for cache in (None, ArtifactCache(tmp_path / "cache")):
        jobs.clear()
        with compiler(cache=cache) as made:
            # The child is up before they start, so all of them meet while one compiles or find it in the cache.
            made.start()
            answers: list[object] = []
            gate = threading.Barrier(20)

            def ask(made: Compiler = made, answers: list[object] = answers, gate: threading.Barrier = gate) -> None:
                gate.wait()
                try:
                    answers.append(answer(engine, made.load(engine, answering(7), digest(answering(7)))))
                except BaseException as error:
                    answers.append(error)

            threads = [threading.Thread(target=ask) for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert answers == [7] * 20
            if cache is not None:
                assert jobs == [answering(7)]


def test_followers_of_a_refused_module_are_refused_without_a_compile(
    engine: wasmtime.Engine, jobs: list[bytes]
) -> None:
    module = answering(7)[:-1]
    with compiler() as made:
        made.start()
        codes: list[str] = []
        threads = [threading.Thread(target=lambda: codes.append(refusal(made, engine, module))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert codes == ["invalid_module"] * 20
    assert jobs == [module]


def test_many_threads_with_many_modules_get_their_own(engine: wasmtime.Engine) -> None:
    wrong: list[object] = []
    with compiler(CompileLimits(workers=2, queue=100)) as made:

        def work(number: int) -> None:
            try:
                for turn in range(5):
                    n = number * 5 + turn
                    if answer(engine, made.load(engine, answering(n), digest(answering(n)))) != n:
                        wrong.append(n)
                    assert refusal(made, engine, answering(n)[:-1]) == "invalid_module"
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_full_queue_and_a_wait_that_is_over_are_busy(
    engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]]
) -> None:
    for limits, said in (
        (CompileLimits(cpu_seconds=1_000, wall_seconds=1_000, queue=0), "already wait"),
        (CompileLimits(cpu_seconds=1_000, wall_seconds=1_000, queue=1, queue_wait_seconds=0.05), "came free"),
    ):
        with compiler(limits) as made:

            def act(_: object, made: Compiler = made, said: str = said) -> None:
                with pytest.raises(SandboxBusy, match=said):
                    made.load(engine, answering(1), digest(answering(1)))
                made.close()

            assert isinstance(while_compiling(made, engine, starts, act), SandboxUnusable)


def test_an_interrupt_in_a_compile_loses_no_place(
    engine: wasmtime.Engine, monkeypatch: pytest.MonkeyPatch, starts: list[subprocess.Popen[bytes]]
) -> None:
    real = CompileLink._talk

    def interrupted(self: CompileLink, module: bytes | None) -> object:
        if module is not None:
            raise KeyboardInterrupt
        return real(self, module)

    with compiler(CompileLimits(queue=0)) as made:
        with monkeypatch.context() as patch:
            patch.setattr(CompileLink, "_talk", interrupted)
            for _ in range(3):
                with pytest.raises(KeyboardInterrupt):
                    made.load(engine, answering(1), digest(answering(1)))
        assert answer(engine, made.load(engine, answering(1), digest(answering(1)))) == 1
    # What is in the pipes of an interrupted child belongs to nobody: it was ended.
    assert len(starts) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_after_a_fork_the_child_says_so_and_leaves_the_parents_alone(
    engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]]
) -> None:
    with compiler() as made:
        made.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                made.load(engine, answering(1), digest(answering(1)))
            except SandboxUnusable as error:
                made.close()
                os._exit(0 if "fork" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert answer(engine, made.load(engine, answering(1), digest(answering(1)))) == 1
    assert len(starts) == 1


def test_a_child_that_cannot_start_is_no_fault_of_the_module(
    engine: wasmtime.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for executable, said in (("", "sys.executable is empty"), ("/nonexistent/python", "did not start")):
        with compiler() as made, monkeypatch.context() as patch:
            patch.setattr(sys, "executable", executable)
            with pytest.raises(SandboxError, match=said) as caught:
                made.load(engine, answering(1), digest(answering(1)))
            assert not isinstance(caught.value, ModuleRejected)
            patch.undo()
            assert answer(engine, made.load(engine, answering(1), digest(answering(1)))) == 1


def test_what_a_dying_child_wrote_is_one_escaped_bounded_line(monkeypatch: pytest.MonkeyPatch) -> None:
    talkative = "import sys; sys.stderr.write('x\\n' * 20_000 + '\\x1b[2J' + 'y' * 9_000); sys.exit(5)"
    monkeypatch.setattr(compile_link, "_BOOTSTRAP", talkative)
    with pytest.raises(SandboxError, match=r"did not start \(exit code 5\): \\x1b\[2Jyyy") as caught:
        CompileLink(SETTINGS, QUICK, self_check=False)
    assert len(str(caught.value)) < 500


def test_a_child_that_lies_about_its_lengths_is_ended_and_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = "os.write(1, struct.pack('<cQQ', {0}, 0, {1}) + b'x' * {2});"
    for status, length, body in ((b"A", QUICK.artifact_bytes + 1, 0), (b"I", 4_097, 0), (b"?", 1, 1), (b"L", 3, 3)):
        bootstrap = (
            "import os, struct;"
            + reply.format(b"R", 0, 0)
            + "os.read(0, 100);"
            + reply.format(status, length, body)
            + "os.read(0, 1000); os.read(0, 1000)"
        )
        with monkeypatch.context() as patch:
            patch.setattr(compile_link, "_BOOTSTRAP", bootstrap)
            link = CompileLink(SETTINGS, QUICK, self_check=False)
        with pytest.raises(SandboxError) as caught:
            link.compile(answering(1))
        assert not isinstance(caught.value, ModuleRejected)
        assert link.spent
        link.close()


def test_the_child_sees_no_environment_but_what_finds_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKCELL_TEST_SECRET", "hunter2")
    seen: dict[str, str] = {}

    def popen(*_args: object, env: dict[str, str], **_kwargs: object) -> None:
        seen.update(env)
        raise OSError("enough")

    monkeypatch.setattr(compile_link.subprocess, "Popen", popen)
    with pytest.raises(SandboxError, match="enough"):
        CompileLink(SETTINGS, QUICK, self_check=False)
    assert "PATH" in seen
    assert set(seen) <= compile_link._KEPT | {"RUST_BACKTRACE"}


@linux
def test_the_child_is_under_the_kernels_limits(starts: list[subprocess.Popen[bytes]]) -> None:
    link = CompileLink(SETTINGS, QUICK, self_check=False)
    link.compile(answering(1))
    lines = Path(f"/proc/{starts[0].pid}/limits").read_text().splitlines()
    limits = {line[:26].strip(): line[26:].split()[:2] for line in lines}
    link.close()
    assert limits["Max address space"] == [str(256 * MIB)] * 2
    assert limits["Max core file size"] == ["0"] * 2
    assert limits["Max file size"] == ["0"] * 2
    # Soft, and counted from what the child had used before the job: a second at most.
    assert limits["Max cpu time"] in (["2", "unlimited"], ["3", "unlimited"])


@linux
def test_a_host_that_ignores_the_signal_of_the_cpu_limit_still_has_one(engine: wasmtime.Engine) -> None:
    before = signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    try:
        with compiler(CompileLimits(cpu_seconds=1)) as made, pytest.raises(ModuleRejected, match="CPU time"):
            made.load(engine, LOOPS, digest(LOOPS))
    finally:
        signal.signal(signal.SIGXCPU, before)


def test_a_self_check_runs_once_in_the_first_child_and_its_failure_is_plain(
    monkeypatch: pytest.MonkeyPatch, engine: wasmtime.Engine, starts: list[subprocess.Popen[bytes]]
) -> None:
    # Stands in for a self-check that finds a misfit.
    real = compile_link._BOOTSTRAP
    fails = real.replace(
        "from importlib import import_module\n",
        "from importlib import import_module\n"
        "module = import_module(given['package'] + '.self_check')\n"
        "def check():\n raise RuntimeError('layout of wasmtime_val_t')\n"
        "module.self_check = check\n",
    )
    dies = fails.replace("raise RuntimeError('layout of wasmtime_val_t')", "import os; os.abort()")
    with compiler() as made:
        for bootstrap, said in ((fails, r"layout of wasmtime_val_t"), (dies, r"self-check .* killed .* \(SIGABRT\)")):
            monkeypatch.setattr(compile_link, "_BOOTSTRAP", bootstrap)
            for _ in range(2):
                with pytest.raises(SandboxUnusable, match=said):
                    made.start()
        monkeypatch.setattr(compile_link, "_BOOTSTRAP", real)
        made.start()
        # Passed once; a later child does not repeat it.
        monkeypatch.setattr(compile_link, "_BOOTSTRAP", fails)
        starts[-1].kill()
        starts[-1].wait()
        assert answer(engine, made.load(engine, answering(1), digest(answering(1)))) == 1


def test_the_child_imports_neither_the_whole_sandbox_nor_what_a_start_can_do_without() -> None:
    bootstrap = compile_link._BOOTSTRAP.replace(".serve(**given", "; print(*sys.modules); (lambda **_: None)(**given")
    started: list[list[str]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_link, "_BOOTSTRAP", bootstrap)
        process = compile_link._start(SETTINGS, QUICK, self_check=False)
        output, _ = process.communicate()
        started.append(output.decode().split())
    ours = {name for name in started[0] if name.startswith("hookcell")}
    assert ours == {"hookcell_sandbox"} | {
        f"hookcell_sandbox.{name}" for name in ("compile_child", "limits", "settings")
    }
    assert not {"hashlib", "importlib.metadata", "anyio", "pydantic", "msgpack", "asyncio"} & set(started[0])


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("cpu_seconds", 1, 3_600),
        ("wall_seconds", 0.05, 3_600),
        ("address_space_bytes", 256 * MIB, 64 * KIB * MIB),
        ("module_bytes", 8, KIB * MIB),
        ("artifact_bytes", 1, KIB * MIB),
        ("workers", 1, 16),
        ("queue", 0, 10_000),
        ("queue_wait_seconds", 0, 3_600),
        ("rejected", 0, 1_000_000),
    ],
)
def test_a_compile_limit_is_held_to_its_range_at_both_ends(name: str, least: float, most: float) -> None:
    for inside in (least, most):
        assert getattr(CompileLimits(**{name: inside}), name) == inside  # type: ignore[arg-type]
    step = 0.001 if isinstance(least, float) else 1
    for outside in (least - step, most + 1):
        with pytest.raises(ValueError, match=f"{name} is .*; give a number from"):
            CompileLimits(**{name: outside})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=name):
        CompileLimits(**{name: True})


def test_this_platform_says_what_it_cannot_enforce(monkeypatch: pytest.MonkeyPatch) -> None:
    for platform, expected in (
        ("linux", ()),
        ("darwin", ("address_space_bytes",)),
        ("win32", ("address_space_bytes", "cpu_seconds")),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        assert unenforced() == expected
