"""The module's own word about itself: its custom section ``hookcell`` (guest_sdk/ABI.md, "The manifest").

The manifest narrows and describes. It has no say in limits, failure policy or order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn

from hookcell_sandbox.errors import Finding
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import ModuleLimits

from .points import ON_REQUEST_FIELDS, Point, field_names
from .schemas import SchemaInvalid, compile_schema
from .shapes import is_list, is_map

__all__ = [
    "NAME_CHARACTERS",
    "NEEDS",
    "Manifest",
    "ManifestInvalid",
    "StorageScope",
    "fields_for",
    "manifest_findings",
    "parse_manifest",
]

StorageScope = Literal["run", "session", "hook"]

_SCOPES: Final = frozenset({"run", "session", "hook"})
_BYTES: Final = ModuleLimits().manifest_bytes
_DEPTH: Final = 64
NAME_CHARACTERS: Final = 100
"""Of ``name``, ``version`` and ``sdk``."""

NEEDS: Final = 100
"""Entries of ``needs``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the section says; a module without one has this value's defaults.

    Attributes:
        abi: Version of the ABI, 1.
        name: The module's name for itself; guest text.
        version: Its version; guest text.
        needs: Context fields it asks for, perhaps ``"*"``; None asks for every ordinary one (G4).
        storage: The scope of its storage; None has none (G3).
        config: JSON Schema of its config (G2).
        sdk: What built it, e.g. ``javascript/0.1``; guest text.
        extra: Unknown keys, as they are.
    """

    abi: int = 1
    name: str | None = None
    version: str | None = None
    needs: frozenset[str] | None = None
    storage: StorageScope | None = None
    config: dict[str, object] | None = None
    sdk: str | None = None
    extra: dict[str, object] = field(default_factory=dict[str, object])


class ManifestInvalid(ValueError):
    """The manifest is not of the ABI's shape; ``findings`` holds every reason."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(str(finding) for finding in findings[:20]))


def parse_manifest(raw: bytes | None) -> Manifest:
    """The manifest in the section's bytes; None, no section, gives the defaults.

    Raises:
        ManifestInvalid: With every finding.
    """
    if raw is None:
        return Manifest()
    document, findings = _read(raw)
    findings += _shape_findings(document)
    if findings:
        raise ManifestInvalid(findings)
    known = {key: document[key] for key in _CHECKS if key in document}
    if is_list(needs := known.get("needs")):
        known["needs"] = frozenset(needs)
    extra = {key: value for key, value in document.items() if key not in _CHECKS}
    return Manifest(**known, extra=extra)  # type: ignore[arg-type]  # each value was checked under its key


def manifest_findings(raw: bytes) -> list[Finding]:
    """Every reason to refuse a manifest, for admission; an empty list accepts it."""
    document, findings = _read(raw)
    return findings + _shape_findings(document)


def fields_for(manifest: Manifest, point: Point) -> tuple[str, ...]:
    """The context fields that cross to the hook at this point, ``point`` itself aside (G4)."""
    needs = manifest.needs
    if needs is None:
        return point.fields
    ordinary = point.fields if "*" in needs else tuple(name for name in point.fields if name in needs)
    return ordinary + tuple(name for name in ON_REQUEST_FIELDS if name in needs)


def _read(raw: bytes) -> tuple[dict[str, object], list[Finding]]:
    """The section as a JSON object, or an empty one and why not."""
    if len(raw) > _BYTES:
        what = "bytes of the manifest"
        return {}, [Finding(code="manifest_json", what=what, value=len(raw), limit=_BYTES, hint="shorten it")]
    try:
        document: object = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        _check_values(document)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else escape(str(error))
        return {}, [_finding("manifest_json", f"the manifest is no strict JSON: {reason}")]
    if not is_map(document):
        return {}, [_finding("manifest_shape", "the manifest is no JSON object", hint='e.g. {"abi": 1}')]
    return document, []


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _check_values(document: object) -> None:
    """Refuse what JSON's text may say and a manifest may not: deep nesting, lone surrogates, numbers past a double."""
    level = [document]
    for depth in range(_DEPTH + 1):
        for value in level:
            if isinstance(value, str):
                value.encode()  # a UnicodeEncodeError, which is a ValueError, for a lone surrogate
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError("a number is too large")
            elif depth == _DEPTH and isinstance(value, dict | list):
                raise ValueError(f"nested over {_DEPTH} deep")
        level = [child for parent in level for child in _children(parent)]


def _children(value: object) -> list[object]:
    if is_map(value):
        return [*value, *value.values()]
    return value if is_list(value) else []


def _shape_findings(document: Mapping[str, object]) -> list[Finding]:
    return [finding for key, check in _CHECKS.items() if key in document for finding in check(key, document[key])]


def _abi(_: str, value: object) -> list[Finding]:
    if type(value) is int and value == 1:
        return []
    shown = value if type(value) is int and abs(value) < 2**53 else _shown(value)
    hint = "this version runs ABI 1; build the hook with a matching SDK"
    return [Finding(code="manifest_abi", what="the module asks for another ABI", value=shown, limit=1, hint=hint)]


def _line(key: str, value: object) -> list[Finding]:
    if not isinstance(value, str):
        return [_finding("manifest_shape", f"'{key}' is no string", _shown(value))]
    if len(value) > NAME_CHARACTERS:
        what = f"characters in '{key}'"
        return [Finding(code="manifest_shape", what=what, value=len(value), limit=NAME_CHARACTERS, hint="shorten it")]
    return []


def _needs(_: str, value: object) -> list[Finding]:
    if not is_list(value):
        return [_finding("manifest_needs", "'needs' is no list", _shown(value), hint='e.g. ["args"], or leave it out')]
    if len(value) > NEEDS:
        what = "entries in 'needs'"
        return [Finding(code="manifest_needs", what=what, value=len(value), limit=NEEDS, hint="name each field once")]
    known = field_names() | {"*"}
    hint = f"fields: {', '.join(sorted(known))}"
    return [
        _finding("manifest_needs", "'needs' asks for an unknown field", _shown(name), hint=hint)
        for name in value
        if not isinstance(name, str) or name not in known
    ]


def _storage(_: str, value: object) -> list[Finding]:
    if isinstance(value, str) and value in _SCOPES:
        return []
    hint = f"one of {', '.join(sorted(_SCOPES))}, or leave it out"
    return [_finding("manifest_storage", "'storage' is no scope", _shown(value), hint=hint)]


def _config(_: str, value: object) -> list[Finding]:
    if not is_map(value):
        return [_finding("manifest_config", "'config' is no JSON Schema object", _shown(value))]
    try:
        compile_schema(value, hostile=True)
    except SchemaInvalid as error:
        return [_finding("manifest_config", "the config schema is refused", str(error))]
    return []


_CHECKS: Final = {
    "abi": _abi,
    "name": _line,
    "version": _line,
    "needs": _needs,
    "storage": _storage,
    "config": _config,
    "sdk": _line,
}


def _finding(code: str, what: str, value: str | None = None, *, hint: str | None = None) -> Finding:
    return Finding(code=code, what=what, value=value, hint=hint)


def _shown(value: object) -> str:
    return escape(json.dumps(value, ensure_ascii=False), characters=60)
