"""Rewriting modules: what is not asked to change keeps its bytes, what is rewritten is still a hook, what is damaged
is said to be so."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path

import pytest
import wasmtime
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell_guest.sections import (
    CODE,
    DATA,
    DATA_COUNT,
    Export,
    RewriteFailed,
    content_of,
    custom_name,
    exports_of,
    globals_of,
    memory_of,
    put_memory,
    put_section,
    read_sections,
    signed,
    unsigned,
    write_sections,
)
from hookcell_guest.wasm import add_data, add_exports, remove_exports, set_custom
from hookcell_sandbox import AdmissionPolicy, ModuleReport, admit
from hookcell_sandbox.binary import Cursor
from hookcell_sandbox.settings import EngineSettings, config

from ..sandbox import wasm_bytes as made  # noqa: TID252 tests are no package that could be named

MODULES = Path(__file__).parents[2] / "fixtures" / "modules"
POLICY = AdmissionPolicy(entry_points=frozenset({"pre_tool_call"}))
PAGE = 64 * 1024


@cache
def engine() -> wasmtime.Engine:
    return wasmtime.Engine(config(EngineSettings()))


# One that is alive when the interpreter tears its own down complains on standard error.
atexit.register(engine.cache_clear)

HOOK = bytes(
    wasmtime.wat2wasm("""
      (module
        (memory (export "memory") 1 2)
        (global $seen (mut i64) (i64.const -7))
        (data (i32.const 16) "\\81\\a4deny\\a2no")
        (func (export "hook_alloc") (param i32) (result i32) (i32.const 1024))
        (func $deny (export "pre_tool_call") (param i32 i32) (result i64) (i64.const 0x0000_0010_0000_0009))
        (func (export "build_time") (result i64) (global.get $seen))
        (@custom "first" "of no concern"))""")
)


def admitted(wasm: bytes) -> ModuleReport:
    """The report of a module that is admitted and compiles."""
    report = admit(wasm, POLICY)
    wasmtime.Module.validate(engine(), wasm)
    return report


def padded(number: int, width: int) -> bytes:
    return made.u(number, width=width)


names = st.text(st.characters(codec="utf-8"), max_size=20)
segments = st.lists(st.tuples(st.integers(0, PAGE - 40), st.binary(max_size=40)), max_size=6)
customs = st.lists(st.tuples(names, st.binary(max_size=40)), max_size=3)


@st.composite
def hooks(draw: st.DrawFn) -> bytes:
    """Modules that are admitted, with data, globals, custom sections between the others, and padded sizes."""
    taken = {"memory", "hook_alloc", "pre_tool_call", "_initialize", "hook_log"}
    more = draw(st.sets(names.filter(lambda name: name not in taken), max_size=4))
    data = [made.data_segment(address, content) for address, content in draw(segments)]
    contents = {
        **made.HOOK,
        "global": made.vec([made.global_(made.I32, made.i32(draw(st.integers(-(2**31), 2**31 - 1))), mutable=True)]),
        "export": made.exports(*(made.export(name, made.FUNCTION, 1) for name in sorted(more))),
        "data": made.vec(data) if data or draw(st.booleans()) else None,
        "data_count": made.u(len(data)) if data and draw(st.booleans()) else None,
    }
    out = made.PREAMBLE
    for kind, number in made.IDS.items():
        content = contents.get(kind)
        for name, raw in draw(customs):
            if name not in ("hookcell", "name"):
                out += made.custom(name, raw)
        if content is not None:
            out += bytes((number,)) + padded(len(content), draw(st.sampled_from([1, 5]))) + content
    return out


# --- reading and writing ----------------------------------------------------------------------------------------------


@given(hooks())
def test_what_is_read_is_written_byte_for_byte(wasm: bytes) -> None:
    admitted(wasm)
    assert write_sections(read_sections(wasm)) == wasm


@pytest.mark.parametrize("path", sorted(MODULES.rglob("*.wat")), ids=lambda path: path.stem)
def test_every_fixture_that_is_a_core_module_is_read_and_written_byte_for_byte(path: Path) -> None:
    wasm = bytes(wasmtime.wat2wasm(path.read_text("utf-8")))
    if path.stem == "component":
        with pytest.raises(RewriteFailed, match="no core WebAssembly module"):
            read_sections(wasm)
    else:
        assert write_sections(read_sections(wasm)) == wasm


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_an_unsigned_integer_reads_as_it_was_written(number: int, width: int) -> None:
    written = unsigned(number, least_bytes=width)
    cursor = Cursor(written, 0, len(written))
    assert (cursor.u32(), cursor.left) == (number, 0)
    assert len(written) >= width


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_signed_integer_reads_as_it_was_written(number: int) -> None:
    written = signed(number)
    cursor = Cursor(written, 0, len(written))
    assert (cursor.s64(), cursor.left) == (number, 0)


def test_a_size_over_32_bits_is_refused() -> None:
    unsigned(2**32 - 1)
    with pytest.raises(RewriteFailed, match="4_294_967_296"):
        unsigned(2**32)


# --- exports ----------------------------------------------------------------------------------------------------------


@given(hooks(), names.filter(lambda name: name not in ("memory", "hook_alloc", "pre_tool_call", "hook_log")))
def test_an_export_that_is_added_and_removed_leaves_the_module_as_it_was(wasm: bytes, name: str) -> None:
    if name.encode() in {export.name for export in exports_of(read_sections(wasm))}:
        with pytest.raises(RewriteFailed, match="two exports"):
            add_exports(wasm, [Export(name.encode(), made.GLOBAL, 0)])
        return
    more = add_exports(wasm, [Export(name.encode(), made.GLOBAL, 0)])
    if name != "_initialize":
        assert len(admitted(more).exports) == len(admitted(wasm).exports) + 1
    fewer = remove_exports(more, {name})
    assert exports_of(read_sections(fewer)) == exports_of(read_sections(wasm))
    assert admitted(fewer).sections == admitted(wasm).sections


def test_only_the_exports_that_are_named_go() -> None:
    without = remove_exports(HOOK, {"build_time"})
    assert [export.name for export in admitted(without).exports] == ["memory", "hook_alloc", "pre_tool_call"]
    changed = [(a, b) for a, b in zip(read_sections(HOOK), read_sections(without), strict=True) if a != b]
    assert len(changed) == 1


def test_removing_what_is_not_there_is_an_error() -> None:
    with pytest.raises(RewriteFailed, match=r"the module exports no 'bui\\x0ald', 'x'"):
        remove_exports(HOOK, {"build_time", "x", "bui\nld"})


# --- data -------------------------------------------------------------------------------------------------------------


@given(hooks(), st.integers(0, PAGE), st.binary(max_size=200))
def test_data_that_is_added_is_there_last(wasm: bytes, address: int, content: bytes) -> None:
    before = admitted(wasm)
    if address + len(content) > PAGE:
        with pytest.raises(RewriteFailed, match="leave the memory's minimum"):
            add_data(wasm, address, content)
        return
    rewritten = add_data(wasm, address, content)
    after = admitted(rewritten)
    assert (after.data_segments, after.data_bytes) == (before.data_segments + 1, before.data_bytes + len(content))
    store = wasmtime.Store(engine())
    store.set_fuel(1_000_000)
    memory = wasmtime.Instance(store, wasmtime.Module(engine(), rewritten), []).exports(store)["memory"]
    assert isinstance(memory, wasmtime.Memory)
    assert bytes(memory.read(store, address, address + len(content))) == content


def test_data_is_held_against_the_memorys_minimum() -> None:
    admitted(add_data(HOOK, PAGE - 4, b"four"))
    for address, content in ((PAGE - 3, b"four"), (-1, b""), (PAGE + 1, b""), (2**32, b"")):
        with pytest.raises(RewriteFailed, match="minimum of 65_536 bytes"):
            add_data(HOOK, address, content)


def test_an_address_in_the_upper_half_is_written_as_the_signed_number_that_it_is() -> None:
    large = write_sections(put_memory(read_sections(HOOK), 65_536, None))
    content = content_of(read_sections(add_data(large, 2**32 - 2, b"xy")), DATA)
    assert content is not None
    assert content.endswith(b"\0\x41\x7e\x0b\2xy")


def test_a_data_count_is_kept_in_step() -> None:
    sections = put_section(read_sections(HOOK), DATA_COUNT, b"\1")
    admitted(write_sections(sections))
    rewritten = add_data(write_sections(sections), 0, b"x")
    assert content_of(read_sections(rewritten), DATA_COUNT) == b"\2"
    admitted(rewritten)


# --- custom sections --------------------------------------------------------------------------------------------------


@given(hooks(), st.binary(max_size=300))
def test_a_custom_section_is_added_and_then_replaced_in_its_place(wasm: bytes, content: bytes) -> None:
    added = set_custom(wasm, "hookcell", content)
    assert admitted(added).manifest == content
    assert added.startswith(wasm)
    again = set_custom(added, "hookcell", b"other")
    assert admitted(again).manifest == b"other"
    assert set_custom(again, "hookcell", content) == added


def test_others_are_kept_and_a_repeated_one_is_an_error() -> None:
    both = set_custom(set_custom(HOOK, "hookcell", b"{}"), "second", b"x")
    named = [custom_name(section) for section in read_sections(both) if section.id == 0]
    assert sorted(name for name in named if name) == [b"first", b"hookcell", b"name", b"second"]
    assert both.startswith(HOOK)
    twice = HOOK + made.custom("first", b"again")
    with pytest.raises(RewriteFailed, match="2 custom sections named 'first'"):
        set_custom(twice, "first", b"")


# --- what is damaged --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wasm", "said"),
    [
        (b"", "no core WebAssembly module"),
        (b"(module)", "no core WebAssembly module"),
        (HOOK[:-1], "cannot be read"),
        (HOOK + b"\x0e\x00", "unknown id 14"),
        (HOOK + made.section(CODE, b"\0"), "code section at byte .* is repeated or out of order"),
        (made.PREAMBLE + made.section(7, b"\0") + made.section(1, b"\0"), "type section .* out of order"),
        (HOOK + b"\0\x01\x05", "a custom section cannot be read"),
        (HOOK + made.custom("x") * 257, "more than 256 sections"),
        (HOOK + b"\0\xff\xff\xff\xff\x7f", "integer of more than 32 bits"),
    ],
)
def test_a_damaged_module_is_said_to_be_so(wasm: bytes, said: str) -> None:
    with pytest.raises(RewriteFailed, match=said):
        read_sections(wasm)


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("export", made.vec([], count=1), "export section cannot be read"),
        ("export", made.vec([made.export("x\n", 9, 0)]), r"'x\\x0a' has the unknown kind 9"),
        ("export", made.vec([]) + b"x", "1 bytes after its last entry"),
        ("memory", made.vec([]), "0 memories"),
        ("memory", made.vec([made.limits(1)] * 2), "2 memories"),
        ("memory", made.vec([made.limits(1, 2, flags=2)]), "shared"),
        ("data", made.vec([b"\3"]), "unknown flags 3"),
        ("data", made.vec([made.data_segment(0, b"abc")[:-1]]), "data section cannot be read"),
        ("data", made.vec([b"\0\x41\0\x41\0\x6a\x0b\0"]), "several instructions"),
        ("data", made.vec([b"\0\xfb\0\x0b\0"]), "opcode 0xfb"),
        ("data", made.vec([]) + b"\0", "1 bytes after its last entry"),
    ],
)
def test_a_damaged_section_is_said_to_be_so(kind: str, content: bytes, said: str) -> None:
    wasm = made.hook(**{kind: content})
    with pytest.raises(RewriteFailed, match=said):
        add_data(remove_exports(wasm, set()), 0, b"x")


@pytest.mark.parametrize(
    "entry", [made.global_(made.V128, made.i32(0)), bytes((made.I32, 2)) + made.i32(0), b"\x7f\0\x41\0\x41\0\x0b"]
)
def test_a_global_of_another_kind_is_said_to_be_so(entry: bytes) -> None:
    with pytest.raises(RewriteFailed):
        globals_of(read_sections(made.hook(**{"global": made.vec([entry])})))


@settings(max_examples=300)
@given(hooks(), st.integers(0, 2**30), st.integers(0, 255), st.booleans())
def test_whatever_the_bytes_nothing_but_the_declared_error_comes_out(
    wasm: bytes, at: int, byte: int, cut: bool
) -> None:
    at %= len(wasm)
    damaged = wasm[:at] if cut else wasm[:at] + bytes((byte,)) + wasm[at + 1 :]
    said = ""
    try:
        sections = read_sections(damaged)
        assert write_sections(sections) == damaged
        globals_of(sections)
        memory_of(sections)
        add_exports(damaged, [])
        add_data(damaged, 0, b"x")
        set_custom(damaged, "hookcell", b"{}")
    except RewriteFailed as failure:
        said = str(failure)
    assert said.isprintable()
