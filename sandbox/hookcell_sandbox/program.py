"""An admitted, compiled module: what the sandbox calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .guest_text import EMPTY_LOG, GuestLog

if TYPE_CHECKING:
    from .admission import ModuleReport

__all__ = ["Completion", "Program"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """An admitted, compiled module. Made by `Sandbox.load`; holds its compiled code alive.

    Attributes:
        digest: sha256 of the module, hex.
        entry_points: Names of the entry points it exports.
        manifest: Bytes of the manifest section, unread here; None without one.
        report: What admission found.
        compiled: The sandbox's own handle; a `Program` runs only in the sandbox that loaded it.
    """

    digest: str
    entry_points: frozenset[str]
    manifest: bytes | None
    report: ModuleReport = field(repr=False)
    compiled: object = field(repr=False)


class Completion(NamedTuple):
    """What one call gave back. A named tuple, since a frozen dataclass takes four times as long to make.

    Attributes:
        output: The guest's output, at most ``limits.output_bytes``; None when it returned 0, which means nothing.
        log: What it logged.
        fuel_used: Fuel of ``_initialize`` and the entry point. ``hook_alloc`` has a budget of its own.
        elapsed_us: Wall clock of the call, microseconds.
    """

    output: bytes | None
    log: GuestLog = EMPTY_LOG
    fuel_used: int = 0
    elapsed_us: float = 0.0
