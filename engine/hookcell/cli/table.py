"""A table of text: columns aligned by what a terminal shows, fitted to its width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from .terminal import clipped, columns_of, padded

__all__ = ["Column", "table"]

_GAPS: Final = (2, 1)
"""Columns between columns: the usual, and where there is no room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column.

    Attributes:
        head: What stands over it.
        group: What stands over it and its neighbours of the same group, on a line of its own.
        right: Whether it is aligned right.
        least: The width it may shrink to; None: it keeps its own, since a figure that is cut says something else.
    """

    head: str
    group: str = ""
    right: bool = True
    least: int | None = None


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int) -> list[str]:
    """The heads, one line or two, and the rows, without trailing spaces.

    Args:
        columns: At least one.
        rows: One printable text for each column.
        width: Columns of the terminal. Where the table is too wide the gaps shrink, then the columns that may, the
            first of them first; what then is still too wide stays so.
    """
    heads = [column.head for column in columns]
    sizes = [max(columns_of(row[index]) for row in (heads, *rows)) for index in range(len(columns))]
    gap = next((gap for gap in _GAPS if _width(sizes, gap) <= width), _GAPS[-1])
    excess = _width(sizes, gap) - width
    for index, column in enumerate(columns):
        if excess > 0 and column.least is not None:
            taken = min(excess, max(sizes[index] - column.least, 0))
            sizes[index] -= taken
            excess -= taken
    over = [_groups(columns, sizes, gap)] if any(column.group for column in columns) else []
    return [*over, *(_line(columns, sizes, row, gap) for row in (heads, *rows))]


def _width(sizes: Sequence[int], gap: int) -> int:
    return sum(sizes) + gap * (len(sizes) - 1)


def _groups(columns: Sequence[Column], sizes: Sequence[int], gap: int) -> str:
    cells: list[str] = []
    for group, members in groupby(range(len(columns)), key=lambda index: columns[index].group):
        width = _width([sizes[index] for index in members], gap)
        label = clipped(group, width)
        # In the middle over its columns.
        cells.append(padded(padded(label, (width + columns_of(label) + 1) // 2, right=True), width))
    return (" " * gap).join(cells).rstrip()


def _line(columns: Sequence[Column], sizes: Sequence[int], row: Sequence[str], gap: int) -> str:
    cells = [
        padded(clipped(text, size), size, right=column.right)
        for column, size, text in zip(columns, sizes, row, strict=True)
    ]
    return (" " * gap).join(cells).rstrip()
