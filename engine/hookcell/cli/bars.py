"""How much of a limit was used: figures with their units, and a bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from hookcell_sandbox.limits import KIB, MIB

if TYPE_CHECKING:
    from .terminal import Terminal

__all__ = ["Unit", "amount", "bar", "cells"]

Unit = Literal["", "B", "ms"]

_CELLS: Final = 10


def bar(value: float, limit: float, terminal: Terminal) -> str:
    """The share as ten cells, red over the limit. Colours have no width: it must stand last on its line."""
    drawn = cells(value, limit, terminal)
    return terminal.paint(drawn, "red") if value > limit else drawn


def cells(value: float, limit: float, terminal: Terminal) -> str:
    """The share as ten cells, without colour."""
    full, empty = ("█", "·") if terminal.unicode else ("#", ".")
    share = value / limit if limit else float(value > 0)
    # Something is never nothing, and over the limit is never just full.
    count = min(max(round(share * _CELLS), 1 if value else 0), _CELLS)
    return full * count + empty * (_CELLS - count)


def amount(value: float, unit: Unit) -> str:
    """A figure with its unit; bytes in KiB or MiB where that is shorter."""
    if unit == "ms":
        return f"{value:,.2f} ms" if value < 10 and value != int(value) else f"{value:,.0f} ms"
    if unit == "" or value < KIB:
        return f"{value:,.0f}{' B' if unit else ''}"
    name, size = ("MiB", MIB) if value >= MIB else ("KiB", KIB)
    return f"{value / size:,.0f} {name}" if value % size == 0 else f"{value / size:,.1f} {name}"
