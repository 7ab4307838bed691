"""``hookcell inspect``: what a module can do and can never do. Nothing of it is compiled or run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hookcell.hook import admission_policy
from hookcell.manifest import Manifest, ManifestInvalid, parse_manifest
from hookcell_sandbox.admission import inspect as inspect_module
from hookcell_sandbox.guest_text import escape

from .errors import EXIT_REFUSED
from .sheet import sheet_lines, sheet_record
from .sources import module_bytes

if TYPE_CHECKING:
    from .terminal import Terminal

__all__ = ["inspect"]


def inspect(path: Path, terminal: Terminal, *, as_json: bool = False) -> int:
    """Print the capability sheet of a module; the exit code, which is that of a refusal when it has findings.

    Raises:
        Misused: The file cannot be read.
    """
    report = inspect_module(module_bytes(path), admission_policy())
    manifest = _manifest(report.manifest)
    if as_json:
        terminal.print(json.dumps(sheet_record(report, manifest, file=str(path)), indent=2))
    else:
        for line in sheet_lines(report, manifest, file=escape(str(path)), terminal=terminal):
            terminal.print(line)
    return EXIT_REFUSED if report.findings else 0


def _manifest(raw: bytes | None) -> Manifest | None:
    try:
        return parse_manifest(raw)
    except ManifestInvalid:
        return None  # a finding says why
