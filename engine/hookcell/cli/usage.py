"""What one call used of the limits of a production call, and which of them would have refused it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from .bars import Unit, amount, cells
from .table import Column, table

if TYPE_CHECKING:
    from hookcell_sandbox.limits import Limits

    from .one_call import Called
    from .terminal import Terminal

__all__ = ["Used", "loosened", "usage", "usage_lines"]

_TIMES: Final = 10
_LOG_TIMES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """One limit.

    Attributes:
        name: Camel case.
        value: What the call used.
        limit: What production allows.
        unit: Of both.
    """

    name: str
    value: float
    limit: int
    unit: Unit = ""

    @property
    def refused(self) -> bool:
        """Whether production would end the call; a log is cut and ends nothing."""
        return self.value > self.limit and self.name != "logBytes"

    def record(self) -> dict[str, object]:
        """It as JSON."""
        return {"value": self.value, "limit": self.limit, "refused": self.refused}


def loosened(limits: Limits) -> Limits:
    """Limits under which a call that production refuses may end, so that its author sees by how much."""
    most = limits.memory_bytes  # what a guest holds, it holds in its memory
    return replace(
        limits,
        fuel=min(limits.fuel * _TIMES, 2**53),
        fuel_per_kib=min(limits.fuel_per_kib * _TIMES, 2**53),
        deadline_ms=min(limits.deadline_ms * _TIMES, 2**53),
        input_bytes=max(limits.input_bytes, most),
        output_bytes=max(limits.output_bytes, most),
        log_bytes=max(limits.log_bytes, min(limits.log_bytes * _LOG_TIMES, most)),
    )


def usage(called: Called, limits: Limits) -> list[Used]:
    """What the call used of ``limits``, those of production. Memory is bounded and not measured."""
    size = len(called.payload or b"")
    return [
        Used(name="fuel", value=called.fuel_used, limit=limits.fuel_for(size)),
        Used(name="elapsedMs", value=round(called.elapsed_us / 1000, 3), limit=limits.deadline_ms, unit="ms"),
        Used(name="inputBytes", value=size, limit=limits.input_bytes, unit="B"),
        Used(name="outputBytes", value=called.output_bytes, limit=limits.output_bytes, unit="B"),
        Used(name="logBytes", value=len(called.log.raw), limit=limits.log_bytes, unit="B"),
    ]


_WORDS: Final = {
    "fuel": "fuel",
    "elapsedMs": "time",
    "inputBytes": "input",
    "outputBytes": "output",
    "logBytes": "log",
}


def usage_lines(used: list[Used], terminal: Terminal) -> list[str]:
    """A row for each limit with a bar, and a word on what production would do."""
    columns = [
        Column(head="", right=False),
        Column(head="used"),
        Column(head="limit"),
        Column(head="", right=False),
        Column(head="", right=False),
    ]
    rows: list[list[str]] = []
    for each in used:
        over = "refused" if each.refused else "cut" if each.value > each.limit else ""
        figures = [amount(each.value, each.unit), amount(each.limit, each.unit)]
        rows.append([_WORDS[each.name], *figures, cells(each.value, each.limit, terminal), over])
    lines = table(columns, rows, width=terminal.columns - 2)
    shown = [f"  {lines[0]}"]
    for line, each in zip(lines[1:], used, strict=True):
        shown.append(f"  {terminal.paint(line, 'red')}" if each.value > each.limit else f"  {line}")
    return [*shown, "  memory  bounded, not measured"]
