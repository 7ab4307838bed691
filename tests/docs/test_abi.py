"""The byte-level example of the ABI, run."""

from __future__ import annotations

import re
from pathlib import Path

import msgpack
import pytest
import wasmtime

from hookcell import GuestHook, HookRegistry, RunFacts, ToolCall, ToolPipeline, admission_policy
from hookcell.codec import CONTEXT_DEPTH, OUTCOME_DEPTH, OUTCOME_NODES
from hookcell.outcomes import PATCH_OPERATIONS
from hookcell.points import POINTS
from hookcell_sandbox import Sandbox

ABI = (Path(__file__).parents[2] / "guest_sdk" / "ABI.md").read_text("utf-8")


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


def test_the_numbers_and_keys_are_the_codes() -> None:
    assert f"Nothing nests deeper than {CONTEXT_DEPTH}" in ABI
    assert f"at most {OUTCOME_DEPTH} deep and {OUTCOME_NODES:,} items" in ABI
    assert f"at most {PATCH_OPERATIONS:,} maps" in ABI
    keys = set().union(*(point.keys for point in POINTS.values()))
    section = ABI.partition("## Outcome")[2].partition("At most one")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == keys
