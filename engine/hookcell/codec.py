"""Context to msgpack, outcome from msgpack: what crosses to a guest, and what a guest may hand back.

Nothing that a guest's bytes announce is believed before `scan` has walked them, building nothing.

Source: guest_sdk/ABI.md, "Context" and "Outcome".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from hookcell_sandbox.guest_text import escape

from .crossing import CONTEXT_DEPTH, OUTCOME_DEPTH, Encoded, Uncrossable, encode_value, pointer
from .history import History
from .malformed import Malformed
from .packing import pack, unpack

__all__ = [
    "CONTEXT_DEPTH",
    "OUTCOME_DEPTH",
    "OUTCOME_NODES",
    "Encoded",
    "History",
    "Malformed",
    "Uncrossable",
    "decode",
    "encode_context",
    "encode_value",
    "pointer",
    "scan",
]

OUTCOME_NODES: Final = 20_000
"""Items of an outcome, keys included: it bounds what building the outcome costs the host."""

_LENGTH_HINT: Final = "check the length that the hook returns"
_NONE: Final[Mapping[str, object]] = MappingProxyType({})


def encode_context(context: Mapping[str, object], fields: Iterable[str], extra: Mapping[str, object] = _NONE) -> bytes:
    """The msgpack map of the context's ``fields``.

    Args:
        context: All the point has. A value that is a `History` goes in by its kept bytes, as does ``history`` of a map
            (C7).
        fields: Names to hand over; one that the context does not hold is left out, ``point`` always goes.
        extra: More of the hook's own (config, storage); an `Encoded` value is spliced as it is.

    Raises:
        Uncrossable: A value cannot cross; the path names it.
    """
    plain: dict[str, object] = {"point": context["point"]}
    spliced: list[bytes] = []
    count = 0
    for source, names in ((context, fields), (extra, extra)):
        for name in names:
            if name not in source or name == "point":
                continue
            value = source[name]
            if type(value) is History:
                raw = value.encoded(pointer(name))
            elif type(value) is Encoded:
                raw = value
            elif type(value) is dict and type(history := cast("dict[str, object]", value).get("history")) is History:
                raw = _beside_history(cast("dict[str, object]", value), history, pointer(name))
            else:
                plain[name] = value
                continue
            spliced += (pack(name), raw)
            count += 1
    raw = encode_value(plain)
    if not spliced:
        return raw
    return b"".join((_map_header(len(plain) + count), raw[len(_map_header(len(plain))) :], *spliced))


def scan(raw: bytes, *, depth: int = OUTCOME_DEPTH, nodes: int = OUTCOME_NODES) -> None:
    """Check that ``raw`` is one msgpack value of a bounded size, building nothing.

    After it, unpacking allocates in proportion to ``len(raw)`` and ``nodes``, whatever the headers say: the items still
    owed never exceed the bytes left. Keys and UTF-8 are left to `decode`, where C code sees them anyway.

    Args:
        raw: A guest's bytes, at most ``limits.output_bytes``.
        depth: Most containers inside one another.
        nodes: Most items, keys included.

    Raises:
        Malformed: Empty, truncated, too deep, too many, an extension type, a NaN or infinity, a reserved byte, or bytes
            after the end.
    """
    if not raw:
        raise Malformed("", "it is empty", "return 0 for nothing to say, or the bytes of a msgpack map")
    end = len(raw)
    position = 0
    left = nodes - 1
    owed = 1  # items that the innermost open container still lacks
    outer: list[int] = []  # the same of each container around it
    owed_outside = 0  # their sum
    try:
        while True:
            if owed:
                owed -= 1
                head = raw[position]  # an IndexError is the truncation that all checks below may run into
                step = _STEPS[head]
                if step:
                    position += step
                    continue
                if head < 0x90:
                    size = 2 * (head & 0x0F)
                    position += 1
                elif head < 0xA0:
                    size = head & 0x0F
                    position += 1
                elif head >= 0xDC:
                    width = 4 if head & 1 else 2
                    size = _length(raw, position, width) << (head >= 0xDE)
                    position += 1 + width
                else:
                    position = _past_scalar(raw, position)
                    continue
                outer.append(owed)
                owed_outside += owed
                owed = size
                if size + owed_outside > end - position:
                    raise IndexError
                left -= size
                if left < 0:
                    raise Malformed("", f"it holds more than {nodes:_} items", "return less")
                if len(outer) > depth:
                    raise Malformed("", f"it nests more than {depth} deep", "flatten it")
            elif outer:
                owed = outer.pop()
                owed_outside -= owed
            else:
                break
    except IndexError:
        position = end + 1
    if position > end:
        raise Malformed("", f"its {end:_} bytes end before the last value does", _LENGTH_HINT)
    if position < end:
        raise Malformed("", f"{end - position:_} bytes follow its end", _LENGTH_HINT)


def _past_scalar(raw: bytes, position: int) -> int:
    """Where the item after this float, string or byte string starts."""
    head = raw[position]
    if head in _WIDTHS:
        width = _WIDTHS[head]
        return position + 1 + width + _length(raw, position, width)
    if head in (_FLOAT32, _FLOAT64):
        # All exponent bits set: 8 of a single, 11 of a double.
        if raw[position + 1] & 0x7F == 0x7F and raw[position + 2] >= (0x80 if head == _FLOAT32 else 0xF0):
            raise Malformed("", f"it holds a NaN or an infinity at byte {position}", "return null or a string")
        return position + (5 if head == _FLOAT32 else 9)
    if head == 0xC1:
        raise Malformed("", f"byte {position} is 0xc1, which msgpack never uses", _LENGTH_HINT)
    raise Malformed("", f"it holds an extension type at byte {position}", "return JSON values and bytes only")


def _length(raw: bytes, position: int, width: int) -> int:
    """The big-endian length behind the head at ``position``."""
    if position + width >= len(raw):
        raise IndexError
    return int.from_bytes(raw[position + 1 : position + 1 + width])


def _needs_no_scan(raw: bytes) -> bool:
    """Whether nothing that `scan` refuses, truncation aside, can be in ``raw``, told by its bytes alone at C speed.

    That is so of most outcomes. It holds for every way to read the bytes: at most 64 of them can open a container, so
    it nests no deeper and msgpack sets aside 64 times its length at most; none can begin an extension; and where one
    can begin a float, what follows is no infinity and no NaN.
    """
    if len(raw) > _SHORT_BYTES:
        return False
    heads = raw.translate(None, _HARMLESS)
    if len(heads) > OUTCOME_DEPTH or not _REFUSED_HEADS.isdisjoint(heads):
        return False
    for head, least in ((_FLOAT64, 0xF0), (_FLOAT32, 0x80)):
        if head in heads:
            at = raw.find(head)
            while at >= 0:
                if raw[at + 1 : at + 2] in _FULL_EXPONENT and raw[at + 2 : at + 3] >= bytes((least,)):
                    return False
                at = raw.find(head, at + 1)
    return True


def decode(raw: bytes) -> dict[str, object]:
    """An outcome's bytes as a map with string keys.

    Raises:
        Malformed: `scan` refuses it, it is no map, a key is no string or stands twice in its map, or text is not UTF-8.
    """
    if _needs_no_scan(raw):
        try:
            found = unpack(raw, object_pairs_hook=_unique)
        except (ValueError, TypeError):
            pass  # whatever is wrong, the scan and the second try below say it in our words
        else:
            if type(found) is dict:
                return found
    scan(raw)
    if not (0x80 <= raw[0] <= 0x8F or raw[0] in (0xDE, 0xDF)):
        raise Malformed("", "it is no map", 'return a map such as {"deny": "reason"}')
    try:
        return unpack(raw, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise Malformed("", "it holds text that is not UTF-8", "a lone surrogate has no UTF-8; replace it") from error
    except (ValueError, TypeError) as error:
        if isinstance(error, Malformed):
            raise
        # What is left for msgpack to refuse after the scan: a key that is a number, a container or nothing.
        reason = f"a map has a key that is no string: {escape(str(error))}"
        raise Malformed("", reason, "make every key a string") from error


def _unique(pairs: list[tuple[Any, object]]) -> dict[str, object]:
    """A map of these pairs, or `Malformed` where a key stands twice or is bytes."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[object] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise Malformed("", f"a map has the key '{escape(twice)}' twice", "write each key once")
    "".join(found)  # a TypeError for bytes, the one other kind of key that msgpack lets pass
    return found


def _map_header(count: int) -> bytes:
    if count < 16:
        return bytes((0x80 | count,))
    return b"\xde" + count.to_bytes(2) if count < 2**16 else b"\xdf" + count.to_bytes(4)


def _beside_history(state: Mapping[str, object], history: History, path: str) -> bytes:
    """The map ``state`` with the conversation's kept bytes under ``history``."""
    rest = {key: value for key, value in state.items() if key != "history"}
    raw = encode_value(rest, path, enclosing=1)
    kept = history.encoded(f"{path}/history")
    return b"".join((_map_header(len(state)), raw[len(_map_header(len(rest))) :], pack("history"), kept))


_SHORT_BYTES: Final = 2_048
_FLOAT32: Final = 0xCA
_FLOAT64: Final = 0xCB
_FULL_EXPONENT: Final = (b"\x7f", b"\xff")
_REFUSED_HEADS: Final = frozenset((0xC1, 0xC7, 0xC8, 0xC9, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8))
"""The unused head, and those of extensions."""
_HARMLESS: Final = bytes(
    set(range(256)) - set(range(0x80, 0xA0)) - set(range(0xDC, 0xE0)) - _REFUSED_HEADS - {_FLOAT32, _FLOAT64}
)
"""Bytes that open no container, extension or float, however they are read."""
_WIDTHS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes of the length behind the head of a byte string or a string."""


def _steps() -> bytes:
    """Bytes of each head with its item, where the head alone says so and nothing inside needs a look; else 0."""
    steps = bytearray(256)
    steps[0x00:0x80] = b"\1" * 0x80
    steps[0xE0:] = b"\1" * 0x20
    steps[0xA0:0xC0] = bytes(range(1, 0x21))
    steps[0xC0] = steps[0xC2] = steps[0xC3] = 1
    for head, width in {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}.items():
        steps[head] = 1 + width
    return bytes(steps)


_STEPS: Final = _steps()
