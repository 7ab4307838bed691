"""What a module is and may do, and every reason to refuse it, before any compiler sees a byte.

The reader (`hookcell_sandbox.module`) says what is wrong with the bytes; this file holds what they say against the
guest ABI: exports and their types, no imports, no start section, one manifest. Every finding has a stable code, listed
with its meaning in `hookcell_sandbox.findings.FINDING_CODES`.

Our reader alone reads signatures: asking wasmtime's Python package for the type of an export with a vector or a GC
parameter aborts the process.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from .errors import Finding, ModuleRejected
from .findings import Findings
from .guest_text import escape
from .limits import ModuleLimits
from .module import known, read_module
from .shape import Bounds, Export, FunctionType, Global, Import, Module, Section, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["AdmissionPolicy", "Bounds", "Export", "Import", "ModuleReport", "Section", "admit", "inspect"]

_I32, _I64 = 0x7F, 0x7E
_ENTRY = FunctionType(bytes((_I32, _I32)), bytes((_I64,)))
_ALLOC = FunctionType(bytes((_I32,)), bytes((_I32,)))
_INITIALIZE = FunctionType(b"", b"")
_I32_CONST = 0x41

T = TypeVar("T")

_WASI = ("wasi_snapshot_preview1", "wasi_unstable")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicy:
    """What a host admits.

    Attributes:
        entry_points: Export names that may be called; each of type ``(i32, i32) -> i64``.
        limits: Ceilings.
        manifest_section: Name of the custom section with the manifest.
        check_manifest: Reads the manifest, which passes through here unread, and says what is wrong with it.
    """

    entry_points: frozenset[str]
    limits: ModuleLimits = field(default_factory=ModuleLimits)
    manifest_section: str = "hookcell"
    check_manifest: Callable[[bytes], Iterable[Finding]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleReport:
    """What a module is and may do, as far as its sections show it.

    Counts are what the sections declare: of a refused module they are claims. Names are escaped, so they are fit to
    print; an ordinary name is unchanged.

    Attributes:
        size: Bytes of the module.
        digest: sha256 of the module, hex.
        sections: In the module's order.
        types, functions, globals, element_segments, data_segments: Counts, imported ones left out.
        largest_body_bytes, most_locals, most_parameters, most_results: The largest of one function or signature;
            locals without parameters.
        memory: Bytes; None without a memory.
        tables: Elements.
        elements: What all element segments hold together.
        data_bytes: What all data segments hold together.
        custom_bytes: All custom sections together.
        imports: The first thousand.
        exports: In the module's order, as many as the limit allows.
        entry_points: Those of the policy's that it exports with the right signature.
        has_initialize: Exports ``_initialize`` with the right signature.
        log_address: Value of ``hook_log`` where that is a constant, unsigned; None otherwise.
        log_global: Exports ``hook_log`` as an i32 global.
        manifest: Content of the manifest section; None when there is none, or not one that can be taken.
        features: Proposals beyond WebAssembly 1.0 that the sections show it would need. Bodies may need more.
        findings: Reasons to refuse it; empty = admissible, as far as the reader can tell.
    """

    size: int
    digest: str
    sections: tuple[Section, ...]
    types: int
    functions: int
    largest_body_bytes: int
    most_locals: int
    most_parameters: int
    most_results: int
    memory: Bounds | None
    tables: tuple[Bounds, ...]
    globals: int
    element_segments: int
    elements: int
    data_segments: int
    data_bytes: int
    custom_bytes: int
    imports: tuple[Import, ...]
    exports: tuple[Export, ...]
    entry_points: frozenset[str]
    has_initialize: bool
    log_address: int | None
    log_global: bool
    manifest: bytes | None
    features: frozenset[str]
    findings: tuple[Finding, ...]


def admit(wasm: bytes, policy: AdmissionPolicy) -> ModuleReport:
    """The report of a module that has no finding.

    Raises:
        ModuleRejected: With every finding.
    """
    report = inspect(wasm, policy)
    if report.findings:
        raise ModuleRejected(report.findings, digest=report.digest)
    return report


def inspect(wasm: bytes, policy: AdmissionPolicy) -> ModuleReport:
    """What a module is; never compiles or runs any of it.

    May take half a second on a hostile module of 16 MiB: async callers run it off the loop.

    Args:
        wasm: Untrusted bytes. Must be ``bytes``: what is admitted must not change before it is compiled.
    """
    if type(wasm) is not bytes:
        raise TypeError(f"a module is bytes, not {type(wasm).__name__}")
    limits, findings = policy.limits, Findings()
    if len(wasm) > limits.module_bytes:
        # Read all the same: the counts bound the reading, whatever the size, and its other findings help as well.
        findings.add("module_too_large", "module, bytes", value=len(wasm), limit=limits.module_bytes)
    module = read_module(wasm, limits=limits, manifest_section=policy.manifest_section, findings=findings)
    _refuse_imports(module, findings)
    surface = _Surface(module, findings)
    entry_points = surface.check(policy.entry_points)
    manifest = _manifest(module, policy, findings)
    return ModuleReport(
        size=len(wasm),
        digest=hashlib.sha256(wasm).hexdigest(),
        sections=tuple(module.sections),
        types=module.declared.get("type", 0),
        functions=module.declared.get("function", 0),
        largest_body_bytes=module.largest_body_bytes,
        most_locals=module.most_locals,
        most_parameters=module.most_parameters,
        most_results=module.most_results,
        memory=module.memories[0] if module.memories else None,
        tables=tuple(module.tables),
        globals=module.declared.get("global", 0),
        element_segments=module.declared.get("element", 0),
        elements=module.elements,
        data_segments=module.declared.get("data", 0),
        data_bytes=module.data_bytes,
        custom_bytes=module.custom_bytes,
        imports=tuple(module.imports),
        exports=tuple(Export(name=escape(raw), kind=kind, index=index) for raw, kind, index in module.exports),
        entry_points=entry_points,
        has_initialize=surface.has_initialize,
        log_address=surface.log_address,
        log_global=surface.log_global,
        manifest=manifest,
        features=frozenset(module.features),
        findings=findings.all(),
    )


def _refuse_imports(module: Module, findings: Findings) -> None:
    for wanted in module.imports:
        findings.add(
            "import", f"imports a {wanted.kind}", value=f"{wanted.module}.{wanted.name}", hint=_import_hint(wanted)
        )


def _import_hint(wanted: Import) -> str | None:
    if wanted.module in _WASI or wanted.module.startswith("wasi:"):
        return "run `hookcell seal` on it: that merges in a WASI that denies everything"
    if (wanted.module, wanted.name, wanted.kind) == ("env", "abort", "function"):
        return "AssemblyScript: build with --use abort="
    if wanted.kind == "memory":
        return "export the memory instead of importing it (link without --import-memory)"
    return None


class _Surface:
    """A module's exports against the ABI's."""

    def __init__(self, module: Module, findings: Findings) -> None:
        self._module = module
        self._findings = findings
        # A duplicate is a finding; the first of a name counts.
        self._exports: dict[bytes, tuple[str, int]] = {}
        for raw, kind, index in module.exports:
            self._exports.setdefault(raw, (kind, index))
        self.has_initialize = False
        self.log_global = False
        self.log_address: int | None = None

    def check(self, entry_points: frozenset[str]) -> frozenset[str]:
        """Note what is missing or has the wrong type; the entry points that have the right one."""
        self._has("memory", "memory")
        self._function("hook_alloc", _ALLOC)
        self.has_initialize = self._function("_initialize", _INITIALIZE)
        self._log()
        right = frozenset(name for name in sorted(entry_points) if self._function(name, _ENTRY))
        if known(self._module, "export"):
            self._missing(entry_points)
        return right

    def _missing(self, entry_points: frozenset[str]) -> None:
        if b"memory" not in self._exports:
            self._findings.add("missing_memory", "the module exports no 'memory'")
        if b"hook_alloc" not in self._exports:
            self._findings.add("missing_hook_alloc", "the module exports no 'hook_alloc'")
        if not any(name.encode() in self._exports for name in entry_points):
            hint = f"export one of: {', '.join(sorted(entry_points))}"
            if b"_start" in self._exports:
                hint = f"this is a command; build a reactor (clang -mexec-model=reactor), and {hint}"
            self._findings.add("no_entry_point", "the module exports no entry point", hint=hint)

    def _has(self, name: str, kind: str) -> int | None:
        """The index of an export of this name and kind, if there is one; another kind is a finding."""
        found = self._exports.get(name.encode())
        if found is None:
            return None
        if found[0] != kind:
            self._findings.add("export_kind", f"export '{escape(name)}'", value=found[0], limit=kind)
            return None
        return found[1]

    def _function(self, name: str, wanted: FunctionType) -> bool:
        index = self._has(name, "function")
        signature = None if index is None else self._signature(index)
        if signature is None:
            return False
        if signature != wanted:
            self._findings.add("export_signature", f"export '{escape(name)}'", value=str(signature), limit=str(wanted))
        return signature == wanted

    def _signature(self, index: int) -> FunctionType | None:
        """A function's type, None when some section on the way to it could not be read (a finding says so)."""
        module = self._module
        if not known(module, "import", "type"):
            return None
        kind = _at(module.imported_functions, module.functions, index)
        return module.types[kind] if kind is not None and kind < len(module.types) else None

    def _log(self) -> None:
        """``hook_log`` is an i32 global; a constant one has its address told ahead of every call."""
        for _, kind, index in self._module.exports:
            if kind == "global" and (shape := self._global(index)) and shape.mutable:
                self._module.features.add("mutable_globals")
        index = self._has("hook_log", "global")
        log = None if index is None else self._global(index)
        if log is None:
            return
        if log.type != _I32:
            self._findings.add("export_signature", "export 'hook_log'", value=type_name(log.type), limit="i32")
            return
        self.log_global = True
        if not log.mutable and log.initial and log.initial.opcode == _I32_CONST and log.initial.value is not None:
            self.log_address = log.initial.value & 0xFFFF_FFFF

    def _global(self, index: int) -> Global | None:
        if not known(self._module, "import"):
            return None
        return _at(self._module.imported_globals, self._module.globals, index)


def _at(imported: list[T], own: list[T], index: int) -> T | None:
    """What stands at ``index`` of an index space: imported ones come first."""
    if index < len(imported):
        return imported[index]
    index -= len(imported)
    return own[index] if index < len(own) else None


def _manifest(module: Module, policy: AdmissionPolicy, findings: Findings) -> bytes | None:
    if len(module.manifests) > 1:
        findings.add("manifest_repeated", "manifest sections", value=len(module.manifests), limit=1)
        return None
    manifest = module.manifests[0] if module.manifests else None
    if manifest is not None and policy.check_manifest:
        findings.extend(policy.check_manifest(manifest))
    return manifest
