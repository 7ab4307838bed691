"""A module's code and its data, apart.

Hooks in an interpreted language are one engine with another memory image each. Compiled whole, every one of them costs
seconds and megabytes; apart, the code is compiled once and the host lays the image into a call's fresh memory. Nothing
of it can be seen from outside: the segments are laid before any of the guest's code runs, as instantiation would.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .binary import Cursor, Malformed
from .limits import KIB, MIB

if TYPE_CHECKING:
    from .admission import ModuleReport

__all__ = ["LAID_OUT_BYTES", "Apart", "take_apart"]

LAID_OUT_BYTES: Final = 16 * MIB
"""Up to here wasmtime lays a memory out when it compiles; in a larger one it copies segments at each call, for fuel."""

_SEGMENTS: Final = 64
"""Most segments that are laid by the host: each costs a C call, which no fuel pays for."""

_LEAST_IMAGE_BYTES: Final = 16 * KIB
"""With less than this wasmtime is a little faster, and the code too small to be worth sharing."""

_MOST_IMAGE_BYTES: Final = 4 * MIB
"""Most bytes, again since no fuel pays for them: a MiB is about 50 µs."""

_HEADER_BYTES: Final = 8
_CUSTOM, _START, _DATA, _DATA_COUNT = 0, 8, 11, 12
_I32_CONST, _END = 0x41, 0x0B


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A module taken apart.

    Attributes:
        code: The module without its data, and without custom sections but for the names of its functions, which
            backtraces show.
        digest: sha256 of ``code``, hex.
        image: Address and bytes of each data segment, in order; all of them within the memory's minimum.
    """

    code: bytes = field(repr=False)
    digest: str
    image: tuple[tuple[int, bytes], ...] = field(repr=False)


def take_apart(wasm: bytes, report: ModuleReport) -> Apart:
    """A module's code and image.

    The image stays in the code where it may matter who lays it: a segment that is passive, at an address that is no
    constant, or outside of memory; a data count, without which no body can name a segment; a start function; a memory
    so large that segments cost fuel. And where it is too little to matter or too much to lay for nothing at each call.

    Args:
        wasm: The module, admitted.
        report: What admission found.
    """
    try:
        parts = _sections(wasm)
    except Malformed:
        # Admission reads strictly, so this is never; the compiler would say what is wrong.
        parts = None
    image = None if parts is None else _image(wasm, parts, report)
    if parts is None or image is None:
        return Apart(code=wasm, digest=report.digest, image=())
    kept = [wasm[:_HEADER_BYTES]]
    kept += [wasm[start:end] for kind, start, body, end in parts if kind != _DATA and _counts(wasm, kind, body, end)]
    code = b"".join(kept)
    return Apart(code=code, digest=hashlib.sha256(code).hexdigest(), image=image)


def _sections(wasm: bytes) -> list[tuple[int, int, int, int]]:
    """Kind, start, start of the content, and end of each section."""
    cursor = Cursor(wasm, _HEADER_BYTES, len(wasm))
    parts: list[tuple[int, int, int, int]] = []
    while cursor.left:
        start = cursor.offset
        kind, size = cursor.byte(), cursor.u32()
        body = cursor.offset
        cursor.skip(size, "a section")
        parts.append((kind, start, body, cursor.offset))
    return parts


def _counts(wasm: bytes, kind: int, body: int, end: int) -> bool:
    """Whether a section has a part in what the compiled code is."""
    if kind != _CUSTOM:
        return True
    cursor = Cursor(wasm, body, end)
    return cursor.take(cursor.u32(), "a name") == b"name"


def _image(
    wasm: bytes, parts: list[tuple[int, int, int, int]], report: ModuleReport
) -> tuple[tuple[int, bytes], ...] | None:
    """The data segments, if the host may lay them."""
    kinds = {kind for kind, *_ in parts}
    if kinds & {_START, _DATA_COUNT} or report.data_segments > _SEGMENTS:
        return None
    if not _LEAST_IMAGE_BYTES <= report.data_bytes <= _MOST_IMAGE_BYTES:
        return None
    memory = 0 if report.memory is None else report.memory.minimum
    if memory > LAID_OUT_BYTES:
        return None
    image: list[tuple[int, bytes]] = []
    for kind, _, body, end in parts:
        if kind != _DATA:
            continue
        cursor = Cursor(wasm, body, end)
        for _ in range(cursor.u32()):
            flags = cursor.u32()
            if flags not in (0, 2) or (flags == 2 and cursor.u32() != 0) or cursor.byte() != _I32_CONST:
                return None
            address = cursor.s32() & 0xFFFF_FFFF
            if cursor.byte() != _END:
                return None
            content = cursor.take(cursor.u32(), "a data segment")
            if address + len(content) > memory:
                return None  # it traps when it is instantiated, and will be told so by wasmtime
            if content:
                image.append((address, content))
    return tuple(image)
