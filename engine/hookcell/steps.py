"""What a chain asks its driver for, and what it notes on the way. The chain itself never waits (see `chain`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from hookcell_sandbox.guest_text import EMPTY_LOG, GuestLog

if TYPE_CHECKING:
    from hookcell_sandbox.limits import Limits
    from hookcell_sandbox.program import Program

    from .hook import GuestSandbox
    from .trace import Moment

__all__ = ["Draft", "GuestCall", "HostCall", "Request"]


class GuestCall(NamedTuple):
    """Asks the chain's driver to run a guest."""

    sandbox: GuestSandbox
    program: Program
    entry: str
    payload: bytes
    limits: Limits


class HostCall(NamedTuple):
    """Asks the chain's driver to call the host's own code, which may be ``async``."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


Request = GuestCall | HostCall


class Draft:
    """What is known so far for a hook's trace entry."""

    __slots__ = ("attempts", "bytes_in", "bytes_out", "fuel_used", "log", "moment", "notes")

    def __init__(self) -> None:
        self.attempts = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.fuel_used = 0
        self.log: GuestLog = EMPTY_LOG
        self.moment: Moment | None = None
        self.notes: list[str] = []
