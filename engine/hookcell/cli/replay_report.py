"""What a replay came to: as text for people, and as one JSON object for machines.

The object's keys are stable: they may become more, and none changes its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hookcell_sandbox.guest_text import escape

from .table import Column, table
from .tally import HookTally, Tally, percentile
from .terminal import folded

if TYPE_CHECKING:
    from hookcell.hook import GuestHook

    from .examples import Example
    from .terminal import Terminal

__all__ = ["Report"]

_SHOWN: Final = 5
"""Of a list that may be long, in the text; the JSON has them all."""

_DASH: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A finished replay.

    Attributes:
        source: The file's name.
        hooks: The hooks, in order.
        tally: What was counted.
        seconds: Wall clock of the replay, reading included, loading not.
        unreached: Points of the hooks that a replay does not reach, by hook.
        without_config: Hooks that take a config and were given none.
    """

    source: str
    hooks: Sequence[GuestHook]
    tally: Tally
    seconds: float
    unreached: Mapping[str, Sequence[str]]
    without_config: Sequence[str]

    # --- text -------------------------------------------------------------------------------------------------------

    def lines(self, terminal: Terminal) -> list[str]:
        """The report for a person."""
        return [
            *(line for text in self._head() for line in folded(text, terminal.columns, rest="  ")),
            "",
            *self._table(terminal),
            *self._failures(terminal),
            *self._cost(terminal),
            *(line for text in self._notes() for line in folded(text, terminal.columns, rest="  ")),
        ]

    def _head(self) -> list[str]:
        tally = self.tally
        if not tally.has_schemas:
            how = "unvalidated: --tools FILE gives their schemas"
        elif tally.unvalidated:
            names = [escape(name, characters=40) for name in sorted(tally.tools_without_schema)]
            how = f"{tally.unvalidated:,} unvalidated, having no schema: {_some(names)}"
        else:
            how = "validated"
        seen = ((tally.runs, "run"), (tally.messages, "message"), (tally.generations, "model call"))
        return [", ".join(_count(*each) for each in seen), f"{_count(tally.tool_calls, 'tool call')} ({how})"]

    def _table(self, terminal: Terminal) -> list[str]:
        total = self.tally.total
        micro = "µs" if terminal.unicode else "us"
        # What the hooks at hand never do is left out of the rarer columns, so that the table fits 80.
        rarer = [name for name, count in (("changed", total.changed), ("misfits", total.mismatched)) if count]
        effects = ["denied", "replaced", "rewritten", *rarer, "failed"]
        columns = [Column(head="hook", right=False, least=8), Column(head="calls")]
        columns += [Column(head=name) for name in effects]
        columns += [Column(head=head, group=group) for group in ("fuel", micro) for head in ("p50", "p99")]
        rows = [(name, each) for name, each in self.tally.hooks.items()]
        rows += [("total", total)] if len(rows) > 1 else []
        lines = table(columns, [_row(name, each, effects) for name, each in rows], width=terminal.columns)
        return [*(terminal.paint(line, "bold") for line in lines[:2]), *lines[2:]]

    def _failures(self, terminal: Terminal) -> list[str]:
        lines: list[str] = []
        for hook in self.hooks:
            tally = self.tally.hooks[hook.name]
            for code, count in tally.failures.most_common():
                what = {"raise": "rejected the run", "deny": "refused the call", "skip": "skipped"}[hook.on_failure]
                head = f"{hook.name} failed {_times(count)} with '{code}' ({what})"
                lines.append(terminal.paint(head, "red"))
                first = tally.first[code]
                where = f"{escape(first.run_id, characters=40)}, message {first.index}"
                lines += folded(f"first in {where}: {first.message}", terminal.columns, first="  ", rest="  ")
        return ["", *lines] if lines else []

    def _cost(self, terminal: Terminal) -> list[str]:
        per_call = self.tally.us_per_tool_call
        typical, worst = percentile(per_call, 50), percentile(per_call, 99)
        if typical is None or worst is None:
            return []
        micro = "µs" if terminal.unicode else "us"
        return ["", f"The hooks add {typical:,.0f} {micro} to a tool call (p50), {worst:,.0f} {micro} (p99)."]

    def _notes(self) -> list[str]:
        tally = self.tally
        notes: list[str] = []
        if not tally.runs and not tally.refused:
            notes.append(f"{self.source} holds no runs.")
        if tally.misfits:
            calls = "tool calls have" if tally.misfits != 1 else "tool call has"
            notes.append(f"{tally.misfits:,} {calls} arguments that do not fit; no pre_tool_call hook saw them (P3).")
        if tally.unanswered:
            calls = "tool calls have" if tally.unanswered != 1 else "tool call has"
            notes.append(f"{tally.unanswered:,} {calls} no recorded result; no post_tool_call hook saw those that ran.")
        if tally.rejected:
            notes.append(f"{_count(tally.rejected, 'run')} ended at a failure (--on-failure raise).")
        if tally.unread:
            keys = [f"{key} ({count:,})" for key, count in tally.unread.most_common()]
            notes.append(f"Hooks do not see these keys of messages: {_some(keys)}.")
        notes += [
            f"{name} was not called at {', '.join(points)}: a recorded run has nothing for that."
            for name, points in self.unreached.items()
        ]
        notes += [f"{name} takes a config and had none: --config {name}=FILE" for name in self.without_config]
        if tally.refused:
            notes.append(f"{_count(tally.refused, 'line')} of {self.source} could not be replayed whole.")
        return notes

    # --- JSON -------------------------------------------------------------------------------------------------------

    def record(self, examples: Sequence[Example]) -> dict[str, object]:
        """The report as JSON, camelCase. Texts in it are as they were: what shows them escapes them."""
        tally = self.tally
        total = tally.total
        return {
            "source": self.source,
            "runs": {"replayed": tally.runs, "rejected": tally.rejected, "refused": tally.refused},
            "messages": tally.messages,
            "modelCalls": tally.generations,
            "toolCalls": {
                "seen": tally.tool_calls,
                "unvalidated": tally.unvalidated,
                "misfits": tally.misfits,
                "unanswered": tally.unanswered,
                "withoutSchema": dict(tally.tools_without_schema),
                "us": _percentiles(tally.us_per_tool_call, 1),
            },
            "hooks": [
                {
                    "name": hook.name,
                    "digest": hook.digest,
                    "points": sorted(hook.points),
                    "onFailure": hook.on_failure,
                    **_figures(tally.hooks[hook.name]),
                }
                for hook in self.hooks
            ],
            "total": _figures(total),
            "unread": dict(tally.unread),
            "unreached": dict(self.unreached),
            "withoutConfig": list(self.without_config),
            "refusals": [{"line": number, "reason": reason} for number, reason in tally.refusals],
            "examples": [example.record() for example in examples],
            "seconds": round(self.seconds, 3),
        }


def _row(name: str, tally: HookTally, effects: Sequence[str]) -> list[str]:
    counts = {
        "denied": tally.denied,
        "replaced": tally.replaced,
        "rewritten": tally.rewritten,
        "changed": tally.changed,
        "misfits": tally.mismatched,
        "failed": tally.failed,
    }
    figures = [
        percentile(tally.fuel, 50),
        percentile(tally.fuel, 99),
        percentile(tally.us, 50),
        percentile(tally.us, 99),
    ]
    return [
        name,
        f"{tally.calls:,}",
        *(f"{counts[effect]:,}" for effect in effects),
        *(_DASH if figure is None else _short(figure) for figure in figures),
    ]


def _short(figure: float) -> str:
    """At most five columns, three digits of it right; the JSON has it all."""
    if round(figure) < 10_000:
        return f"{figure:,.0f}"
    for unit in ("k", "M", "G"):
        figure /= 1000
        if figure < 99.95:
            return f"{figure:.1f}{unit}"
        if figure < 999.5:
            return f"{figure:.0f}{unit}"
    return f"{figure:,.0f}G"


def _figures(tally: HookTally) -> dict[str, object]:
    return {
        "calls": tally.calls,
        "denied": tally.denied,
        "replaced": tally.replaced,
        "rewritten": tally.rewritten,
        "changed": tally.changed,
        "mismatched": tally.mismatched,
        "failed": tally.failed,
        "failures": dict(tally.failures),
        "fuel": _percentiles(tally.fuel, 0),
        "us": _percentiles(tally.us, 1),
    }


def _percentiles(figures: Sequence[float], digits: int) -> dict[str, float | int | None]:
    def rounded(figure: float | None) -> float | int | None:
        return figure if figure is None else (round(figure, digits) if digits else round(figure))

    return {"p50": rounded(percentile(figures, 50)), "p99": rounded(percentile(figures, 99))}


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _some(items: Sequence[str]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
