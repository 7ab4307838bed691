"""One case of a hook's tests, run and compared with what it expects."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from hookcell.errors import ConfigInvalid
from hookcell.outcomes import ABSENT
from hookcell.shapes import is_map
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import Limits

from .cases import config_in, read_case
from .errors import CommandFailed, Misused
from .json_diff import Change, as_json, changes
from .json_files import read_json
from .one_call import Called, WatchedSandbox, call_once
from .run_context import load_for

if TYPE_CHECKING:
    from .sources import HookFile

__all__ = ["CaseResult", "run_case"]

_HOSTS: Final = frozenset({"busy", "unusable", "worker", "storage_failed", "context_invalid"})
"""Codes that say nothing of the hook: no case can expect them."""

_EXPECT: Final = 'give {"outcome": {…}} or {"error": {"code": "…"}}; --update writes what came out'


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What a case came to.

    Attributes:
        path: Its file.
        status: ``updated`` where the file now expects what came out.
        problem: Why it failed, in words, escaped; None where what differs says it, or nothing is wrong.
        hint: The next step, where there is a problem.
        got: ``{"outcome": …}`` or ``{"error": {"code"}}``; None where nothing ran.
        changes: From what was expected to what came out.
        fuel: Fuel used.
        error: The error that came out, for a person, escaped.
        log: What the hook logged, in lines, escaped.
    """

    path: Path
    status: Literal["passed", "failed", "updated"] = "passed"
    problem: str | None = None
    hint: str | None = None
    got: dict[str, object] | None = None
    changes: tuple[Change, ...] = ()
    fuel: int = 0
    error: str | None = None
    log: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        """The result as JSON."""
        return {
            "file": str(self.path),
            "status": self.status,
            "problem": self.problem,
            "next": self.hint,
            "got": self.got,
            "changes": [change.record() for change in self.changes],
            "fuel": self.fuel,
            "error": self.error,
            "log": list(self.log),
        }


def run_case(path: Path, file: HookFile, watched: WatchedSandbox, *, update: bool) -> CaseResult:
    """Run a case under the limits of production.

    Args:
        path: The case's file.
        file: The hook.
        watched: The sandbox.
        update: Write what came out into the file's ``expect`` where that says something else, or nothing.
    """
    try:
        document = read_json(path)
        if not is_map(document) or "context" not in document:
            hint = 'begin with {"context": {…}, "expect": {…}}'
            raise Misused("it is no case", code="case_invalid", place=escape(str(path)), hint=hint)
        expect = document.get("expect", ABSENT)
        _check_expect(expect, path)
        result, fuel = _called(path, document, file, watched)
    except CommandFailed as error:
        problem = str(error).removesuffix(f"\n  next: {error.hint}")
        return CaseResult(path=path, status="failed", problem=problem, hint=error.hint)
    if result.status == "failed":
        return result
    result = _judged(result, document, expect, update=update)
    if fuel is not None and result.fuel > fuel:
        over = f"it used {result.fuel:,} fuel, where the case allows {fuel:,}"
        hint = "do less for each call, or raise the case's fuel"
        return replace(result, status="failed", problem=result.problem or over, hint=result.hint or hint)
    return result


def _called(
    path: Path, document: dict[str, object], file: HookFile, watched: WatchedSandbox
) -> tuple[CaseResult, int | None]:
    """What came out, not compared yet, and the most fuel that the case allows."""
    try:
        hook = load_for(file, watched, config_in(document), Limits())
    except CommandFailed as error:
        if error.code != ConfigInvalid.code:
            raise
        # A case may be there to show that a config is refused.
        return CaseResult(path=path, got={"error": {"code": error.code}}, error=error.message), None
    case = read_case(document, hook, shown=escape(str(path)))
    called = call_once(hook, watched, case)
    result = CaseResult(
        path=path, got=_came_out(called), fuel=called.fuel_used, error=called.error_text, log=called.log.lines
    )
    if called.error_code in _HOSTS:
        problem = f"it could not be run [{called.error_code}]"
        return replace(result, status="failed", problem=problem, hint="run it again; it says nothing of the hook"), None
    return result, case.fuel


def _came_out(called: Called) -> dict[str, object]:
    if called.error_code is not None:
        return {"error": {"code": called.error_code}}
    return {"outcome": as_json(called.outcome)}


def _check_expect(expect: object, path: Path) -> None:
    if expect is ABSENT:
        return
    fits = is_map(expect) and (
        (expect.keys() == {"outcome"} and is_map(expect["outcome"]))
        or (expect.keys() == {"error"} and is_map(error := expect["error"]) and error.keys() == {"code"})
    )
    if not fits:
        place = f"{escape(str(path))} at /expect"
        raise Misused("it expects neither an outcome nor an error", code="case_invalid", place=place, hint=_EXPECT)


def _judged(result: CaseResult, document: dict[str, object], expect: object, *, update: bool) -> CaseResult:
    found = tuple(changes(expect, result.got)) if expect is not ABSENT else ()
    if expect is not ABSENT and not found:
        return result
    if update:
        document["expect"] = result.got
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        # A lone surrogate has no UTF-8, and an escape of its own in JSON.
        result.path.write_bytes(text.encode("utf-8", "backslashreplace"))
        return replace(result, status="updated", changes=found)
    if expect is ABSENT:
        return replace(result, status="failed", problem="it expects nothing", hint=_EXPECT)
    return replace(result, status="failed", changes=found)
