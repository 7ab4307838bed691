"""Rewrites whole modules: exports, data and custom sections added, removed or replaced, and nothing else changed.

Whether what comes out is admitted is not this file's question; what goes in may be a stranger's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookcell_sandbox import escape

from .sections import (
    CUSTOM,
    PAGE_BYTES,
    RewriteFailed,
    Section,
    add_segment,
    custom_name,
    exports_of,
    memory_of,
    name_bytes,
    put_exports,
    quoted,
    read_sections,
    write_sections,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .sections import Export

__all__ = ["add_data", "add_exports", "remove_exports", "set_custom"]


def remove_exports(wasm: bytes, names: Collection[str]) -> bytes:
    """The module without these exports; what they named stays.

    Raises:
        RewriteFailed: It has no such export, or cannot be read.
    """
    sections = read_sections(wasm)
    exports = exports_of(sections)
    gone = {name.encode() for name in names}
    if missing := gone - {export.name for export in exports}:
        raise RewriteFailed(f"the module exports no {quoted(missing)}")
    return write_sections(put_exports(sections, [export for export in exports if export.name not in gone]))


def add_exports(wasm: bytes, added: Sequence[Export]) -> bytes:
    """The module with more exports, after its own.

    Raises:
        RewriteFailed: A name is there already, or the module cannot be read.
    """
    sections = read_sections(wasm)
    return write_sections(put_exports(sections, [*exports_of(sections), *added]))


def add_data(wasm: bytes, address: int, content: bytes) -> bytes:
    """The module with one more active data segment, copied in after all of its own.

    Raises:
        RewriteFailed: The range leaves the memory's minimum, or the module cannot be read.
    """
    sections = read_sections(wasm)
    memory_bytes = memory_of(sections)[0] * PAGE_BYTES
    if not 0 <= address <= address + len(content) <= memory_bytes:
        raise RewriteFailed(
            f"{len(content):_} bytes of data at {address:_} leave the memory's minimum of {memory_bytes:_} bytes"
        )
    return write_sections(add_segment(sections, address, content))


def set_custom(wasm: bytes, name: str, content: bytes) -> bytes:
    """The module with a custom section of this name and content: in the old one's place, or at the end.

    Raises:
        RewriteFailed: It has several of that name, or cannot be read.
    """
    sections = list(read_sections(wasm))
    made = Section(CUSTOM, name_bytes(name.encode()) + content)
    places = [at for at, section in enumerate(sections) if custom_name(section) == name.encode()]
    if len(places) > 1:
        raise RewriteFailed(f"the module has {len(places)} custom sections named '{escape(name)}', at most 1 is wanted")
    if places:
        sections[places[0]] = made
    else:
        sections.append(made)
    return write_sections(sections)
