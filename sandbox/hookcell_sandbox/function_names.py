"""The custom section ``name``, held to what a trap can afford.

wasmtime copies the names of up to twenty functions whole when a guest traps, before anything can bound them: one name
of 2 MB, twenty deep on the stack, keeps an event loop for 40 ms and takes 40 MB at each call.

Source: WebAssembly core specification, "Appendix", "Custom Sections", "Name Section".
"""

from __future__ import annotations

from .binary import Cursor, Malformed
from .limits import KIB

__all__ = ["FUNCTION_NAME_BYTES", "PARTS_READ", "fault_of_names"]

FUNCTION_NAME_BYTES = 16 * KIB
"""One function's name. A mangled name of C++ or Rust may have a few thousand bytes; no section of this size is read."""

PARTS_READ = 64
"""Parts of one section. Twelve kinds are known, each to stand once; a megabyte could hold half a million."""

_FUNCTIONS = 1


def fault_of_names(content: Cursor, most: int) -> tuple[str, int, int] | None:
    """What is wrong with the section whose content ``content`` stands at: what, value, limit; None when it will do.

    Args:
        content: Untrusted.
        most: Names read; no module has more functions.

    Raises:
        Malformed: It cannot be read to its end. Elsewhere a damaged custom section does no harm, but wasmtime keeps
            what stood before the damage, and by its own idea of what damage is.
    """
    if content.left <= FUNCTION_NAME_BYTES:
        return None
    parts = seen = 0
    while content.left:
        parts += 1
        if parts > PARTS_READ:
            return "parts of the name section", parts, PARTS_READ
        kind, size = content.byte(), content.u32()
        start = content.offset
        content.skip(size, "subsection")
        if kind != _FUNCTIONS:
            continue
        names = Cursor(content.buffer, start, start + size)
        count = names.u32()
        seen += count
        if seen > most:
            return "names of functions", seen, most
        for _ in range(count):
            names.u32()
            length = names.u32()
            if length > FUNCTION_NAME_BYTES:
                return "a function's name, bytes", length, FUNCTION_NAME_BYTES
            names.skip(length, "name of a function")
        if names.left:
            raise Malformed("trailing_bytes", "names of functions", offset=names.offset, value=names.left)
    return None
