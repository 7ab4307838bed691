"""A strict reader of the WebAssembly binary format: what a module holds, by its sections alone.

Nothing is compiled, and function bodies are stepped over by their size (only their local declarations are added up).
Whatever the bytes, the outcome is a `Module` and findings, in time bounded by the limits: every count, length and index
is checked before anything is read by it, and what is wrong in one section does not stop the reading of the next.

```
module   = "\\0asm" version section*
section  = id size content          size is checked against the module's end
content  = custom | sections.CONTENTS[name]
```

Source: WebAssembly core specification, "Binary Format", "Modules".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .binary import Cursor, Malformed
from .function_names import fault_of_names
from .grammar import SectionReader
from .guest_text import escape
from .sections import CONTENTS
from .shape import Module, Section

if TYPE_CHECKING:
    from .findings import Findings
    from .limits import ModuleLimits

__all__ = ["known", "read_module"]

SECTIONS_READ = 256
"""Sections read. A module has at most 13 standard ones; real toolchains add about twenty custom ones."""

_NAMES = {
    0: "custom",
    1: "type",
    2: "import",
    3: "function",
    4: "table",
    5: "memory",
    6: "global",
    7: "export",
    8: "start",
    9: "element",
    10: "code",
    11: "data",
    12: "data_count",
    13: "tag",
}

# The order in the file is the order of the ids, but for two that came later.
_ORDER = {name: number * 2 for number, name in _NAMES.items()} | {"tag": 5 * 2 + 1, "data_count": 9 * 2 + 1}

_MAGIC = b"\0asm"
_CORE, _COMPONENT_LAYER = b"\x01\0\0\0", b"\x01\0"


def read_module(wasm: bytes, *, limits: ModuleLimits, manifest_section: str, findings: Findings) -> Module:
    """What ``wasm`` holds; everything wrong with its form or over ``limits`` goes to ``findings``.

    Args:
        wasm: Untrusted bytes, of any size.
        manifest_section: Custom section whose content is kept, unread.
    """
    module = Module()
    if not _is_core_module(wasm, findings):
        return module
    cursor = Cursor(wasm, 8, len(wasm))
    highest = 0
    try:
        while cursor.left:
            if len(module.sections) == SECTIONS_READ:
                findings.add("too_many_sections", f"more sections at byte {cursor.offset:_}", limit=SECTIONS_READ)
                return module
            section = _next_section(cursor, module, manifest_section, limits, findings)
            if section in _ORDER and section != "custom":
                if _ORDER[section] < highest:
                    findings.add("section_order", f"the {section} section stands too late", value=section)
                highest = max(highest, _ORDER[section])
        module.whole = True
    except Malformed as bad:
        # The head of a section: without a size there is no next one.
        hint = "cut short, or something was added after the last section"
        findings.malformed(f"section {len(module.sections)}", bad, hint=hint)
    if module.custom_bytes > limits.custom_bytes:
        findings.add("custom_too_large", "custom sections, bytes", value=module.custom_bytes, limit=limits.custom_bytes)
    _check_counts(module, findings)
    _check_indices(module, findings)
    return module


def _count(module: Module, section: str) -> int | None:
    """How many entries a section declares, 0 when it is not there, None when that is not known."""
    if section in module.declared:
        return module.declared[section]
    absent = module.whole and section not in module.partial
    return 0 if absent else None


def known(module: Module, *sections: str) -> bool:
    """Whether all of these sections were read to their end, or are certain not to be there."""
    return all(section not in module.partial and (module.whole or section in module.declared) for section in sections)


def _is_core_module(wasm: bytes, findings: Findings) -> bool:
    if wasm[:4] != _MAGIC:
        if wasm[:1024].lstrip().startswith((b"(", b";;")):
            findings.add("text", "WebAssembly text", value=escape(wasm[:1024].lstrip(), characters=20))
        else:
            findings.add("no_magic", "first bytes", value=wasm[:4].hex(" "), limit=_MAGIC.hex(" "))
        return False
    version = wasm[4:8]
    if version == _CORE:
        return True
    # A component has the same magic, a version of its own, and 1 where a core module's version has its upper half.
    if version[2:] == _COMPONENT_LAYER:
        findings.add("component", "a component", value=version.hex(" "))
    else:
        findings.add("wrong_version", "version", value=version.hex(" "), limit=_CORE.hex(" "))
    return False


def _next_section(
    cursor: Cursor, module: Module, manifest_section: str, limits: ModuleLimits, findings: Findings
) -> str:
    """Read one section whole and step over it; its standard name. Raises `Malformed` only for its head."""
    code = cursor.byte()
    size = cursor.u32()
    if size > cursor.left:
        raise cursor.truncated(f"a section of {size:_} bytes")
    name = _NAMES.get(code, "unknown")
    reader = SectionReader(cursor, size, section=name, module=module, limits=limits, findings=findings)
    shown = name
    first = not any(section.id == code for section in module.sections)
    if code == 0:
        shown = _custom(reader, manifest_section)
    elif name == "unknown":
        findings.add("unknown_section", f"a section at byte {reader.offset:_}", value=code)
    elif not first:
        # The first one counts. Nothing is concluded from either: the sections that refer to it may mean the other.
        findings.add("duplicate_section", f"another {name} section", value=name)
        module.partial.add(name)
    else:
        _content(reader)
    module.sections.append(Section(name=shown, id=code, bytes=size))
    cursor.skip(size, "section")
    return name


def _content(reader: SectionReader) -> None:
    """Read a standard section's content; what is wrong in it stays in it."""
    section = reader.section
    try:
        CONTENTS[section](reader)
        reader.module.declared.setdefault(section, 1)
        if reader.left and not reader.partial:
            reader.findings.add("trailing_bytes", f"bytes left in the {section} section", value=reader.left)
            reader.partial = True
    except Malformed as bad:
        reader.findings.malformed(f"{section} section", bad)
        reader.partial = True
    if reader.partial:
        reader.module.partial.add(section)


def _custom(reader: SectionReader, manifest_section: str) -> str:
    """Measure a custom section, and keep it when it is the manifest; its name, escaped."""
    module, limits, findings = reader.module, reader.limits, reader.findings
    module.custom_bytes += reader.left
    try:
        raw = reader.name("name of a custom section")
    except Malformed as bad:
        findings.malformed("custom section", bad)
        return "?"
    if raw == b"name":
        try:
            fault = fault_of_names(reader, limits.functions)
        except Malformed as bad:
            findings.add("function_names", f"name section: {bad.what} at byte {bad.offset:_}", value=bad.value)
        else:
            if fault is not None:
                what, value, limit = fault
                findings.add("function_names", what, value=value, limit=limit)
    elif raw == manifest_section.encode():
        if reader.left > limits.manifest_bytes:
            findings.add("manifest_too_large", "manifest, bytes", value=reader.left, limit=limits.manifest_bytes)
            module.manifests.append(None)
        else:
            module.manifests.append(reader.take(reader.left, "manifest"))
    return escape(raw)


def _check_counts(module: Module, findings: Findings) -> None:
    declared, bodies = _count(module, "function"), _count(module, "code")
    if declared is not None and bodies is not None and declared != bodies:
        findings.add("function_count", "function bodies, against functions declared", value=bodies, limit=declared)
    # Without the section nothing was promised.
    promised, segments = module.declared.get("data_count"), _count(module, "data")
    if promised is not None and segments is not None and promised != segments:
        findings.add("data_count", "data segments, against the data count section", value=segments, limit=promised)


def _check_indices(module: Module, findings: Findings) -> None:
    """Hold the largest index into each space against the space, where all of the space was read."""
    for space, (index, where) in module.uses.items():
        sections = (space,) if space == "type" else ("import", space)
        if not known(module, *sections):
            continue
        size = module.declared.get(space, 0) + module.imported.get(space, 0)
        if index >= size:
            findings.add("index_out_of_range", f"{where} refers to {space}", value=index, limit=size)
