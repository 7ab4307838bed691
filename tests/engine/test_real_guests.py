"""The chain with real modules in the real sandbox: the engine's side of the issue's cases from public reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import msgpack
import pytest
import wasmtime

import hookcell
from hookcell import (
    ConfigInvalid,
    Decision,
    GuestHook,
    HookCrashed,
    HookRegistry,
    InMemoryStorage,
    OutcomeInvalid,
    RunFacts,
    ToolCall,
    ToolPipeline,
    ToolResult,
    run_point,
    run_point_sync,
)
from hookcell_sandbox import Limits, ModuleRejected, Sandbox

DEMO = Path(hookcell.__file__).parent / "demo"

ENDLESS = "(loop $forever (br $forever)) (i64.const 0)"
TRAP_LATE = """
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 1000000))))
    (i64.extend_i32_u (i32.div_u (i32.const 1) (i32.const 0)))"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


def _text(raw: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in raw)


def _module(body: str, *, manifest: dict[str, object] | None = None, data: bytes = b"", more: str = "") -> bytes:
    """A module whose ``pre_tool_call`` is ``body``; ``data`` stands at address 64."""
    section = f'(@custom "hookcell" "{_text(json.dumps(manifest).encode())}")' if manifest is not None else ""
    return bytes(
        wasmtime.wat2wasm(
            f"""(module
  (memory (export "memory") 2)
  (data (i32.const 64) "{_text(data)}")
  (func (export "hook_alloc") (param i32) (result i32) (i32.const 65536))
  (func (export "pre_tool_call") (param i32 i32) (result i64) (local $i i32) {body})
  {more}
  {section})"""
        )
    )


def _returning(outcome: object, **more: Any) -> bytes:
    """A module that always returns this outcome; bytes go as they are."""
    raw = outcome if isinstance(outcome, bytes) else msgpack.packb(outcome)
    return _module(f"(i64.const {64 << 32 | len(raw)})", data=raw, **more)


def _run(*hooks: GuestHook, **options: Any) -> Decision:
    context = RunFacts().context({"toolName": "shell", "args": {"command": "a"}})
    return run_point_sync(HookRegistry(hooks), "pre_tool_call", context, **options)


def test_a_rewrite_stays_when_the_next_hook_returns_nothing(sandbox: Sandbox) -> None:
    """SEMANTICS P2; issue case (k)."""
    rewrite = GuestHook.load(_returning({"input": {"command": "safe"}}), sandbox=sandbox, name="a")
    watch = GuestHook.load(_module("(i64.const 0)"), sandbox=sandbox, name="b")
    decision = _run(rewrite, watch)
    assert decision.args == {"command": "safe"}
    assert [entry.outcome for entry in decision.trace] == ["input", "nothing"]
    assert all(entry.fuel_used > 0 for entry in decision.trace)
    assert decision.trace[0].digest == rewrite.digest


@pytest.mark.parametrize(
    ("outcome", "hint"),
    [
        ({"hookSpecificOutput": {"deny": "x"}}, True),
        (b"\x81\xa4deny", True),
        (b"\xc1", True),
        (b"\x81" * 64 + b"\xc0", False),
    ],
)
def test_a_bad_outcome_is_a_failure_of_the_hook(sandbox: Sandbox, outcome: object, hint: bool) -> None:
    """SEMANTICS P8; issue cases (g) and (j)."""
    with pytest.raises(OutcomeInvalid) as caught:
        _run(GuestHook.load(_returning(outcome), sandbox=sandbox, name="bad"))
    assert caught.value.hook == "bad"
    assert caught.value.hint or not hint


@pytest.mark.parametrize(
    ("limits", "code"), [(Limits(fuel=1_000_000), "fuel"), (Limits(fuel=10**12, deadline_ms=20), "deadline")]
)
def test_a_looping_hook_is_a_fuel_or_deadline_error_by_code(sandbox: Sandbox, limits: Limits, code: str) -> None:
    """Issue case (a)."""
    with pytest.raises(HookCrashed) as caught:
        _run(GuestHook.load(_module(ENDLESS), sandbox=sandbox, name="slow", limits=limits))
    assert caught.value.code == code
    assert caught.value.trace[0].fuel_used > 0


def test_a_trapped_call_is_billed_and_the_next_calls_are_right(sandbox: Sandbox) -> None:
    """Issue cases (b) and (h)."""
    late = GuestHook.load(_module(TRAP_LATE), sandbox=sandbox, name="late", on_failure="skip")
    deny = GuestHook.load(_returning({"deny": "no"}), sandbox=sandbox, name="deny")
    for _ in range(3):
        decision = _run(late, deny)
        assert decision.denied_by == "deny"
        assert decision.failures[0].code == "trap"
        assert decision.trace[0].fuel_used >= 1_000_000


def test_the_policy_deny_closes_the_call_on_a_trap(sandbox: Sandbox) -> None:
    """SEMANTICS P11."""
    hook = GuestHook.load(_module("unreachable"), sandbox=sandbox, name="bad", on_failure="deny")
    gate = ToolPipeline(hooks=HookRegistry([hook]), run=RunFacts()).before_execution_sync(
        ToolCall(id="1", name="t", args={})
    )
    assert gate.settled is not None
    assert gate.settled.error is not None
    assert (gate.settled.error.kind, gate.settled.error.message) == (
        "hook_failed",
        "hook 'bad' failed at pre_tool_call (trap)",
    )


@pytest.mark.parametrize("ending", ["(i64.const 0)", "unreachable"])
def test_logs_reach_the_host_after_returns_and_traps(sandbox: Sandbox, ending: str) -> None:
    """SEMANTICS G5."""
    log = b"seen\n"
    wasm = _module(
        ending,
        data=len(log).to_bytes(4, "little") + log,
        more='(global (export "hook_log") i32 (i32.const 64))',
    )
    decision = _run(GuestHook.load(wasm, sandbox=sandbox, name="logs", on_failure="skip"))
    assert decision.trace[0].log.lines == ("seen",)


@pytest.mark.parametrize(
    "wasm",
    [
        b"not a module",
        _module("(i64.const 0)", more="(start $s) (func $s (loop $forever (br $forever)))"),
        _module("(i64.const 0)", manifest={"needs": ["everything"], "storage": "forever"}),
        b"\0asm\x01\0\0\0",
    ],
    ids=["text", "start", "manifest", "empty"],
)
def test_a_module_that_fails_to_load_stops_registration_with_its_findings(sandbox: Sandbox, wasm: bytes) -> None:
    """Issue cases (i) and (m): never skipped, whatever the policy."""
    for policy in ("raise", "deny", "skip"):
        with pytest.raises(ModuleRejected) as caught:
            GuestHook.load(wasm, sandbox=sandbox, on_failure=policy)
        assert caught.value.findings
        assert all(finding.what for finding in caught.value.findings)


def test_every_finding_of_a_manifest_is_given_at_once(sandbox: Sandbox) -> None:
    """Issue case (m)."""
    wasm = _module("(i64.const 0)", manifest={"needs": ["everything"], "storage": "forever", "abi": 2})
    with pytest.raises(ModuleRejected) as caught:
        GuestHook.load(wasm, sandbox=sandbox)
    assert len(caught.value.findings) == 3


def test_a_hook_is_named_by_host_manifest_file_or_digest(sandbox: Sandbox, tmp_path: Path) -> None:
    named = _module("(i64.const 0)", manifest={"name": "from manifest"})
    unnamed = tmp_path / "from_file.wasm"
    unnamed.write_bytes(_module("(i64.const 0)"))
    assert GuestHook.load(named, sandbox=sandbox, name="mine").name == "mine"
    assert GuestHook.load(named, sandbox=sandbox).name == "from manifest"
    hook = GuestHook.load(unnamed, sandbox=sandbox)
    assert hook.name == "from_file"
    assert GuestHook.load(unnamed.read_bytes(), sandbox=sandbox).name == hook.digest[:12]


def test_loading_off_the_event_loop_gives_the_same_hook(sandbox: Sandbox) -> None:
    wasm = _returning({"deny": "no"})

    async def main() -> GuestHook:
        return await GuestHook.load_async(wasm, sandbox=sandbox, name="g")

    hook = anyio.run(main)
    assert hook.digest == GuestHook.load(wasm, sandbox=sandbox).digest
    assert _run(hook).denied_by == "g"


def test_storage_through_a_real_guest(sandbox: Sandbox) -> None:
    """SEMANTICS G3."""
    wasm = _returning({"storage": {"n": 1}}, manifest={"storage": "run", "needs": []})
    storage, facts = InMemoryStorage(), RunFacts()
    hook = GuestHook.load(wasm, sandbox=sandbox, name="s")
    entry = _run(hook, storage=storage, run=facts).trace[0]
    assert (entry.attempts, storage.used_bytes > 0) == (1, True)
    assert entry.bytes_in == len(msgpack.packb({"point": "pre_tool_call", "storage": None}))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("on_failure", ["raise", "deny", "skip"])
def test_an_endless_guest_is_cancelled_and_no_policy_turns_that_into_an_outcome(
    sandbox: Sandbox, backend: str, on_failure: Any
) -> None:
    """A cancellation is no failure of the hook, on the first call and on later ones (issue case (e))."""
    limits = Limits(fuel=10**12, deadline_ms=600_000)
    hook = GuestHook.load(_module(ENDLESS), sandbox=sandbox, name="e", limits=limits, on_failure=on_failure)
    context = RunFacts().context({"args": {}})
    outcomes: list[Decision] = []

    async def main() -> None:
        for _ in range(3):
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    outcomes.append(await run_point(HookRegistry([hook]), "pre_tool_call", context))

                tasks.start_soon(run)
                while not sandbox.taken:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()

    anyio.run(main, backend=backend)
    assert outcomes == []
    assert sandbox.taken == 0
    assert _run(GuestHook.load(_returning({"deny": "no"}), sandbox=sandbox, name="d")).denied_by == "d"


# The hooks that ship with the demo.


@pytest.fixture(scope="module")
def pipeline(sandbox: Sandbox) -> ToolPipeline:
    configs = json.loads((DEMO / "hooks.json").read_text())
    hooks = [
        GuestHook.load(DEMO / "hooks" / f"{name}.wasm", sandbox=sandbox, name=name, config=configs[name])
        for name in ("guard", "defaults", "redact")
    ]
    return ToolPipeline(hooks=HookRegistry(hooks), run=RunFacts())


def test_the_demos_guard_denies_and_nothing_runs(pipeline: ToolPipeline) -> None:
    """SEMANTICS P4, P7."""
    gate = pipeline.before_execution_sync(ToolCall(id="1", name="delete_account", args={"id": 1}))
    assert gate.decision is not None
    assert gate.decision.denied_by == "guard"
    assert not gate.runs
    assert [entry.hook for entry in gate.decision.trace] == ["guard"]


def test_the_demos_defaults_fill_arguments_and_redact_masks_results(pipeline: ToolPipeline) -> None:
    """SEMANTICS P6, P9."""
    gate = pipeline.before_execution_sync(ToolCall(id="1", name="find_books", args={"query": "wasm"}))
    assert gate.args == {"query": "wasm", "limit": 5, "inStockOnly": True}
    settled = pipeline.after_execution_sync(gate, ToolResult(result={"note": ["write to ada@example.com"]}))
    assert "ada@example.com" not in repr(settled.content)
    assert settled.post.replaced_by == "redact"


def test_a_config_that_does_not_fit_the_guards_schema_is_refused(sandbox: Sandbox) -> None:
    """SEMANTICS G2."""
    with pytest.raises(ConfigInvalid):
        GuestHook.load(DEMO / "hooks" / "guard.wasm", sandbox=sandbox, name="guard", config={"deny": "everything"})


@pytest.mark.parametrize(("config", "denied"), [(None, "guard"), ({}, None), ({"deny": [{"tool": "x"}]}, None)])
def test_guard_without_any_config_refuses_to_delete_and_with_one_keeps_to_it(
    sandbox: Sandbox, config: object, denied: str | None
) -> None:
    guard = GuestHook.load(DEMO / "hooks" / "guard.wasm", sandbox=sandbox, name="guard", config=config)
    pipeline = ToolPipeline(hooks=HookRegistry([guard]), run=RunFacts())
    gate = pipeline.before_execution_sync(ToolCall(id="1", name="delete_account", args={}))
    assert gate.decision is not None
    assert gate.decision.denied_by == denied


def test_limits_that_no_slot_holds_are_refused_at_load(sandbox: Sandbox) -> None:
    more = Limits(memory_bytes=2 * sandbox.settings.memory_bytes)
    with pytest.raises(ValueError, match=r"raise EngineSettings\.memory_bytes too"):
        GuestHook.load(DEMO / "hooks" / "guard.wasm", sandbox=sandbox, limits=more)
