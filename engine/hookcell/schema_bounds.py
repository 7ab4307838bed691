"""The bounds on a JSON Schema that nobody trusts: a module's config schema (SEMANTICS G2).

A linear regex engine is not enough. A hundred definitions, each referring twice to the next, are 8 KB of schema and
2^100 steps for any validator. So a hostile schema has no recursion, and its size is taken with every reference written
out.
"""

from __future__ import annotations

import json
from typing import Final, cast

from hookcell_sandbox.guest_text import escape

from .crossing import bounded, pointer
from .shapes import is_list, is_map

__all__ = [
    "SCHEMA_BYTES",
    "SCHEMA_DEPTH",
    "SCHEMA_PARTS",
    "SCHEMA_PATTERNS",
    "SchemaInvalid",
    "check_bounds",
    "local_target",
]

SCHEMA_BYTES: Final = 16 * 1024
"""The schema as compact JSON (G2)."""

SCHEMA_DEPTH: Final = 64
"""Containers inside one another, with every reference written out."""

SCHEMA_PARTS: Final = 4_000
"""Maps and lists with every reference written out: a check takes at most that many steps for each part of the value."""

SCHEMA_PATTERNS: Final = 50
"""Regular expressions: each may take a MiB compiled, and another to run."""

_DRAFTS: Final = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
    }
)
# Keywords that give a schema another base or target than the pointers that are followed here.
_REBASING: Final = ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef")

# A validator finds out what is unevaluated by validating again, so nesting these doubles the work at each level: twenty
# levels, 1 KB of schema, take a minute. ``additionalProperties`` and ``items`` serve a config.
_DOUBLING: Final = ("unevaluatedProperties", "unevaluatedItems")


class SchemaInvalid(ValueError):
    """The schema is none, or breaks a bound. ``path`` is a JSON Pointer into it."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path = bounded(path)
        self.reason = reason
        super().__init__(f"{path or 'the schema'}: {reason}")


def check_bounds(schema: dict[str, object]) -> None:
    """Check a hostile schema against the bounds above.

    Every map is taken for a schema, also one that stands where data does (``const``, ``default``): so no place that a
    draft gives to a subschema is missed, and the count errs upwards.

    Raises:
        SchemaInvalid: With the first bound that it breaks.
    """
    _Unfolding(schema).measure(schema, "", SCHEMA_DEPTH)  # first: whatever follows may then recurse over the schema
    try:
        size = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise SchemaInvalid("", f"it is no JSON: {escape(str(error))}") from error
    if size > SCHEMA_BYTES:
        raise SchemaInvalid("", f"it has {size:_} bytes (limit {SCHEMA_BYTES:_})")
    draft = schema.get("$schema")
    if draft is not None and not (isinstance(draft, str) and draft.removesuffix("#") in _DRAFTS):
        raise SchemaInvalid("/$schema", "the draft is unknown; use 2020-12, 2019-09, draft-07 or draft-06")


def local_target(root: object, reference: str) -> object:
    """What a local reference, ``#`` or ``#/…``, points to.

    Raises:
        KeyError: Nothing is there, or the reference is not local.
    """
    if not reference.startswith("#") or (len(reference) > 1 and reference[1] != "/") or "%" in reference:
        raise KeyError(reference)
    target = root
    for token in reference[2:].split("/") if len(reference) > 1 else []:
        key = token.replace("~1", "/").replace("~0", "~")
        if is_map(target) and key in target:
            target = target[key]
        elif is_list(target) and key.isascii() and key.isdigit() and len(key) < 6 and int(key) < len(target):
            target = target[int(key)]
        else:
            raise KeyError(reference)
    return target


class _Unfolding:
    """The size of a schema with every reference written out, each part measured once."""

    def __init__(self, root: dict[str, object]) -> None:
        self._root = root
        self._measured: dict[int, tuple[int, int]] = {}
        self._above: set[int] = set()
        self._patterns = 0

    def measure(self, part: object, path: str, room: int) -> tuple[int, int]:
        """Parts and height below and with ``part``; at most ``room`` high, or `SchemaInvalid`."""
        if not (is_map(part) or is_list(part)):
            return 0, 0
        if id(part) in self._above:
            raise SchemaInvalid(path, "it refers to itself; a config schema has no recursion")
        known = self._measured.get(id(part))
        if room <= 0 or (known and known[1] > room):
            raise SchemaInvalid(path, f"it nests more than {SCHEMA_DEPTH} deep with its references written out")
        if known:
            return known
        self._above.add(id(part))
        size, height = 1, 0
        for at, child in self._children(part, path):
            more, below = self.measure(child, at, room - 1)
            size += more
            height = max(height, below)
            if size > SCHEMA_PARTS:
                raise SchemaInvalid(path, f"it has more than {SCHEMA_PARTS:_} parts with its references written out")
        self._above.discard(id(part))
        self._measured[id(part)] = size, height + 1
        return size, height + 1

    def _children(self, part: dict[str, object] | list[object], path: str) -> list[tuple[str, object]]:
        if is_list(part):
            return [(path + pointer(index), child) for index, child in enumerate(part)]
        part = cast("dict[str, object]", part)
        children = [(path + pointer(key), child) for key, child in part.items()]
        for key in _REBASING:
            if isinstance(part.get(key), str):
                raise SchemaInvalid(path + pointer(key), "a config schema stands alone; leave this keyword out")
        for key in _DOUBLING:
            if key in part:
                raise SchemaInvalid(
                    path + pointer(key), "a config schema may not use this; use additionalProperties or items"
                )
        reference = part.get("$ref")
        if isinstance(reference, str):
            try:
                children.append((f"{path}/$ref", local_target(self._root, reference)))
            except KeyError:
                reason = f"'{escape(reference, characters=60)}' is no part of this schema; refer to '#/…' without '%'"
                raise SchemaInvalid(f"{path}/$ref", reason) from None
        self._count_patterns(part, path)
        return children

    def _count_patterns(self, part: dict[str, object], path: str) -> None:
        self._patterns += isinstance(part.get("pattern"), str)
        properties = part.get("patternProperties")
        self._patterns += len(properties) if is_map(properties) else 0
        if self._patterns > SCHEMA_PATTERNS:
            raise SchemaInvalid(path, f"it has more than {SCHEMA_PATTERNS} patterns")
