"""The engine's configuration: what it admits, what it refuses, and that it never aborts the process."""

from __future__ import annotations

import subprocess
import sys

import pytest
import wasmtime

from hookcell_sandbox import settings as settings_module
from hookcell_sandbox.limits import KIB, MIB
from hookcell_sandbox.settings import EngineSettings, config, fingerprint

# Guest ABI 1, "Features".
ADMITTED = {
    "core 1.0": "(memory 1) (func (param i32) (result f64) (f64.convert_i32_s (i32.load (local.get 0))))",
    "mutable globals": '(global (export "g") (mut i32) (i32.const 0))',
    "sign extension": "(func (result i32) (i32.extend8_s (i32.const 1)))",
    "saturating float-to-int": "(func (result i32) (i32.trunc_sat_f64_u (f64.const 1)))",
    "multi-value results": "(func (result i32 i32) (i32.const 1) (i32.const 2))",
    "multi-value blocks": "(func (result i32) (i32.const 1) (block (param i32) (result i32)))",
    "bulk memory": """(memory 1) (data $d "x") (func
        (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (data.drop $d)
        (memory.copy (i32.const 0) (i32.const 1) (i32.const 1))
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 1)))""",
    "bulk tables": """(table 1 funcref) (func $f) (elem $e func $f) (func
        (table.init $e (i32.const 0) (i32.const 0) (i32.const 1)) (elem.drop $e)
        (table.copy (i32.const 0) (i32.const 0) (i32.const 1)))""",
    "reference types": """(table $a 1 funcref) (table $b 1 funcref) (elem declare func $f) (func $f
        (table.set $b (i32.const 0) (ref.func $f)) (drop (table.grow $a (ref.null func) (i32.const 1)))
        (table.fill $a (i32.const 0) (table.get $b (i32.const 0)) (table.size $b))
        (call_indirect $b (i32.const 0))
        (drop (select (result funcref) (ref.null func) (ref.null func) (i32.const 0))))""",
}

REFUSED = {
    "SIMD": "(func (drop (v128.const i64x2 0 0)))",
    "SIMD type": "(func (param v128))",
    "relaxed SIMD": "(func (drop (i8x16.relaxed_swizzle (v128.const i64x2 0 0) (v128.const i64x2 0 0))))",
    "shared memory": "(memory 1 1 shared)",
    "atomics": "(memory 1) (func (drop (i32.atomic.load (i32.const 0))))",
    "64-bit memory": "(memory i64 1)",
    "64-bit table": "(table i64 1 funcref)",
    "several memories": "(memory 1) (memory 1)",
    "GC structures": "(type (struct))",
    "GC arrays": "(type (array i32))",
    "GC recursion groups": "(rec (type (func)) (type (func)))",
    "GC i31": "(func (param i31ref))",
    "externref": "(func (param externref))",
    "function references": "(type $t (func)) (func (param (ref $t)) (call_ref $t (local.get 0)))",
    "tail calls": "(func return_call 0)",
    "exceptions": "(tag) (func (throw 0))",
    "exception references": "(func (param exnref))",
    "stack switching": "(type $f (func)) (type $c (cont $f))",
    "wide arithmetic": "(func (drop (drop (i64.add128 (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))))",
    "wide multiplication": "(func (drop (drop (i64.mul_wide_u (i64.const 0) (i64.const 0)))))",
    "custom page sizes": "(memory 1 (pagesize 1))",
    "memory control": "(memory 1) (func (memory.discard (i32.const 0) (i32.const 0)))",
    "shared-everything threads": "(type (shared (func)))",
}


@pytest.fixture(scope="module")
def engine() -> wasmtime.Engine:
    return wasmtime.Engine(config(EngineSettings()))


@pytest.mark.parametrize("feature", ADMITTED)
def test_a_feature_of_the_abi_compiles(engine: wasmtime.Engine, feature: str) -> None:
    wasmtime.Module(engine, bytes(wasmtime.wat2wasm(f"(module {ADMITTED[feature]})")))


@pytest.mark.parametrize("feature", REFUSED)
def test_a_feature_outside_the_abi_is_refused(engine: wasmtime.Engine, feature: str) -> None:
    wasm = bytes(wasmtime.wat2wasm(f"(module {REFUSED[feature]})"))
    with pytest.raises(wasmtime.WasmtimeError):
        wasmtime.Module(engine, wasm)
    # Refused by its feature, not because the module above is wrong.
    everything = wasmtime.Config()
    for proposal in ("threads", "memory64", "multi_memory", "gc", "function_references", "tail_call", "exceptions"):
        setattr(everything, f"wasm_{proposal}", True)
    everything.wasm_wide_arithmetic = True
    everything.wasm_custom_page_sizes = True
    everything.shared_memory = True
    if feature not in {"stack switching", "memory control", "shared-everything threads"}:
        wasmtime.Module.validate(wasmtime.Engine(everything), wasm)


def test_a_component_is_refused(engine: wasmtime.Engine) -> None:
    with pytest.raises(wasmtime.WasmtimeError):
        wasmtime.Module(engine, bytes(wasmtime.wat2wasm("(component)")))


@pytest.mark.parametrize("stack_bytes", [64 * KIB, 1 * MIB, 64 * MIB])
def test_the_configuration_makes_an_engine_in_a_process_of_its_own(stack_bytes: int) -> None:
    # wasmtime aborts the process on a mix of switches or stack sizes that it does not like: tried where it may.
    code = (
        "import wasmtime; from hookcell_sandbox.settings import EngineSettings, config;"
        f"wasmtime.Engine(config(EngineSettings(wasm_stack_bytes={stack_bytes}))); print('made')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "made"), ran.stderr[-2000:]


def test_every_switch_is_one_that_the_library_has() -> None:
    from wasmtime import _ffi

    missing = [name for name in settings_module._SWITCHES if not hasattr(_ffi, f"wasmtime_config_{name}_set")]
    assert missing == []


def test_every_proposal_that_the_library_can_switch_is_decided() -> None:
    # A wasmtime with a new proposal, on by default, must not widen what a guest may use without a decision here.
    from wasmtime import _ffi

    switches = {
        name.removeprefix("wasmtime_config_").removesuffix("_set")
        for name in vars(_ffi)
        if name.startswith("wasmtime_config_wasm_") and name.endswith("_set")
    }
    # Only says how relaxed SIMD behaves where it is on.
    assert switches - {"wasm_relaxed_simd_deterministic"} <= set(settings_module._SWITCHES)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("slots", 1, 10_000),
        ("memory_bytes", 64 * KIB, 4096 * MIB),
        ("table_elements", 1, 10_000_000),
        ("wasm_stack_bytes", 64 * KIB, 64 * MIB),
        ("keep_resident_bytes", 0, 4096 * MIB),
    ],
)
def test_a_setting_is_held_to_its_range_at_both_ends(name: str, least: int, most: int) -> None:
    for inside in (least, most):
        assert getattr(EngineSettings(**{name: inside}), name) == inside
    for outside in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"{name} is .*; give a number from"):
            EngineSettings(**{name: outside})


@pytest.mark.parametrize("value", [True, 64.0, "64", None])
def test_a_setting_that_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="give a whole number"):
        EngineSettings(slots=value)  # type: ignore[arg-type]


def test_the_fiber_is_always_larger_than_the_guests_stack() -> None:
    for stack_bytes in (64 * KIB, 1 * MIB, 64 * MIB):
        assert EngineSettings(wasm_stack_bytes=stack_bytes).async_stack_bytes == stack_bytes + 256 * KIB


def artifact(settings: EngineSettings) -> bytes:
    wat = '(module (memory (export "memory") 1) (func $f (export "f") (param i32) (call $f (local.get 0))))'
    return bytes(wasmtime.Module(wasmtime.Engine(config(settings)), bytes(wasmtime.wat2wasm(wat))).serialize())


def test_the_fingerprint_ignores_exactly_what_leaves_the_artifact_alone() -> None:
    ours = EngineSettings()
    other = EngineSettings(
        slots=1, memory_bytes=1 * MIB, table_elements=10, wasm_stack_bytes=2 * MIB, keep_resident_bytes=0
    )
    assert artifact(ours) == artifact(other)
    assert fingerprint(ours) == fingerprint(other)


def test_the_fingerprint_follows_a_switch_the_version_and_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = fingerprint(EngineSettings())
    with monkeypatch.context() as patch:
        patch.setitem(settings_module._SWITCHES, "epoch_interruption", True)  # type: ignore[arg-type]
        assert fingerprint(EngineSettings()) != ours
    real = settings_module._toolchain()
    for changed in range(len(real)):
        parts = tuple("other" if index == changed else part for index, part in enumerate(real))
        with monkeypatch.context() as patch:
            patch.setattr(settings_module, "_toolchain", lambda parts=parts: parts)
            assert fingerprint(EngineSettings()) != ours
    assert fingerprint(EngineSettings()) == ours
