"""A few of a replay's decisions to look at: what stood before a hook and what after, cut to the part that differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from hookcell.outcomes import ABSENT
from hookcell_sandbox.guest_text import escape

from .tally import effect_of
from .windows import start_of_window, window

if TYPE_CHECKING:
    from hookcell.errors import HookFailure
    from hookcell.trace import TraceEntry

    from .replay import Step
    from .tally import Effect
    from .terminal import Style, Terminal

__all__ = ["Example", "Examples", "excerpts"]

_COLOURS: Final[dict[str, Style]] = {"denied": "red", "failed": "red", "mismatched": "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One hook's doing at one point. Texts and values are as they were: escape before showing.

    Attributes:
        what: ``denied``, ``replaced``, ``rewritten``, ``changed``, ``mismatched`` or ``failed``.
        hook: The hook.
        run_id: The run.
        index: The assistant message's index in the record.
        point: The hook point.
        tool: The tool, at a tool point.
        before: The arguments or the result before; `ABSENT` where there is none to show.
        after: What came of it: the arguments, the result, a reason, an error, or where it wrote.
    """

    what: str
    hook: str
    run_id: str
    index: int
    point: str
    tool: str | None
    before: object
    after: object

    def record(self) -> dict[str, object]:
        """The example as JSON."""
        record: dict[str, object] = {
            "what": self.what,
            "hook": self.hook,
            "runId": self.run_id,
            "messageIndex": self.index,
            "point": self.point,
            "toolName": self.tool,
        }
        if self.before is not ABSENT:
            record["before"] = self.before
        if self.after is not ABSENT:
            record["after"] = self.after
        return record


class Examples:
    """Keeps the first few of each kind and hook, so that the rare is not crowded out by the usual.

    Args:
        count: How many are shown in the end; as many of each kind are kept.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: dict[tuple[str, str], list[Example]] = {}

    def add(self, step: Step) -> None:
        """Keep what is worth showing of one step."""
        if self._count == 0:
            return
        for example in _of(step):
            kept = self._kept.setdefault((example.hook, example.what), [])
            if len(kept) < self._count:
                kept.append(example)

    def chosen(self) -> list[Example]:
        """The first of each kind and hook, then the second of each, and so on."""
        rounds = zip_longest(*self._kept.values())
        chosen = [example for each in rounds for example in each if example is not None]
        return chosen[: self._count]


def excerpts(example: Example, terminal: Terminal) -> list[str]:
    """The example as lines of text, escaped, cut to the terminal's width."""
    where = f"{escape(example.run_id, characters=40)}, message {example.index}"
    if example.tool is not None:
        where += f", {escape(example.tool, characters=60)}"
    what = terminal.paint(example.what, "bold", _COLOURS.get(example.what, "green"))
    lines = [f"{what} by {escape(example.hook)} at {example.point} {terminal.paint(f'({where})', 'dim')}"]
    room = max(terminal.columns - 10, 30)
    before, after = _text(example.before), _text(example.after)
    skip = 0
    if example.what in ("rewritten", "replaced") and before is not None and after is not None:
        skip = start_of_window(before, after, room)
    if before is not None:
        lines.append(f"  before  {window(before, skip, room)}")
    if after is not None:
        lines.append(f"  after   {window(after, skip, room)}")
    return lines


def _of(step: Step) -> Iterator[Example]:
    """What each hook did that shows. Of several hooks that changed one value, each shows the whole change."""
    failures = step.decision.failures if step.decision is not None else ()
    if step.failure is not None:
        failures = (*failures, step.failure)
    for entry in step.trace:
        what = effect_of(entry)
        if what is None:
            continue
        yield Example(
            what=what,
            hook=entry.hook,
            run_id=step.run.run_id,
            index=step.index,
            point=step.point,
            tool=step.call.name if step.call is not None else None,
            before=step.before if what != "changed" else ABSENT,
            after=_after(step, what, entry, failures),
        )


def _after(step: Step, what: Effect, entry: TraceEntry, failures: Sequence[HookFailure]) -> object:
    decision = step.decision
    if what == "failed":
        return next((str(failure) for failure in failures if failure.hook == entry.hook), entry.failure)
    if what == "denied" and decision is not None:
        return decision.reason
    if what == "mismatched" and decision is not None and decision.mismatch is not None:
        return f"{decision.mismatch.path}: {decision.mismatch.reason}"
    if what == "replaced" and step.gate is not None and step.gate.settled is not None:
        return step.gate.settled.result
    if what == "changed":
        return f"wrote {', '.join(entry.wrote)}" if entry.wrote else "left events or notes"
    return step.after


def _text(value: object) -> str | None:
    if value is ABSENT:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
