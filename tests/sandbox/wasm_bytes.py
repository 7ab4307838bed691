"""Builds WebAssembly modules byte by byte, right or wrong, which no assembler would let us."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREAMBLE = b"\0asm\x01\0\0\0"

IDS = {
    "type": 1,
    "import": 2,
    "function": 3,
    "table": 4,
    "memory": 5,
    "tag": 13,
    "global": 6,
    "export": 7,
    "start": 8,
    "element": 9,
    "data_count": 12,
    "code": 10,
    "data": 11,
}
"""Standard sections in the order they stand in a module."""

I32, I64, F32, F64, V128, FUNCREF, EXTERNREF = 0x7F, 0x7E, 0x7D, 0x7C, 0x7B, 0x70, 0x6F
FUNCTION, TABLE, MEMORY, GLOBAL, TAG = range(5)


def u(value: int, *, width: int = 0) -> bytes:
    """Unsigned LEB128; padded to ``width`` bytes."""
    out = bytearray()
    while value >= 0x80 or len(out) + 1 < width:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def s(value: int) -> bytes:
    """Signed LEB128."""
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)


def vec(items: Iterable[bytes], *, count: int | None = None) -> bytes:
    """A vector; ``count`` lies about its length."""
    parts = list(items)
    return u(len(parts) if count is None else count) + b"".join(parts)


def name(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return u(len(raw)) + raw


def functype(parameters: Iterable[int] = (), results: Iterable[int] = ()) -> bytes:
    return b"\x60" + vec(bytes((p,)) for p in parameters) + vec(bytes((r,)) for r in results)


def limits(minimum: int, maximum: int | None = None, *, flags: int = 0) -> bytes:
    if maximum is None:
        return bytes((flags,)) + u(minimum)
    return bytes((flags | 1,)) + u(minimum) + u(maximum)


def i32(value: int) -> bytes:
    """A constant expression."""
    return b"\x41" + s(value) + b"\x0b"


def global_(kind: int, initial: bytes, *, mutable: bool = False) -> bytes:
    return bytes((kind, mutable)) + initial


def export(text: str | bytes, kind: int, index: int) -> bytes:
    return name(text) + bytes((kind,)) + u(index)


def import_(module: str | bytes, text: str | bytes, description: bytes = b"\x00\x02") -> bytes:
    """An import; of a function of type 2 unless told otherwise."""
    return name(module) + name(text) + description


def body(instructions: bytes = b"\x00", *, groups: Iterable[tuple[int, int]] = ()) -> bytes:
    """A function body with its size: local declarations, then instructions (``unreachable``) and the end."""
    inner = vec(u(n) + bytes((kind,)) for n, kind in groups) + instructions + b"\x0b"
    return u(len(inner)) + inner


def data_segment(address: int, content: bytes) -> bytes:
    return b"\x00" + i32(address) + u(len(content)) + content


def section(id_: int, content: bytes) -> bytes:
    return bytes((id_,)) + u(len(content)) + content


def custom(text: str | bytes, content: bytes = b"") -> bytes:
    return section(0, name(text) + content)


def names(*of: bytes) -> bytes:
    """The part of a name section that names functions, from the first one on."""
    return section(1, vec(u(index) + name(raw) for index, raw in enumerate(of)))


ALLOC, POINT, NOTHING = 0, 1, 2
"""Types of the plain hook: ``(i32) -> i32``, ``(i32, i32) -> i64`` and ``() -> ()``."""

HOOK_EXPORTS = (
    export("memory", MEMORY, 0),
    export("hook_alloc", FUNCTION, 0),
    export("pre_tool_call", FUNCTION, 1),
)

HOOK: Mapping[str, bytes] = {
    "type": vec([functype([I32], [I32]), functype([I32, I32], [I64]), functype()]),
    "function": vec([u(ALLOC), u(POINT)]),
    "memory": vec([limits(1)]),
    "export": vec(HOOK_EXPORTS),
    "code": vec([body(), body()]),
}
"""Contents of the sections of the smallest module that is admitted."""


def hook(*, after: bytes = b"", **contents: bytes | None) -> bytes:
    """The plain hook with other contents for some sections, None for none, and ``after`` behind the last."""
    return module({**HOOK, **contents}) + after


def module(contents: Mapping[str, bytes | None]) -> bytes:
    """A module of these sections in their right order."""
    parts = ((IDS[name_], contents.get(name_)) for name_ in IDS)
    return PREAMBLE + b"".join(section(id_, content) for id_, content in parts if content is not None)


def exports(*more: bytes) -> bytes:
    """The export section of the plain hook with ``more`` at its end."""
    return vec([*HOOK_EXPORTS, *more])


def functions(*types: int) -> dict[str, bytes]:
    """Function and code sections of the plain hook with more functions, of these types."""
    return {
        "function": vec([u(ALLOC), u(POINT), *(u(kind) for kind in types)]),
        "code": vec([body()] * (2 + len(types))),
    }
