"""What can go wrong, by whose fault it is.

```
HookcellError
├─ SandboxError
│  ├─ ModuleRejected        the module's: at admission or compilation, with every finding
│  ├─ GuestError            the guest's at run time: entry, digest, limits, fuel used, log so far
│  │  ├─ FuelExhausted · DeadlineExceeded · MemoryExceeded · OutputTooLarge
│  │  ├─ GuestTrap(code, backtrace)
│  │  └─ ProtocolViolation  a pointer or length that is not the ABI's
│  ├─ InputTooLarge         the host's: the payload is over the limit
│  ├─ SandboxBusy           no slot within the wait, or the compile queue is full
│  ├─ SandboxUnusable       the host's: closed, inherited over a fork, or an unfit wasmtime
│  └─ WorkerLost            the second wall: the worker died
└─ HookFailure              the engine's branch: see hookcell.errors
```

Branch on the class and on ``code``, never on the text. A name or a message that a guest chose is escaped and
bounded before it gets here (`hookcell_sandbox.guest_text`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .guest_text import GuestLog
    from .limits import Limits

__all__ = [
    "DeadlineExceeded",
    "Finding",
    "FuelExhausted",
    "GuestError",
    "GuestTrap",
    "HookcellError",
    "InputTooLarge",
    "MemoryExceeded",
    "ModuleRejected",
    "OutputTooLarge",
    "ProtocolViolation",
    "SandboxBusy",
    "SandboxError",
    "SandboxUnusable",
    "WorkerLost",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason to refuse a module.

    Attributes:
        code: Stable identifier, e.g. ``import`` or ``too_many_functions``.
        what: What was found, in words; guest-chosen names are escaped and bounded.
        value: The offending value (a count, a size in bytes, an escaped name), if there is one.
        limit: The bound it broke, in the same unit, if there is one.
        hint: What the author can do about it.
    """

    code: str
    what: str
    value: int | str | None = None
    limit: int | str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        against = "" if self.limit is None else f" (limit {_figure(self.limit)})"
        value = "" if self.value is None else f": {_figure(self.value)}"
        hint = "" if self.hint is None else f" - {self.hint}"
        return f"[{self.code}] {self.what}{value}{against}{hint}"


class HookcellError(Exception):
    """Root of every error that hookcell raises on purpose."""

    code: ClassVar[str] = "error"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, and most here are made of keyword arguments.
        return _restored, (type(self), self.args), self.__dict__


class SandboxError(HookcellError):
    """The sandbox could not turn the payload into an output."""

    code = "sandbox"


class ModuleRejected(SandboxError):
    """The module is not admitted; ``findings`` holds every reason, never only the first."""

    code = "module_rejected"

    def __init__(self, findings: Sequence[Finding], *, digest: str | None = None) -> None:
        self.findings = tuple(findings)
        self.digest = digest
        name = f"module {digest[:12]}" if digest else "module"
        count = len(self.findings)
        reasons = "; ".join(str(finding) for finding in self.findings[:20])
        more = f"; and {count - 20} more" if count > 20 else ""
        super().__init__(f"{name} refused for {count} reason{'s' if count != 1 else ''}: {reasons}{more}")


class GuestError(SandboxError):
    """The guest failed at run time.

    Attributes:
        entry: Export that was running.
        digest: sha256 of the module, hex.
        limits: Limits that were in force.
        fuel_used: Fuel billed to the call; the whole budget after a trap, since a hardware trap hides the true figure.
        log: What the guest logged until it failed.
    """

    code = "guest"

    def __init__(self, message: str, *, entry: str, digest: str, limits: Limits, fuel_used: int, log: GuestLog) -> None:
        self.entry = entry
        self.digest = digest
        self.limits = limits
        self.fuel_used = fuel_used
        self.log = log
        super().__init__(message)


class FuelExhausted(GuestError):
    """The guest used all of its fuel."""

    code = "fuel"


class DeadlineExceeded(GuestError):
    """The guest was still running at its wall-clock deadline."""

    code = "deadline"


class MemoryExceeded(GuestError):
    """The guest failed with its linear memory at the limit, or declares more memory or table than the call may have."""

    code = "memory"


class OutputTooLarge(GuestError):
    """The guest returned more bytes than the host will copy."""

    code = "output"


class GuestTrap(GuestError):
    """The guest trapped.

    Attributes:
        trap: Which trap, e.g. ``unreachable`` or ``integer_divide_by_zero``.
        backtrace: Innermost frame first; function names are guest text, escaped and bounded.
    """

    code = "trap"

    def __init__(
        self,
        message: str,
        *,
        entry: str,
        digest: str,
        limits: Limits,
        fuel_used: int,
        log: GuestLog,
        trap: str,
        backtrace: tuple[str, ...] = (),
    ) -> None:
        self.trap = trap
        self.backtrace = backtrace
        super().__init__(message, entry=entry, digest=digest, limits=limits, fuel_used=fuel_used, log=log)


class ProtocolViolation(GuestError):
    """The guest handed over a pointer or a length that the ABI does not allow."""

    code = "protocol"


class InputTooLarge(SandboxError):
    """The host offered a payload over ``limits.input_bytes``; nothing ran."""

    code = "input"

    def __init__(self, message: str, *, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(message)


class SandboxBusy(SandboxError):
    """No slot came free within the wait; nothing ran. Carry on without, or refuse: never queue without end."""

    code = "busy"


class SandboxUnusable(SandboxError):
    """The sandbox cannot run anything: closed, inherited over a fork, or the wasmtime library does not fit."""

    code = "unusable"


class WorkerLost(SandboxError):
    """The worker process that ran the guest died; the next call gets a new one."""

    code = "worker"


def _restored(kind: type[HookcellError], arguments: tuple[object, ...]) -> HookcellError:
    """An error of that kind with nothing but its message; `copy` and `pickle` fill in the rest."""
    return kind.__new__(kind, *arguments)


def _figure(value: int | str) -> str:
    return f"{value:_}" if isinstance(value, int) else value
