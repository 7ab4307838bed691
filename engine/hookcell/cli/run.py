"""``hookcell run``: recorded runs through hooks, and what that came to."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from hookcell.errors import ContextInvalid
from hookcell.registry import HookRegistry
from hookcell_sandbox.guest_text import escape

from .errors import EXIT_DECIDED, EXIT_REFUSED
from .examples import Example, Examples, excerpts
from .guests import Asked, load_guests, sandbox_for
from .openai_dialect import RecordedRun, RecordInvalid, recorded_run
from .recorded_runs import Line, RefusedLine, RunFile
from .replay import REPLAYED_POINTS, Replay, Step
from .replay_report import Report
from .tally import Tally
from .terminal import Progress
from .tool_schemas import tool_schemas

if TYPE_CHECKING:
    from hookcell.hook import GuestHook
    from hookcell.schemas import Schema

    from .terminal import Terminal

__all__ = ["OutputFormat", "Run", "replayed", "run"]

OutputFormat = Literal["text", "json", "ndjson"]

_REFUSALS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What ``hookcell run`` was asked for.

    Attributes:
        asked: The hooks.
        source: The recorded runs.
        tools: The file of tool schemas, if there is one.
        output: How the outcome is printed.
        show: How many examples.
        decisions_exit: Whether a deny or a failure becomes the exit code.
    """

    asked: Asked
    source: Path
    tools: Path | None = None
    output: OutputFormat = "text"
    show: int = 0
    decisions_exit: bool = False


def run(wanted: Run, terminal: Terminal) -> int:
    """Carry it out and print; the exit code.

    Raises:
        CommandFailed: Before anything was replayed: a file is not there, a module is refused.
    """
    # The runs are opened first: a wrong path is told before anything is compiled.
    with RunFile(wanted.source) as source, sandbox_for(wanted.asked.limits, terminal) as sandbox:
        schemas = None if wanted.tools is None else tool_schemas(wanted.tools)
        hooks = load_guests(wanted.asked, sandbox)
        report, examples = _replay_file(wanted, source, hooks, schemas, terminal)
    if wanted.output == "text":
        for example in examples:
            for line in (*excerpts(example, terminal), ""):
                terminal.print(line)
        for line in report.lines(terminal):
            terminal.print(line)
    else:
        kind = {"type": "summary"} if wanted.output == "ndjson" else {}
        _print_json(terminal, {**kind, **report.record(examples)}, indent=wanted.output == "json")
    return _exit_code(wanted, report.tally)


def _replay_file(
    wanted: Run, source: RunFile, hooks: Sequence[GuestHook], schemas: Mapping[str, Schema] | None, terminal: Terminal
) -> tuple[Report, list[Example]]:
    registry = HookRegistry()
    registry.register_many(hooks)
    replay = Replay(hooks=registry.snapshot(), schemas=schemas or {}, now=time.time_ns() // 1_000_000)
    tally, examples = Tally(hooks, schemas), Examples(wanted.show)
    started = time.perf_counter()
    with _drawn(Progress(terminal, "runs")) as progress:
        for line in source:
            recorded = _recorded(line, tally, progress, terminal)
            if recorded is None:
                continue
            number, run = recorded
            for step in replayed(replay, run, tally, examples):
                if isinstance(step.failure, ContextInvalid):
                    reason = f"message {step.index}: {step.failure}; the run ends there"
                    _refuse(number, reason, tally, progress, terminal)
                if wanted.output == "ndjson":
                    _print_decision(terminal, step)
            if wanted.output == "ndjson":
                terminal.out.flush()  # whoever reads along gets each run as it ends
            progress.show(source.fraction, tally.runs)
    tally.finish()
    report = Report(
        source=escape(str(wanted.source)),
        hooks=hooks,
        tally=tally,
        seconds=time.perf_counter() - started,
        unreached=_unreached(hooks),
        without_config=_without_config(wanted.asked, hooks),
    )
    return report, examples.chosen()


def replayed(replay: Replay, run: RecordedRun, tally: Tally, examples: Examples) -> Iterator[Step]:
    """The steps of one run, counted."""
    tally.start(run)
    for step in replay.steps(run):
        tally.add(step)
        examples.add(step)
        yield step


@contextmanager
def _drawn(progress: Progress) -> Generator[Progress]:
    try:
        yield progress
    finally:
        progress.clear()


def _recorded(
    line: Line | RefusedLine, tally: Tally, progress: Progress, terminal: Terminal
) -> tuple[int, RecordedRun] | None:
    if isinstance(line, RefusedLine):
        reason = line.reason
    else:
        try:
            return line.number, recorded_run(line.record, fallback_id=f"line {line.number}")
        except RecordInvalid as error:
            reason = str(error)
    _refuse(line.number, reason, tally, progress, terminal)
    return None


def _refuse(number: int, reason: str, tally: Tally, progress: Progress, terminal: Terminal) -> None:
    tally.refuse(number, reason)
    if tally.refused <= _REFUSALS_SHOWN:
        progress.clear()
        terminal.note(f"line {number}: {reason}", "red")
    elif tally.refused == _REFUSALS_SHOWN + 1:
        terminal.note("more lines like these are counted, and not listed", "red")


def _print_decision(terminal: Terminal, step: Step) -> None:
    decision, failure = step.decision, step.failure
    if decision is None and failure is None and step.gate is None:
        return  # no hook stands there
    kind = "misfit"
    if failure is not None:
        kind = "rejected"
    elif decision is not None:
        kind = decision.kind
    record: dict[str, object] = {
        "type": "decision",
        "runId": step.run.run_id,
        "messageIndex": step.index,
        "point": step.point,
        "toolCallId": step.call.id if step.call is not None else None,
        "toolName": step.call.name if step.call is not None else None,
        "kind": kind,
        "hook": failure.hook if failure is not None else (decision.hook if decision is not None else None),
        "reason": decision.reason if decision is not None else None,
        "rewrittenBy": list(decision.rewritten_by) if decision is not None else [],
        "failures": [
            {"hook": each.hook, "code": each.code, "message": str(each)}
            for each in (*(decision.failures if decision is not None else ()), *((failure,) if failure else ()))
        ],
        "trace": [entry.record() for entry in step.trace],
    }
    _print_json(terminal, record, indent=False)


def _print_json(terminal: Terminal, record: Mapping[str, object], *, indent: bool) -> None:
    # ASCII alone: guest text in it cannot move a terminal's cursor or reorder what is read.
    terminal.print(json.dumps(record, indent=2 if indent else None, default=str))


def _unreached(hooks: Sequence[GuestHook]) -> dict[str, list[str]]:
    return {
        hook.name: sorted(hook.points.difference(REPLAYED_POINTS))
        for hook in hooks
        if hook.points.difference(REPLAYED_POINTS)
    }


def _without_config(asked: Asked, hooks: Sequence[GuestHook]) -> list[str]:
    return [
        hook.name
        for hook, path in zip(hooks, asked.modules, strict=True)
        if hook.manifest.config is not None and asked.configs.keys().isdisjoint((hook.name, path.stem))
    ]


def _exit_code(wanted: Run, tally: Tally) -> int:
    if tally.refused:
        return EXIT_REFUSED
    total = tally.total
    if wanted.decisions_exit and (total.denied or total.failed or total.mismatched):
        return EXIT_DECIDED
    return 0
