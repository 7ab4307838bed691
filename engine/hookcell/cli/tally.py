"""What a replay came to, counted: for each hook, for the tool calls, and for the runs."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from hookcell.errors import ContextInvalid

if TYPE_CHECKING:
    from hookcell.hook import GuestHook
    from hookcell.tool_call import ToolCall
    from hookcell.trace import TraceEntry

    from .openai_dialect import RecordedRun
    from .replay import Step

__all__ = ["Effect", "FirstFailure", "HookTally", "Tally", "effect_of", "percentile"]

Effect = Literal["failed", "denied", "mismatched", "replaced", "rewritten", "changed"]

_REFUSALS_KEPT: Final = 100
_TOOLS_KEPT: Final = 100


def _figures() -> array[float]:
    return array("d")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFailure:
    """Where a hook first failed with some code, and how; ``message`` is escaped."""

    run_id: str
    index: int
    point: str
    message: str


@dataclass(slots=True, kw_only=True)
class HookTally:
    """What one hook, or all together, did.

    Attributes:
        calls: How often it was called.
        denied, replaced, rewritten, changed: What its outcomes did; ``rewritten`` are arguments (P6), ``changed`` is
            everything else that a patch or its like may change. One outcome counts once.
        mismatched: It gave arguments that do not fit the tool's schema (P6).
        failures: How often it failed, by code (P11).
        first: The first failure of each code.
        fuel: Of each call.
        us: Wall clock of each call, microseconds.
    """

    calls: int = 0
    denied: int = 0
    replaced: int = 0
    rewritten: int = 0
    changed: int = 0
    mismatched: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    first: dict[str, FirstFailure] = field(default_factory=dict[str, FirstFailure])
    fuel: array[float] = field(default_factory=_figures)
    us: array[float] = field(default_factory=_figures)

    @property
    def failed(self) -> int:
        """Failures of all codes."""
        return self.failures.total()

    def add(self, entry: TraceEntry) -> None:
        """Count what a hook did once."""
        self.calls += 1
        self.fuel.append(entry.fuel_used)
        self.us.append(entry.elapsed_us)
        effect = effect_of(entry)
        if effect == "failed":
            self.failures[entry.failure or ""] += 1
        elif effect is not None:
            setattr(self, effect, getattr(self, effect) + 1)

    def take(self, other: HookTally) -> None:
        """Add another's figures to these."""
        self.calls += other.calls
        self.denied += other.denied
        self.replaced += other.replaced
        self.rewritten += other.rewritten
        self.changed += other.changed
        self.mismatched += other.mismatched
        self.failures.update(other.failures)
        self.fuel.extend(other.fuel)
        self.us.extend(other.us)


class Tally:
    """Counts the steps of a replay.

    Args:
        hooks: The hooks, in order.
        validated: Names of the tools with a schema; None when no schemas were given.
    """

    def __init__(self, hooks: Sequence[GuestHook], validated: Iterable[str] | None) -> None:
        self.hooks = {hook.name: HookTally() for hook in hooks}
        self._schemas = None if validated is None else frozenset(validated)
        self.runs = 0
        self.rejected = 0
        self.refused = 0
        self.refusals: list[tuple[int, str]] = []
        self.messages = 0
        self.generations = 0
        self.tool_calls = 0
        self.unvalidated = 0
        self.tools_without_schema: Counter[str] = Counter()
        self.misfits = 0
        self.unanswered = 0
        self.unread: Counter[str] = Counter()
        self.us_per_tool_call: array[float] = _figures()
        self._open: dict[str, float] = {}

    def refuse(self, number: int, reason: str) -> None:
        """Note a line that could not be replayed, or not to its end."""
        self.refused += 1
        if len(self.refusals) < _REFUSALS_KEPT:
            self.refusals.append((number, reason))

    def start(self, run: RecordedRun) -> None:
        """A run begins."""
        self.runs += 1
        self.messages += run.messages
        self.unread.update(run.unread)
        self.unanswered += sum(call.answer is None for turn in run.turns for call in turn.calls)
        self.us_per_tool_call.extend(self._open.values())
        self._open.clear()

    def add(self, step: Step) -> None:
        """Count one step."""
        if isinstance(step.failure, ContextInvalid):
            return  # the record's fault, and no hook's
        if step.point == "pre_generate":
            self.generations += 1
        for entry in step.trace:
            tally = self.hooks[entry.hook]
            tally.add(entry)
            if entry.failure is not None and entry.failure not in tally.first:
                tally.first[entry.failure] = _first(step, entry)
        if step.failure is not None:
            self.rejected += 1
        if step.call is not None:
            self._add_call(step, step.call)

    def _add_call(self, step: Step, call: ToolCall) -> None:
        key = f"{step.index} {call.id}"
        self._open[key] = self._open.get(key, 0.0) + sum(entry.elapsed_us for entry in step.trace)
        if step.point != "pre_tool_call":
            return
        self.tool_calls += 1
        gate = step.gate
        if gate is not None and gate.decision is None:
            self.misfits += 1
        name = call.name
        if self._schemas is None or name not in self._schemas:
            self.unvalidated += 1
            if self._schemas is not None and (
                name in self.tools_without_schema or len(self.tools_without_schema) < _TOOLS_KEPT
            ):
                self.tools_without_schema[name] += 1

    def finish(self) -> None:
        """No more steps come."""
        self.us_per_tool_call.extend(self._open.values())
        self._open.clear()

    @property
    def has_schemas(self) -> bool:
        """Whether schemas were given."""
        return self._schemas is not None

    @property
    def total(self) -> HookTally:
        """All hooks together."""
        total = HookTally()
        for tally in self.hooks.values():
            total.take(tally)
        return total


def effect_of(entry: TraceEntry) -> Effect | None:
    """What a hook did to the run, None for nothing. A replacement that the rules ignored is nothing (P9)."""
    if entry.failure is not None:
        return "failed"
    if entry.outcome == "deny":
        return "denied"
    if entry.outcome == "mismatch":
        return "mismatched"
    if entry.outcome in ("result", "replace") and not entry.notes:
        return "replaced"
    if any(path == "/args" or path.startswith("/args/") for path in entry.wrote):
        return "rewritten"
    return "changed" if entry.wrote or entry.outcome == "changed" else None


def percentile(figures: Sequence[float], percent: float) -> float | None:
    """The nearest-rank percentile: a figure that was measured. None of nothing."""
    if not figures:
        return None
    ordered = sorted(figures)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def _first(step: Step, entry: TraceEntry) -> FirstFailure:
    failures = step.decision.failures if step.decision is not None else ()
    if step.failure is not None:
        failures = (*failures, step.failure)
    message = next((str(each) for each in failures if each.hook == entry.hook and each.code == entry.failure), "")
    return FirstFailure(run_id=step.run.run_id, index=step.index, point=step.point, message=message)
