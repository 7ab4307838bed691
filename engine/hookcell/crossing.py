"""Which values cross to a guest, and their msgpack.

JSON's values and bytes cross, and subclasses of their types as the plain value (an ``IntEnum`` as its number, a named
tuple as an array), as JSON encoders have it. Nothing else does: a datetime, a set or a NaN that crossed as something
near it would be a value the host never wrote.

Source: guest_sdk/ABI.md, "Context".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from hookcell_sandbox.guest_text import escape

from .packing import ExtType, pack

__all__ = ["CONTEXT_DEPTH", "OUTCOME_DEPTH", "Encoded", "Uncrossable", "bounded", "encode_value", "pointer"]

OUTCOME_DEPTH: Final = 64
"""Containers inside one another in an outcome, the outcome's own map included."""

CONTEXT_DEPTH: Final = OUTCOME_DEPTH + 8
"""The same for a context. What a guest returned may come to stand deeper than it was (a call's args end up below
context, messages, message, toolCalls and call), and the next hook's context must still cross."""

_POINTER_CHARACTERS: Final = 400

_SCALARS: Final = frozenset({str, int, float, bool, bytes, type(None)})
_SCALAR_BASES: Final = (str, int, float, bytes, bytearray)

# A double with all exponent bits set. Text holds no such bytes: 0xcb is followed by 0x80 to 0xbf in UTF-8. The bytes of
# a number may, so a match is a suspicion that the slow walk confirms.
_NOT_FINITE: Final = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")


class Uncrossable(ValueError):
    """A context holds a value that cannot cross to a guest.

    Attributes:
        path: JSON Pointer into the context.
        type: The Python type, or the kind of value, e.g. ``datetime`` or ``NaN``.
        hint: What the host can do about it.
    """

    def __init__(self, path: str, type: str, hint: str | None = None) -> None:  # noqa: A002 the rule's own word
        self.path = path = bounded(path)
        self.type = type
        self.hint = hint
        super().__init__(f"{path or 'the value'} is a {type}, which cannot cross{f' - {hint}' if hint else ''}")


class Encoded(bytes):
    """A value that is msgpack already: spliced as it is, unchecked."""

    __slots__ = ()


def pointer(*parts: str | int) -> str:
    """The JSON Pointer of these keys and indices, fit for an error: each key is escaped and bounded, and the whole."""
    return bounded("".join(f"/{escape(str(part)).replace('~', '~0').replace('/', '~1')}" for part in parts))


def bounded(path: str) -> str:
    """A JSON Pointer made of several, cut to what an error may hold: sixty long keys are 12,000 characters."""
    return path if len(path) <= _POINTER_CHARACTERS else f"{path[:_POINTER_CHARACTERS]}…"


def encode_value(value: object, path: str = "", *, enclosing: int = 0) -> bytes:
    """The msgpack of one value.

    Args:
        value: JSON values and bytes.
        path: JSON Pointer of the value, for the error.
        enclosing: Containers that the value will stand in.

    Raises:
        Uncrossable: It holds something else: a lone surrogate, a NaN or infinity, a whole number over 64 bits, a key
            that is no string, another type, a cycle, or it nests deeper than `CONTEXT_DEPTH`.
    """
    room = CONTEXT_DEPTH - enclosing
    try:
        if type(value) in _SCALARS or _crosses(value, room):
            raw = pack(value)
            # memchr over the whole, at 20 µs a MB; the expression alone takes a hundred times that.
            if raw.find(b"\xcb") < 0 or not _NOT_FINITE.search(raw):
                return raw
        _blame(value, path, room, frozenset())
        return pack(value)
    except (TypeError, ValueError, OverflowError) as error:
        if not isinstance(error, Uncrossable):
            _blame(value, path, room, frozenset())
            # What the walk holds for good and msgpack does not: name the whole rather than let it through.
            raise Uncrossable(path, _kind(value), escape(str(error))) from error
        raise


def _crosses(value: object, room: int) -> bool:
    """Whether every container and leaf is of a type that crosses and nothing nests too deep; quick, says no more."""
    if type(value) is dict:
        children = cast("dict[str, object]", value)
        "".join(children)  # a TypeError unless every key is a string
        children = children.values()
    elif type(value) is list or type(value) is tuple:
        children = cast("Sequence[object]", value)
    elif isinstance(value, _SCALAR_BASES):
        return True
    elif isinstance(value, dict):
        children = cast("dict[str, object]", value)
        "".join(children)
        children = children.values()
    elif isinstance(value, list | tuple) and not isinstance(value, ExtType):
        children = cast("Sequence[object]", value)
    else:
        return False
    if room <= 0:
        return False
    room -= 1
    for child in children:  # noqa: SIM110 a generator costs a frame for each container of the hot path
        if type(child) not in _SCALARS and not _crosses(child, room):
            return False
    return True


def _blame(value: object, path: str, room: int, above: frozenset[int]) -> None:
    """Raise for the first value, in reading order, that cannot cross."""
    if value is None or isinstance(value, bool | bytes | bytearray):
        return
    if isinstance(value, str):
        if not _is_unicode(value):
            raise Uncrossable(path, "string with a lone surrogate", "decode it with errors='replace' where it is read")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise Uncrossable(path, "whole number over 64 bits", "pass it as a string")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise Uncrossable(path, "NaN" if math.isnan(value) else "infinity", "pass null or a string")
    elif isinstance(value, dict | list | tuple) and not isinstance(value, ExtType):
        _blame_within(cast("Mapping[object, object] | Sequence[object]", value), path, room, above)
    else:
        raise Uncrossable(path, _kind(cast("object", value)), "pass JSON's values or bytes")


def _blame_within(
    value: Mapping[object, object] | Sequence[object], path: str, room: int, above: frozenset[int]
) -> None:
    if id(value) in above:
        raise Uncrossable(path, f"{_kind(value)} inside itself", "pass a tree")
    if room <= 0:
        raise Uncrossable(path, f"{_kind(value)} nested over {CONTEXT_DEPTH} deep", "flatten it")
    above |= {id(value)}
    items: Iterable[tuple[object, object]] = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, child in items:
        if isinstance(value, Mapping):
            if not isinstance(key, str):
                raise Uncrossable(path, f"map with a key of type {_kind(key)}", "make every key a string")
            if not _is_unicode(key):
                raise Uncrossable(path + pointer(key), "key with a lone surrogate", "decode it with errors='replace'")
        _blame(child, path + pointer(cast("str | int", key)), room - 1, above)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    return escape(type(value).__qualname__)
