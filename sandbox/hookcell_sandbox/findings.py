"""Every reason our reader has to refuse a module: the one table of codes, and the bounded list that collects them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from .errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .binary import Malformed

__all__ = ["FINDING_CODES", "FindingCode", "Findings"]

FINDINGS_KEPT = 100
"""Findings kept of one module; the first of each code is kept beyond it."""

FINDINGS_KEPT_PER_CODE = 20
"""Findings kept of one code, so that a hundred imports do not crowd out the missing memory."""

_DISTINCT_CODES = 100


@dataclass(frozen=True, slots=True)
class FindingCode:
    """What a code means, and what the author of a module can do about it."""

    meaning: str
    hint: str


_DAMAGED = "the file is cut, damaged or written by a faulty tool; build it again"
_OFF = "build for the features of the ABI: the WebAssembly 1.0 core, mutable globals, sign extension, saturating float-to-int, multi-value, bulk memory, reference types but externref"  # noqa: E501 one sentence
_ABI = "export what the guest ABI asks for; the SDKs do"


def _over(ceiling: str, advice: str) -> str:
    return f"{advice}, or the host raises ModuleLimits.{ceiling}"


FINDING_CODES: Mapping[str, FindingCode] = MappingProxyType(
    {
        # What the bytes are.
        "text": FindingCode("text instead of the binary format", "assemble it first, e.g. with wat2wasm"),
        "no_magic": FindingCode("the file does not begin as a WebAssembly module", "give a core module (.wasm)"),
        "wrong_version": FindingCode("a version of the binary format other than 1", "build a core module of version 1"),
        "component": FindingCode(
            "a component instead of a core module",
            "a core module is wanted: build for wasm32-unknown-unknown or wasm32-wasip1 and leave out the step that "
            "wraps it (wasm-tools component new), or take it out with wasm-tools component unbundle",
        ),
        # How they are put together.
        "truncated": FindingCode("something ends before its own size or count says", _DAMAGED),
        "bad_integer": FindingCode("a LEB128 integer with more bytes or bits than its type has", _DAMAGED),
        "malformed": FindingCode("a flag or kind byte that the format does not have", _DAMAGED),
        "trailing_bytes": FindingCode("bytes left over at the end of a section", _DAMAGED),
        "unknown_section": FindingCode("a section id that the format does not have", _DAMAGED),
        "duplicate_section": FindingCode("a second section of a kind that may stand once", _DAMAGED),
        "section_order": FindingCode("a section that stands after one it must precede", _DAMAGED),
        "too_many_sections": FindingCode(
            "more sections than are read", "strip the custom sections, e.g. with wasm-strip"
        ),
        "function_count": FindingCode("the function section and the code section differ in length", _DAMAGED),
        "data_count": FindingCode("the data count section and the data section differ in length", _DAMAGED),
        "index_out_of_range": FindingCode("an index of something that is not there", _DAMAGED),
        "duplicate_export": FindingCode("two exports of one name", _DAMAGED),
        "name_not_utf8": FindingCode("a name that is not UTF-8", _DAMAGED),
        "bad_bounds": FindingCode("a minimum over the maximum, or more pages than a memory can have", _DAMAGED),
        # Features that are off.
        "type_form": FindingCode("a type that is not a function type", _OFF),
        "value_type": FindingCode("a value type beyond i32, i64, f32, f64 and funcref", _OFF),
        "const_expression": FindingCode("a constant expression that is not one plain instruction", _OFF),
        "tag_section": FindingCode("exception tags", "build without WebAssembly exceptions"),
        "several_memories": FindingCode("more than one memory", "build with one memory"),
        "memory64": FindingCode("a 64-bit memory", "build for wasm32"),
        "shared_memory": FindingCode("a memory shared between threads", "build without threads"),
        "custom_page_size": FindingCode("a memory with pages other than 64 KiB", "build with pages of 64 KiB"),
        "table64": FindingCode("a 64-bit table", "build for wasm32"),
        "shared_table": FindingCode("a table shared between threads", "build without threads"),
        "table_initializer": FindingCode("a table with an initial value", "build without typed function references"),
        # What the ABI asks for.
        "import": FindingCode(
            "an import: a hook is a pure function and is given nothing", "remove what needs it, or link it in"
        ),
        "start_section": FindingCode(
            "code that would run on instantiation",
            "build a reactor (clang -mexec-model=reactor), AssemblyScript with --exportStart _initialize",
        ),
        "missing_memory": FindingCode("no memory is exported as 'memory'", "export the linear memory as 'memory'"),
        "missing_hook_alloc": FindingCode("no 'hook_alloc' is exported", _ABI),
        "no_entry_point": FindingCode("none of the entry points is exported", _ABI),
        "export_kind": FindingCode("an export of the ABI is of another kind", _ABI),
        "export_signature": FindingCode("an export of the ABI has another type", _ABI),
        "manifest_repeated": FindingCode("more than one manifest section", "keep one"),
        # Ceilings.
        "module_too_large": FindingCode("the whole module", _over("module_bytes", "strip and optimise it")),
        "too_many_types": FindingCode("types", _over("types", "drop unused code")),
        "too_many_parameters": FindingCode(
            "parameters of one signature", _over("parameters", "pass a pointer to a structure")
        ),
        "too_many_results": FindingCode("results of one signature", _over("results", "return a pointer")),
        "too_many_imports": FindingCode("more imports than are read", "a hook has none: remove what needs them"),
        "too_many_functions": FindingCode("functions", _over("functions", "drop unused code")),
        "body_too_large": FindingCode("one function body", _over("body_bytes", "split the function, or inline less")),
        "too_many_locals": FindingCode(
            "locals of one function", _over("locals", "split the function, or optimise the build")
        ),
        "too_many_local_groups": FindingCode(
            "declarations of locals in the whole module", "optimise the build, e.g. with wasm-opt"
        ),
        "too_many_tables": FindingCode("tables", _over("tables", "use one")),
        "table_too_large": FindingCode("the minimum of one table", _over("table_elements", "declare less")),
        "memory_too_large": FindingCode("the minimum of the memory", _over("memory_bytes", "declare less and grow")),
        "too_many_globals": FindingCode("globals", _over("globals", "keep them in linear memory")),
        "too_many_exports": FindingCode("exports", _over("exports", "export the ABI's names only")),
        "too_many_element_segments": FindingCode("element segments", _over("element_segments", "merge them")),
        "too_many_elements": FindingCode(
            "what the element segments hold together", _over("table_elements", "use fewer")
        ),
        "too_many_data_segments": FindingCode("data segments", _over("data_segments", "merge them")),
        "name_too_long": FindingCode("a name", _over("name_bytes", "choose a shorter one")),
        "function_names": FindingCode(
            "a name section that is damaged, names more functions than there may be, or has a very long name in it",
            "strip it, e.g. with wasm-strip: nothing but backtraces needs it",
        ),
        "custom_too_large": FindingCode("all custom sections together", _over("custom_bytes", "strip debug sections")),
        "manifest_too_large": FindingCode("the manifest section", _over("manifest_bytes", "shorten it")),
        # What the compiler says, which sees the code too.
        "invalid_module": FindingCode("wasmtime's validator refuses the module", _OFF),
        "compile_limit": FindingCode(
            "compiling the module takes more than it may", "split large functions and flatten deeply nested blocks"
        ),
        "more": FindingCode("findings that were counted but not kept", "mend those that are listed, then look again"),
    }
)
"""Code → meaning and hint. Stable: a code is never renamed, and means the same for good."""


class Findings:
    """Findings in the order they were made, bounded, with a count of what was left out."""

    __slots__ = ("_kept", "_left_out", "_seen")

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self._seen: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def add(
        self,
        code: str,
        what: str,
        *,
        value: int | str | None = None,
        limit: int | str | None = None,
        hint: str | None = None,
    ) -> None:
        """Note a finding of our own table. ``what`` and a text ``value`` are escaped already."""
        hint = hint or FINDING_CODES[code].hint
        self._keep(Finding(code=code, what=what, value=value, limit=limit, hint=hint))

    def malformed(self, where: str, bad: Malformed, *, hint: str | None = None) -> None:
        """Note what stopped the reading of ``where``."""
        self.add(bad.code, f"{where}: {bad.what} at byte {bad.offset:_}", value=bad.value, hint=hint)

    def extend(self, findings: Iterable[Finding]) -> None:
        """Note findings that somebody else made, under the same bound."""
        for finding in findings:
            self._keep(finding)

    def all(self) -> tuple[Finding, ...]:
        """What was kept, then one ``more`` with how many were not."""
        if not self._left_out:
            return tuple(self._kept)
        count = self._left_out.total()
        codes = ", ".join(f"{code} {n:_}" for code, n in self._left_out.most_common(10))
        more = Finding(code="more", what=f"findings not listed ({codes})", value=count, hint=FINDING_CODES["more"].hint)
        return (*self._kept, more)

    def _keep(self, finding: Finding) -> None:
        self._seen[finding.code] += 1
        seen = self._seen[finding.code]
        room = len(self._kept) < FINDINGS_KEPT and seen <= FINDINGS_KEPT_PER_CODE
        if room or (seen == 1 and len(self._seen) <= _DISTINCT_CODES):
            self._kept.append(finding)
        else:
            self._left_out[finding.code] += 1
