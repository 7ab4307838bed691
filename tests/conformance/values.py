"""Values that an encoder, or a language's own types, may get wrong: each with a name."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["FLOATS", "KEYS", "LISTS", "PLAIN", "TEXTS", "WHOLE", "nested"]

Named = tuple[str, Any]


def nested(deep: int) -> list[Any]:
    """Lists inside one another, ``deep`` of them."""
    value: list[Any] = []
    for _ in range(deep - 1):
        value = [value]
    return value


PLAIN: Final[list[Named]] = [
    ("null", None), ("true", True), ("false", False), ("no bytes", b""), ("bytes", bytes(range(256))),
    ("no text", ""), ("no list", []), ("no map", {}),
    ("all kinds", {"a": [None, True, -1, 0.5, "t", b"\0", [], {}], "b": {"c": None}}),
]  # fmt: skip

TEXTS: Final[list[Named]] = [
    ("ASCII", "text"),
    ("astral text", "😀 𝒳 👩\u200d👩\u200d👧"),
    ("composed text", "\u00e9"),
    ("decomposed text", "e\u0301 \u1100\u1161\u11a8"),
    ("NUL", "a\0b\0"),
    ("controls", "\x01\x1b[2J\r\n\t\x7f\u0085\u2028\u2029"),
    ("the ends of Unicode", "\ud7ff\ue000\ufffd\uffff\U00010000\U0010ffff"),
    ("right to left", "\u202eabc\u202c שלום"),
    ("a byte order mark", "\ufeffa"),
    *((f"{length} letters", "x" * length) for length in (31, 32, 255, 256, 65_535, 65_536)),
    *((f"{length} astral letters", "😀" * length) for length in (7, 8, 63, 64)),
]

WHOLE: Final[list[Named]] = [
    (f"{number:_}", number)
    for bits in (5, 7, 8, 15, 16, 31, 32, 53, 63)
    for number in (2**bits - 1, 2**bits, 2**bits + 1, -(2**bits) + 1, -(2**bits), -(2**bits) - 1)
    if number >= -(2**63)
] + [("0", 0), (f"{2**64 - 1:_}", 2**64 - 1)]

FLOATS: Final[list[Named]] = [
    (repr(number), number)
    for number in (0.1, -0.5, 1.0, 1e21, 1e308, 5e-324, 1.7976931348623157e308, 2.0**53 + 2, 2.0**70, 3.4e38, 0.0)
]

KEYS: Final[list[Named]] = [
    ("odd keys", {
        key: n for n, key in enumerate((
            "", " ", "0", "01", "-1", "__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "length",
            "toJSON", "valueOf", "a/b", "~", "~0", "~1", "\0", "é", "e\u0301", "😀", "x" * 300,
        ))
    }),
    ("a map under __proto__", {"__proto__": {"deny": "no"}, "constructor": {"prototype": {}}}),
    *((f"{size} keys", {f"k{n}": n for n in range(size)}) for size in (15, 16, 1_000)),
]  # fmt: skip

LISTS: Final[list[Named]] = [
    *((f"{size} bytes", b"\xff" * size) for size in (255, 256, 65_535, 65_536)),
    *((f"{size} items", list(range(size))) for size in (15, 16, 10_000)),
    ("nulls", [None, None]),
    ("a table", [{"n": n, "text": f"row {n} 😀", "more": [n, None]} for n in range(50)]),
]
