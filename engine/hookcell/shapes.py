"""JSON's two containers, as a type checker sees them once a value was found to be one."""

from __future__ import annotations

from typing import TypeGuard, cast

__all__ = ["is_list", "is_map", "is_object"]


def is_map(value: object) -> TypeGuard[dict[str, object]]:
    """Whether it is a dict. Its keys are strings wherever `codec.decode` made it."""
    return isinstance(value, dict)


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether it is a dict and all its keys are strings, whoever made it."""
    return isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[object, object]", value))


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether it is a list."""
    return isinstance(value, list)
