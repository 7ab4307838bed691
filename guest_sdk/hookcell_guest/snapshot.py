"""Runs a hook's setup at build time, so that no call pays for it: the module comes back as the setup left it.

A throw-away copy that exports its mutable globals runs in the sandbox (`hookcell_sandbox.capture`); what it leaves in
memory and globals is written back as active data segments and constant initialisers. That is all the state that an
instance has, provided that nothing else can change: what could is refused by name. The same module gives the same
bytes, since a guest knows nothing of the machine, the time or chance.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hookcell_sandbox.capture import CAPTURE_LIMITS, capture

from .instructions import STATE_CHANGES, find_state_change
from .sections import (
    DATA,
    DATA_COUNT,
    IMPORT,
    PAGE_BYTES,
    START,
    Export,
    Global,
    RewriteFailed,
    content_of,
    data_section,
    exports_of,
    globals_of,
    memory_of,
    put_exports,
    put_globals,
    put_memory,
    put_section,
    read_sections,
    signed,
    write_sections,
)
from .wasm import add_exports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hookcell_sandbox import ArtifactCache, Limits

    from .sections import Section

__all__ = ["Snapshot", "SnapshotRefused", "snapshot", "take_snapshot"]

_GAP_BYTES: Final = 4096
"""Zeros up to here are kept inside a segment: one more costs a copy of its own at every call, and some fuel."""

_ZEROS = bytes(_GAP_BYTES + 1)
_SOMETHING = re.compile(rb"[^\0]")

_I32, _I64, _F32, _F64 = 0x7F, 0x7E, 0x7D, 0x7C
_GLOBAL_KIND, _END = 3, b"\x0b"


class SnapshotRefused(RewriteFailed):
    """The module holds state that a snapshot cannot carry.

    Attributes:
        code: ``import``, ``start``, ``reference_global``, ``table_write``, ``passive_elements`` or ``passive_data``.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A module after its setup.

    Attributes:
        wasm: The module.
        memory: Linear memory as the setup left it.
        result: What the entry returned, unsigned; None where it returns nothing.
    """

    wasm: bytes = field(repr=False)
    memory: bytes = field(repr=False)
    result: int | None


def snapshot(
    wasm: bytes, entry: str = "_initialize", *, limits: Limits = CAPTURE_LIMITS, cache: ArtifactCache | None = None
) -> bytes:
    """`take_snapshot`, for those who want the module alone. Raises the same."""
    return take_snapshot(wasm, entry, limits=limits, cache=cache).wasm


def take_snapshot(
    wasm: bytes, entry: str = "_initialize", *, limits: Limits = CAPTURE_LIMITS, cache: ArtifactCache | None = None
) -> Snapshot:
    """The module as ``_initialize``, if it exports that, and then ``entry`` leave it. Blocks for seconds.

    It exports neither of the two any more: their work is done, and a second run would not be the first.

    Args:
        wasm: Untrusted.
        entry: An exported function ``() -> ()`` or ``() -> i64``.
        limits: Of the setup.
        cache: Where compiled code is kept, so that modules which differ in data alone are compiled once.

    Raises:
        SnapshotRefused: It holds state that cannot be carried.
        RewriteFailed: It cannot be read.
        hookcell_sandbox.SandboxError: It is not admitted, or its setup failed; see `hookcell_sandbox.capture.capture`.
    """
    sections = read_sections(wasm)
    _refuse_what_cannot_be_carried(sections)
    exports, entries = exports_of(sections), globals_of(sections)
    mutable = [index for index, entry_ in enumerate(entries) if entry_.mutable]
    prefix = _fresh_prefix(exports)
    shown = [Export(f"{prefix}{index}".encode(), _GLOBAL_KIND, index) for index in mutable]
    left = capture(add_exports(wasm, shown), entry, limits=limits, cache=cache)
    values = dict(left.globals)
    for index in mutable:
        entries[index] = _initialised(entries[index], values[f"{prefix}{index}"])
    done = {b"_initialize", entry.encode()}
    segments = list(_segments(left.memory))
    sections = put_exports(sections, [export for export in exports if export.name not in done])
    sections = put_globals(sections, entries)
    sections = put_memory(sections, len(left.memory) // PAGE_BYTES, memory_of(sections)[1])
    # No body names a segment by its number, so nobody misses the old ones, passive ones among them.
    sections = put_section(sections, DATA_COUNT, None)
    sections = put_section(sections, DATA, data_section(segments) if segments else None)
    return Snapshot(wasm=write_sections(sections), memory=left.memory, result=left.result)


def _refuse_what_cannot_be_carried(sections: Sequence[Section]) -> None:
    if content_of(sections, IMPORT) not in (None, b"\0"):
        raise SnapshotRefused("import", "the module has imports; a hook has none, and a snapshot cannot carry them")
    if content_of(sections, START) is not None:
        raise SnapshotRefused("start", "the module has a start function; export it as _initialize instead")
    for index, entry in enumerate(globals_of(sections)):
        if entry.mutable and entry.type not in (_I32, _I64, _F32, _F64):
            raise SnapshotRefused(
                "reference_global", f"global {index} is mutable and holds a reference, which no data can carry"
            )
    if found := find_state_change(sections):
        name, function = found
        raise SnapshotRefused(
            STATE_CHANGES[name],
            f"function {function} of the module's own holds {name}, and a snapshot carries memory and numbers alone; "
            "build without it, or without a snapshot",
        )


def _fresh_prefix(exports: Sequence[Export]) -> str:
    """How the copy names its globals: no export of the module's begins like that."""
    prefix = "global "
    while any(export.name.startswith(prefix.encode()) for export in exports):
        prefix = f"{prefix[:-1]}- "
    return prefix


def _initialised(entry: Global, bits: int) -> Global:
    """The global, starting with these bits."""
    if entry.type == _I32:
        constant = b"\x41" + signed(bits - (1 << 32) if bits >> 31 else bits)
    elif entry.type == _I64:
        constant = b"\x42" + signed(bits - (1 << 64) if bits >> 63 else bits)
    elif entry.type == _F32:
        constant = b"\x43" + struct.pack("<I", bits)
    else:
        constant = b"\x44" + struct.pack("<Q", bits)
    return Global(entry.type, True, constant + _END)


def _segments(memory: bytes) -> Iterator[tuple[int, bytes]]:
    """What is not zero in memory: address and bytes, cut where more than `_GAP_BYTES` zeros follow each other."""
    found = _SOMETHING.search(memory)
    while found:
        start = found.start()
        gap = memory.find(_ZEROS, start)
        if gap < 0:
            yield start, memory[start:].rstrip(b"\0")
            return
        yield start, memory[start:gap]
        found = _SOMETHING.search(memory, gap)
