"""The reader: whatever the bytes, findings come out, and it agrees with wasmtime on what a module holds."""

from __future__ import annotations

from pathlib import Path

import pytest
import wasmtime
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell_sandbox.admission import AdmissionPolicy, ModuleReport, inspect
from hookcell_sandbox.binary import Cursor, Malformed
from hookcell_sandbox.findings import FINDING_CODES, FINDINGS_KEPT
from hookcell_sandbox.limits import ModuleLimits
from hookcell_sandbox.module import SECTIONS_READ
from hookcell_sandbox.sections import IMPORTS_READ, LOCAL_GROUPS_READ

from .refused_modules import DAMAGE, REFUSED, Refused
from .wasm_bytes import (
    F32,
    F64,
    FUNCREF,
    FUNCTION,
    GLOBAL,
    HOOK_EXPORTS,
    I32,
    I64,
    MEMORY,
    PREAMBLE,
    TABLE,
    body,
    custom,
    data_segment,
    export,
    functype,
    global_,
    hook,
    i32,
    import_,
    limits,
    module,
    names,
    s,
    u,
    vec,
)

POLICY = AdmissionPolicy(entry_points=frozenset({"pre_tool_call", "post_tool_call"}))
WAT = Path(__file__).parents[2] / "fixtures" / "modules" / "admission"
EVERY_SECTION = bytes(wasmtime.wat2wasm((WAT / "every_section.wat").read_text()))
DAMAGE_CODES = frozenset(case.code for case in DAMAGE)


def cursor(raw: bytes) -> Cursor:
    return Cursor(raw, 0, len(raw))


def is_valid(wasm: bytes) -> bool:
    try:
        wasmtime.Module.validate(wasmtime.Engine(), wasm)
    except wasmtime.WasmtimeError:
        return False
    return True


def check_findings(report: ModuleReport) -> None:
    """What holds for every report, whatever the bytes."""
    assert len(report.findings) <= FINDINGS_KEPT + len(FINDING_CODES) + 1
    for finding in report.findings:
        assert finding.code in FINDING_CODES
        assert finding.hint
        assert str(finding).isprintable()
        assert len(str(finding)) < 2_000


# Integers.


@given(st.integers(0, 2**32 - 1), st.integers(0, 5))
def test_an_unsigned_integer_is_read_with_any_padding_that_fits(value: int, width: int) -> None:
    raw = u(value, width=width)
    assert cursor(raw).u32() == value
    assert cursor(raw).u64() == value


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_signed_integer_is_read(value: int) -> None:
    for read in (Cursor.s32, Cursor.s33, Cursor.s64):
        at = cursor(s(value) + b"\xff")
        assert read(at) == value
        assert at.left == 1


@pytest.mark.parametrize(
    ("read", "most", "one_over"),
    [
        (Cursor.u32, u(2**32 - 1), u(2**32)),
        (Cursor.u64, u(2**64 - 1), u(2**64)),
        (Cursor.s32, s(2**31 - 1), s(2**31)),
        (Cursor.s32, s(-(2**31)), s(-(2**31) - 1)),
        (Cursor.s33, s(2**32 - 1), s(2**32)),
        (Cursor.s33, s(-(2**32)), s(-(2**32) - 1)),
        (Cursor.s64, s(2**63 - 1), s(2**63)),
        (Cursor.s64, s(-(2**63)), s(-(2**63) - 1)),
    ],
)
def test_the_largest_integer_is_read_and_one_more_is_not(read, most: bytes, one_over: bytes) -> None:
    assert read(cursor(most)) == leb_value(most, signed=read not in (Cursor.u32, Cursor.u64))
    with pytest.raises(Malformed) as caught:
        read(cursor(one_over))
    assert caught.value.code == "bad_integer"


def leb_value(raw: bytes, *, signed: bool) -> int:
    value = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(raw))
    return value - (1 << 7 * len(raw)) if signed and raw[-1] & 0x40 else value


@pytest.mark.parametrize(("read", "width"), [(Cursor.u32, 5), (Cursor.u64, 10), (Cursor.s32, 5), (Cursor.s64, 10)])
def test_padding_is_read_to_the_last_byte_that_fits_and_not_one_further(read, width: int) -> None:
    assert read(cursor(u(1, width=width))) == 1
    with pytest.raises(Malformed, match="more than"):
        read(cursor(u(1, width=width + 1)))


@given(st.binary(max_size=12), st.sampled_from([Cursor.u32, Cursor.u64, Cursor.s32, Cursor.s33, Cursor.s64]))
def test_an_integer_never_reads_past_its_end(raw: bytes, read) -> None:
    at = Cursor(raw + b"\x00\x00", 0, len(raw))
    code = None
    try:
        read(at)
    except Malformed as bad:
        code = bad.code
    assert code in {None, "truncated", "bad_integer"}
    assert at.offset <= len(raw)


# Hostile bytes.


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_make_findings_and_nothing_else(raw: bytes, preamble: bool) -> None:
    report = inspect(PREAMBLE + raw if preamble else raw, POLICY)
    check_findings(report)
    assert report.findings


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_random_sections_make_findings_and_nothing_else(data: st.DataObject) -> None:
    contents = data.draw(st.lists(st.tuples(st.integers(0, 15), st.binary(max_size=40)), max_size=8))
    wasm = PREAMBLE + b"".join(bytes((id_,)) + u(len(content)) + content for id_, content in contents)
    report = inspect(wasm, POLICY)
    check_findings(report)
    assert report.findings


def mutated(data: st.DataObject, wasm: bytes) -> bytes:
    changed = bytearray(wasm)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(8, len(changed) - 1))
        kind = data.draw(st.sampled_from(["set", "cut", "put"]))
        if kind == "set":
            changed[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del changed[at : at + data.draw(st.integers(1, 4))]
        else:
            changed[at:at] = data.draw(st.binary(min_size=1, max_size=4))
        if len(changed) < 10:
            break
    return bytes(changed)


def check_mutation(data: st.DataObject) -> None:
    wasm = mutated(data, data.draw(st.sampled_from([EVERY_SECTION, hook()])))
    report = inspect(wasm, POLICY)
    check_findings(report)
    damage = [str(finding) for finding in report.findings if finding.code in DAMAGE_CODES]
    if damage:
        assert not is_valid(wasm), damage


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_what_is_called_damaged_is_refused_by_wasmtime_too(data: st.DataObject) -> None:
    check_mutation(data)


@pytest.mark.slow
@settings(deadline=None, max_examples=30_000)
@given(st.data())
def test_what_is_called_damaged_is_refused_by_wasmtime_too_at_length(data: st.DataObject) -> None:
    check_mutation(data)


def test_a_module_cut_at_any_byte_is_refused() -> None:
    whole = EVERY_SECTION[: EVERY_SECTION.index(b"\x04name") - 2]
    assert not inspect(whole, POLICY).findings
    for length in range(len(whole)):
        report = inspect(whole[:length], POLICY)
        check_findings(report)
        assert report.findings, length


def test_every_single_byte_can_be_any_other() -> None:
    for at in range(8, len(EVERY_SECTION)):
        for byte in (0x00, 0x01, 0x0B, 0x40, 0x7B, 0x7F, 0x80, 0xFF):
            check_findings(inspect(EVERY_SECTION[:at] + bytes((byte,)) + EVERY_SECTION[at + 1 :], POLICY))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.code}: {case.claim}")
def test_a_refused_module_has_its_finding(case: Refused) -> None:
    report = inspect(case.wasm, POLICY)
    check_findings(report)
    found = [finding for finding in report.findings if finding.code == case.code]
    assert found, [str(finding) for finding in report.findings]
    if case.value is not None:
        assert case.value in [finding.value for finding in found]
    if case.limit is not None:
        assert case.limit in [finding.limit for finding in found]


@pytest.mark.parametrize("case", DAMAGE, ids=lambda case: f"{case.code}: {case.claim}")
def test_damage_is_refused_by_wasmtime_too(case: Refused) -> None:
    assert not is_valid(case.wasm)


def test_what_is_wrong_in_one_section_does_not_hide_the_next() -> None:
    report = inspect(
        hook(
            type=b"\x01\x50",
            **{"global": vec([b"\x7f\x07"])},
            data=vec([b"\x09"]),
            after=custom("hookcell") * 2,
        ),
        POLICY,
    )
    assert [finding.code for finding in report.findings] == ["type_form", "malformed", "malformed", "manifest_repeated"]


def test_a_section_that_could_not_be_read_makes_no_second_finding_where_others_refer_to_it() -> None:
    report = inspect(hook(type=b"\x80\x80\x80\x80\x80\x80"), POLICY)
    assert [finding.code for finding in report.findings] == ["bad_integer"]


def test_a_cut_module_is_not_said_to_miss_what_may_have_been_cut() -> None:
    codes = {finding.code for finding in inspect(hook()[:60], POLICY).findings}
    assert codes == {"truncated"}


# Bounds of the reading that are not the host's to set: at the bound and one over.


def test_sections_are_read_up_to_their_bound() -> None:
    at = hook() + custom("x") * (SECTIONS_READ - 5)
    assert not inspect(at, POLICY).findings
    over = inspect(at + custom("x") * 1_000, POLICY)
    assert [(finding.code, finding.limit) for finding in over.findings] == [("too_many_sections", SECTIONS_READ)]
    assert len(over.sections) == SECTIONS_READ


def test_imports_are_read_up_to_their_bound() -> None:
    def codes(count: int) -> set[str]:
        report = inspect(hook(**{"import": vec([import_("a", "b")] * count)}), POLICY)
        assert len(report.imports) == min(count, IMPORTS_READ)
        return {finding.code for finding in report.findings}

    assert "too_many_imports" not in codes(IMPORTS_READ)
    assert "too_many_imports" in codes(IMPORTS_READ + 1)


def test_declarations_of_locals_are_read_up_to_their_bound() -> None:
    full, rest = divmod(LOCAL_GROUPS_READ, 1_000)

    def codes(last: int) -> list[str]:
        bodies = [body(groups=[(0, I32)] * 1_000)] * full + [body(groups=[(0, I32)] * last)]
        wasm = hook(
            type=vec([functype([I32], [I32]), functype([I32, I32], [I64])]),
            function=vec([u(0), *[u(1)] * full]),
            code=vec(bodies),
        )
        return [finding.code for finding in inspect(wasm, POLICY).findings]

    assert codes(rest) == []
    assert codes(rest + 1) == ["too_many_local_groups"]


def test_locals_are_added_up_without_being_expanded() -> None:
    groups = [(2**32 - 1, I32)] * 1_000
    report = inspect(hook(code=vec([body(groups=groups), body()])), POLICY)
    assert report.most_locals == 1_000 * (2**32 - 1)
    assert [finding.code for finding in report.findings] == ["too_many_locals"]


@pytest.mark.parametrize(
    "groups",
    [
        [(127, I32), (1, F64)],
        [(128, I32)],
        [(1, I32), (200, I64), (3, F32)],
        [(2, FUNCREF), (5, I32), (1, F64)],
        [(0, I64), (0, I32)],
    ],
)
def test_locals_are_added_up_alike_in_short_and_long_form(groups: list[tuple[int, int]]) -> None:
    report = inspect(hook(code=vec([body(groups=groups), body()])), POLICY)
    assert not report.findings
    assert report.most_locals == sum(count for count, _ in groups)
    assert ("reference_types" in report.features) == any(kind == FUNCREF for _, kind in groups)


def test_locals_that_leave_their_body_are_not_read_from_the_next_one() -> None:
    short = u(3) + u(2) + b"\x01\x7f"
    report = inspect(hook(code=vec([short, body()])), POLICY)
    assert [finding.code for finding in report.findings] == ["truncated"]


def test_counts_of_four_billion_are_refused_by_their_number() -> None:
    for section in ("type", "function", "table", "memory", "global", "export", "element", "code", "data"):
        report = inspect(hook(**{section: u(2**32 - 1)}), POLICY)
        assert 2**32 - 1 in [finding.value for finding in report.findings], section


# Agreement with wasmtime on modules that are right.

_INITIALS = {
    I32: st.integers(-(2**31), 2**31 - 1).map(i32),
    I64: st.integers(-(2**63), 2**63 - 1).map(lambda value: b"\x42" + s(value) + b"\x0b"),
    F32: st.binary(min_size=4, max_size=4).map(lambda raw: b"\x43" + raw + b"\x0b"),
    F64: st.binary(min_size=8, max_size=8).map(lambda raw: b"\x44" + raw + b"\x0b"),
    FUNCREF: st.sampled_from([b"\xd0\x70\x0b", b"\xd2\x01\x0b"]),
}
_VALUE_TYPES = st.sampled_from(list(_INITIALS))
_SIDES = st.lists(_VALUE_TYPES, max_size=4)
_NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=12)


def segment(form: int, items: list[int]) -> bytes:
    """An element segment in one of its eight forms, of functions or of expressions."""
    parts = [bytes((form,))]
    if not form & 1:
        parts.append((u(0) if form & 2 else b"") + i32(0))
    if form & 3:
        parts.append(bytes((FUNCREF,)) if form & 4 else b"\0")
    parts.append(vec(b"\xd2" + u(item) + b"\x0b" if form & 4 else u(item) for item in items))
    return b"".join(parts)


@st.composite
def right_modules(draw: st.DrawFn) -> tuple[bytes, dict[str, int]]:
    """An admissible module with a random number of everything, and those numbers."""
    types = [functype([I32], [I32]), functype([I32, I32], [I64])]
    types += [functype(draw(_SIDES), draw(_SIDES)) for _ in range(draw(st.integers(0, 4)))]
    functions = [0, 1, *draw(st.lists(st.integers(0, len(types) - 1), max_size=4))]
    kinds = draw(st.lists(st.tuples(_VALUE_TYPES, st.booleans()), max_size=5))
    globals_ = [global_(kind, draw(_INITIALS[kind]), mutable=mutable) for kind, mutable in kinds]
    segments = draw(
        st.lists(st.tuples(st.integers(0, 7), st.lists(st.integers(0, len(functions) - 1), max_size=3)), max_size=5)
    )
    data = draw(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=200)), max_size=5))
    spaces = [(FUNCTION, len(functions)), (TABLE, 1), (MEMORY, 1), (GLOBAL, len(globals_))]
    targets = [(kind, index) for kind, size in spaces for index in range(size)]
    names = draw(st.lists(_NAMES, max_size=5, unique=True))
    more = [export(f"+{text}", *draw(st.sampled_from(targets))) for text in names]
    groups = st.lists(st.tuples(st.integers(0, 9), _VALUE_TYPES), max_size=3)
    exports = draw(st.permutations([*HOOK_EXPORTS, *more]))
    heads = [b"\0" + i32(8), b"\x01", b"\x02\0" + i32(-1)]
    wasm = module(
        {
            "type": vec(types),
            "function": vec(u(kind) for kind in functions),
            "table": vec([b"\x70" + limits(draw(st.integers(0, 100)), draw(st.none() | st.integers(100, 2**32 - 1)))]),
            "memory": vec([limits(draw(st.integers(0, 256)), draw(st.none() | st.integers(256, 65_536)))]),
            "global": vec(globals_),
            "export": vec(exports),
            "element": vec(segment(form, items) for form, items in segments),
            "data_count": u(len(data)),
            "code": vec(body(groups=draw(groups)) for _ in functions),
            "data": vec(heads[form] + u(len(content)) + content for form, content in data),
        }
    )
    # ref.func may name only a function that the module declares elsewhere; function 1 is exported.
    return wasm + custom(draw(_NAMES), draw(st.binary(max_size=50))), {
        "types": len(types),
        "functions": len(functions),
        "globals": len(globals_),
        "element_segments": len(segments),
        "elements": sum(len(items) for _, items in segments),
        "data_segments": len(data),
        "data_bytes": sum(len(content) for _, content in data),
    }


@settings(deadline=None, max_examples=200)
@given(right_modules())
def test_a_right_module_has_no_finding_and_its_own_counts(case: tuple[bytes, dict[str, int]]) -> None:
    wasm, counts = case
    wasmtime.Module.validate(wasmtime.Engine(), wasm)
    report = inspect(wasm, POLICY)
    assert [str(finding) for finding in report.findings] == []
    assert {name: getattr(report, name) for name in counts} == counts
    assert [export.name for export in report.exports] == [
        export.name for export in wasmtime.Module(wasmtime.Engine(), wasm).exports
    ]


@pytest.mark.parametrize("path", sorted(WAT.glob("*.wat")), ids=lambda path: path.stem)
def test_a_shipped_module_is_read_as_its_first_line_says(path: Path) -> None:
    text = path.read_text()
    verdict = text.splitlines()[0].removeprefix(";; ")
    codes = [finding.code for finding in inspect(bytes(wasmtime.wat2wasm(text)), POLICY).findings]
    expected = [] if verdict == "admitted" else verdict.removeprefix("refused: ").split()
    assert sorted(set(codes)) == sorted(expected)


def test_the_module_of_every_section_is_read_as_wasmtime_reads_it() -> None:
    report = inspect(EVERY_SECTION, POLICY)
    compiled = wasmtime.Module(wasmtime.Engine(), EVERY_SECTION)
    assert [item.name for item in report.exports] == [item.name for item in compiled.exports]
    by_name = {item.name: item.type for item in compiled.exports}
    memory = by_name["memory"].limits
    assert report.memory is not None
    assert (report.memory.minimum, report.memory.maximum) == (memory.min * 65_536, (memory.max or 0) * 65_536)
    table = by_name["names"].limits
    assert (report.tables[0].minimum, report.tables[0].maximum) == (table.min, table.max)
    # Counted by hand in the text.
    assert (report.types, report.functions, report.globals) == (4, 4, 7)
    assert (report.element_segments, report.elements, report.data_segments) == (8, 11, 3)
    assert report.data_bytes == len("active" + "passive") + 3
    assert (report.most_locals, report.most_parameters, report.most_results) == (4, 3, 2)


def test_eighty_thousand_data_segments_are_admitted() -> None:
    """A real toolchain made 79,722; hence the limit of 100,000."""
    report = inspect(hook(data=vec([data_segment(i * 8, b"abcd") for i in range(80_000)])), POLICY)
    assert not report.findings
    assert (report.data_segments, report.data_bytes) == (80_000, 320_000)


def test_a_raised_limit_lets_more_through() -> None:
    wasm = hook(type=vec([functype([I32], [I32]), functype([I32, I32], [I64]), functype([I32] * 33)]))
    assert [finding.code for finding in inspect(wasm, POLICY).findings] == ["too_many_parameters"]
    wider = AdmissionPolicy(entry_points=POLICY.entry_points, limits=ModuleLimits(parameters=33))
    assert not inspect(wasm, wider).findings


# Names of functions.


@pytest.mark.parametrize(
    "content",
    [
        names(b"x" * 16_384),
        names(b"x" * 16_384, b"y" * 16_384) + names(b"z" * 16_384),
        b"\x00" + u(20_003) + u(20_000) + bytes(20_000),  # the module's own
        b"\x07" + u(20_000) + bytes(20_000),  # a kind that is not read
        b"\x07\0" * 63 + names(b"x" * 16_384),
        b"\x01\xff",  # damaged, but too small for a long name
        b"",
    ],
)
def test_names_that_a_trap_can_afford_are_let_be(content: bytes) -> None:
    assert inspect(hook(after=custom("name", content)), POLICY).findings == ()


@given(st.binary(max_size=300), st.integers(0, 400))
def test_a_name_section_of_any_bytes_is_a_finding_or_none(raw: bytes, cut: int) -> None:
    content = (names(b"x" * 16_384, b"", b"y") + raw)[: 16_384 + cut] + raw
    assert {finding.code for finding in inspect(hook(after=custom("name", content)), POLICY).findings} <= {
        "function_names"
    }
