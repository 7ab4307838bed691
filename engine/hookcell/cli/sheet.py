"""A module's report as a capability sheet: what it can do, what it can never do, and its size against the limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hookcell.manifest import Manifest, fields_for
from hookcell.points import ON_REQUEST_FIELDS, POINTS, Point
from hookcell.shapes import is_map
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import ModuleLimits

from .bars import amount, bar
from .table import Column, table
from .terminal import folded

if TYPE_CHECKING:
    from hookcell_sandbox.admission import ModuleReport

    from .terminal import Terminal

__all__ = ["sheet_lines", "sheet_record"]

_LABEL: Final = 10
_EXPORTS_SHOWN: Final = 12
_NEVER: Final = (
    "read a clock, draw random numbers",
    "open a file, a socket or another process",
    "call the host, or anything outside itself: it imports nothing",
    "keep anything in memory for its next call: each gets a fresh instance",
    "see credentials or endpoints: they never cross",
    "run on without end: fuel, wall clock, memory and output are bounded",
)
_NOT_RUN: Final = "Nothing of it was compiled or run. Its code is checked once more when a sandbox first loads it."
_DECISIONS: Final = {
    "deny": "deny the call",
    "result": "put a result in place of the tool's",
    "input": "replace the arguments",
    "replace": "replace {field}",
}


def sheet_lines(report: ModuleReport, manifest: Manifest | None, *, file: str, terminal: Terminal) -> list[str]:
    """The sheet for a person.

    Args:
        report: What admission found, findings included.
        manifest: What the module says of itself; None when it cannot be read.
        file: The module's file, escaped.
        terminal: Whose width and colours it is made for.
    """
    admitted = not report.findings
    verdict = terminal.paint("admitted", "bold", "green") if admitted else terminal.paint("refused", "bold", "red")
    lines = [f"{terminal.paint(file, 'bold')}: {verdict}", *_identity(report, manifest)]
    if report.findings:
        lines += ["", terminal.paint("Why it is refused", "bold")]
        for finding in report.findings:
            lines += folded(str(finding), terminal.columns, first="  ", rest="    ")
    if admitted and manifest is not None:
        lines += ["", terminal.paint("It can", "bold"), *_can(report, manifest, terminal)]
        lines += ["", terminal.paint("It can never", "bold"), *(f"  {each}" for each in _NEVER)]
    lines += ["", terminal.paint("Size against limits", "bold"), *_sizes(report, terminal)]
    if admitted:
        lines += ["", *folded(_NOT_RUN, terminal.columns)]
    return lines


def sheet_record(report: ModuleReport, manifest: Manifest | None, *, file: str) -> dict[str, object]:
    """The same as JSON, camelCase."""
    return {
        "file": file,
        "admitted": not report.findings,
        "digest": report.digest,
        "findings": [
            {"code": each.code, "what": each.what, "value": each.value, "limit": each.limit, "hint": each.hint}
            for each in report.findings
        ],
        "manifest": None if manifest is None else _manifest_record(manifest),
        "points": {
            name: {
                "sees": None if manifest is None else list(fields_for(manifest, POINTS[name])),
                "outcome": sorted(POINTS[name].keys),
                "patches": sorted(POINTS[name].patch_roots),
            }
            for name in sorted(report.entry_points)
        },
        "imports": [{"module": each.module, "name": each.name, "kind": each.kind} for each in report.imports],
        "exports": [{"name": each.name, "kind": each.kind} for each in report.exports],
        "sections": [{"name": each.name, "bytes": each.bytes} for each in report.sections],
        "features": sorted(report.features),
        "initialize": report.has_initialize,
        "logs": report.log_global,
        "sizes": {name: {"value": value, "limit": limit} for name, value, limit in _figures(report)},
    }


def _identity(report: ModuleReport, manifest: Manifest | None) -> Iterator[str]:
    if manifest is not None and manifest.name is not None:
        version = f" {escape(manifest.version)}" if manifest.version else ""
        sdk = f", built with {escape(manifest.sdk)}" if manifest.sdk else ""
        yield f"{escape(manifest.name)}{version}{sdk}"
        described = manifest.extra.get("description")
        if isinstance(described, str):
            yield escape(described)
    elif manifest is not None:
        yield "it says nothing of itself: no manifest" if report.manifest is None else "its manifest gives no name"
    yield f"sha256 {report.digest}"


def _can(report: ModuleReport, manifest: Manifest, terminal: Terminal) -> Iterator[str]:
    for name in POINTS:
        if name not in report.entry_points:
            continue
        point = POINTS[name]
        yield f"  {name}"
        sees = list(fields_for(manifest, point)) + (["config"] if manifest.config else [])
        sees += ["storage"] if manifest.storage else []
        everything = " (it names no needs, so every field)" if manifest.needs is None else ""
        yield from _labelled("see", (", ".join(sees) or "nothing but the point's name") + everything, terminal)
        yield from _labelled("do", "; ".join(_may(point)) or "nothing but throw", terminal)
    if manifest.needs is not None and manifest.needs.intersection(ON_REQUEST_FIELDS):
        asked = " and ".join(name for name in ON_REQUEST_FIELDS if name in manifest.needs)
        yield from _labelled("is told", f"{asked}, recorded with the call so that it can be replayed", terminal, lead=2)
    if manifest.storage is not None:
        yield from _labelled("keeps", f"a value of its own for each {manifest.storage}, bounded", terminal, lead=2)
    if manifest.config is not None:
        yield from _labelled("is set by", f"a config with {_properties(manifest.config)}", terminal, lead=2)
    if report.log_global:
        yield from _labelled("logs", "lines that the host reads after each call", terminal, lead=2)


def _may(point: Point) -> Iterator[str]:
    subject = f"the {point.own_fields[0]}" if len(point.own_fields) == 1 else "the value"
    for key, text in _DECISIONS.items():
        if key in point.keys:
            replacing = key == "result" and point.name == "post_tool_call"
            yield "replace the result that the model sees" if replacing else text.format(field=subject)
    for root in sorted(point.patch_roots):
        if root == "messages":
            yield "add messages" if point.message_edits == "append" else "edit messages, the system's not"
        elif root != "args":
            yield f"write {root}"
    if "events" in point.keys:
        yield "emit compaction events in a streamed run"
    if "meta" in point.keys:
        yield "leave notes on the result"


def _properties(schema: dict[str, object]) -> str:
    named = schema.get("properties")
    if not is_map(named) or not named:
        return "no named settings"
    shown = [escape(name, characters=40) for name in list(named)[:_EXPORTS_SHOWN]]
    more = f" and {len(named) - len(shown)} more" if len(named) > len(shown) else ""
    return ", ".join(shown) + more


def _labelled(label: str, text: str, terminal: Terminal, *, lead: int = 4) -> list[str]:
    head = " " * lead + label.ljust(_LABEL)
    return folded(text, terminal.columns, first=head, rest=" " * len(head))


def _sizes(report: ModuleReport, terminal: Terminal) -> list[str]:
    rows: list[list[str]] = []
    for name, value, limit in _figures(report):
        unit = "B" if name in _IN_BYTES else ""
        rows.append([_WORDS[name], amount(value, unit), amount(limit, unit), bar(value, limit, terminal)])
    columns = [
        Column(head="", right=False),
        Column(head="size"),
        Column(head="limit"),
        Column(head="", right=False),
    ]
    return [f"  {line}" for line in table(columns, rows, width=terminal.columns - 2)]


_WORDS: Final = {
    "moduleBytes": "module",
    "functions": "functions",
    "bodyBytes": "largest function",
    "locals": "most locals",
    "parameters": "most parameters",
    "results": "most results",
    "types": "types",
    "exports": "exports",
    "customBytes": "custom sections",
    "manifestBytes": "manifest",
    "memoryBytes": "memory at start",
    "tables": "tables",
    "tableElements": "table elements",
    "globals": "globals",
    "elementSegments": "element segments",
    "dataSegments": "data segments",
}
_IN_BYTES: Final = frozenset({"moduleBytes", "bodyBytes", "customBytes", "manifestBytes", "memoryBytes"})


def _figures(report: ModuleReport) -> Iterator[tuple[str, int, int]]:
    """Name, value and limit of what is bounded."""
    limits = ModuleLimits()
    yield "moduleBytes", report.size, limits.module_bytes
    yield "functions", report.functions, limits.functions
    yield "bodyBytes", report.largest_body_bytes, limits.body_bytes
    yield "locals", report.most_locals, limits.locals
    yield "parameters", report.most_parameters, limits.parameters
    yield "results", report.most_results, limits.results
    yield "types", report.types, limits.types
    yield "exports", len(report.exports), limits.exports
    yield "customBytes", report.custom_bytes, limits.custom_bytes
    yield "manifestBytes", len(report.manifest or b""), limits.manifest_bytes
    yield "memoryBytes", report.memory.minimum if report.memory else 0, limits.memory_bytes
    yield "tables", len(report.tables), limits.tables
    largest_table = max((table.minimum for table in report.tables), default=0)
    yield "tableElements", max(largest_table, report.elements), limits.table_elements
    yield "globals", report.globals, limits.globals
    yield "elementSegments", report.element_segments, limits.element_segments
    yield "dataSegments", report.data_segments, limits.data_segments


def _manifest_record(manifest: Manifest) -> dict[str, object]:
    return {
        "abi": manifest.abi,
        "name": manifest.name,
        "version": manifest.version,
        "needs": None if manifest.needs is None else sorted(manifest.needs),
        "storage": manifest.storage,
        "config": manifest.config,
        "sdk": manifest.sdk,
        "extra": manifest.extra,
    }
