"""``hookcell check``: everything that would keep a host from loading a hook. None of the hook is run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hookcell.hook import admission_policy, check_name
from hookcell.manifest import ManifestInvalid, parse_manifest
from hookcell.points import POINTS
from hookcell_sandbox.admission import inspect as inspect_module
from hookcell_sandbox.errors import Finding, ModuleRejected
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import Limits, ModuleLimits

from .bars import amount
from .errors import EXIT_REFUSED
from .guests import sandbox_for
from .sources import hook_file
from .terminal import folded

if TYPE_CHECKING:
    from hookcell_sandbox.admission import ModuleReport

    from .terminal import Terminal

__all__ = ["check"]

_NEXT: Final = "see guest_sdk/ABI.md for what a module may hold, and build the hook again"


def check(path: Path, terminal: Terminal, *, as_json: bool = False) -> int:
    """Print every finding; the exit code, which is that of a refusal when there are any.

    Raises:
        Misused: The file cannot be read.
        CommandFailed: It is a source that cannot be built, or there is no sandbox to compile in.
    """
    file = hook_file(path)
    report = inspect_module(file.wasm, admission_policy())
    findings = [*report.findings, *_name_findings(report, path)]
    compiled = not findings
    if compiled:
        findings += _compile_findings(file.wasm, terminal)
    if as_json:
        record = {
            "file": str(path),
            "language": file.language,
            "digest": report.digest,
            "ok": not findings,
            "compiled": compiled,
            "points": [point for point in POINTS if point in report.entry_points],
            "size": {"value": report.size, "limit": ModuleLimits().module_bytes},
            "findings": [
                {"code": each.code, "what": each.what, "value": each.value, "limit": each.limit, "next": _next(each)}
                for each in findings
            ],
        }
        terminal.print(json.dumps(record, indent=2))
    else:
        for line in _lines(path, report, findings, terminal):
            terminal.print(line)
    return EXIT_REFUSED if findings else 0


def _name_findings(report: ModuleReport, path: Path) -> list[Finding]:
    """What a registry has against the hook's name; nothing where the manifest is refused already."""
    try:
        name = parse_manifest(report.manifest).name
        check_name(name or path.stem)
    except ManifestInvalid:
        return []
    except ValueError as error:
        return [Finding(code="name", what=str(error), hint="change 'name' in the manifest")]
    return []


def _compile_findings(wasm: bytes, terminal: Terminal) -> Sequence[Finding]:
    """What only the compiler sees: a body that does not validate, or one that takes too much to compile."""
    with sandbox_for(Limits(), terminal) as sandbox:
        try:
            sandbox.load(wasm, admission_policy())
        except ModuleRejected as error:
            return error.findings
    return ()


def _lines(path: Path, report: ModuleReport, findings: Sequence[Finding], terminal: Terminal) -> list[str]:
    shown = terminal.paint(escape(str(path)), "bold")
    if not findings:
        points = ", ".join(point for point in POINTS if point in report.entry_points)
        size = f"{amount(report.size, 'B')} of {amount(ModuleLimits().module_bytes, 'B')}"
        checked = "admission, manifest, config schema, limits and compilation"
        return [
            f"{shown}: {terminal.paint('a host would load it', 'green')}",
            *folded(f"checked: {checked}", terminal.columns, first="  ", rest="    "),
            *folded(f"points: {points}; size: {size}", terminal.columns, first="  ", rest="    "),
        ]
    count = f"{len(findings)} reason{'s' if len(findings) != 1 else ''}"
    lines = [f"{shown}: {terminal.paint(f'refused for {count}', 'red')}"]
    for each in findings:
        # Its own hint stands on a line of its own here.
        what = str(each).removesuffix(f" - {each.hint}")
        lines += folded(what, terminal.columns, first="  ", rest="    ")
        lines += folded(f"next: {_next(each)}", terminal.columns, first="    ", rest="      ")
    return lines


def _next(finding: Finding) -> str:
    return finding.hint or _NEXT
