"""A module as its sections: read, rewritten one by one, written. A section that is not rewritten keeps its bytes.

Modules of strangers come here too: every size, count and index is checked before it is used, and anything that is not
understood is an error, never copied along inside something that is rewritten. Whether a module is admitted is not this
file's question.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hookcell_sandbox import escape
from hookcell_sandbox.binary import Cursor, Malformed

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Sequence

__all__ = [
    "CODE",
    "CUSTOM",
    "DATA",
    "DATA_COUNT",
    "IMPORT",
    "PAGE_BYTES",
    "START",
    "Export",
    "Global",
    "RewriteFailed",
    "Section",
    "add_segment",
    "content_of",
    "custom_name",
    "data_section",
    "exports_of",
    "globals_of",
    "memory_of",
    "name_bytes",
    "put_exports",
    "put_globals",
    "put_memory",
    "put_section",
    "quoted",
    "read_sections",
    "signed",
    "unsigned",
    "write_sections",
]

PAGE_BYTES: Final = 64 * 1024

_PREAMBLE = b"\0asm\x01\0\0\0"
_SECTIONS_READ = 256
_LARGEST_U32 = (1 << 32) - 1

CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL = 0, 1, 2, 3, 4, 5, 6
EXPORT, START, ELEMENT, CODE, DATA, DATA_COUNT, TAG = 7, 8, 9, 10, 11, 12, 13
_NAMES = (
    *("custom", "type", "import", "function", "table", "memory", "global"),
    *("export", "start", "element", "code", "data", "data count", "tag"),
)
# The order in the file is that of the ids, but for two that came later.
_ORDER = {number: 2 * number for number in range(1, 12)} | {TAG: 2 * MEMORY + 1, DATA_COUNT: 2 * ELEMENT + 1}

_EXPORT_KINDS = ("function", "table", "memory", "global", "tag")
_VALUE_TYPES = frozenset({0x7F, 0x7E, 0x7D, 0x7C, 0x70})
_I32_CONST, _I64_CONST, _F32_CONST, _F64_CONST = 0x41, 0x42, 0x43, 0x44
_GLOBAL_GET, _REF_NULL, _REF_FUNC, _END = 0x23, 0xD0, 0xD2, 0x0B


class RewriteFailed(Exception):
    """The module cannot be rewritten as asked. The text says what, where, the value and the limit."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section.

    Attributes:
        id: 0 for a custom one, whose content begins with its name.
        content: Its bytes, without id and size.
        size_bytes: How many bytes its size is written in; linkers pad it to 5.
    """

    id: int
    content: bytes = field(repr=False)
    size_bytes: int = 1


@dataclass(frozen=True, slots=True)
class Export:
    """An export: its raw name, the encoded kind (0 function, 1 table, 2 memory, 3 global), the index among its kind."""

    name: bytes
    kind: int
    index: int


@dataclass(frozen=True, slots=True)
class Global:
    """A global: its encoded value type, and the constant expression that it starts with, end included."""

    type: int
    mutable: bool
    initial: bytes


# --- sections ---------------------------------------------------------------------------------------------------------


def read_sections(wasm: bytes) -> tuple[Section, ...]:
    """The sections in their order; `write_sections` gives the same bytes back.

    Raises:
        RewriteFailed: Something is cut, repeated, out of order or unknown.
    """
    if not wasm.startswith(_PREAMBLE):
        raise RewriteFailed("this is no core WebAssembly module of version 1")
    cursor = Cursor(wasm, len(_PREAMBLE), len(wasm))
    sections: list[Section] = []
    last = 0
    with _reading("the module"):
        while cursor.left:
            if len(sections) == _SECTIONS_READ:
                raise RewriteFailed(f"the module has more than {_SECTIONS_READ} sections; strip its custom ones")
            at = cursor.offset
            kind = cursor.byte()
            if kind >= len(_NAMES):
                raise RewriteFailed(f"the module has a section of unknown id {kind} at byte {at:_}")
            size = cursor.u32()
            size_bytes = cursor.offset - at - 1
            section = Section(kind, cursor.take(size, f"a {_NAMES[kind]} section"), size_bytes)
            if kind:
                if _ORDER[kind] <= last:
                    raise RewriteFailed(f"the {_NAMES[kind]} section at byte {at:_} is repeated or out of order")
                last = _ORDER[kind]
            else:
                custom_name(section)
            sections.append(section)
    return tuple(sections)


def write_sections(sections: Iterable[Section]) -> bytes:
    """The module of these sections."""
    parts = [_PREAMBLE]
    for section in sections:
        parts += (bytes((section.id,)), unsigned(len(section.content), least_bytes=section.size_bytes), section.content)
    return b"".join(parts)


def content_of(sections: Iterable[Section], kind: int) -> bytes | None:
    """The content of the one standard section of this id; None without it."""
    return next((section.content for section in sections if section.id == kind), None)


def put_section(sections: Sequence[Section], kind: int, content: bytes | None) -> tuple[Section, ...]:
    """The sections with this content in the standard section of this id, made where there is none; None = without."""
    if content == content_of(sections, kind):
        return tuple(sections)
    order = _ORDER[kind]
    before = [place for place, section in enumerate(sections) if section.id and _ORDER[section.id] < order]
    rest = [section for section in sections if section.id != kind]
    at = before[-1] + 1 if before else 0
    if content is not None:
        old = [place for place, section in enumerate(sections) if section.id == kind]
        rest.insert(old[0] if old else at, Section(kind, content))
    return tuple(rest)


def custom_name(section: Section) -> bytes | None:
    """The raw name of a custom section; None of a standard one."""
    if section.id != CUSTOM:
        return None
    cursor = _whole(section.content)
    with _reading("a custom section"):
        return cursor.take(cursor.u32(), "its name")


# --- contents ---------------------------------------------------------------------------------------------------------


def exports_of(sections: Iterable[Section]) -> list[Export]:
    """The exports in their order."""
    exports: list[Export] = []
    with _entries(sections, EXPORT) as (cursor, count):
        for _ in range(count):
            name = cursor.take(cursor.u32(), "a name")
            kind = cursor.byte()
            if kind >= len(_EXPORT_KINDS):
                raise RewriteFailed(f"export '{escape(name)}' has the unknown kind {kind}")
            exports.append(Export(name, kind, cursor.u32()))
    return exports


def put_exports(sections: Sequence[Section], exports: Sequence[Export]) -> tuple[Section, ...]:
    """The sections with these exports in place of their own.

    Raises:
        RewriteFailed: Two have one name.
    """
    counts = Counter(export.name for export in exports)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise RewriteFailed(f"two exports are named {quoted(repeated)}")
    entries = [name_bytes(export.name) + bytes((export.kind,)) + unsigned(export.index) for export in exports]
    return _put_entries(sections, EXPORT, entries)


def globals_of(sections: Iterable[Section]) -> list[Global]:
    """The module's own globals in their order."""
    found: list[Global] = []
    with _entries(sections, GLOBAL) as (cursor, count):
        for number in range(count):
            kind, mutable = cursor.byte(), cursor.byte()
            if kind not in _VALUE_TYPES or mutable > 1:
                raise RewriteFailed(
                    f"global {number} is of a kind that no hook may have (0x{kind:02x} 0x{mutable:02x})"
                )
            start = cursor.offset
            _skip_constant(cursor)
            found.append(Global(kind, bool(mutable), cursor.buffer[start : cursor.offset]))
    return found


def put_globals(sections: Sequence[Section], entries: Sequence[Global]) -> tuple[Section, ...]:
    """The sections with these globals in place of their own."""
    written = [bytes((entry.type, entry.mutable)) + entry.initial for entry in entries]
    return _put_entries(sections, GLOBAL, written)


def memory_of(sections: Iterable[Section]) -> tuple[int, int | None]:
    """The one memory's minimum and maximum in pages; None = no maximum.

    Raises:
        RewriteFailed: There is none or several, or it is shared, 64-bit or of odd pages.
    """
    with _entries(sections, MEMORY) as (cursor, count):
        if count != 1:
            raise RewriteFailed(f"the module has {count:_} memories of its own; 1 is wanted")
        flags = cursor.byte()
        if flags > 1:
            raise RewriteFailed(f"the memory is shared, 64-bit or of odd pages (flags 0x{flags:02x})")
        minimum = cursor.u32()
        return minimum, cursor.u32() if flags else None


def put_memory(sections: Sequence[Section], minimum: int, maximum: int | None) -> tuple[Section, ...]:
    """The sections with a memory of this minimum and maximum, in pages."""
    bounds = b"\0" + unsigned(minimum) if maximum is None else b"\x01" + unsigned(minimum) + unsigned(maximum)
    return put_section(sections, MEMORY, b"\x01" + bounds)


def data_section(segments: Sequence[tuple[int, bytes]]) -> bytes:
    """The content of a data section of active segments, address and bytes each."""
    return unsigned(len(segments)) + b"".join(_data_segment(address, content) for address, content in segments)


def add_segment(sections: Sequence[Section], address: int, content: bytes) -> tuple[Section, ...]:
    """The sections with one more active data segment, after all of their own, and the data count in step."""
    old = content_of(sections, DATA)
    count, rest = (0, b"") if old is None else _data_of(old)
    made = put_section(sections, DATA, unsigned(count + 1) + rest + _data_segment(address, content))
    return made if content_of(made, DATA_COUNT) is None else put_section(made, DATA_COUNT, unsigned(count + 1))


# --- the format -------------------------------------------------------------------------------------------------------


def unsigned(value: int, *, least_bytes: int = 1) -> bytes:
    """A u32 as LEB128, padded to ``least_bytes``.

    Raises:
        RewriteFailed: It has more than 32 bits.
    """
    if not 0 <= value <= _LARGEST_U32:
        raise RewriteFailed(f"{value:_} is more than a size or an index may be ({_LARGEST_U32:_})")
    out = bytearray()
    while value > 0x7F or len(out) + 1 < least_bytes:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    """A signed integer as LEB128."""
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)


def _data_segment(address: int, content: bytes) -> bytes:
    # An i32.const is signed, an address is not.
    wrapped = address - (1 << 32) if address >= 1 << 31 else address
    return b"\0" + bytes((_I32_CONST,)) + signed(wrapped) + bytes((_END,)) + unsigned(len(content)) + content


def _data_of(content: bytes) -> tuple[int, bytes]:
    """How many segments a data section has, and their bytes, all of them read."""
    cursor = _whole(content)
    with _reading("the data section"):
        count = cursor.u32()
        start = cursor.offset
        for number in range(count):
            flags = cursor.u32()
            if flags > 2:
                raise RewriteFailed(f"data segment {number} has the unknown flags {flags}")
            if flags == 2:
                cursor.u32()
            if flags != 1:
                _skip_constant(cursor)
            cursor.skip(cursor.u32(), f"data segment {number}")
        _nothing_left(cursor, "the data section")
    return count, content[start:]


def _skip_constant(cursor: Cursor) -> None:
    """Step over a constant expression of one plain instruction."""
    at = cursor.offset
    opcode = cursor.byte()
    if opcode == _I32_CONST:
        cursor.s32()
    elif opcode == _I64_CONST:
        cursor.s64()
    elif opcode == _F32_CONST:
        cursor.skip(4, "an f32")
    elif opcode == _F64_CONST:
        cursor.skip(8, "an f64")
    elif opcode in (_GLOBAL_GET, _REF_FUNC):
        cursor.u32()
    elif opcode == _REF_NULL:
        cursor.s33()
    else:
        raise RewriteFailed(f"opcode 0x{opcode:02x} in a constant expression, at byte {at:_} of its section")
    if cursor.byte() != _END:
        raise RewriteFailed(f"a constant expression of several instructions, at byte {at:_} of its section")


def _put_entries(sections: Sequence[Section], kind: int, entries: Sequence[bytes]) -> tuple[Section, ...]:
    if not entries and content_of(sections, kind) is None:
        return tuple(sections)
    return put_section(sections, kind, unsigned(len(entries)) + b"".join(entries))


@contextmanager
def _entries(sections: Iterable[Section], kind: int) -> Generator[tuple[Cursor, int]]:
    """A cursor at the first entry of a section, and how many there are; 0 without the section. All must be read."""
    where = f"the {_NAMES[kind]} section"
    cursor = _whole(content_of(sections, kind) or b"\0")
    with _reading(where):
        yield cursor, cursor.u32()
        _nothing_left(cursor, where)


@contextmanager
def _reading(where: str) -> Generator[None]:
    try:
        yield
    except Malformed as bad:
        raise RewriteFailed(f"{where} cannot be read: {bad.what} at its byte {bad.offset:_}") from None


def _nothing_left(cursor: Cursor, where: str) -> None:
    if cursor.left:
        raise RewriteFailed(f"{where} has {cursor.left:_} bytes after its last entry")


def _whole(content: bytes) -> Cursor:
    return Cursor(content, 0, len(content))


def name_bytes(raw: bytes) -> bytes:
    """A name as the format writes it: its length, then its bytes."""
    return unsigned(len(raw)) + raw


def quoted(names: Collection[bytes]) -> str:
    """Names for people: sorted, escaped, the first twenty."""
    return ", ".join(f"'{escape(name)}'" for name in sorted(names)[:20])
