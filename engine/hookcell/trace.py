"""What a chain of hooks came to, and what each of them did."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from hookcell_sandbox.guest_text import EMPTY_LOG, GuestLog

from .outcomes import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .errors import HookFailure

__all__ = ["ArgumentsMismatch", "Decision", "DecisionKind", "HookKind", "Moment", "OutcomeKind", "TraceEntry"]

HookKind = Literal["host", "guest"]
OutcomeKind = Literal["nothing", "changed", "deny", "result", "input", "replace", "mismatch", "failed"]
"""What one hook came to. ``changed`` is a patch, a mutation or a note without a deciding key; ``mismatch`` is P6's."""
DecisionKind = Literal["proceed", "denied", "replaced", "validation", "hook_failed"]


_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The time and the randomness that hooks of one chain run were given (G1). Recorded, so that it can be replayed.

    Attributes:
        now: Milliseconds since the epoch.
        seed: A random whole number from 0 to 2^53 - 1.
    """

    now: int
    seed: int

    @classmethod
    def of_now(cls) -> Self:
        """This moment, with a fresh seed."""
        return cls(now=time.time_ns() // 1_000_000, seed=secrets.randbits(53))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsMismatch:
    """Arguments that a hook made and that do not fit the tool's schema (P6).

    Attributes:
        hook: The hook that made them.
        path: JSON Pointer into the arguments.
        reason: What does not fit, short.
    """

    hook: str
    path: str
    reason: str


class TraceEntry(NamedTuple):
    """What one hook did in one chain run. A named tuple, since a frozen dataclass takes four times as long to make.

    Attributes:
        hook: Its name.
        point: The hook point.
        kind: Host or guest.
        digest: sha256 of the guest's module, hex; None for a host hook.
        outcome: What it came to.
        elapsed_us: Wall clock of its calls, microseconds, waiting for a slot included.
        fuel_used: Of all attempts; 0 for a host hook.
        bytes_in: Payload of the last attempt.
        bytes_out: Output of the last attempt.
        attempts: How often it ran: more than 1 after storage conflicts (G3).
        wrote: JSON Pointers into the context of what it changed (provenance).
        failure: Code of its failure, or None.
        notes: What the rules made of it, e.g. that a replacement was ignored (P9).
        moment: The time and seed that it asked for and got; None if it did not ask.
        log: What it logged: guest text with the secrecy of the context, so it stays out of `record`.
    """

    hook: str
    point: str
    kind: HookKind
    digest: str | None
    outcome: OutcomeKind
    elapsed_us: float
    fuel_used: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    attempts: int = 1
    wrote: tuple[str, ...] = ()
    failure: str | None = None
    notes: tuple[str, ...] = ()
    moment: Moment | None = None
    log: GuestLog = EMPTY_LOG

    def __repr__(self) -> str:
        """Without the log, so that an entry in an error report shows none of it."""
        fields = zip(self._fields, self, strict=True)
        return f"TraceEntry({', '.join(f'{name}={value!r}' for name, value in fields if name != 'log')})"

    def record(self) -> dict[str, object]:
        """The entry as JSON, camelCase, without the log."""
        return {
            "hook": self.hook,
            "point": self.point,
            "kind": self.kind,
            "digest": self.digest,
            "outcome": self.outcome,
            "elapsedUs": round(self.elapsed_us, 1),
            "fuelUsed": self.fuel_used,
            "bytesIn": self.bytes_in,
            "bytesOut": self.bytes_out,
            "attempts": self.attempts,
            "wrote": list(self.wrote),
            "failure": self.failure,
            "notes": list(self.notes),
            "now": self.moment.now if self.moment else None,
            "seed": self.moment.seed if self.moment else None,
        }


class Decision(NamedTuple):
    """What the hooks of one point came to, in their order. A named tuple for the same reason.

    Attributes:
        point: The hook point.
        kind: ``proceed``; or ``denied``, ``replaced``, ``validation`` (P6), ``hook_failed`` (P11's policy ``deny``).
        hook: The hook that decided it, unless ``proceed``.
        reason: The deny's reason, guest text for the model; may be empty (P4).
        value: The value that a hook put in place: a pre-hook's result (P5), the last post-hook's result (P9), an
            agent-class replacement (C1). `ABSENT` when none did; ``None`` is a value.
        args: The arguments as they stand after the chain; `ABSENT` where the context has none.
        rewritten_by: Hooks that changed the arguments, in order.
        mismatch: Under ``validation``, what does not fit.
        failures: Failures that a policy turned into ``hook_failed`` or a skip, in order; ``raise`` raises them.
        fields: Context fields that hooks changed, with their final values. ``messages``, ``metadata``, ``request`` and
            ``state`` are the run's own and go on changing with it: serialise what is to be kept.
        appended: Messages added at a tool point. They stand after the results of that batch of calls (P2), so they
            are not in the history yet.
        events: Events for the stream (P13).
        meta: Notes for the turn's result, merged shallowly in order (C7).
        trace: One entry for each hook that was called.
        moment: The time and seed that were handed out, or None if nobody asked (G1).
    """

    point: str
    kind: DecisionKind = "proceed"
    hook: str | None = None
    reason: str | None = None
    value: object = ABSENT
    args: object = ABSENT
    rewritten_by: tuple[str, ...] = ()
    mismatch: ArgumentsMismatch | None = None
    failures: tuple[HookFailure, ...] = ()
    fields: Mapping[str, object] = _NO_FIELDS
    appended: tuple[dict[str, object], ...] = ()
    events: tuple[dict[str, object], ...] = ()
    meta: Mapping[str, object] = _NO_FIELDS
    trace: tuple[TraceEntry, ...] = ()
    moment: Moment | None = None

    @property
    def denied_by(self) -> str | None:
        """The hook that denied the call (P4)."""
        return self.hook if self.kind == "denied" else None

    @property
    def replaced_by(self) -> str | None:
        """The hook whose value stands (P5, P9, C1)."""
        return self.hook if self.kind == "replaced" else None

    @property
    def failed_by(self) -> str | None:
        """The hook whose failure stands in place of the call (P11)."""
        return self.hook if self.kind == "hook_failed" else None
