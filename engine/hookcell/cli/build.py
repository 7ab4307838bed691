"""``hookcell build``: a source becomes a module, and the command says how large it is and what it asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hookcell.hook import admission_policy
from hookcell.manifest import parse_manifest
from hookcell.points import POINTS
from hookcell_sandbox.admission import inspect as inspect_module
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import ModuleLimits

from .bars import amount, bar
from .errors import Misused
from .guests import rejection
from .sheet import sheet_record
from .sources import LANGUAGES, built
from .terminal import folded

if TYPE_CHECKING:
    from hookcell.manifest import Manifest
    from hookcell_sandbox.admission import ModuleReport

    from .terminal import Terminal

__all__ = ["build"]

_LABEL = 10


def build(source: Path, out: Path | None, terminal: Terminal, *, as_json: bool = False) -> int:
    """Build a hook and print what came of it; the exit code.

    Nothing is written unless the module would be admitted.

    Args:
        source: A file in one of `LANGUAGES`.
        out: The module to write; default: the source's name with ``.wasm``.
        terminal: Where to print.
        as_json: Print one JSON object.

    Raises:
        Misused: The source cannot be read, or the module not be written.
        CommandFailed: It cannot be built, or what was built would be refused.
    """
    out = out or source.with_suffix(".wasm")
    if out.suffix in LANGUAGES:
        raise Misused(
            f"it would be written over a {LANGUAGES[out.suffix]} source",
            code="usage",
            place=f"-o {escape(str(out))}",
            hint="give a name that ends in .wasm",
        )
    wasm = built(source)
    report = inspect_module(wasm, admission_policy())
    if report.findings:
        raise rejection(report.findings, escape(str(source)))
    manifest = parse_manifest(report.manifest)
    try:
        out.write_bytes(wasm)
    except OSError as error:
        hint = "give another with -o; its folder must be there"
        raise Misused(
            f"it cannot be written: {error.strerror}", code="usage", place=escape(str(out)), hint=hint
        ) from error
    if as_json:
        terminal.print(json.dumps({"source": str(source), **sheet_record(report, manifest, file=str(out))}, indent=2))
    else:
        for line in _lines(source, out, report, manifest, terminal):
            terminal.print(line)
    return 0


def _lines(source: Path, out: Path, report: ModuleReport, manifest: Manifest, terminal: Terminal) -> list[str]:
    limit = ModuleLimits().module_bytes
    size = f"{amount(report.size, 'B')} of {amount(limit, 'B')}  {bar(report.size, limit, terminal)}"
    points = ", ".join(point for point in POINTS if point in report.entry_points)
    version = f" {escape(manifest.version)}" if manifest.version else ""
    needs = "every field of the context" if manifest.needs is None else ", ".join(sorted(manifest.needs)) or "nothing"
    lines = [f"{terminal.paint(escape(str(out)), 'bold')}: built from {escape(str(source))}"]
    for label, text in (
        ("size", size),
        ("hook", f"{escape(manifest.name or out.stem)}{version}"),
        ("points", points),
        ("needs", needs),
        ("storage", f"one value for each {manifest.storage}" if manifest.storage else "none"),
        ("config", "takes one" if manifest.config is not None else "none"),
    ):
        head = f"  {label.ljust(_LABEL)}"
        lines += folded(text, terminal.columns, first=head, rest=" " * len(head))
    lines.append(f"next: hookcell test {escape(str(source))}")
    return lines
