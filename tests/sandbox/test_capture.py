"""Capture: what a setup leaves behind, whose fault it is when it leaves nothing, and that the child is not believed."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import wasmtime

from hookcell_sandbox import (
    ArtifactCache,
    CompileLimits,
    DeadlineExceeded,
    EngineSettings,
    FuelExhausted,
    GuestTrap,
    Limits,
    MemoryExceeded,
    ModuleRejected,
    WorkerLost,
)
from hookcell_sandbox import capture as module
from hookcell_sandbox.capture import CAPTURE_LIMITS, Capture, capture
from hookcell_sandbox.compile_link import start_child
from hookcell_sandbox.limits import MIB

MEMORY = '(memory (export "memory") 1)'
PAGE = 64 * 1024


def wasm(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(f"(module {text})"))


def captured(text: str, entry: str = "go", limits: Limits = CAPTURE_LIMITS) -> Capture:
    return capture(wasm(text), entry, limits=limits)


# --- what is left -----------------------------------------------------------------------------------------------------


def test_memory_globals_and_the_result_are_as_the_setup_left_them() -> None:
    left = captured("""
      (memory (export "memory") 1 3)
      (data (i32.const 8) "data")
      (global (export "i") (mut i32) (i32.const 0))
      (global (export "l") (mut i64) (i64.const 0))
      (global (export "again") (mut i64) (i64.const 1))
      (global (export "fixed") i32 (i32.const 5))
      (global (mut i32) (i32.const 6))
      (global (export "reference") (mut funcref) (ref.null func))
      (func (export "go") (result i64)
        (drop (memory.grow (i32.const 1)))
        (i32.store8 (i32.const 8) (i32.const 68))
        (i32.store8 (i32.const 131071) (i32.const 255))
        (global.set 0 (i32.const -2))
        (global.set 1 (i64.const -3))
        (i64.const -1))""")
    assert left.memory == bytes(8) + b"Data" + bytes(2 * PAGE - 13) + b"\xff"
    assert left.globals == (("i", 2**32 - 2), ("l", 2**64 - 3), ("again", 1))
    assert left.result == 2**64 - 1


def test_a_float_keeps_every_bit_of_a_nan() -> None:
    """No arithmetic is done on it, so that also a signalling one stays what it is."""
    bits32, bits64 = 0xFFA00001, 0x7FF0000000000001
    left = captured(f"""
      {MEMORY}
      (global (export "f") (mut f32) (f32.const 0)) (global (export "d") (mut f64) (f64.const 0))
      (global (export "minus") (mut f64) (f64.const -0))
      (func (export "go")
        (global.set 0 (f32.reinterpret_i32 (i32.const {bits32})))
        (global.set 1 (f64.reinterpret_i64 (i64.const {bits64}))))""")
    assert left.globals == (("f", bits32), ("d", bits64), ("minus", 1 << 63))
    assert left.result is None


COUNTING = f"""
  {MEMORY}
  (func $count (i32.store8 (i32.const 0) (i32.add (i32.load8_u (i32.const 0)) (i32.const 1))))
  (func (export "_initialize") (call $count))
  (func (export "go") (i32.store8 (i32.const 1) (i32.load8_u (i32.const 0))))"""


def test_initialize_runs_first_and_once() -> None:
    assert captured(COUNTING).memory[:2] == b"\1\1"
    assert captured(COUNTING, "_initialize").memory[:2] == b"\1\0"


def test_data_apart_is_laid_and_code_is_compiled_once(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "cache")
    texts = [f'{MEMORY} (data (i32.const 0) "{fill * 20_000}") (func (export "go"))' for fill in "ab"]
    memories = [capture(wasm(text), "go", cache=cache).memory for text in texts]
    assert memories == [fill * 20_000 + bytes(PAGE - 20_000) for fill in (b"a", b"b")]
    assert len(list((tmp_path / "cache").glob("*.cwasm"))) == 1


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "entry", "code"),
    [
        (f'(import "a" "b" (func)) {MEMORY} (func (export "go"))', "go", "import"),
        (f'{MEMORY} (func $go (export "go")) (start $go)', "go", "start_section"),
        ('(memory 1) (func (export "go"))', "go", "missing_memory"),
        (f'{MEMORY} (func (export "go"))', "gone", "no_entry_point"),
        (f'{MEMORY} (global (export "go") i32 (i32.const 1))', "go", "no_entry_point"),
        (f'{MEMORY} (func (export "go") (param i32))', "go", "export_signature"),
        (f'{MEMORY} (func (export "go") (result i32) (i32.const 1))', "go", "export_signature"),
        (f'{MEMORY} (func (export "go") (result i64 i64) (i64.const 1) (i64.const 1))', "go", "export_signature"),
        (f'{MEMORY} (func (export "_initialize") (param i32)) (func (export "go"))', "go", "export_signature"),
    ],
)
def test_what_cannot_be_captured_is_a_finding_before_anything_runs(
    text: str, entry: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "start_child", None)
    with pytest.raises(ModuleRejected) as caught:
        captured(text, entry)
    assert [finding.code for finding in caught.value.findings] == [code]


def test_what_the_compiler_refuses_is_refused_by_the_modules_own_digest() -> None:
    good = wasm(f'{MEMORY} (data (i32.const 0) "{"x" * 20_000}") (func (export "go") (result i64) (i64.const 1))')
    wrong = good.replace(b"\x42\x01\x0b", b"\x41\x01\x0b")
    with pytest.raises(ModuleRejected) as caught:
        capture(wrong, "go", compile_limits=CompileLimits(cpu_seconds=5))
    assert [finding.code for finding in caught.value.findings] == ["invalid_module"]
    assert caught.value.digest == hashlib.sha256(wrong).hexdigest()


# --- what a setup can do wrong ----------------------------------------------------------------------------------------

LOGGING = f"""
  {MEMORY}
  (global (export "hook_log") i32 (i32.const 16))
  (data (i32.const 16) "\\05\\00\\00\\00hello")"""
SPINNING = f'{LOGGING} (func (export "go") (loop $forever (br $forever)))'


def test_fuel_ends_a_setup_and_its_log_is_told() -> None:
    with pytest.raises(FuelExhausted, match=r"go used all 100_000 fuel") as caught:
        captured(SPINNING, limits=Limits(fuel=100_000))
    assert caught.value.log.raw == b"hello"
    assert (caught.value.entry, caught.value.fuel_used) == ("go", 100_000)
    assert caught.value.digest == hashlib.sha256(wasm(SPINNING)).hexdigest()


def test_a_deadline_ends_a_setup() -> None:
    with pytest.raises(DeadlineExceeded, match="deadline_ms=20"):
        captured(SPINNING, limits=Limits(fuel=2**50, deadline_ms=20))


def test_a_trap_is_told_with_its_backtrace_and_in_which_function() -> None:
    text = f'{LOGGING} (func $bad (unreachable)) (func (export "_initialize") (call $bad)) (func (export "go"))'
    with pytest.raises(GuestTrap) as caught:
        captured(text)
    assert (caught.value.entry, caught.value.trap) == ("_initialize", "unreachable")
    assert "bad" in caught.value.backtrace[0]
    assert caught.value.log.raw == b"hello"


def test_memory_is_bounded_and_its_end_is_told() -> None:
    limits = replace(CAPTURE_LIMITS, memory_bytes=2 * PAGE)
    growing = '(func (export "go") (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then (unreachable))))'
    assert len(captured(f"{MEMORY} {growing}", limits=limits).memory) == 2 * PAGE
    with pytest.raises(MemoryExceeded, match="go trapped"):
        captured(f'(memory (export "memory") 2) {growing}', limits=limits)
    with pytest.raises(MemoryExceeded, match="needs 196_608 bytes of memory to start"):
        captured('(memory (export "memory") 3) (func (export "go"))', limits=limits)


# --- the child --------------------------------------------------------------------------------------------------------

REPLY = """
import os, struct, sys
reply = lambda status, length, body: os.write(1, struct.pack('<cQQ', status, 0, length) + body)
sys.stdin.buffer.read(24)
"""


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("os.abort()", "lost"),
        ("", "lost"),
        ("reply(b'C', 10, b'short')", "lost"),
        ("reply(b'C', 1 << 40, b'')", "1_099_511_627_776 bytes"),
        ("reply(b'U', 4_097, b'x' * 4_097)", "4_097 bytes"),
        ("reply(b'U', 5, b'\\x1b[2Jx')", r"could not do its work: \\x1b\[2Jx"),
        ("reply(b'?', 1, b'x')", "could not do its work: x"),
        ("reply(b'C', 2, b'no')", "protocol"),
        ("b = b'{\"result\": 1, \"globals\": []}'; reply(b'C', len(b), b)", "protocol"),
        ("b = b'{\"result\": -1, \"globals\": []}\\0'; reply(b'C', len(b), b)", "protocol"),
        ("b = b'{\"result\": 1, \"globals\": [1]}\\0'; reply(b'C', len(b), b)", "protocol"),
        ("b = b'{\"result\": 1, \"globals\": []}\\0' + b'x' * 65_537; reply(b'C', len(b), b)", "protocol"),
        ("b = b'[' * 9_999; reply(b'C', len(b), b)", "protocol"),
        ("b = b'{\"kind\": \"KeyError\"}'; reply(b'F', len(b), b)", "protocol"),
        ('b = b\'{"kind": "FuelExhausted", "message": 1}\'; reply(b\'F\', len(b), b)', "protocol"),
    ],
)
def test_a_child_that_dies_or_lies_is_lost_and_not_believed(
    does: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(*_: object, **__: object) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        child = subprocess.Popen([sys.executable, "-c", REPLY + does], stdin=pipe, stdout=pipe, stderr=pipe)
        started.append(child)
        return child

    monkeypatch.setattr(module, "start_child", start)
    monkeypatch.setattr(module, "_compiled", lambda *_: b"")
    with pytest.raises(WorkerLost, match=said) as caught:
        captured(f'{MEMORY} (func (export "go"))', limits=Limits(memory_bytes=PAGE))
    assert str(caught.value).isprintable()
    assert started[0].returncode is not None


def test_a_child_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(*_: object, **__: object) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", "import sys; sys.stdin.buffer.read()"], stdin=pipe, stdout=pipe, stderr=pipe
            )
        )
        return started[0]

    monkeypatch.setattr(module, "start_child", start)
    monkeypatch.setattr(module, "_compiled", lambda *_: b"")
    monkeypatch.setattr(module, "_START_SECONDS", 0.2)
    with pytest.raises(WorkerLost):
        captured(f'{MEMORY} (func (export "go"))', limits=Limits(deadline_ms=1))
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's limits as Linux has them")
def test_the_child_is_under_the_kernels_limits() -> None:
    child = start_child(
        "capture_child",
        settings=asdict(EngineSettings(slots=1, memory_bytes=PAGE)),
        limits=asdict(Limits(memory_bytes=PAGE)),
        cpu_seconds=3,
        address_space_bytes=MIB,
    )
    try:
        while True:
            assert child.poll() is None
            lines = Path(f"/proc/{child.pid}/limits").read_text().splitlines()
            limits = {line[:26].strip(): line[26:].split()[:2] for line in lines}
            # The CPU limit is the last that is set, before the first byte is read.
            if limits["Max cpu time"][0] != "unlimited":
                break
        assert limits["Max address space"][0] != "unlimited"
        assert limits["Max core file size"] == ["0"] * 2
        # As much as wasmtime's own image of a memory takes.
        assert limits["Max file size"] == [str(PAGE)] * 2
    finally:
        child.kill()
        child.communicate()
