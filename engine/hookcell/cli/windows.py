"""A long value as one line that fits: cut to the part that differs from another, with a mark where it was cut."""

from __future__ import annotations

from typing import Final

from hookcell_sandbox.guest_text import escape

from .terminal import clipped

__all__ = ["first_difference", "start_of_window", "window"]

_LEAD: Final = 16
"""Characters kept before the first difference, to see where it is."""

_DIFFERENCE: Final = 24
"""Characters of what differs that are worth seeing."""


def first_difference(before: str, after: str) -> int:
    """The index of the first character that differs, or the shorter text's length."""
    return next(
        (index for index, (one, other) in enumerate(zip(before, after, strict=False)) if one != other),
        min(len(before), len(after)),
    )


def start_of_window(before: str, after: str, room: int) -> int:
    """Where `window` should begin for the difference to show; 0 where it shows with the beginning in view."""
    same = first_difference(before, after)
    return same if same > room - _DIFFERENCE else 0


def window(text: str, skip: int, room: int) -> str:
    """As much of the text as fits ``room`` columns, from a little before ``skip``, escaped."""
    start = max(skip - _LEAD, 0)
    lead = "…" if start else ""
    shown = escape(text[start : start + room + 1], characters=room + 1)
    return clipped(lead + shown, room)
