"""A trial of everything `native` relies on, run where a crash does no harm: in a compile child, before its first job.

Versions and layouts are compared at the start of each process (`native.faults`). This is the other half: a call, a
trap, an end of fuel, a slice and a cancellation through the real library.
"""

from __future__ import annotations

from dataclasses import replace

import wasmtime

from .admission import AdmissionPolicy, inspect
from .call import IsolatedCall
from .errors import FuelExhausted, GuestError, GuestTrap
from .instance import Ceilings, Compiled, Pool
from .limits import Limits
from .program import Completion, Program
from .settings import EngineSettings

__all__ = ["self_check"]

_GUEST = """
(module
  (memory (export "memory") 2)
  (global (export "hook_log") i32 (i32.const 16))
  (data (i32.const 16) "\\02\\00\\00\\00ok")
  (func (export "hook_alloc") (param i32) (result i32) (i32.const 65536))
  (func (export "echo") (param i32 i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32)) (i64.extend_i32_u (local.get 1))))
  (func (export "trap") (param i32 i32) (result i64) (unreachable))
  (func (export "spin") (param i32 i32) (result i64) (loop $again (br $again)) (i64.const 0)))
"""


def self_check() -> None:
    """Raise `RuntimeError` where the library does not do what a call relies on."""
    pool = Pool(EngineSettings(slots=1))
    wasm = bytes(wasmtime.wat2wasm(_GUEST))
    report = inspect(wasm, AdmissionPolicy(entry_points=frozenset({"echo", "trap", "spin"})))
    compiled = Compiled(pool.engine, wasmtime.Module(pool.engine, wasm), report)
    program = Program(
        digest=report.digest, entry_points=report.entry_points, manifest=None, report=report, compiled=compiled
    )
    limits = Limits(fuel=1_000_000)
    ceilings = Ceilings(memory_bytes=limits.memory_bytes, table_elements=limits.table_elements)

    def outcome(entry: str, limits: Limits = limits) -> Completion | GuestError:
        slices = IsolatedCall(compiled, program, entry, b"payload", limits, ceilings).run(pool)
        try:
            while True:
                next(slices)
        except StopIteration as end:
            return end.value
        except GuestError as error:
            return error

    echoed, trapped, exhausted = outcome("echo"), outcome("trap"), outcome("spin")
    if not isinstance(echoed, Completion) or echoed.output != b"payload" or echoed.log.raw != b"ok":
        raise RuntimeError(f"a call gave back {echoed!r}")
    if not 0 < echoed.fuel_used < 100:
        raise RuntimeError(f"a call of a few instructions used {echoed.fuel_used} fuel")
    if not isinstance(trapped, GuestTrap) or trapped.trap != "unreachable" or not trapped.backtrace:
        raise RuntimeError(f"a trap gave back {trapped!r}")
    if not isinstance(exhausted, FuelExhausted):
        raise RuntimeError(f"an endless loop gave back {exhausted!r}")
    suspended = IsolatedCall(compiled, program, "spin", b"", replace(limits, fuel=10**12), ceilings).run(pool)
    next(suspended)
    suspended.close()
    if pool.taken:
        raise RuntimeError("a cancelled call kept its slot")
