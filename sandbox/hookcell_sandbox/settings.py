"""The engine's settings and the one wasmtime configuration they make.

The host's engine and the compile child's must agree to the last switch, or the artifact of one does not load in the
other. So both come from `config`, and what it sets is written down once, in tables that `fingerprint` hashes too.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import wasmtime
import wasmtime._ffi as _c

from .limits import KIB, MIB, PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EngineSettings", "config", "fingerprint"]

# A fiber whose stack is no larger than the wasm stack is accepted by wasmtime, and then any guest that recurses to the
# end of it kills the process: host frames need room beyond the guest's.
_HOST_STACK_BYTES = 256 * KIB

# Each entry names a C function, wasmtime_config_<name>_set. The order is part of the table: SIMD cannot go off while
# relaxed SIMD is on, and wasmtime aborts the process on a mix it does not like, so a change here is settled by the
# tests, which try it in a child process.
_SWITCHES: Mapping[str, bool] = {
    # Guest ABI 1, "Features": beyond the 1.0 core, mutable globals, sign extension and saturating conversion, which
    # have no switch.
    "wasm_multi_value": True,
    "wasm_bulk_memory": True,
    "wasm_reference_types": True,
    # Everything else that has a switch.
    "wasm_relaxed_simd": False,
    "wasm_simd": False,
    "wasm_threads": False,
    "shared_memory": False,
    "wasm_memory64": False,
    "wasm_multi_memory": False,
    "wasm_exceptions": False,
    "wasm_gc": False,
    "wasm_function_references": False,
    "wasm_tail_call": False,
    "wasm_stack_switching": False,
    "wasm_wide_arithmetic": False,
    "wasm_custom_page_sizes": False,
    "wasm_branch_hinting": False,
    "wasm_compact_imports": False,
    "wasm_component_model": False,
    "wasm_component_model_accessors": False,
    "wasm_component_model_async": False,
    "wasm_component_model_async_stackful": False,
    "wasm_component_model_canonical_names": False,
    "wasm_component_model_implements": False,
    "wasm_component_model_map": False,
    "wasm_component_model_more_async_builtins": False,
    # No collector and no heap of its own beside linear memory. It costs `externref`, whose only value would be null
    # in a guest that can import nothing; `funcref` and everything else of reference types stays.
    "gc_support": False,
    # Concurrency between component tasks. Fibers work without it, and a call is about a quarter cheaper.
    "concurrency_support": False,
    "consume_fuel": True,
    "epoch_interruption": False,
    "debug_info": False,
    # The same bits on every machine, so that a call can be replayed (SEMANTICS G1).
    "cranelift_nan_canonicalization": True,
    # The host's engine never compiles, and a fork after parallel compilation deadlocks; the child has one thread.
    "parallel_compilation": False,
    # Bounds are checked in code. With signal traps, a `faulthandler.enable()` after start-up turns a guest's
    # out-of-bounds access into the death of the host. The address-space reservation stays, which keeps it as fast.
    "signals_based_traps": False,
    # `instance` keeps the address of a memory over a call. The reservation holds all that it can grow to.
    "memory_may_move": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What is fixed for an engine's whole life: the pool's shape and the stack.

    Attributes:
        slots: Calls at once, which is the size of the pool. Each slot reserves 4 GiB of address space and commits
            what its guest touches; from 30,000 slots on wasmtime aborts the process, so 10,000 is the most.
        memory_bytes: The largest linear memory a slot can hold; no `Limits` may allow a call more.
        table_elements: The most elements that a table of a slot can hold.
        wasm_stack_bytes: Stack of a guest. At 256 KiB a plain recursive JavaScript hook traps at depth 68; at 1 MiB
            ordinary recursion ends in a catchable error.
        keep_resident_bytes: How much of a slot's memory stays in place between calls and is cleared by writing zeros,
            instead of being given back to the kernel and faulted in again. The largest lever on the speed of big
            contexts. Its cost is resident memory, ``slots * keep_resident_bytes`` at worst (128 MiB at the defaults).
    """

    slots: int = 64
    memory_bytes: int = 16 * MIB
    table_elements: int = 65_536
    wasm_stack_bytes: int = 1 * MIB
    keep_resident_bytes: int = 2 * MIB

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value: object = getattr(self, name)
            # bool is an int to isinstance, and a float reaches C as an error of ctypes.
            if type(value) is not int:
                raise TypeError(f"{name} is {value!r}; give a whole number")
            if not least <= value <= most:
                raise ValueError(f"{name} is {value:_}; give a number from {least:_} to {most:_}")

    @property
    def async_stack_bytes(self) -> int:
        """Stack of the fiber that a guest runs on: always larger than the guest's own share of it."""
        return self.wasm_stack_bytes + _HOST_STACK_BYTES


_RANGES: Mapping[str, tuple[int, int]] = {
    "slots": (1, 10_000),
    "memory_bytes": (PAGE_BYTES, 4096 * MIB),
    "table_elements": (1, 10_000_000),
    "wasm_stack_bytes": (64 * KIB, 64 * MIB),
    "keep_resident_bytes": (0, 4096 * MIB),
}


def config(settings: EngineSettings) -> wasmtime.Config:
    """The smallest configuration that admits the ABI's features, the same for the host and the compile child.

    Everything but the pool, which the host adds to it: pooled or not, an engine compiles to the same bytes. Both stack
    sizes are set here, since wasmtime aborts the process on a wasm stack above the default fiber stack of 2 MiB.

    Source: guest_sdk/ABI.md, "Features".
    """
    made = wasmtime.Config()
    # wasmtime's Python package has no setter for some switches, and types none of its C functions.
    library: Any = _c
    pointer: Any = made.ptr()
    for name, on in _SWITCHES.items():
        getattr(library, f"wasmtime_config_{name}_set")(pointer, on)
    library.wasmtime_config_async_stack_size_set(pointer, settings.async_stack_bytes)
    library.wasmtime_config_max_wasm_stack_set(pointer, settings.wasm_stack_bytes)
    return made


def fingerprint(settings: EngineSettings) -> str:
    """What a compiled artifact depends on beside the module, as 16 hex digits.

    The switches, wasmtime's version, and the machine. None of today's settings changes the generated code: not the
    pool's shape, nor the stack, whose bound a guest reads at run time. They are taken as an argument so that a
    setting which does can join without a change at the callers.

    wasmtime itself refuses an artifact of another version, of other switches or with instructions that the processor
    lacks. This keeps hosts that share a cache directory from overwriting each other's.
    """
    # Imported here: they take a third of a compile child's start, and it needs no fingerprint.
    import hashlib

    del settings
    parts = (*(f"{name}={on}" for name, on in _SWITCHES.items()), *_toolchain())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def _toolchain() -> tuple[str, ...]:
    from importlib.metadata import version

    return (f"wasmtime {version('wasmtime')}", sys.platform, platform.machine(), _processor_features())


def _processor_features() -> str:
    """The instruction sets that the compiler may use here, as the kernel lists them; elsewhere the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor()
    # "flags" on x86-64, "Features" on AArch64; sorted, since the order is the kernel's own business.
    listed = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return " ".join(sorted(listed.partition(":")[2].split())) or platform.processor()
