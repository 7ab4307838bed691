"""Reads the content of each kind of section into a `Module`, bounded by the limits.

Every function takes a `SectionReader` that stands at the section's content. It may raise `Malformed`: the rest of
the section is then left unread, and the walk goes on with the next one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .binary import Malformed
from .guest_text import escape
from .shape import Constant, Global, Import

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .grammar import SectionReader

__all__ = ["CONTENTS"]

IMPORTS_READ = 1_000
"""Imports read. Each is refused, so this bounds only how much is said about it; a WASI module has about twenty."""

LOCAL_GROUPS_READ = 200_000
"""Declarations of locals read in one module, ten for each of 20,000 functions: two bytes each could hold 8 million."""

_KINDS = {0: "function", 1: "table", 2: "memory", 3: "global", 4: "tag"}

# What nearly every data segment has before its size: passive, or active in memory 0 at an i32.const. A module may have
# 100,000, and one match costs a fifth of the calls it stands for.
_DATA_HEAD = re.compile(
    rb"\x01|(?:\x00|\x02\x00)\x41(?:[\x80-\xff]{0,3}[\x00-\x7f]|[\x80-\xff]{4}[\x00-\x07\x78-\x7f])\x0b"
)


def _types(reader: SectionReader) -> None:
    for index in reader.entries(reader.limits.types, "too_many_types", "types"):
        reader.module.types.append(reader.function_type(f"type {index}"))


def _imports(reader: SectionReader) -> None:
    module = reader.module
    for index in reader.entries(IMPORTS_READ, "too_many_imports", "imports"):
        where = f"import {index}"
        source, name = reader.name(f"module name of {where}"), reader.name(f"name of {where}")
        kind = _kind(reader, where)
        if kind == "function":
            module.imported_functions.append(_type_index(reader, where))
        elif kind == "table":
            module.tables.append(reader.table_bounds())
        elif kind == "memory":
            module.memories.append(reader.memory_bounds())
        elif kind == "global":
            module.imported_globals.append(reader.global_type(where))
        else:
            _tag(reader, where)
        module.imported[kind] = module.imported.get(kind, 0) + 1
        module.imports.append(Import(module=escape(source), name=escape(name), kind=kind))


def _functions(reader: SectionReader) -> None:
    functions = reader.module.functions
    for _ in reader.entries(reader.limits.functions, "too_many_functions", "functions"):
        functions.append(reader.u32())
    if functions:
        largest = max(functions)
        reader.use("type", largest, f"function {functions.index(largest)}")


def _tables(reader: SectionReader) -> None:
    for _ in reader.entries(reader.limits.tables, "too_many_tables", "tables"):
        if reader.left and reader.buffer[reader.offset] == 0x40:
            # A table with an initial value: 0x40 0x00, the table, an expression.
            reader.skip(1, "a table's form")
            if reserved := reader.byte():
                raise reader.malformed("form of a table", reserved)
            reader.needs("function_references", "table_initializer", "a table")
            reader.module.tables.append(reader.table_bounds())
            reader.constant("a table's initial value")
        else:
            reader.module.tables.append(reader.table_bounds())


def _memories(reader: SectionReader) -> None:
    for _ in reader.entries(1, "several_memories", "memories"):
        reader.module.memories.append(reader.memory_bounds())
    if reader.partial:
        reader.module.features.add("multi_memory")


def _tags(reader: SectionReader) -> None:
    # Read to no end but its count: none is admitted, and an export of one needs no more than to be told what it is.
    reader.module.features.add("exceptions")
    count = reader.u32()
    reader.module.declared[reader.section] = count
    reader.findings.add("tag_section", "exception tags", value=count)
    reader.partial = True


def _globals(reader: SectionReader) -> None:
    for index in reader.entries(reader.limits.globals, "too_many_globals", "globals"):
        where = f"global {index}"
        shape = reader.global_type(where)
        initial = Constant(*reader.constant(where))
        reader.module.globals.append(Global(shape.type, shape.mutable, initial))


def _exports(reader: SectionReader) -> None:
    seen: set[bytes] = set()
    for index in reader.entries(reader.limits.exports, "too_many_exports", "exports"):
        where = f"export {index}"
        name = reader.name(f"name of {where}")
        if name in seen:
            reader.findings.add("duplicate_export", where, value=escape(name))
        seen.add(name)
        kind = _kind(reader, where)
        target = reader.u32()
        reader.use(kind, target, where)
        reader.module.exports.append((name, kind, target))


def _start(reader: SectionReader) -> None:
    index = reader.u32()
    reader.use("function", index, "the start section")
    reader.findings.add("start_section", "the start section calls function", value=index)


def _elements(reader: SectionReader) -> None:
    for index in reader.entries(reader.limits.element_segments, "too_many_element_segments", "element segments"):
        where = f"element segment {index}"
        flags = reader.u32()
        if flags > 7:
            raise reader.malformed(f"flags of {where}", flags)
        active, explicit, expressions = not flags & 1, bool(flags & 2), bool(flags & 4)
        if active:
            reader.use("table", reader.u32() if explicit else 0, where)
            reader.constant(where)
        else:
            reader.module.features.add("bulk_memory")
        if explicit or expressions:
            reader.module.features.add("reference_types")
        if flags & 3:
            # Flag 0 and 4 mean funcref without saying so.
            if expressions:
                reader.reference_type(where)
            elif kind := reader.byte():
                raise reader.malformed(f"element kind of {where}", kind)
        if not _element_items(reader, where, expressions=expressions):
            return


def _element_items(reader: SectionReader, where: str, *, expressions: bool) -> bool:
    """Read one segment's items; False once all segments together hold too many to go on."""
    count = reader.u32()
    reader.module.elements += count
    if reader.module.elements > reader.limits.table_elements:
        total, limit = reader.module.elements, reader.limits.table_elements
        reader.findings.add("too_many_elements", f"elements up to {where}", value=total, limit=limit)
        reader.partial = True
        return False
    if expressions:
        for _ in range(count):
            reader.constant(where)
        return True
    largest = 0
    for _ in range(count):
        function = reader.u32()
        largest = max(largest, function)
    if count:
        reader.use("function", largest, where)
    return True


def _data_count(reader: SectionReader) -> None:
    reader.module.declared[reader.section] = reader.u32()
    reader.module.features.add("bulk_memory")


def _code(reader: SectionReader) -> None:
    module, limit, section_end = reader.module, reader.limits.body_bytes, reader.end
    functions = reader.limits.functions
    said = module.declared.get("function", 0) > functions
    for index in reader.entries(functions, "too_many_functions", "function bodies", said=said):
        size = reader.u32()
        body = reader.offset
        reader.skip(size, f"body of function {index}")
        module.largest_body_bytes = max(module.largest_body_bytes, size)
        if size > limit:
            reader.findings.add("body_too_large", f"body of function {index}, bytes", value=size, limit=limit)
        if module.local_groups > LOCAL_GROUPS_READ:
            continue
        reader.offset, reader.end = body, body + size
        try:
            _locals(reader, index)
        except Malformed as bad:
            # A body's own size says where the next one begins, so one bad body hides nothing about the others.
            reader.findings.malformed(f"locals of function {index}", bad)
        reader.offset, reader.end = body + size, section_end


def _locals(reader: SectionReader, function: int) -> None:
    """Add up one body's local declarations, ``count × type`` each, without expanding them."""
    groups = reader.u32()
    if not groups:
        return
    module, limit = reader.module, reader.limits.locals
    module.local_groups += groups
    where = f"function {function}"
    if groups > limit:
        # Empty declarations are legal and free for a compiler, but there is no end to them.
        reader.findings.add("too_many_locals", f"declarations of locals of {where}", value=groups, limit=limit)
        return
    if module.local_groups > LOCAL_GROUPS_READ:
        reader.findings.add(
            "too_many_local_groups",
            f"declarations of locals up to {where}",
            value=module.local_groups,
            limit=LOCAL_GROUPS_READ,
        )
        return
    total = reader.short_locals(groups)
    if total is None:
        total = 0
        for _ in range(groups):
            total += reader.u32()
            reader.value_type(where)
    module.most_locals = max(module.most_locals, total)
    if total > limit:
        reader.findings.add("too_many_locals", f"locals of {where}", value=total, limit=limit)


def _data(reader: SectionReader) -> None:
    buffer, match = reader.buffer, _DATA_HEAD.match
    active = passive = False
    for index in reader.entries(reader.limits.data_segments, "too_many_data_segments", "data segments"):
        if found := match(buffer, reader.offset, reader.end):
            if buffer[reader.offset] == 1:
                passive = True
            else:
                active = True
            reader.offset = found.end()
        else:
            _data_head(reader, f"data segment {index}")
        size = reader.u32()
        if size > reader.end - reader.offset:
            raise reader.truncated(f"data segment {index} of {size:_} bytes")
        reader.offset += size
        reader.module.data_bytes += size
    if active:
        reader.use("memory", 0, "a data segment")
    if passive:
        reader.module.features.add("bulk_memory")


def _data_head(reader: SectionReader, where: str) -> None:
    """A data segment up to its size, in any of its three forms, the slow way."""
    flags = reader.u32()
    if flags > 2:
        raise reader.malformed(f"flags of {where}", flags)
    if flags == 1:
        reader.module.features.add("bulk_memory")  # Only a padded flag comes here.
        return
    reader.use("memory", reader.u32() if flags == 2 else 0, where)
    reader.constant(where)


def _kind(reader: SectionReader, where: str) -> str:
    code = reader.byte()
    if code not in _KINDS:
        raise reader.malformed(f"kind of {where}", code)
    return _KINDS[code]


def _tag(reader: SectionReader, where: str) -> None:
    if attribute := reader.byte():
        raise reader.malformed(f"attribute of {where}", attribute)
    reader.module.features.add("exceptions")
    _type_index(reader, where)


def _type_index(reader: SectionReader, where: str) -> int:
    index = reader.u32()
    reader.use("type", index, where)
    return index


CONTENTS: Mapping[str, Callable[[SectionReader], None]] = {
    "type": _types,
    "import": _imports,
    "function": _functions,
    "table": _tables,
    "memory": _memories,
    "tag": _tags,
    "global": _globals,
    "export": _exports,
    "start": _start,
    "element": _elements,
    "data_count": _data_count,
    "code": _code,
    "data": _data,
}
"""Standard section name → what reads its content."""
