"""Snapshots: the same hook, with its setup behind it; and a refusal by name of whatever cannot be carried."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st

from hookcell import GuestHook, HookRegistry, RunFacts, run_point_sync
from hookcell_guest import build_c
from hookcell_guest.instructions import STATE_CHANGES, find_state_change
from hookcell_guest.sections import RewriteFailed, exports_of, globals_of, memory_of, read_sections
from hookcell_guest.snapshot import SnapshotRefused, _segments, snapshot, take_snapshot
from hookcell_sandbox import AdmissionPolicy, Completion, GuestTrap, Limits, ModuleRejected, Sandbox, admit

from ..sandbox import wasm_bytes as made  # noqa: TID252 tests are no package that could be named

HERE = Path(__file__).parent
POLICY = AdmissionPolicy(entry_points=frozenset({"pre_tool_call"}))
PAGE = 64 * 1024

# `pre_tool_call` gives back all that the setup could have changed.
HOOK = """
(module
  (memory (export "memory") 1 4)
  (table (export "table") 2 funcref)
  (elem (i32.const 0) $seven $eight)
  (data (i32.const 16) "before")
  (data (i32.const 100) "gone")
  (global $i (mut i32) (i32.const 1))
  (global $l (export "long") (mut i64) (i64.const 1))
  (global $f (mut f32) (f32.const 1))
  (global $d (mut f64) (f64.const 1))
  (global $fixed i32 (i32.const 42))
  (global (export "global 0") i32 (i32.const 1))
  (func $seven (result i32) (i32.const 7))
  (func $eight (result i32) (i32.const 8))
  (func (export "_initialize")
    (global.set $i (i32.const -5))
    (global.set $l (i64.const 0x8000000000000000)))
  (func (export "setup") (result i64)
    (global.set $f (f32.reinterpret_i32 (i32.const 0xffa00001)))
    (global.set $d (f64.reinterpret_i64 (i64.const 0xfff0000000000001)))
    (drop (memory.grow (i32.const 2)))
    (i32.store (i32.const 190000) (i32.const 0xabcdef))
    (memory.copy (i32.const 16) (i32.const 18) (i32.const 4))
    (memory.fill (i32.const 100) (i32.const 0) (i32.const 4))
    (i64.const 0x1000000006))
  (func (export "hook_alloc") (param i32) (result i32) (i32.const 60000))
  (func (export "pre_tool_call") (param i32 i32) (result i64)
    (i32.store (i32.const 1024) (global.get $i))
    (i64.store (i32.const 1028) (global.get $l))
    (i32.store (i32.const 1036) (i32.reinterpret_f32 (global.get $f)))
    (i64.store (i32.const 1040) (i64.reinterpret_f64 (global.get $d)))
    (i32.store (i32.const 1048) (global.get $fixed))
    (i32.store (i32.const 1052) (memory.size))
    (i32.store (i32.const 1056) (call_indirect (result i32) (i32.const 1)))
    (memory.copy (i32.const 1060) (i32.const 16) (i32.const 8))
    (memory.copy (i32.const 1068) (i32.const 100) (i32.const 4))
    (if (i32.eq (memory.size) (i32.const 3)) (then (i32.store (i32.const 1072) (i32.load (i32.const 190000)))))
    (i64.const 0x0000_0400_0000_0034)))
"""
LEFT = (
    (2**32 - 5).to_bytes(4, "little")
    + (2**63).to_bytes(8, "little")
    + (0xFFA00001).to_bytes(4, "little")
    + (0xFFF0000000000001).to_bytes(8, "little")
    + (42).to_bytes(4, "little")
    + (3).to_bytes(4, "little")
    + (8).to_bytes(4, "little")
    + b"forere\0\0"
    + bytes(4)
    + (0xABCDEF).to_bytes(4, "little")
)


def wasm(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(text))


def small(more: str = "", setup: str = "", memory: str = "1") -> bytes:
    """A hook that says nothing, with a setup to try."""
    return wasm(f"""
      (module
        (memory (export "memory") {memory})
        {more}
        (func $seven (result i32) (i32.const 7))
        (func (export "_initialize") {setup})
        (func (export "hook_alloc") (param i32) (result i32) (i32.const 1024))
        (func (export "pre_tool_call") (param i32 i32) (result i64) (i64.const 0)))""")


def called(module: bytes) -> Completion:
    with Sandbox() as sandbox:
        return sandbox.run_sync(sandbox.load(module, POLICY), "pre_tool_call", b"")


def store(*places: int) -> str:
    return " ".join(f"(i32.store8 (i32.const {place}) (i32.const 1))" for place in places)


def segments_of(module: bytes) -> int:
    return admit(module, POLICY).data_segments


# --- what is carried --------------------------------------------------------------------------------------------------


def test_memory_and_globals_of_every_type_are_as_the_setup_left_them() -> None:
    taken = take_snapshot(wasm(HOOK), "setup")
    assert called(taken.wasm).output == LEFT
    assert taken.result == 0x1000000006
    assert taken.memory[16:22] == b"forere"
    assert len(taken.memory) == 3 * PAGE


def test_the_memory_starts_as_large_as_it_was_left_and_may_grow_as_far_as_before() -> None:
    assert memory_of(read_sections(snapshot(wasm(HOOK), "setup"))) == (3, 4)
    assert memory_of(read_sections(snapshot(small()))) == (1, None)


def test_what_has_run_is_exported_no_more_and_everything_else_is_under_its_own_name() -> None:
    before = [export.name for export in exports_of(read_sections(wasm(HOOK)))]
    after = [export.name for export in exports_of(read_sections(snapshot(wasm(HOOK), "setup")))]
    assert after == [name for name in before if name not in (b"_initialize", b"setup")]


def test_initialize_alone_is_a_setup_too() -> None:
    output = called(snapshot(wasm(HOOK))).output
    assert output is not None
    assert output == called(wasm(HOOK)).output
    assert b"setup" in {export.name for export in exports_of(read_sections(snapshot(wasm(HOOK))))}


def test_the_same_module_gives_the_same_bytes() -> None:
    assert snapshot(wasm(HOOK), "setup") == snapshot(wasm(HOOK), "setup")


def test_the_names_that_the_copy_exports_are_nobodys_and_stay_out() -> None:
    """The module has an export `global 0` of its own, which is not taken for the first global."""
    module = snapshot(wasm(HOOK), "setup")
    assert [export.name for export in exports_of(read_sections(module)) if b"global" in export.name] == [b"global 0"]
    assert [entry.initial for entry in globals_of(read_sections(module))][4:] == [b"\x41\x2a\x0b", b"\x41\x01\x0b"]


def test_other_sections_keep_their_bytes() -> None:
    module = small(more='(@custom "note" "kept")')
    before = set(read_sections(module))
    after = read_sections(snapshot(module))
    assert {section.id for section in after if section not in before} == {7}


def test_more_globals_than_a_hook_may_export_are_carried() -> None:
    """The copy exports each of them; the limit on a hook's exports is not the copy's."""
    count = 300
    more = "".join(f"(global $g{n} (mut i32) (i32.const 0))" for n in range(count))
    setup = "".join(f"(global.set $g{n} (i32.const {n}))" for n in range(count))
    entries = globals_of(read_sections(snapshot(small(more, setup))))
    assert [entry.initial for entry in entries] == [made.i32(n) for n in range(count)]


def test_a_setup_that_fails_makes_no_snapshot() -> None:
    with pytest.raises(GuestTrap, match="_initialize trapped: unreachable"):
        snapshot(small(setup="(unreachable)"))
    with pytest.raises(ModuleRejected, match="no function 'gone'"):
        snapshot(small(), "gone")
    with pytest.raises(RewriteFailed, match="no core WebAssembly module"):
        snapshot(b"(module)")


def test_the_setup_has_limits_of_its_own() -> None:
    module = small(
        setup="(local $n i32) (loop $l (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) "
        "(i32.const 1))) (i32.const 1000))))"
    )
    snapshot(module, limits=Limits(fuel=20_000))
    with pytest.raises(Exception, match="used all 1_000 fuel"):
        snapshot(module, limits=Limits(fuel=1_000))


# --- segments ---------------------------------------------------------------------------------------------------------


def test_gaps_up_to_4_kib_are_kept_inside_a_segment() -> None:
    assert segments_of(snapshot(small(setup=store(8, 8 + 4097)))) == 1
    assert segments_of(snapshot(small(setup=store(8, 8 + 4098)))) == 2


def test_memory_of_zeros_needs_no_data() -> None:
    module = snapshot(
        small(more='(data (i32.const 8) "abc")', setup="(memory.fill (i32.const 8) (i32.const 0) (i32.const 3))")
    )
    assert segments_of(module) == 0
    assert 11 not in {section.id for section in read_sections(module)}


@given(st.lists(st.tuples(st.integers(0, 9_000), st.binary(max_size=20)), max_size=12))
def test_segments_laid_into_zeros_are_the_memory(parts: list[tuple[int, bytes]]) -> None:
    memory = b"".join(bytes(zeros) + content for zeros, content in parts)
    laid = bytearray(len(memory))
    end = -4097
    for address, content in _segments(memory):
        assert content[0]
        assert content[-1]
        assert address - end > 4096
        assert bytes(4097) not in content
        end = address + len(content)
        laid[address:end] = content
    assert laid == memory


# --- what cannot be carried -------------------------------------------------------------------------------------------

TABLE = "(table $t 4 8 funcref) (elem $some func $seven) (elem (table $t) (i32.const 0) func $seven)"
PASSIVE = '(data $some "passive")'
THREE = "(i32.const 0) (i32.const 0) (i32.const 0)"


@pytest.mark.parametrize(
    ("code", "more", "setup"),
    [
        ("table_write", f"{TABLE} (func (table.set $t (i32.const 0) (ref.null func)))", ""),
        ("table_write", f"{TABLE} (func (drop (table.grow $t (ref.null func) (i32.const 1))))", ""),
        ("table_write", f"{TABLE} (func (table.init $t $some {THREE}))", ""),
        ("table_write", f"{TABLE} (func (table.copy $t $t {THREE}))", ""),
        ("table_write", f"{TABLE} (func (table.fill $t (i32.const 0) (ref.null func) (i32.const 0)))", ""),
        ("passive_elements", f"{TABLE} (func (elem.drop $some))", ""),
        ("passive_data", f"{PASSIVE} (func (memory.init $some {THREE}))", ""),
        ("passive_data", f"{PASSIVE} (func (data.drop $some))", ""),
        ("reference_global", "(global (mut funcref) (ref.null func))", ""),
        ("start", "(func $start) (start $start)", ""),
    ],
)
def test_what_a_snapshot_cannot_carry_is_refused_by_name(code: str, more: str, setup: str) -> None:
    """Whether it runs or not: nobody could tell before it does."""
    with pytest.raises(SnapshotRefused) as caught:
        snapshot(small(more, setup))
    assert caught.value.code == code


def test_an_import_is_refused_by_name() -> None:
    with pytest.raises(SnapshotRefused) as caught:
        snapshot(wasm('(module (import "a" "b" (func)) (memory (export "memory") 1) (func (export "_initialize")))'))
    assert caught.value.code == "import"


@pytest.mark.parametrize(
    ("more", "setup"),
    [
        (f"{TABLE} (func (drop (table.get $t (i32.const 0))) (drop (table.size $t)))", ""),
        (TABLE, "(drop (call_indirect $t (result i32) (i32.const 0)))"),
        (PASSIVE, f"(memory.copy {THREE}) (memory.fill {THREE})"),
        ("(global funcref (ref.func $seven)) (global (mut i32) (i32.const 1)) (elem declare func $seven)", ""),
        ("(func $start)", "(call $start)"),
    ],
    ids=["reading a table", "calling through it", "passive data unused", "a constant reference", "no start"],
)
def test_what_stands_next_to_it_is_carried(more: str, setup: str) -> None:
    module = snapshot(small(more, setup))
    admit(module, POLICY)
    assert called(module).output is None


def test_a_refusal_says_where() -> None:
    with pytest.raises(SnapshotRefused, match=r"function 0 of the module's own holds table\.grow"):
        snapshot(small(f"{TABLE} (func (drop (table.grow $t (ref.null func) (i32.const 1))))"))


# --- instructions -----------------------------------------------------------------------------------------------------

EVERY_SHAPE = """
  (table $t 4 funcref)
  (type $two (func (param i32) (result i32 i32)))
  (func $all (param $x i32) (result i32) (local $y i64) (local f32 f64 f64)
    (block $b (br_if $b (local.get $x)))
    (block $out (block $in (br_table $in $out $in $out (local.get $x))))
    (local.get $x) (block (type $two) (local.get $x)) (drop) (drop)
    (if (local.get $x) (then (nop)) (else (return (i32.const 0x7fffffff))))
    (loop $l (br_if $l (i32.const 0)))
    (local.set $y (i64.const 0x2626fcfc2626))
    (drop (f32.const 0x1.f8f8f8p+1)) (drop (f64.const -0x1.cfc0cfc0cfc0cp+3))
    (drop (select (result i32) (i32.const 1) (i32.const 2) (local.get $x)))
    (drop (select (i32.const 1) (i32.const 2) (local.get $x)))
    (drop (i32.trunc_sat_f64_u (f64.const 1))) (drop (i32.extend8_s (i32.const 38)))
    (i64.store offset=70000 align=1 (i32.const 0) (i64.load8_u (i32.const 252)))
    (memory.copy (i32.const 0) (i32.const 38) (i32.const 0)) (memory.fill (i32.const 0) (i32.const 0) (i32.const 0))
    (drop (memory.grow (memory.size))) (drop (table.size $t))
    (drop (ref.is_null (table.get $t (i32.const 0)))) (drop (ref.is_null (ref.func $seven)))
    (drop (call_indirect $t (result i32) (i32.const 38))) (local.tee $x (call $seven)))
  (elem declare func $seven)
"""


def test_every_shape_of_an_instruction_is_stepped_over() -> None:
    assert find_state_change(read_sections(small(EVERY_SHAPE, memory="2"))) is None


def test_what_stands_behind_every_shape_is_seen() -> None:
    text = EVERY_SHAPE.replace("(local.tee $x", "(table.set $t (i32.const 0) (ref.null func)) (local.tee $x")
    assert find_state_change(read_sections(small(text, memory="2"))) == ("table.set", 0)


def test_a_table_of_many_labels_is_stepped_over() -> None:
    blocks, labels = "(block " * 200 + ")" * 200, " ".join(str(n) for n in range(200))
    text = f"(func (param i32) {blocks.replace(' )', f' (br_table {labels} (local.get 0)))', 1)})"
    assert find_state_change(read_sections(small(text))) is None


OPCODES = {
    "memory.init": 8,
    "data.drop": 9,
    "table.init": 12,
    "elem.drop": 13,
    "table.copy": 14,
    "table.grow": 15,
    "table.fill": 17,
}


@pytest.mark.parametrize("name", sorted(OPCODES))
def test_an_opcode_that_is_padded_is_seen_all_the_same(name: str) -> None:
    assert OPCODES.keys() == set(STATE_CHANGES) - {"table.set"}  # whose opcode is one byte
    code = bytes((0, 0xFC, OPCODES[name] | 0x80, 0, 0, 0, 0x0B))
    module = made.PREAMBLE + made.section(10, made.vec([made.u(len(code)) + code]))
    assert find_state_change(read_sections(module)) == (name, 0)


def test_an_instruction_of_another_proposal_is_said_to_be_unknown() -> None:
    module = wasm("(module (func (drop (i32x4.extract_lane 0 (v128.const i64x2 0 0)))))")
    with pytest.raises(RewriteFailed, match="function 0 holds an unknown instruction at byte"):
        find_state_change(read_sections(module))


@given(st.binary(max_size=60))
def test_whatever_the_code_nothing_but_the_declared_error_comes_out(code: bytes) -> None:
    module = made.PREAMBLE + made.section(10, made.vec([made.u(len(code)) + code]))
    said = ""
    try:
        find_state_change(read_sections(module))
    except RewriteFailed as failure:
        said = str(failure)
    assert said.isprintable()


# --- a real one -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
def test_a_c_hook_behaves_the_same_with_its_setup_behind_it(tmp_path: Path) -> None:
    out = tmp_path / "table.wasm"
    build_c.build(HERE / "setup.c", out)
    whole, taken = out.read_bytes(), snapshot(out.read_bytes())
    assert taken == snapshot(whole)
    with Sandbox() as sandbox:
        fuel: list[int] = []
        for tool, kind in (("shell", "denied"), ("search", "proceed"), ("sh", "proceed")):
            decisions = []
            for module in (whole, taken):
                hook = GuestHook.load(module, sandbox=sandbox)
                on = RunFacts(agent_id="a", agent_name="a", session_id="s")
                context = on.context({"toolName": tool, "args": {}})
                decision = run_point_sync(HookRegistry([hook]), "pre_tool_call", context, run=on)
                decisions.append((decision.kind, decision.reason))
                fuel.append(decision.trace[0].fuel_used)
            assert decisions[0] == decisions[1]
            assert decisions[0][0] == kind
        assert fuel[1] * 10 < fuel[0], "the setup was not left behind"
