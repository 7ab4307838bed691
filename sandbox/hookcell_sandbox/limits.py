"""Every ceiling, its unit, its default and the reason for it.

All are on by default. `tightened_by` can only lower; a host that wants more says so where it constructs the value.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

__all__ = ["KIB", "MIB", "PAGE_BYTES", "Limits", "ModuleLimits"]

KIB = 1024
MIB = 1024 * KIB
PAGE_BYTES = 64 * KIB
"""A WebAssembly page."""

# Fuel is a u64 in wasmtime, and set_fuel(-1) is 2^64-1 there; 2^53 leaves room to add and stays exact in JSON.
_LARGEST = 2**53
# The largest linear memory a slot of the pool reserves address space for.
_LARGEST_MEMORY = 4096 * MIB


class _Ceilings:
    """What `Limits` and `ModuleLimits` share: checked on construction, lowered together."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if type(value) is not int:
                raise TypeError(f"{field.name} is {value!r}; give a whole number")
            if not 0 <= value <= _LARGEST:
                raise ValueError(f"{field.name} is {value:_}; give a number from 0 to {_LARGEST:_}")

    def tightened_by(self, other: Self) -> Self:
        """The smaller of both, ceiling by ceiling: the result allows nothing that either forbids."""
        return type(self)(
            **{f.name: min(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(_Ceilings):
    """What one call may use.

    Attributes:
        fuel: Base budget, wasmtime fuel units, about one a guest instruction. Ten times what an unsnapshotted
            JavaScript engine needs to start (2M).
        fuel_per_kib: Added for each started KiB of payload, so that a big context does not eat a hook's own budget:
            about 50 instructions a byte, what decoding and one pass over it take in compiled and interpreted guests.
        deadline_ms: Wall clock from the moment the call has a slot, waiting between slices included.
        memory_bytes: Linear memory. Also bounds how long one uninterruptible bulk operation runs: 16 MiB of
            ``memory.fill`` is a few milliseconds.
        table_elements: Elements of one table.
        input_bytes: Payload. A third of the memory, so that a guest can hold it and build an answer.
        output_bytes: What the host copies out.
        log_bytes: Log text copied out; a longer log is cut and says so.
    """

    fuel: int = 20_000_000
    fuel_per_kib: int = 50_000
    deadline_ms: int = 1_000
    memory_bytes: int = 16 * MIB
    table_elements: int = 65_536
    input_bytes: int = 5 * MIB
    output_bytes: int = 4 * MIB
    log_bytes: int = 64 * KIB

    def __post_init__(self) -> None:
        _Ceilings.__post_init__(self)
        if self.memory_bytes > _LARGEST_MEMORY:
            raise ValueError(
                f"memory_bytes is {self.memory_bytes:_}; a 32-bit memory holds {_LARGEST_MEMORY:_} at most"
            )

    def fuel_for(self, payload_bytes: int) -> int:
        """The whole budget of a call with a payload of this many bytes."""
        return min(self.fuel + self.fuel_per_kib * -(-payload_bytes // KIB), _LARGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleLimits(_Ceilings):
    """What a module may hold, checked by our own reader before any compiler sees it.

    The values stand well above what real toolchains make (QuickJS, Rust, MicroPython and Go peak at 55 KB a body,
    189 locals, 17 parameters, 1 result, 3,466 functions, 55 exports, 79,722 data segments, 8,820 table elements) and
    well below what compiler bombs need.

    Attributes:
        module_bytes: The whole module.
        functions: Function bodies.
        body_bytes: One function body.
        locals: Locals of one function, declared ones alone.
        parameters: Parameters of one signature, block types among them: a ``block`` with 1,000 parameters makes 12 KB
            of module take 6 GB to compile.
        results: Results of one signature.
        types: Entries of the type section.
        exports: Exports; listing 20,000 takes wasmtime's Python package 7 s.
        name_bytes: One import or export name, UTF-8.
        custom_bytes: All custom sections together.
        manifest_bytes: The manifest section (ABI: 64 KiB).
        memory_bytes: Declared minimum of the memory.
        tables: Tables.
        table_elements: Declared minimum of one table, and the sum that element segments hold.
        globals: Globals.
        element_segments: Element segments.
        data_segments: Data segments.
    """

    module_bytes: int = 16 * MIB
    functions: int = 20_000
    body_bytes: int = 128 * KIB
    locals: int = 1_000
    parameters: int = 32
    results: int = 4
    types: int = 2_000
    exports: int = 128
    name_bytes: int = 256
    custom_bytes: int = 2 * MIB
    manifest_bytes: int = 64 * KIB
    memory_bytes: int = 16 * MIB
    tables: int = 2
    table_elements: int = 65_536
    globals: int = 2_000
    element_segments: int = 256
    data_segments: int = 100_000
