"""Admission: what a module is, what the ABI asks of it, and every reason to refuse it at its limit and one over."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import hookcell_sandbox
from hookcell_sandbox.admission import AdmissionPolicy, Bounds, Export, Import, Section, admit, inspect
from hookcell_sandbox.errors import Finding, ModuleRejected
from hookcell_sandbox.findings import FINDING_CODES, FINDINGS_KEPT, FINDINGS_KEPT_PER_CODE, Findings
from hookcell_sandbox.limits import PAGE_BYTES, ModuleLimits

from .refused_modules import CEILINGS, REFUSED, Ceiling
from .wasm_bytes import (
    FUNCREF,
    FUNCTION,
    GLOBAL,
    HOOK_EXPORTS,
    I32,
    I64,
    NOTHING,
    V128,
    body,
    custom,
    export,
    exports,
    functions,
    functype,
    global_,
    hook,
    i32,
    import_,
    limits,
    u,
    vec,
)

POINTS = frozenset({"pre_tool_call", "post_tool_call"})
POLICY = AdmissionPolicy(entry_points=POINTS)
PACKAGE = Path(hookcell_sandbox.__file__).parent
READER = ("admission", "binary", "findings", "function_names", "grammar", "module", "sections", "shape")

# Tried in test_module.py, at bounds that no limit sets, in test_compiler.py, and below.
_TRIED_ELSEWHERE = {
    "too_many_sections",
    "too_many_imports",
    "too_many_local_groups",
    "invalid_module",
    "compile_limit",
    "more",
}


def findings(wasm: bytes, policy: AdmissionPolicy = POLICY) -> list[Finding]:
    return list(inspect(wasm, policy).findings)


def codes(wasm: bytes, policy: AdmissionPolicy = POLICY) -> list[str]:
    return [finding.code for finding in findings(wasm, policy)]


def only(wasm: bytes, code: str) -> Finding:
    """The one finding of a module, which must have this code."""
    (finding,) = findings(wasm)
    assert finding.code == code
    return finding


# The table of codes.


def test_every_code_of_the_table_is_tried_and_no_other() -> None:
    tried = {case.code for case in (*REFUSED, *CEILINGS)} | _TRIED_ELSEWHERE
    assert tried == set(FINDING_CODES)


def test_every_code_says_what_it_means_and_what_to_do() -> None:
    for code, entry in FINDING_CODES.items():
        assert re.fullmatch(r"[a-z0-9_]+", code)
        assert entry.meaning
        assert entry.hint


def test_every_ceiling_is_tried() -> None:
    assert {case.field for case in CEILINGS} == {field.name for field in fields(ModuleLimits)}


# Ceilings.


@pytest.mark.parametrize("case", CEILINGS, ids=lambda case: f"{case.code} {case.claim}".strip())
def test_a_module_at_the_ceiling_is_admitted_and_one_over_it_is_not(case: Ceiling) -> None:
    policy = AdmissionPolicy(entry_points=POINTS, limits=case.limits())
    assert findings(case.build(case.n), policy) == []
    over = findings(case.build(case.n + 1), policy)
    assert [finding.code for finding in over] == [case.code]
    if case.field != "memory_bytes":  # Declared in pages, so one over is a page over.
        assert over[0].value == case.n + 1
    assert over[0].limit == case.n


def test_the_maximum_of_a_memory_may_be_over_the_limit() -> None:
    """Growth is limited at run time; toolchains declare 4 GiB as a matter of course."""
    report = admit(hook(memory=vec([limits(1, 65_536)])), POLICY)
    assert report.memory == Bounds(minimum=PAGE_BYTES, maximum=65_536 * PAGE_BYTES)


def test_parameters_are_limited_in_types_that_no_function_has() -> None:
    """A block type is one too: a block with 1,000 parameters makes 12 KB of module take 6 GB to compile."""
    types = vec([functype([I32], [I32]), functype([I32, I32], [I64]), functype([I32] * 1_000)])
    assert only(hook(type=types), "too_many_parameters").value == 1_000


def test_a_signature_that_is_too_wide_to_read_on_ends_its_section() -> None:
    """Plain types are stepped over at once; a million typed references would be read one by one."""
    types = vec([functype([I32], [I32]), functype([I32, I32], [I64]), functype([V128] * 33)])
    assert codes(hook(type=types)) == ["too_many_parameters", "value_type"]
    report = inspect(hook(type=types), POLICY)
    assert report.types == 3
    assert report.entry_points == frozenset()


def test_a_module_over_its_size_still_gets_its_other_findings() -> None:
    policy = AdmissionPolicy(entry_points=POINTS, limits=ModuleLimits(module_bytes=10))
    assert codes(hook(start=u(2), **functions(NOTHING)), policy) == ["module_too_large", "start_section"]


def test_custom_sections_count_with_their_names_and_the_manifest() -> None:
    wasm = hook(after=custom("hookcell", b"{}") + custom("name", b"xyz"))
    assert inspect(wasm, POLICY).custom_bytes == len(b"\x08hookcell{}" + b"\x04namexyz")


# The ABI.


def test_the_smallest_hook_is_admitted() -> None:
    report = admit(hook(), POLICY)
    assert report.size == len(hook())
    assert report.digest == hashlib.sha256(hook()).hexdigest()
    assert report.entry_points == {"pre_tool_call"}
    assert report.memory == Bounds(minimum=PAGE_BYTES)
    assert not report.has_initialize
    assert not report.log_global
    assert report.log_address is None
    assert report.manifest is None
    assert report.features == frozenset()
    assert report.imports == ()


def test_exports_are_listed_in_the_modules_order() -> None:
    report = admit(hook(export=vec(HOOK_EXPORTS[::-1])), POLICY)
    assert report.exports == (
        Export(name="pre_tool_call", kind="function", index=1),
        Export(name="hook_alloc", kind="function", index=0),
        Export(name="memory", kind="memory", index=0),
    )


def test_sections_are_listed_in_the_modules_order_with_their_sizes() -> None:
    report = admit(hook(after=custom("na\x1bme", b"xy")), POLICY)
    assert [section.name for section in report.sections] == [
        "type",
        "function",
        "memory",
        "export",
        "code",
        "na\\x1bme",
    ]
    assert report.sections[2] == Section(name="memory", id=5, bytes=3)
    assert report.sections[-1] == Section(name="na\\x1bme", id=0, bytes=8)


@pytest.mark.parametrize("text", ["\x1b[2J", "\u202eevil", "a\nb", "\u2028"])
def test_a_name_that_moves_the_cursor_is_escaped_wherever_it_shows(text: str) -> None:
    wasm = hook(
        **{"import": vec([import_(text, text)])},
        export=exports(export(text, FUNCTION, 0), export(text, FUNCTION, 0)),
        after=custom(text),
    )
    report = inspect(wasm, POLICY)
    shown = [repr(report.exports), repr(report.imports), repr(report.sections), *map(str, report.findings)]
    assert not any(character in line for line in shown for character in text if not character.isprintable())
    with pytest.raises(ModuleRejected) as caught:
        admit(wasm, POLICY)
    assert str(caught.value).isprintable()


def test_only_entry_points_of_the_policy_with_the_right_type_are_told() -> None:
    wasm = hook(export=exports(export("post_tool_call", FUNCTION, 0), export("other", FUNCTION, 1)))
    report = inspect(wasm, POLICY)
    assert report.entry_points == {"pre_tool_call"}
    finding = only(wasm, "export_signature")
    assert (finding.value, finding.limit) == ("(i32) -> (i32)", "(i32, i32) -> (i64)")


def test_a_point_of_the_wrong_type_is_not_said_to_be_missing() -> None:
    wasm = hook(export=vec([*HOOK_EXPORTS[:2], export("pre_tool_call", FUNCTION, 0)]))
    assert codes(wasm) == ["export_signature"]


def test_a_missing_point_is_told_with_the_names_there_are() -> None:
    finding = only(hook(export=vec(HOOK_EXPORTS[:2])), "no_entry_point")
    assert finding.hint == "export one of: post_tool_call, pre_tool_call"


def test_a_vector_in_a_signature_is_named_and_not_asked_of_wasmtime() -> None:
    """wasmtime's Python package aborts the process when asked for such an export's type."""
    types = vec([functype([I32], [I32]), functype([I32, I32], [I64]), functype([V128])])
    wasm = hook(type=types, **functions(2), export=exports(export("post_tool_call", FUNCTION, 2)))
    vector, signature = findings(wasm)
    assert (vector.code, vector.value) == ("value_type", "v128")
    assert (signature.code, signature.value) == ("export_signature", "(v128) -> ()")
    assert "simd" in inspect(wasm, POLICY).features


def test_initialize_is_told_when_it_has_the_right_type() -> None:
    wasm = hook(**functions(NOTHING), export=exports(export("_initialize", FUNCTION, 2)))
    assert admit(wasm, POLICY).has_initialize
    wrong = inspect(hook(export=exports(export("_initialize", FUNCTION, 0))), POLICY)
    assert not wrong.has_initialize


@pytest.mark.parametrize(
    ("initial", "address"), [(0, 0), (4096, 4096), (-1, 2**32 - 1), (-(2**31), 2**31), (2**31 - 1, 2**31 - 1)]
)
def test_the_address_of_the_log_is_told_unsigned(initial: int, address: int) -> None:
    wasm = hook(**{"global": vec([global_(I32, i32(initial))])}, export=exports(export("hook_log", GLOBAL, 0)))
    report = admit(wasm, POLICY)
    assert report.log_global
    assert report.log_address == address


@pytest.mark.parametrize(
    "shape", [global_(I32, i32(4096), mutable=True), global_(I32, b"\x23\x00\x0b")], ids=["mutable", "computed"]
)
def test_a_log_address_that_may_change_is_not_told_ahead(shape: bytes) -> None:
    wasm = hook(
        **{"global": vec([global_(I32, i32(0)), shape])},
        export=exports(export("hook_log", GLOBAL, 1)),
    )
    report = inspect(wasm, POLICY)
    assert report.log_global
    assert report.log_address is None


def test_functions_and_globals_are_numbered_after_imported_ones() -> None:
    wasm = hook(
        **{"import": vec([import_("e", "f"), import_("e", "g", b"\x03\x7e\x00")])},
        **{"global": vec([global_(I32, i32(77))])},
        export=vec(
            [
                HOOK_EXPORTS[0],
                export("hook_alloc", FUNCTION, 1),
                export("pre_tool_call", FUNCTION, 2),
                export("hook_log", GLOBAL, 1),
            ]
        ),
    )
    report = inspect(wasm, POLICY)
    assert {finding.code for finding in report.findings} == {"import"}
    assert report.entry_points == {"pre_tool_call"}
    assert report.log_address == 77
    assert report.imports == (
        Import(module="e", name="f", kind="function"),
        Import(module="e", name="g", kind="global"),
    )


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        ("wasi_snapshot_preview1", "fd_write", "hookcell seal"),
        ("wasi_unstable", "fd_write", "hookcell seal"),
        ("wasi:cli/environment@0.2.0", "get-environment", "hookcell seal"),
        ("env", "abort", "--use abort="),
        ("env", "emscripten_notify_memory_growth", "remove what needs it"),
    ],
)
def test_an_import_is_refused_with_what_to_do_about_it(module: str, name: str, hint: str) -> None:
    finding = only(hook(**{"import": vec([import_(module, name, b"\x00\x00")])}, **shifted()), "import")
    assert finding.value == f"{module}.{name}"
    assert hint in (finding.hint or "")


def shifted() -> dict[str, bytes]:
    """The plain hook's exports behind one imported function."""
    return {"export": vec([HOOK_EXPORTS[0], export("hook_alloc", FUNCTION, 1), export("pre_tool_call", FUNCTION, 2)])}


@pytest.mark.parametrize(
    ("wasm", "hint"),
    [
        (hook(start=u(2), **functions(NOTHING)), "--exportStart _initialize"),
        (b"\0asm\x0d\0\x01\0", "core module"),
        (b"(module)", "wat2wasm"),
        (hook(**functions(NOTHING), export=vec([*HOOK_EXPORTS[:2], export("_start", FUNCTION, 2)])), "reactor"),
        (hook(memory=vec([limits(1, flags=4)])), "wasm32"),
    ],
    ids=["start", "component", "text", "command", "memory64"],
)
def test_a_common_mistake_is_told_with_its_remedy(wasm: bytes, hint: str) -> None:
    (finding,) = findings(wasm)
    assert hint in (finding.hint or "")


# The manifest.


def test_the_manifest_passes_through_unread() -> None:
    report = admit(hook(after=custom("hookcell", b"\xff not json")), POLICY)
    assert report.manifest == b"\xff not json"


def test_the_manifest_stands_in_the_section_that_the_policy_names() -> None:
    policy = AdmissionPolicy(entry_points=POINTS, manifest_section="other")
    report = admit(hook(after=custom("other", b"1") + custom("hookcell", b"2")), policy)
    assert report.manifest == b"1"


def test_what_the_policy_says_of_the_manifest_is_a_finding() -> None:
    def check(raw: bytes) -> list[Finding]:
        seen.append(raw)
        return [Finding(code="manifest_not_json", what="manifest", hint="write JSON")]

    seen: list[bytes] = []
    policy = AdmissionPolicy(entry_points=POINTS, check_manifest=check)
    assert codes(hook(after=custom("hookcell", b"{")), policy) == ["manifest_not_json"]
    assert codes(hook(), policy) == []
    assert seen == [b"{"]


def test_a_manifest_that_cannot_be_taken_is_not_shown_to_the_policy() -> None:
    def check(raw: bytes) -> list[Finding]:
        raise AssertionError

    policy = AdmissionPolicy(entry_points=POINTS, limits=ModuleLimits(manifest_bytes=4), check_manifest=check)
    for after in (custom("hookcell", b"12345"), custom("hookcell", b"1") * 2):
        report = inspect(hook(after=after), policy)
        assert report.manifest is None
        assert report.findings


# Features.


@pytest.mark.parametrize(
    ("wasm", "features"),
    [
        (hook(), set()),
        (hook(table=vec([b"\x70" + limits(1)]), element=vec([b"\0" + i32(0) + vec([u(0)])])), set()),
        (hook(data=vec([b"\0" + i32(0) + u(0)])), set()),
        (hook(data=vec([b"\1" + u(0)])), {"bulk_memory"}),
        (hook(data=vec([b"\x81\0" + u(0)])), {"bulk_memory"}),
        (hook(data_count=u(0)), {"bulk_memory"}),
        (hook(element=vec([b"\1\0" + vec([u(0)])])), {"bulk_memory"}),
        (hook(table=vec([b"\x6f" + limits(1)])), {"externref"}),
        (hook(**{"global": vec([global_(0x70, b"\xd0\x70\x0b")])}), {"reference_types"}),
        (
            hook(**{"global": vec([global_(I32, i32(0), mutable=True)])}, export=exports(export("g", GLOBAL, 0))),
            {"mutable_globals"},
        ),
        (hook(**{"global": vec([global_(I32, i32(0), mutable=True)])}), set()),
        (
            hook(type=vec([functype([I32], [I32]), functype([I32, I32], [I64]), functype([], [I32, I32])])),
            {"multi_value"},
        ),
        (
            hook(type=vec([functype([I32], [I32]), functype([I32, I32], [I64]), functype([FUNCREF])])),
            {"reference_types"},
        ),
        (hook(tag=vec([b"\0\2"])), {"exceptions"}),
        (hook(memory=vec([limits(1, flags=4)])), {"memory64"}),
        (hook(memory=vec([limits(1, 1, flags=2)])), {"threads"}),
        (hook(memory=vec([limits(1)] * 2)), {"multi_memory"}),
        (hook(memory=vec([limits(1, flags=8) + u(0)])), {"custom_page_sizes"}),
        (hook(**{"global": vec([b"\x7f\0\x41\0\x41\0\x6a\x0b"])}), {"extended_const"}),
        (hook(type=b"\1\x5f\0"), {"gc"}),
    ],
)
def test_features_are_told_as_far_as_sections_show_them(wasm: bytes, features: set[str]) -> None:
    assert inspect(wasm, POLICY).features == features


# All findings, bounded.


def test_a_refusal_has_every_finding_not_only_the_first() -> None:
    wasm = hook(
        **functions(NOTHING),
        start=u(2),
        memory=vec([limits(257)]),
        export=vec([export("hook_alloc", GLOBAL, 0)]),
        after=custom("hookcell") * 2,
    )
    with pytest.raises(ModuleRejected) as caught:
        admit(wasm, POLICY)
    assert caught.value.digest == hashlib.sha256(wasm).hexdigest()
    assert {finding.code for finding in caught.value.findings} == {
        "start_section",
        "memory_too_large",
        "index_out_of_range",
        "export_kind",
        "missing_memory",
        "no_entry_point",
        "manifest_repeated",
    }


def test_findings_of_one_code_are_kept_to_their_bound_and_the_rest_is_counted() -> None:
    def imports(count: int) -> bytes:
        return hook(**{"import": vec([import_("a", "b", b"\x01\x70" + limits(0))] * count)})

    at = findings(imports(FINDINGS_KEPT_PER_CODE))
    assert [finding.code for finding in at] == ["import"] * FINDINGS_KEPT_PER_CODE
    over = findings(imports(FINDINGS_KEPT_PER_CODE + 1))
    assert [finding.code for finding in over] == ["import"] * FINDINGS_KEPT_PER_CODE + ["more"]
    assert over[-1].value == 1
    assert "import 1" in over[-1].what


def test_a_flood_of_one_finding_does_not_hide_another() -> None:
    wasm = hook(**{"import": vec([import_("a", "b", b"\x01\x70" + limits(0))] * 900)}, export=vec(HOOK_EXPORTS[1:]))
    assert {"import", "missing_memory", "more"} == set(codes(wasm))


def test_findings_are_kept_to_their_bound_and_the_first_of_each_code_beyond_it() -> None:
    collected = Findings()
    many = list(FINDING_CODES)[: FINDINGS_KEPT // FINDINGS_KEPT_PER_CODE]
    for code in many:
        for _ in range(FINDINGS_KEPT_PER_CODE):
            collected.add(code, "x")
    assert len(collected.all()) == FINDINGS_KEPT
    for _ in range(3):
        collected.add("import", "x")
    assert [finding.code for finding in collected.all()[FINDINGS_KEPT:]] == ["import", "more"]
    assert collected.all()[-1].value == 2


def test_findings_of_a_policy_are_bounded_too() -> None:
    def check(raw: bytes) -> list[Finding]:
        return [Finding(code=f"code_{i}", what="x") for i in range(5_000)]

    policy = AdmissionPolicy(entry_points=POINTS, check_manifest=check)
    found = findings(hook(after=custom("hookcell")), policy)
    assert found[-1].code == "more"
    assert found[-1].value == 5_000 - (len(found) - 1)
    assert len(found) <= 2 * FINDINGS_KEPT


def test_no_locals_are_expanded_and_no_body_is_read() -> None:
    """Whatever a body holds after its locals is the compile child's business."""
    report = admit(hook(code=vec([body(b"\xff" * 50), body(b"\xfb\xfe\x06")])), POLICY)
    assert report.largest_body_bytes == 52


# The door.


@pytest.mark.parametrize("other", [bytearray(hook()), memoryview(hook()), "(module)"])
def test_a_module_that_could_still_change_is_a_type_error(other: object) -> None:
    with pytest.raises(TypeError, match="a module is bytes"):
        inspect(other, POLICY)  # type: ignore[arg-type]  # that is the point


def test_the_reader_imports_nothing_but_the_standard_library_and_itself() -> None:
    """It reads hostile bytes: no compiler, no parser of somebody else's, and nothing that imports one."""
    own = {*READER, "errors", "guest_text", "limits"}
    for name in READER:
        for node in ast.walk(ast.parse((PACKAGE / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.module in own, name
            elif isinstance(node, ast.Import | ast.ImportFrom):
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
                assert {module.split(".")[0] for module in modules} <= sys.stdlib_module_names, name


def test_no_code_is_used_that_the_table_does_not_have() -> None:
    text = "".join((PACKAGE / f"{name}.py").read_text() for name in READER)
    used = set(re.findall(r"(?:findings\.add|Malformed)\(\s*\"([a-z0-9_]+)\"", text))
    assert len(used) > 20
    assert used <= set(FINDING_CODES)
