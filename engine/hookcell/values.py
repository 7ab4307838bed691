"""Copying and comparing the JSON-like values that contexts are made of."""

from __future__ import annotations

from typing import cast

__all__ = ["copied", "same"]


def copied(value: object) -> object:
    """A copy of dicts, lists and tuples at every depth; anything else is shared: it may be any object."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [copied(item) for item in cast("list[object]", value)]
    if isinstance(value, tuple):
        return tuple(copied(item) for item in cast("tuple[object, ...]", value))
    return value


def same(a: object, b: object) -> bool:
    """Whether two values are the same JSON: ``1``, ``1.0`` and ``True`` are equal in Python and three values here."""
    one, other = a, b
    if a is b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        left, right = cast("dict[object, object]", a), cast("dict[object, object]", b)
        return len(left) == len(right) and all(key in right and same(item, right[key]) for key, item in left.items())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        first, second = cast("list[object]", a), cast("list[object]", b)
        return len(first) == len(second) and all(same(x, y) for x, y in zip(first, second, strict=True))
    return type(one) is type(other) and one == other
