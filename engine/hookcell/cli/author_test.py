"""``hookcell test``: the cases in ``tests/*.json`` beside a hook, and what differs in those that fail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hookcell.errors import ConfigInvalid
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import Limits

from .case_result import CaseResult, run_case
from .errors import EXIT_REFUSED, CommandFailed
from .found_hook import found_hook
from .guests import sandbox_for
from .json_diff import diff_lines
from .one_call import WatchedSandbox
from .run_context import load_for
from .sources import HookFile, hook_file
from .terminal import folded

if TYPE_CHECKING:
    from .terminal import Style, Terminal

__all__ = ["author_test"]

_LOG_LINES: Final = 20
_STYLES: Final[dict[str, Style]] = {"passed": "green", "failed": "red", "updated": "yellow"}


def author_test(path: Path, terminal: Terminal, *, update: bool = False, as_json: bool = False) -> int:
    """Run a hook's cases under the limits of production and print; the exit code, that of a refusal when one fails.

    Args:
        path: The hook, or its folder; a source is built first.
        terminal: Where to print.
        update: Write what came out into the ``expect`` of each case that expects something else, or nothing.
        as_json: Print one JSON object.

    Raises:
        CommandFailed: Before any case ran: there is no hook or no case, the hook cannot be built or is refused.
    """
    hook = found_hook(path)
    folder = hook.parent / "tests"
    cases = sorted(folder.glob("*.json"))
    if not cases:
        hint = f'write {folder / "NAME.json"}: {{"context": {{…}}, "expect": {{"outcome": {{…}}}}}}'
        raise CommandFailed("there are no cases", code="no_cases", place=escape(str(folder)), hint=escape(hint))
    file = hook_file(hook)
    with sandbox_for(Limits(), terminal) as sandbox:
        watched = WatchedSandbox(sandbox)
        _check_loads(file, watched)
        results = [run_case(case, file, watched, update=update) for case in cases]
    counts = {status: sum(each.status == status for each in results) for status in _STYLES}
    if as_json:
        record = {"hook": str(hook), "ok": not counts["failed"], **counts, "cases": [each.record() for each in results]}
        terminal.print(json.dumps(record, indent=2))
    else:
        for line in _lines(hook, results, terminal):
            terminal.print(line)
        said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        terminal.print(terminal.paint(said, "bold", "red" if counts["failed"] else "green"))
        if any(each.changes and each.status == "failed" for each in results):
            terminal.print(f"next: change the hook, or `hookcell test --update {escape(str(path))}` if this is right")
    return EXIT_REFUSED if counts["failed"] else 0


def _check_loads(file: HookFile, watched: WatchedSandbox) -> None:
    """Refuse a hook that no case could run. Whether it needs a config is for each case to say."""
    try:
        load_for(file, watched, None, Limits())
    except CommandFailed as error:
        if error.code != ConfigInvalid.code:
            raise


def _lines(hook: Path, results: Sequence[CaseResult], terminal: Terminal) -> Iterator[str]:
    yield f"{terminal.paint(escape(str(hook)), 'bold')}: {len(results)} case{'s' if len(results) != 1 else ''}"
    for result in results:
        status = terminal.paint(result.status, _STYLES[result.status])
        yield f"{status} {escape(result.path.name)}  {result.fuel:,} fuel"
        if result.problem is not None:
            for line in result.problem.split("\n"):
                yield from folded(line, terminal.columns, first="  ", rest="    ")
        yield from diff_lines(result.changes, terminal)
        if result.hint is not None:
            yield from folded(f"next: {result.hint}", terminal.columns, first="  ", rest="    ")
        if result.status == "failed":
            yield from _more(result, terminal)


def _more(result: CaseResult, terminal: Terminal) -> Iterator[str]:
    """What helps to find the fault: the error's own words and the log."""
    if result.error is not None:
        yield from folded(result.error, terminal.columns, first="  ", rest="    ")
    yield from (f"  log: {line}" for line in result.log[:_LOG_LINES])
    if len(result.log) > _LOG_LINES:
        yield f"  log: … and {len(result.log) - _LOG_LINES} more lines"
