"""What differs between two JSON values: place by place, as lines for a person or records for a machine."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hookcell.crossing import pointer
from hookcell.outcomes import ABSENT
from hookcell.shapes import is_list, is_map
from hookcell.values import same
from hookcell_sandbox.guest_text import escape

from .windows import start_of_window, window

if TYPE_CHECKING:
    from .terminal import Terminal

__all__ = ["Change", "as_json", "changes", "diff_lines", "json_text"]

_PATH_CHARACTERS = 400


class Change(NamedTuple):
    """One place that differs.

    Attributes:
        path: JSON Pointer; an index counts in the list that has the item.
        before: The value before; `ABSENT` where it was added.
        after: The value after; `ABSENT` where it was removed.
    """

    path: str
    before: object
    after: object

    def record(self) -> dict[str, object]:
        """The change as JSON."""
        record: dict[str, object] = {"path": self.path}
        if self.before is not ABSENT:
            record["before"] = as_json(self.before)
        if self.after is not ABSENT:
            record["after"] = as_json(self.after)
        return record


def changes(before: object, after: object, path: str = "") -> Iterator[Change]:
    """The smallest places that differ, in the order of ``before``.

    Of two lists, what is the same at both ends is left out, and the rest is compared item by item.
    """
    if same(before, after):
        return
    if is_map(before) and is_map(after):
        for key in (*before, *(key for key in after if key not in before)):
            yield from changes(before.get(key, ABSENT), after.get(key, ABSENT), path + pointer(key))
    elif is_list(before) and is_list(after):
        yield from _items(before, after, path)
    else:
        yield Change(path, before, after)


def _items(before: Sequence[object], after: Sequence[object], path: str) -> Iterator[Change]:
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and same(before[head], after[head]):
        head += 1
    tail = 0
    while tail < shorter - head and same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    for index in range(head, max(len(before), len(after)) - tail):
        one = before[index] if index < len(before) - tail else ABSENT
        other = after[index] if index < len(after) - tail else ABSENT
        yield from changes(one, other, f"{path}/{index}")


def diff_lines(found: Sequence[Change], terminal: Terminal) -> list[str]:
    """Each change with what was and what is, escaped and cut to the terminal's width."""
    room = max(terminal.columns - 8, 30)
    lines: list[str] = []
    for change in found:
        was = None if change.before is ABSENT else json_text(change.before)
        now = None if change.after is ABSENT else json_text(change.after)
        skip = start_of_window(was, now, room) if was is not None and now is not None else 0
        lines.append(f"  {escape(change.path, characters=_PATH_CHARACTERS) or '(all of it)'}")
        if was is not None:
            lines.append(terminal.paint(f"    - {window(was, skip, room)}", "red"))
        if now is not None:
            lines.append(terminal.paint(f"    + {window(now, skip, room)}", "green"))
    return lines


def json_text(value: object) -> str:
    """The value as JSON on one line. Guest text: escape before showing."""
    return json.dumps(as_json(value), ensure_ascii=False)


def as_json(value: object) -> object:
    """The value with bytes, which msgpack has and JSON has not, as ``{"$bytes": base64}``."""
    if is_map(value):
        return {key: as_json(item) for key, item in value.items()}
    if is_list(value):
        return [as_json(item) for item in value]
    return {"$bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
