"""The byte-level example of the ABI, run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import msgpack
import pytest
import wasmtime

from hookcell import ChainLimits, GuestHook, HookRegistry, RunFacts, ToolCall, ToolPipeline, admission_policy
from hookcell.codec import CONTEXT_DEPTH, OUTCOME_DEPTH, OUTCOME_NODES
from hookcell.errors import HookThrew, OutcomeInvalid
from hookcell.manifest import manifest_findings
from hookcell.outcomes import EVENTS, PATCH_OPERATIONS
from hookcell.points import POINTS, field_names
from hookcell.request_view import _KINDS, _STOPS, REQUEST_FIELDS
from hookcell.schema_bounds import SCHEMA_BYTES
from hookcell.tool_result import ErrorKind, Origin
from hookcell_sandbox import GuestError, ModuleLimits, ModuleRejected, Sandbox, admit
from hookcell_sandbox.call import _ALLOC_FUEL, _ALLOC_FUEL_PER_BYTE
from hookcell_sandbox.limits import KIB, MIB

ABI = (Path(__file__).parents[2] / "guest_sdk" / "ABI.md").read_text("utf-8")


def section(title: str) -> str:
    """What stands under a heading, up to the next of its level or above."""
    level = title.partition(" ")[0]
    return re.split(rf"^#{{2,{len(level)}}} ", ABI.partition(f"\n{title}\n")[2], flags=re.MULTILINE)[0]


def first_cells(title: str) -> set[str]:
    """The names in the first column of the section's tables; "`result` at `after_tool`" is one of `result`."""
    cells = re.findall(r"^\| (`[^|]*)\|", section(title), re.MULTILINE)
    return {name for cell in cells for name in named(cell.partition(" at ")[0])}


def named(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


def block(language: str, index: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", ABI, re.DOTALL)[index]


def octets(text: str) -> bytes:
    return bytes.fromhex("".join(re.match(r"(?:[0-9a-f]{2} ?)+", line)[0] for line in text.splitlines()))  # type: ignore[index]  # each line has some


@pytest.fixture(scope="module")
def wasm() -> bytes:
    return bytes(wasmtime.wat2wasm(block("wat")))


def test_the_example_gives_the_bytes_that_it_says(wasm: bytes) -> None:
    context, outcome = octets(block("hex", 0)), octets(block("hex", 1))
    assert msgpack.unpackb(context) == {"point": "pre_tool_call", "toolName": "shell"}
    assert f"pre_tool_call(1024, {len(context)})" in ABI
    with Sandbox() as sandbox:
        program = sandbox.load(wasm, admission_policy())
        assert sandbox.run_sync(program, "pre_tool_call", context).output == outcome
    assert msgpack.unpackb(outcome) == {"deny": "no"}


def test_the_example_denies_through_the_engine(wasm: bytes) -> None:
    with Sandbox() as sandbox:
        hooks = HookRegistry([GuestHook.load(wasm, sandbox=sandbox, name="no")])
        gate = ToolPipeline(hooks=hooks, run=RunFacts()).before_execution_sync(ToolCall(id="1", name="shell", args={}))
    assert gate.decision is not None
    assert (gate.decision.denied_by, gate.decision.reason) == ("no", "no")


def test_the_keys_of_an_outcome_are_the_codes() -> None:
    assert first_cells("## Outcome") == set().union(*(point.keys for point in POINTS.values()))


def test_every_context_field_has_its_shape_told() -> None:
    told = first_cells("## Context")
    assert told == field_names()


def test_kinds_origins_and_request_fields_are_the_codes() -> None:
    rows = {
        row.partition("|")[0].strip(): row for row in re.findall(r"^\| (.*) \|$", section("## Context"), re.MULTILINE)
    }
    kinds = rows["`result` at `post_tool_call`"].partition("kinds")[2]
    assert tuple(named(kinds)) == get_args(ErrorKind)
    assert tuple(named(rows["`origin`"])[1:]) == get_args(Origin)
    assert set(named(rows["`request`"])[1:]) == REQUEST_FIELDS


def test_the_kinds_of_request_fields_are_the_codes() -> None:
    told = section("### Patches").partition("of the right kind: ")[2].partition(". nil is none")[0]
    assert set(named(told)) == _KINDS.keys()
    assert f"at most {_STOPS} of them" in told


def test_the_failure_codes_are_those_of_a_guest() -> None:
    guests = {error.code for error in GuestError.__subclasses__()}
    assert first_cells("### How a call can fail") == guests | {OutcomeInvalid.code, HookThrew.code}


def test_the_numbers_are_the_codes() -> None:
    assert f"Nothing nests deeper than {CONTEXT_DEPTH}" in ABI
    assert f"at most {OUTCOME_DEPTH} deep and {OUTCOME_NODES:,} items" in ABI
    assert f"nests at most {OUTCOME_DEPTH} deep, counted from the context" in ABI
    assert f"at most {PATCH_OPERATIONS:,} maps" in ABI
    assert f"at most {EVENTS} maps" in ABI
    assert f"at most {ChainLimits().storage_bytes // KIB} KiB of msgpack" in ABI
    assert f"hold at most {ChainLimits().bag_bytes // KIB} KiB of msgpack after a patch there" in ABI
    assert f"JSON Schema of its config, at most {SCHEMA_BYTES // KIB} KiB" in ABI
    assert f"budget of its own: {_ALLOC_FUEL:,} and {_ALLOC_FUEL_PER_BYTE} for each byte" in ABI
    module = ModuleLimits()
    assert (
        f"(module {module.module_bytes // MIB} MiB, {module.functions:,} functions, {module.body_bytes // KIB} KiB a"
        in ABI
    )
    assert f"a JSON object of at most {module.manifest_bytes // KIB} KiB" in ABI


@pytest.mark.parametrize("key", ["name", "version", "sdk"])
def test_a_line_of_the_manifest_has_at_most_100_characters(key: str) -> None:
    assert "at most 100 characters" in section("## Manifest")
    assert not manifest_findings(json.dumps({key: "x" * 100}).encode())
    assert manifest_findings(json.dumps({key: "x" * 101}).encode())


def test_a_manifest_needs_at_most_100_fields() -> None:
    assert "at most 100 context fields" in section("## Manifest")
    assert not manifest_findings(json.dumps({"needs": ["args"] * 100}).encode())
    assert manifest_findings(json.dumps({"needs": ["args"] * 101}).encode())


def test_a_description_and_other_keys_of_a_manifest_are_kept_unread() -> None:
    assert not manifest_findings(b'{"description": 1, "anything": null}')


@pytest.mark.parametrize(
    "export",
    [
        '(func (export "_initialize") (param i32))',
        '(func (export "post_tool_call") (param i32) (result i64))',
        '(func (export "hook_log"))',
        '(global (export "hook_log") i64 (i64.const 0))',
    ],
)
def test_a_name_of_the_abi_with_another_type_is_a_refusal(export: str) -> None:
    wasm = bytes(wasmtime.wat2wasm(f"{block('wat').rstrip().removesuffix(')')}{export})"))
    with pytest.raises(ModuleRejected) as caught:
        admit(wasm, admission_policy())
    assert {finding.code for finding in caught.value.findings} <= {"export_kind", "export_signature"}


def test_another_export_is_allowed() -> None:
    wasm = wasmtime.wat2wasm(f'{block("wat").rstrip().removesuffix(")")}(func (export "own") (param f64)))')
    admit(bytes(wasm), admission_policy())
