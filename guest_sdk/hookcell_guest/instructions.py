"""Looks through function bodies for instructions that must not be there.

A whitelist: every instruction of the ABI's features is known with the shape of its immediates, and stepped over by one
regular expression at C speed (a megabyte of code takes about 0.1 s, against seconds in Python). Where it stops before
the end of a body stands something that is unwanted or unknown; either is told, never passed over.

Source: WebAssembly core specification, "Binary Format", "Instructions".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hookcell_sandbox.binary import Cursor, Malformed

from .sections import CODE, RewriteFailed, content_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .sections import Section

__all__ = ["STATE_CHANGES", "find_state_change"]

STATE_CHANGES: Final[Mapping[str, str]] = {
    "table.set": "table_write",
    "table.init": "table_write",
    "table.copy": "table_write",
    "table.grow": "table_write",
    "table.fill": "table_write",
    "elem.drop": "passive_elements",
    "memory.init": "passive_data",
    "data.drop": "passive_data",
}
"""Instructions that change, or depend on, state beside linear memory and globals → what a refusal of them is called."""

_TABLE_SET, _BR_TABLE, _PREFIX = 0x26, 0x0E, 0xFC
_PREFIXED: Final = {
    8: "memory.init",
    9: "data.drop",
    12: "table.init",
    13: "elem.drop",
    14: "table.copy",
    15: "table.grow",
    17: "table.fill",
}

# An integer is stepped over by its continuation bits: the compiler has checked, or will, that it is not too long.
_INT = rb"[\x80-\xff]*[\x00-\x7f]"
_PLAIN = re.compile(
    # The alternatives differ in their first byte or bytes, and nothing is given back, so this is linear.
    rb"(?:"
    rb"[\x00\x01\x05\x0b\x0f\x1a\x1b\x45-\xc4\xd1]"  # no immediate
    rb"|[\x02-\x04\x0c\x0d\x10\x20-\x25\x41\x42\xd0\xd2]"
    + _INT
    + rb"|[\x11\x28-\x3e]"
    + _INT
    + _INT
    + rb"|[\x3f\x40]\x00"
    rb"|\x1c\x01[\x6f-\x7f]"  # select, with the one type that it has
    rb"|\x43.{4}"
    rb"|\x44.{8}"
    rb"|\xfc(?:[\x00-\x07]|\x0a\x00\x00|\x0b\x00|\x10" + _INT + rb")"
    rb")*+",
    re.DOTALL,
)


def find_state_change(sections: Iterable[Section]) -> tuple[str, int] | None:
    """The first of `STATE_CHANGES` that a body holds, and that function's number among the module's own; None = none.

    Whether it ever runs is not asked.

    Raises:
        RewriteFailed: A body cannot be read, or holds an instruction that no hook may have.
    """
    content = content_of(sections, CODE) or b"\0"
    cursor = Cursor(content, 0, len(content))
    try:
        for function in range(cursor.u32()):
            size = cursor.u32()
            body = Cursor(content, cursor.offset, cursor.offset + size)
            cursor.skip(size, "a function body")
            if name := _scan(body, function):
                return name, function
    except Malformed as bad:
        raise RewriteFailed(f"the code section cannot be read: {bad.what} at its byte {bad.offset:_}") from None
    return None


def _scan(body: Cursor, function: int) -> str | None:
    for _ in range(body.u32()):
        body.u32()
        body.byte()
    while True:
        at = body.offset
        stop = _PLAIN.match(body.buffer, at, body.end)
        body.offset = at if stop is None else stop.end()
        if not body.left:
            return None
        at = body.offset
        opcode = body.byte()
        if opcode == _BR_TABLE:
            _skip_labels(body)
            continue
        name = "table.set" if opcode == _TABLE_SET else None
        if opcode == _PREFIX:
            opcode = body.u32()
            name = _PREFIXED.get(opcode)
        if name is None:
            raise RewriteFailed(f"function {function} holds an unknown instruction at byte {at:_} of the code section")
        return name


def _skip_labels(body: Cursor) -> None:
    """Step over what follows a ``br_table``: a count, so many labels, and one more."""
    labels = body.u32() + 1
    if body.buffer[body.offset : body.offset + labels].isascii():
        body.skip(labels, "labels")  # one byte each, which is nearly always so
        return
    for _ in range(labels):
        body.u32()
