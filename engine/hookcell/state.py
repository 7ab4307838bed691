"""The run's state as host hooks see it, and how new contents get into a live dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

__all__ = ["HookState", "adopt", "splice"]


class HookState:
    """The run's state as a host hook sees it (C7): ``history`` is the conversation itself, any other key is free."""

    __slots__ = ("_fields",)
    _fields: dict[str, Any]

    def __init__(self, fields: dict[str, Any]) -> None:
        object.__setattr__(self, "_fields", fields)

    def set(self, key: str, value: object) -> None:
        """Store ``value``; for ``history``, the conversation's messages become those of ``value``."""
        live = self._fields.get(key)
        if key == "history" and isinstance(live, list):
            live[:] = cast("list[object]", value)
        else:
            self._fields[key] = value

    def append(self, key: str, value: object) -> None:
        """Add ``value`` to the list at ``key``, which is made when absent."""
        self._fields.setdefault(key, []).append(value)

    def get(self, key: str, default: Any = None) -> Any:
        """The value at ``key``, or ``default``."""
        return self._fields.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __reduce__(self) -> tuple[type[HookState], tuple[dict[str, Any]]]:
        # Copies and pickles are made by this: the default asks a half-made state for its fields, without end.
        return HookState, (dict(self._fields),)

    def __getitem__(self, key: str) -> Any:
        return self._fields[key]

    def __setitem__(self, key: str, value: object) -> None:
        self.set(key, value)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"the state has no {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        self.set(name, value)


def adopt(live: dict[str, object], new: Mapping[str, object]) -> None:
    """Give ``live`` the contents of ``new``. A list under ``history`` stays the same list, with new messages (C7)."""
    history = live.get("history")
    contents = dict(new)
    if isinstance(history, list) and isinstance(contents.get("history"), list):
        messages = cast("list[object]", contents["history"])
        splice(cast("list[object]", history), messages)
        contents["history"] = cast("object", history)
    live.clear()
    live.update(contents)


def splice(live: list[Any], new: Sequence[Any]) -> None:
    """Make ``live`` hold ``new``, touching only the stretch that differs: a `History` keeps the bytes of the rest."""
    if live is new:
        return
    start, most = 0, min(len(live), len(new))
    while start < most and live[start] is new[start]:
        start += 1
    end = 0
    while end < most - start and live[-1 - end] is new[-1 - end]:
        end += 1
    live[start : len(live) - end] = new[start : len(new) - end]
