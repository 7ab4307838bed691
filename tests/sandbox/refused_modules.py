"""A module for every reason to refuse one, and for every ceiling one at it and one over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookcell_sandbox.limits import PAGE_BYTES, ModuleLimits

from .wasm_bytes import (
    F32,
    FUNCREF,
    FUNCTION,
    GLOBAL,
    HOOK,
    HOOK_EXPORTS,
    I32,
    I64,
    IDS,
    MEMORY,
    NOTHING,
    PREAMBLE,
    TABLE,
    TAG,
    V128,
    body,
    custom,
    data_segment,
    export,
    exports,
    functions,
    functype,
    global_,
    hook,
    i32,
    import_,
    limits,
    name,
    names,
    section,
    u,
    vec,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Refused:
    """One module that must be refused with ``code``, and with ``value`` and ``limit`` where they are given."""

    code: str
    claim: str
    wasm: bytes
    value: int | str | None = None
    limit: int | str | None = None


@dataclass(frozen=True)
class Ceiling:
    """``build(n)`` makes a module with n of what ``field`` limits."""

    code: str
    field: str
    n: int
    build: Callable[[int], bytes]
    claim: str = ""

    def limits(self) -> ModuleLimits:
        return ModuleLimits(**{self.field: self.n})


TYPES = [functype([I32], [I32]), functype([I32, I32], [I64]), functype()]
TWO_FUNCTIONS = [body(), body()]


def types(*more: bytes) -> bytes:
    return vec([*TYPES, *more])


def code(*more: bytes) -> dict[str, bytes]:
    """Function and code sections with more bodies, all of type () -> ()."""
    return functions(*[NOTHING] * len(more)) | {"code": vec([*TWO_FUNCTIONS, *more])}


def swapped(first: str, second: str) -> bytes:
    """The plain hook with two of its sections in each other's place."""
    order = [name_ for name_ in IDS if name_ in HOOK]
    a, b = order.index(first), order.index(second)
    order[a], order[b] = order[b], order[a]
    return PREAMBLE + b"".join(section(IDS[name_], HOOK[name_]) for name_ in order)


def without(*names: str) -> bytes:
    kept = zip(("memory", "hook_alloc", "pre_tool_call"), HOOK_EXPORTS, strict=True)
    return hook(export=vec([item for name_, item in kept if name_ not in names]))


def instead(name_: str, item: bytes, **contents: bytes | None) -> bytes:
    kept = zip(("memory", "hook_alloc", "pre_tool_call"), HOOK_EXPORTS, strict=True)
    return hook(export=vec([item if known == name_ else other for known, other in kept]), **contents)


ENVELOPE = [
    Refused("text", "text", b"(module)", "(module)"),
    Refused("text", "text after a comment", b"\n ;; a hook\n(module)", ";; a hook\\x0a(module)"),
    Refused("no_magic", "nothing", b"", ""),
    Refused("no_magic", "half of the magic", b"\0as", "00 61 73"),
    Refused("no_magic", "an ELF file", b"\x7fELF\x02\x01\x01\0", "7f 45 4c 46", "00 61 73 6d"),
    Refused("wrong_version", "no version", b"\0asm", ""),
    Refused("wrong_version", "version 2", b"\0asm\x02\0\0\0", "02 00 00 00", "01 00 00 00"),
    Refused("component", "a component", b"\0asm\x0d\0\x01\0", "0d 00 01 00"),
]

DAMAGE = [
    Refused("truncated", "a section past the end", hook() + b"\x00\x05\x01"),
    Refused("truncated", "a lone zero after the module", hook() + b"\x00"),
    Refused("truncated", "a count over what is there", hook(type=vec(TYPES, count=4))),
    Refused("truncated", "a name past its section", hook(after=section(0, b"\x09short"))),
    Refused("truncated", "a body past its section", hook(code=vec([body(), u(9) + b"\x00"]))),
    Refused("truncated", "locals past their body", hook(code=vec([body(), u(2) + b"\x01\x01"]))),
    Refused("truncated", "a data segment past its section", hook(data=vec([b"\x00" + i32(0) + u(2**32 - 1) + b"x"]))),
    Refused("truncated", "a signature past its section", hook(type=vec([*TYPES, b"\x60\x05\x7f"]))),
    Refused("bad_integer", "six bytes of u32", hook(type=b"\x83\x80\x80\x80\x80\x00" + b"".join(TYPES))),
    Refused("bad_integer", "a u32 over 32 bits", hook(type=b"\x83\x80\x80\x80\x10" + b"".join(TYPES))),
    Refused("bad_integer", "an s32 over 32 bits", hook(**{"global": vec([b"\x7f\0\x41\x80\x80\x80\x80\x08\x0b"])})),
    Refused("bad_integer", "a section size of six bytes", hook() + b"\x00\x81\x80\x80\x80\x80\x00\x00"),
    Refused("malformed", "an import kind", hook(**{"import": vec([import_("a", "b", b"\x05\x00")])}), "0x05"),
    Refused("malformed", "an export kind", hook(export=exports(export("x", 5, 0))), "0x05"),
    Refused("malformed", "a mutability", hook(**{"global": vec([b"\x7f\x04" + i32(0)])}), "0x04"),
    Refused("malformed", "flags of a memory", hook(memory=vec([limits(1, flags=0x10)])), "0x10"),
    Refused("malformed", "flags of a table", hook(table=vec([b"\x70" + limits(1, flags=0x08)])), "0x08"),
    Refused("malformed", "a table of numbers", hook(table=vec([bytes((I32,)) + limits(1)])), "0x7f"),
    Refused("malformed", "a table's form", hook(table=vec([b"\x40\x01\x70" + limits(1) + b"\xd0\x70\x0b"])), "0x01"),
    Refused("malformed", "flags of an element segment", hook(element=vec([b"\x08"])), "0x08"),
    Refused("malformed", "an element kind", hook(element=vec([b"\x01\x01" + vec([])])), "0x01"),
    Refused("malformed", "flags of a data segment", hook(data=vec([b"\x03"])), "0x03"),
    Refused("malformed", "an import's tag", hook(**{"import": vec([import_("a", "b", b"\x04\x01\x02")])}), "0x01"),
    Refused("trailing_bytes", "two bytes after the types", hook(type=vec(TYPES) + b"\0\0"), 2),
    Refused("trailing_bytes", "a byte after the start", hook(**functions(NOTHING), start=u(2) + b"\0"), 1),
    Refused("trailing_bytes", "a byte after the data count", hook(data_count=b"\0\0"), 1),
    Refused("unknown_section", "id 14", hook() + section(14, b""), 14),
    Refused("unknown_section", "rubbish after the module", hook() + b"\xff\x00", 255),
    Refused("duplicate_section", "two export sections", hook() + section(7, HOOK["export"]), "export"),
    Refused("section_order", "code before functions", swapped("function", "code"), "function"),
    Refused("section_order", "memory before types", swapped("type", "memory"), "type"),
    Refused("section_order", "data count after code", hook(after=section(12, u(0))), "data_count"),
    Refused("section_order", "data count before elements", hook(after=section(12, u(0)) + section(9, u(0))), "element"),
    Refused("section_order", "tags after globals", hook(code=None, after=section(6, u(0)) + section(13, u(0))), "tag"),
    Refused("function_count", "a body too many", hook(code=vec([body()] * 3)), 3, 2),
    Refused("function_count", "a body too few", hook(code=vec([body()])), 1, 2),
    Refused("function_count", "no bodies at all", hook(code=None), 0, 2),
    Refused("function_count", "bodies of no functions", hook(function=None), 2, 0),
    Refused("data_count", "one segment, two promised", hook(data_count=u(2), data=vec([data_segment(0, b"")])), 1, 2),
    Refused("data_count", "no segments, one promised", hook(data_count=u(1)), 0, 1),
    Refused("index_out_of_range", "a function's type", hook(function=vec([u(0), u(3)])), 3, 3),
    Refused("index_out_of_range", "an exported function", hook(export=exports(export("x", FUNCTION, 2))), 2, 2),
    Refused("index_out_of_range", "an exported table", hook(export=exports(export("x", TABLE, 0))), 0, 0),
    Refused("index_out_of_range", "an exported memory", hook(export=exports(export("x", MEMORY, 1))), 1, 1),
    Refused("index_out_of_range", "an exported global", hook(export=exports(export("x", GLOBAL, 0))), 0, 0),
    Refused("index_out_of_range", "an exported tag", hook(export=exports(export("x", TAG, 0))), 0, 0),
    Refused("index_out_of_range", "the start function", hook(start=u(2)), 2, 2),
    Refused("index_out_of_range", "an element", hook(element=vec([b"\x01\x00" + vec([u(2), u(0)])])), 2, 2),
    Refused("index_out_of_range", "the table of elements", hook(element=vec([b"\x00" + i32(0) + vec([])])), 0, 0),
    Refused("index_out_of_range", "the memory of data", hook(data=vec([b"\x02\x01" + i32(0) + u(0)])), 1, 1),
    Refused("index_out_of_range", "data of no memory", hook(memory=None, data=vec([data_segment(0, b"")])), 0, 0),
    Refused("index_out_of_range", "a global's function", hook(**{"global": vec([b"\x70\0\xd2\x02\x0b"])}), 2, 2),
    Refused("index_out_of_range", "a global's global", hook(**{"global": vec([b"\x7f\0\x23\x01\x0b"])}), 1, 1),
    Refused("duplicate_export", "two of one name", hook(export=exports(export("memory", MEMORY, 0))), "memory"),
    Refused("name_not_utf8", "an export", hook(export=exports(export(b"\xff\xfe", FUNCTION, 0))), "\\xff\\xfe"),
    Refused("name_not_utf8", "a surrogate", hook(export=exports(export(b"\xed\xa0\x80", FUNCTION, 0)))),
    Refused("name_not_utf8", "an import", hook(**{"import": vec([import_("a", b"\x80")])}), "\\x80"),
    Refused("name_not_utf8", "a custom section", hook(after=custom(b"\xc0\x80")), "\\xc0\\x80"),
    Refused("bad_bounds", "a memory's minimum over its maximum", hook(memory=vec([limits(2, 1)])), 2, 1),
    Refused("bad_bounds", "a table's minimum over its maximum", hook(table=vec([b"\x70" + limits(9, 8)])), 9, 8),
    Refused("bad_bounds", "4 GiB and a page", hook(memory=vec([limits(1, 65_537)])), 65_537, 65_536),
]
"""What no engine accepts, whatever its features."""

FEATURES = [
    Refused("type_form", "a struct", hook(type=types(b"\x5f\x00")), "struct"),
    Refused("type_form", "a recursion group", hook(type=types(b"\x4e\x00")), "rec"),
    Refused("type_form", "no type form at all", hook(type=types(b"\x00")), "0x00"),
    Refused("value_type", "a vector in a signature", hook(type=types(functype([V128]))), "v128"),
    Refused("value_type", "a vector in a local", hook(**code(body(groups=[(1, V128)]))), "v128"),
    Refused("value_type", "a vector global", hook(**{"global": vec([b"\x7b\0" + i32(0)])}), "v128"),
    Refused("value_type", "a typed reference", hook(type=types(b"\x60\x01\x63\x02\x00")), "ref null"),
    Refused("value_type", "a null of any reference", hook(**{"global": vec([b"\x70\0\xd0\x6e\x0b"])}), "anyref"),
    Refused("value_type", "a null of a typed reference", hook(**{"global": vec([b"\x70\0\xd0\x02\x0b"])}), "concrete"),
    Refused("value_type", "an exception", hook(type=types(functype([0x69]))), "exnref"),
    Refused("value_type", "no type at all", hook(type=types(functype([0x40]))), "0x40"),
    Refused("const_expression", "an addition", hook(**{"global": vec([b"\x7f\0\x41\0\x41\0\x6a\x0b"])})),
    Refused("const_expression", "nothing", hook(**{"global": vec([b"\x7f\0\x0b"])}), "opcode 0x0b"),
    Refused("const_expression", "a call", hook(data=vec([b"\0\x10\0\x0b\0"])), "opcode 0x10"),
    Refused("const_expression", "a vector", hook(**{"global": vec([b"\x7f\0\xfd\x0c" + bytes(16) + b"\x0b"])})),
    Refused("tag_section", "one tag", hook(tag=vec([b"\0" + u(NOTHING)])), 1),
    Refused("several_memories", "two memories", hook(memory=vec([limits(1)] * 2)), 2, 1),
    Refused("memory64", "a 64-bit memory", hook(memory=vec([limits(1, flags=4)]))),
    Refused("shared_memory", "a shared memory", hook(memory=vec([limits(1, 2, flags=2)]))),
    Refused("custom_page_size", "pages of a byte", hook(memory=vec([limits(1, flags=8) + u(0)])), 1),
    Refused("custom_page_size", "a shift by two billion", hook(memory=vec([limits(1, flags=8) + u(2**31)])), 2**31),
    Refused("table64", "a 64-bit table", hook(table=vec([b"\x70" + limits(1, flags=4)]))),
    Refused("shared_table", "a shared table", hook(table=vec([b"\x70" + limits(1, 2, flags=2)]))),
    Refused("table_initializer", "a table's value", hook(table=vec([b"\x40\0\x70" + limits(1) + b"\xd0\x70\x0b"]))),
]

WASI = import_("wasi_snapshot_preview1", "fd_write")

ABI = [
    Refused("import", "a function", hook(**{"import": vec([WASI])}), "wasi_snapshot_preview1.fd_write"),
    Refused("import", "a table", hook(**{"import": vec([import_("e", "t", b"\x01\x70" + limits(1))])}), "e.t"),
    Refused("import", "a memory", hook(**{"import": vec([import_("e", "m", b"\x02" + limits(1))])}), "e.m"),
    Refused("import", "a global", hook(**{"import": vec([import_("e", "g", b"\x03\x7f\x01")])}), "e.g"),
    Refused("import", "a tag", hook(**{"import": vec([import_("e", "x", b"\x04\x00\x02")])}), "e.x"),
    Refused("start_section", "code that runs first", hook(**functions(NOTHING), start=u(2)), 2),
    Refused("missing_memory", "memory kept to itself", without("memory")),
    Refused("missing_hook_alloc", "no hook_alloc", without("hook_alloc")),
    Refused("no_entry_point", "no point", without("pre_tool_call")),
    Refused("missing_memory", "no exports at all", hook(export=None)),
    Refused("export_kind", "a function called memory", instead("memory", export("memory", FUNCTION, 0)), "function"),
    Refused("export_kind", "a memory called hook_alloc", instead("hook_alloc", export("hook_alloc", MEMORY, 0))),
    Refused("export_kind", "a memory called as a point", instead("pre_tool_call", export("pre_tool_call", MEMORY, 0))),
    Refused("export_kind", "a memory called _initialize", hook(export=exports(export("_initialize", MEMORY, 0)))),
    Refused("export_kind", "a function called hook_log", hook(export=exports(export("hook_log", FUNCTION, 0)))),
    Refused("export_signature", "hook_alloc of two", instead("hook_alloc", export("hook_alloc", FUNCTION, 1))),
    Refused("export_signature", "a point of one", instead("pre_tool_call", export("pre_tool_call", FUNCTION, 0))),
    Refused("export_signature", "_initialize of one", hook(export=exports(export("_initialize", FUNCTION, 0)))),
    Refused(
        "export_signature",
        "hook_log of i64",
        hook(**{"global": vec([global_(I64, b"\x42\0\x0b")])}, export=exports(export("hook_log", GLOBAL, 0))),
        "i64",
        "i32",
    ),
    Refused("function_names", "a long name", hook(after=custom("name", names(b"x" * 16_385))), 16_385, 16_384),
    Refused("function_names", "behind other names", hook(after=custom("name", names(b"x", b"y" * 16_385)))),
    Refused("function_names", "in a second part", hook(after=custom("name", names(b"x") + names(b"y" * 16_385)))),
    Refused("function_names", "a damaged one", hook(after=custom("name", names(b"x" * 16_384) + b"\1\2\1\0"))),
    Refused("function_names", "with bytes left", hook(after=custom("name", names(b"x" * 16_384) + b"\1\2\0\0"))),
    Refused("function_names", "in 65 parts", hook(after=custom("name", b"\x07\0" * 64 + names(b"x" * 16_384))), 65, 64),
    Refused("function_names", "in a second section", hook(after=custom("name") + custom("name", names(b"x" * 16_385)))),
    Refused("manifest_repeated", "two manifests", hook(after=custom("hookcell", b"{}") * 2), 2, 1),
]

CEILINGS = [
    Ceiling("module_too_large", "module_bytes", 300, lambda n: hook() + padding(n - len(hook()))),
    Ceiling("too_many_types", "types", 5, lambda n: hook(type=types(*[functype()] * (n - 3)))),
    Ceiling("too_many_parameters", "parameters", 32, lambda n: hook(type=types(functype([I32] * n)))),
    Ceiling("too_many_results", "results", 4, lambda n: hook(type=types(functype([], [F32] * n)))),
    Ceiling("too_many_functions", "functions", 6, lambda n: hook(**functions(*[NOTHING] * (n - 2)))),
    Ceiling("body_too_large", "body_bytes", 100, lambda n: hook(**code(body(b"\x01" * (n - 2))))),
    Ceiling("too_many_locals", "locals", 50, lambda n: hook(**code(body(groups=[(n - 7, I32), (7, I64)])))),
    Ceiling("too_many_locals", "locals", 9, lambda n: hook(**code(body(groups=[(0, I32)] * n))), "empty groups"),
    Ceiling("too_many_tables", "tables", 2, lambda n: hook(table=vec([b"\x70" + limits(1)] * n))),
    Ceiling("table_too_large", "table_elements", 70, lambda n: hook(table=vec([b"\x70" + limits(n)]))),
    Ceiling("memory_too_large", "memory_bytes", PAGE_BYTES, lambda n: hook(memory=vec([limits(-(-n // PAGE_BYTES))]))),
    Ceiling("too_many_globals", "globals", 4, lambda n: hook(**{"global": vec([global_(I32, i32(0))] * n)})),
    Ceiling("too_many_exports", "exports", 6, lambda n: hook(export=exports(*[extra(i) for i in range(n - 3)]))),
    Ceiling("too_many_element_segments", "element_segments", 3, lambda n: hook(element=vec([b"\x01\0\0"] * n))),
    Ceiling("too_many_elements", "table_elements", 9, lambda n: hook(element=elements(n - 4, 4)), "of two segments"),
    Ceiling("too_many_data_segments", "data_segments", 5, lambda n: hook(data=vec([b"\x01\0"] * n))),
    Ceiling("name_too_long", "name_bytes", 20, lambda n: hook(export=exports(export("é" * 5 + "x" * (n - 10), 0, 0)))),
    Ceiling("name_too_long", "name_bytes", 20, lambda n: hook(after=custom("x" * n)), "of a custom section"),
    Ceiling(
        "function_names",
        "functions",
        9,
        lambda n: hook(after=custom("name", names(*[b"x" * 4_096] * 5) + names(*[b""] * (n - 5)))),
    ),
    Ceiling(
        "custom_too_large",
        "custom_bytes",
        90,
        lambda n: hook(after=custom("a", bytes(40)) + custom("b", bytes(n - 44))),
    ),
    Ceiling("manifest_too_large", "manifest_bytes", 25, lambda n: hook(after=custom("hookcell", bytes(n)))),
]
"""Each ceiling of ModuleLimits, lowered so that the modules stay small."""


def extra(number: int) -> bytes:
    return export(f"extra {number}", FUNCTION, 0)


def elements(*counts: int) -> bytes:
    """Passive segments, functions and expressions by turns."""
    forms = [b"\x01\0", bytes((5, FUNCREF))]
    items = [u(0), b"\xd2\0\x0b"]
    return vec(forms[i % 2] + vec([items[i % 2]] * count) for i, count in enumerate(counts))


def padding(size: int) -> bytes:
    """A custom section of ``size`` bytes in all, its size written in two bytes."""
    return b"\0" + u(size - 3, width=2) + name("pad") + bytes(size - 3 - 4)


REFUSED = [*ENVELOPE, *DAMAGE, *FEATURES, *ABI]
