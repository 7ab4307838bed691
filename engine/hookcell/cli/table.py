"""A table of text: columns aligned by what a terminal shows, fitted to its width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .terminal import clipped, columns_of, padded

__all__ = ["Column", "table"]

_GAP = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its head, whether it is aligned right, and the least width it may shrink to (None: its own)."""

    head: str
    right: bool = True
    least: int | None = None


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int) -> list[str]:
    """The head and the rows as lines without trailing spaces.

    Args:
        columns: At least one.
        rows: One printable text for each column.
        width: Columns of the terminal. Columns that may shrink do, the first of them first; what then is still too
            wide stays so, since a figure that is cut says something else.
    """
    heads = [column.head for column in columns]
    sizes = [max(columns_of(row[index]) for row in (heads, *rows)) for index in range(len(columns))]
    excess = sum(sizes) + len(_GAP) * (len(sizes) - 1) - width
    for index, column in enumerate(columns):
        if excess > 0 and column.least is not None:
            taken = min(excess, max(sizes[index] - column.least, 0))
            sizes[index] -= taken
            excess -= taken
    return [_line(columns, sizes, row) for row in (heads, *rows)]


def _line(columns: Sequence[Column], sizes: Sequence[int], row: Sequence[str]) -> str:
    cells = [
        padded(clipped(text, size), size, right=column.right)
        for column, size, text in zip(columns, sizes, row, strict=True)
    ]
    return _GAP.join(cells).rstrip()
