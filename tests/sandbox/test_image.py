"""Code and data apart: one compile for all modules that differ in data alone, and nothing of it seen from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import wasmtime

from hookcell_sandbox import AdmissionPolicy, EngineSettings, GuestTrap, Limits, ModuleLimits, ModuleRejected, Sandbox
from hookcell_sandbox.admission import inspect
from hookcell_sandbox.compiler import Compiler
from hookcell_sandbox.image import Apart, take_apart

POLICY = AdmissionPolicy(entry_points=frozenset({"go"}), limits=ModuleLimits(memory_bytes=64 * 1024 * 1024))
KIB = 1024

# `go` gives back 16 KiB from address 64 KiB on; `boom` inside it is what a backtrace names.
GUEST = """(module
  (memory (export "memory") {pages})
  {data}
  {more}
  (func $boom (unreachable))
  (func (export "hook_alloc") (param i32) (result i32) (i32.const 8))
  (func (export "go") (param i32 i32) (result i64)
    (if (i32.eq (local.get 1) (i32.const 1)) (then (call $boom)))
    (i64.or (i64.shl (i64.const 65536) (i64.const 32)) (i64.const 16384))))"""


def segment(fill: str = "a", size: int = 16 * KIB, at: int = 64 * KIB) -> str:
    return f'(data (i32.const {at}) "{fill * size}")'


def guest(data: str, *, pages: int = 2, more: str = "") -> bytes:
    return bytes(wasmtime.wat2wasm(GUEST.format(pages=pages, data=data, more=more)))


def apart(wasm: bytes) -> Apart:
    return take_apart(wasm, inspect(wasm, POLICY))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Digests of what was compiled or loaded from a cache."""
    digests: list[str] = []
    load = Compiler.load

    def counted(self: Compiler, engine: Any, wasm: bytes, digest: str) -> wasmtime.Module:
        digests.append(digest)
        return load(self, engine, wasm, digest)

    monkeypatch.setattr(Compiler, "load", counted)
    return digests


def test_modules_that_differ_in_data_and_custom_sections_alone_are_compiled_once(compiled: list[str]) -> None:
    with Sandbox() as sandbox:
        custom = '(@custom "anything" "{}")'
        texts = [guest(segment("a")), guest(segment("b")), guest(segment("c"), more=custom.format("more"))]
        programs = [sandbox.load(wasm, POLICY) for wasm in texts]
        assert len(compiled) == 1
        assert len({program.digest for program in programs}) == 3
        outputs = [sandbox.run_sync(program, "go", b"").output for program in programs]
        assert outputs == [fill * 16 * KIB for fill in (b"a", b"b", b"c")]
        sandbox.load(guest(segment("a"), pages=3), POLICY)
        assert len(compiled) == 2


def test_a_slot_shows_nothing_of_the_image_before() -> None:
    with Sandbox(settings=EngineSettings(slots=1)) as sandbox:
        full = sandbox.load(guest(segment("x")), POLICY)
        hole = sandbox.load(guest(segment("y", at=32 * KIB)), POLICY)
        assert sandbox.run_sync(full, "go", b"").output == b"x" * 16 * KIB
        assert sandbox.run_sync(hole, "go", b"").output == bytes(16 * KIB)
        assert sandbox.run_sync(full, "go", b"").output == b"x" * 16 * KIB


@pytest.mark.parametrize(
    "data",
    [
        segment("a") + segment("b", 4, 64 * KIB) + segment("c", 2, 64 * KIB + 2),
        segment("a", at=128 * KIB - 16 * KIB) + segment("z", 1, 128 * KIB - 1) + segment("b", 0, 128 * KIB),
        segment("a", at=0),
        "",
    ],
    ids=["overlapping", "at the end", "at the start", "none"],
)
def test_a_call_is_the_same_apart_and_whole(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wasm = guest(data)
    with Sandbox() as laid, Sandbox() as whole:
        one = laid.load(wasm, POLICY)
        monkeypatch.setattr(
            "hookcell_sandbox.sandbox.take_apart", lambda code, report: Apart(code=code, digest=report.digest, image=())
        )
        other = whole.load(wasm, POLICY)
        results = [sandbox.run_sync(program, "go", b"12") for sandbox, program in ((laid, one), (whole, other))]
        assert results[0].output == results[1].output
        assert results[0].fuel_used == results[1].fuel_used


@pytest.mark.parametrize(
    ("at_most", "one_over"),
    [
        (segment(size=16 * KIB), segment(size=16 * KIB - 1)),
        (segment(size=4 * KIB * KIB, at=0), segment(size=4 * KIB * KIB + 1, at=0)),
        (segment() + segment(size=1) * 63, segment() + segment(size=1) * 64),
    ],
    ids=["least bytes", "most bytes", "segments"],
)
def test_the_bounds_of_what_is_laid(at_most: str, one_over: str) -> None:
    assert apart(guest(at_most, pages=80)).image
    assert not apart(guest(one_over, pages=80)).image


@pytest.mark.parametrize(
    ("data", "more"),
    [
        (segment() + '(data "passive")', ""),
        (segment() + '(data (global.get $at) "x")', "(global $at i32 (i32.const 8))"),
        (segment(at=128 * KIB - 16 * KIB + 1), ""),
        (segment(), "(func (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 0)))"),
    ],
    ids=["passive", "no constant", "outside", "named by a body"],
)
def test_data_whose_place_may_matter_stays_in_the_code(data: str, more: str) -> None:
    wasm = guest(data, more=more)
    taken = apart(wasm)
    assert (taken.code, taken.image) == (wasm, ())
    assert apart(guest(segment())).image


def test_data_of_a_memory_that_wasmtime_bills_stays_in_the_code() -> None:
    assert apart(guest(segment(), pages=256)).image
    assert not apart(guest(segment(), pages=257)).image


def test_a_segment_outside_of_memory_is_the_same_trap_as_ever(sandbox: Sandbox) -> None:
    program = sandbox.load(guest(segment(at=128 * KIB)), POLICY)
    with pytest.raises(GuestTrap, match="memory_out_of_bounds"):
        sandbox.run_sync(program, "go", b"")


def test_a_backtrace_keeps_the_names_of_functions(sandbox: Sandbox) -> None:
    program = sandbox.load(guest(segment()), POLICY)
    with pytest.raises(GuestTrap) as caught:
        sandbox.run_sync(program, "go", b"1")
    assert "boom" in caught.value.backtrace[0]


def test_a_refusal_by_the_compiler_names_the_module_and_not_its_code(sandbox: Sandbox) -> None:
    wasm = guest(segment(), more="(func (result i32) (i32.const 1))")
    wrong = wasm.replace(b"\x41\x01\x0b", b"\x42\x01\x0b")  # an i64 where the type says i32
    assert wrong != wasm
    digest = inspect(wrong, POLICY).digest
    assert apart(wrong).digest != digest
    for _ in range(2):
        with pytest.raises(ModuleRejected) as caught:
            sandbox.load(wrong, POLICY)
        assert caught.value.digest == digest
        assert [finding.code for finding in caught.value.findings] == ["invalid_module"]


def test_the_image_is_laid_whole_also_when_a_call_may_use_little(sandbox: Sandbox, load: Callable[..., Any]) -> None:
    """Laying costs no fuel, as wasmtime's own layout costs none."""
    program = sandbox.load(guest(segment()), POLICY)
    used = sandbox.run_sync(program, "go", b"").fuel_used
    assert sandbox.run_sync(program, "go", b"", Limits(fuel=used, fuel_per_kib=0)).output == b"a" * 16 * KIB
