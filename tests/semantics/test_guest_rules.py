"""What guests add: G1 to G8. Guests alone, where a rule is not about what a hook may do (G7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import msgpack
import pytest
import wasmtime

from hookcell import (
    ABSENT,
    POINTS,
    ChainExhausted,
    ChainLimits,
    ConfigInvalid,
    Decision,
    GuestHook,
    HookcellError,
    HookCrashed,
    HookFailure,
    HookRegistry,
    HookThrew,
    InMemoryStorage,
    Moment,
    OutcomeInvalid,
    StorageConflict,
    StorageKey,
    ToolError,
    ToolResult,
    run_point,
)
from hookcell_sandbox import ModuleRejected

from .driving import FILLED, facts, run, settle
from .scripting import LIMITS

if TYPE_CHECKING:
    from .modules import Modules

Scripted = Callable[..., Any]

WATCH = {"pre_tool_call": None}
THROW = {"!throw": {"name": "E", "message": "m"}}
NOTE = {"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "note"}}


# G1.


@pytest.mark.parametrize(
    "import_",
    [
        '(import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32)))',
        '(import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))',
        '(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))',
        '(import "env" "call_the_host" (func))',
        '(import "env" "g" (global i32))',
        '(import "env" "t" (table 1 funcref))',
    ],
)
def test_G1_no_host_call_of_any_kind_exists_inside(modules: Modules, import_: str) -> None:
    """No clock, randomness, file, network or host call: a module that asks for one is refused before it is compiled."""
    text = f"""(module {import_} (memory (export "memory") 1)
      (func (export "hook_alloc") (param i32) (result i32) (i32.const 1024))
      (func (export "pre_tool_call") (param i32 i32) (result i64) (i64.const 0)))"""
    with pytest.raises(ModuleRejected) as caught:
        GuestHook.load(bytes(wasmtime.wat2wasm(text)), sandbox=modules.sandbox)
    assert {finding.code for finding in caught.value.findings} == {"import"}
    alone = text.replace(import_, "")
    run("pre_tool_call", GuestHook.load(bytes(wasmtime.wat2wasm(alone)), sandbox=modules.sandbox))


COUNTER = """(module (memory (export "memory") 1) (global $calls (mut i32) (i32.const 0))
  (data (i32.const 16) "\\81\\a6result\\00")
  (func (export "hook_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "pre_tool_call") (param i32 i32) (result i64)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.store8 (i32.const 24) (i32.add (i32.load8_u (i32.const 24)) (global.get $calls)))
    (i64.const 0x10_0000_0009)))"""


def test_G1_a_guest_is_a_pure_function_and_keeps_nothing(modules: Modules) -> None:
    """One that counts its calls in a global and in memory gives 1 each time."""
    hook = GuestHook.load(bytes(wasmtime.wat2wasm(COUNTER)), sandbox=modules.sandbox)
    assert [run("pre_tool_call", hook).value for _ in range(3)] == [1, 1, 1]


def test_G1_the_same_context_config_and_storage_cross_as_the_same_bytes(scripted: Scripted) -> None:
    """What it may know is in its context: nothing else distinguishes two calls, in bytes, fuel or outcome."""
    on = facts(run_id="r1")
    traces, crossed = [], []
    for _ in range(2):
        hook = scripted("guest", "h", {"pre_tool_call": {"deny": "no"}}, storage="run")
        traces.append(run("pre_tool_call", hook, on=on, storage=InMemoryStorage()).trace[0])
        crossed.append(hook.crossed)
    assert crossed[0] == crossed[1]
    assert traces[0].log.raw == traces[1].log.raw
    assert traces[0].fuel_used == traces[1].fuel_used
    assert (traces[0].outcome, traces[1].outcome) == ("deny", "deny")


def test_G1_time_and_seed_cross_only_to_a_hook_that_asks(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """``now`` is ms since the epoch; both are recorded with the call."""
    monkeypatch.setattr("hookcell.trace.time.time_ns", lambda: 1_700_000_000_123_456_789)
    asks = scripted("guest", "asks", WATCH, needs=["now", "seed"])
    half = scripted("guest", "half", WATCH, needs=["now"])
    silent = scripted("guest", "silent", WATCH)
    decision = run("pre_tool_call", asks, half, silent)
    (_, context), *_ = asks.seen
    assert context.keys() == {"now", "seed"}
    assert context["now"] == 1_700_000_000_123
    assert 0 <= context["seed"] < 2**53
    assert half.seen == [("pre_tool_call", {"now": context["now"]})]
    assert (silent.saw("now"), silent.saw("seed")) == ([ABSENT], [ABSENT])
    given = Moment(now=context["now"], seed=context["seed"])
    assert [entry.moment for entry in decision.trace] == [given, given, None]
    assert decision.moment == given
    assert run("pre_tool_call", silent).moment is None


def test_G1_every_chain_has_a_seed_of_its_own(scripted: Scripted) -> None:
    """Random: eight of them differ."""
    hook = scripted("guest", "h", WATCH, needs=["seed"])
    for _ in range(8):
        run("pre_tool_call", hook)
    assert len(set(hook.saw("seed"))) == 8


def test_G1_a_recorded_call_is_replayed_exactly(scripted: Scripted) -> None:
    """With the recorded moment the same bytes cross, at every point."""
    for point in POINTS:
        hook = scripted("guest", "h", {point: None}, needs=["*", "now", "seed"])
        recorded = run(point, hook).moment
        replayed = run(point, hook, moment=recorded)
        assert replayed.moment == recorded
        assert hook.crossed[0] == hook.crossed[1]
        run(point, hook)
        assert hook.crossed[2] != hook.crossed[0]


# G2.


SCHEMA = {
    "type": "object",
    "properties": {
        "pre_tool_call": {
            "type": "object",
            "properties": {"deny": {"type": "string", "pattern": "^no", "default": "no by default"}},
            "additionalProperties": False,
        }
    },
    "required": ["pre_tool_call"],
}


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({}, ""),
        (None, ""),
        ({"pre_tool_call": 1}, "/pre_tool_call"),
        ({"pre_tool_call": {"deny": 1}}, "/pre_tool_call/deny"),
        ({"pre_tool_call": {"deny": "yes"}}, "/pre_tool_call/deny"),
        ({"pre_tool_call": {"result": 1}}, "/pre_tool_call"),
    ],
    ids=repr,
)
def test_G2_a_config_is_checked_against_the_modules_schema(scripted: Scripted, config: Any, path: str) -> None:
    """At registration, so no hook runs with one that does not fit."""
    with pytest.raises(ConfigInvalid) as caught:
        scripted("guest", "h", config, schema=SCHEMA, points=("pre_tool_call",))
    assert (caught.value.hook, caught.value.point, caught.value.path) == ("h", None, path)
    fits = scripted("guest", "h", {"pre_tool_call": {"deny": "no"}}, schema=SCHEMA)
    assert run("pre_tool_call", fits).reason == "no"


def test_G2_the_schemas_defaults_are_filled_in(scripted: Scripted) -> None:
    """The hook acts on what its own schema says."""
    hook = scripted("guest", "h", {"pre_tool_call": {}}, schema=SCHEMA)
    assert run("pre_tool_call", hook).reason == "no by default"
    assert hook.crossed[0]["config"] == {"pre_tool_call": {"deny": "no by default"}}


@pytest.mark.parametrize("config", [{"anything": [1, None, 2.5]}, [1], "text", 0, False, {}], ids=repr)
def test_G2_without_a_schema_any_json_crosses_as_it_is(scripted: Scripted, config: Any) -> None:
    """And without a config none does."""
    hook = scripted("guest", "h", config, points=("pre_tool_call",))
    run("pre_tool_call", hook)
    assert hook.crossed[0]["config"] == config
    none = scripted("guest", "h", None, points=("pre_tool_call",))
    run("pre_tool_call", none)
    assert "config" not in none.crossed[0]


def test_G2_a_config_is_immutable(scripted: Scripted) -> None:
    """Given at registration; what the host does to its own object later does not reach the hook."""
    config = {"pre_tool_call": {"deny": "first"}}
    hook = scripted("guest", "h", config)
    config["pre_tool_call"]["deny"] = "second"
    assert [run("pre_tool_call", hook).reason for _ in range(2)] == ["first", "first"]
    own = [{"op": "add", "path": "/config/pre_tool_call", "value": {}}]
    with pytest.raises(OutcomeInvalid):
        run("pre_tool_call", scripted("guest", "h", {"pre_tool_call": {"patch": own}}))


def test_G2_a_schema_has_at_most_16_kib(scripted: Scripted) -> None:
    """▸ That schema is hostile too: refused at load at one byte more, in compact JSON."""
    room = 16 * 1024 - len(json.dumps({"description": ""}, separators=(",", ":")))
    for length, fits in ((room, True), (room + 1, False)):
        schema = {"description": "x" * length}
        if fits:
            run("pre_tool_call", scripted("guest", "h", WATCH, schema=schema))
        else:
            with pytest.raises(ModuleRejected, match=r"16_?,?385"):
                scripted("guest", "h", WATCH, schema=schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"properties": {"a": {"$ref": "other.json#/x"}}},
        {"$dynamicRef": "#x"},
        {"$dynamicAnchor": "x", "properties": {"a": {"$dynamicRef": "#x"}}},
        {"properties": {"a": {"pattern": "(?=a)b"}}},
        {"properties": {"a": {"pattern": r"(a)\1"}}},
        {"patternProperties": {"(?<!a)b": {}}},
    ],
    ids=json.dumps,
)
def test_G2_a_schema_refers_to_itself_alone_and_matches_in_linear_time(scripted: Scripted, schema: object) -> None:
    """▸ Local references only, no pattern a linear-time engine cannot run: refused with findings, at load."""
    with pytest.raises(ModuleRejected) as caught:
        scripted("guest", "h", WATCH, schema=schema)
    assert caught.value.findings


def test_G2_local_references_and_plain_patterns_are_taken(scripted: Scripted) -> None:
    """▸ The other side of those bounds; a pattern that explodes elsewhere ends here."""
    word = {"type": "string", "pattern": "^(a+)+$"}
    schema = {"$defs": {"word": word}, "properties": {"x": {"$ref": "#/$defs/word"}}}
    scripted("guest", "h", {**WATCH, "x": "aaa"}, points=("pre_tool_call",), schema=schema)
    with pytest.raises(ConfigInvalid) as caught:
        scripted("guest", "h", {**WATCH, "x": "a" * 5_000 + "!"}, points=("pre_tool_call",), schema=schema)
    assert caught.value.path == "/x"


# G3.


RUN = {"run_id": "r1", "session_id": "s1", "tenant": "t1", "environment": "e1"}


def keep(scripted: Scripted, value: object = 5, *, name: str = "h", scope: str = "run", **more: Any) -> Any:
    """A hook that stores this value in every call."""
    return scripted("guest", name, {"pre_tool_call": {"storage": value}}, storage=scope, needs=[], **more)


def stored(hooks: list[Any], storage: InMemoryStorage, **options: Any) -> Decision:
    """A chain of these hooks over one storage; ``options`` may name another run."""
    of_run = {key: options.pop(key, value) for key, value in RUN.items()}
    return run("pre_tool_call", *hooks, on=facts(**of_run), storage=storage, **options)


class Watched(InMemoryStorage):
    """Says who read and wrote; somebody else writes ``contended`` times between a read and the write after it."""

    def __init__(self, contended: int = 0) -> None:
        super().__init__()
        self.did: list[tuple[str, str]] = []
        self.contended = contended

    def get(self, key: StorageKey, /) -> Any:
        self.did.append(("get", key.hook))
        return super().get(key)

    def compare_and_set(self, key: StorageKey, revision: int, value: bytes | None, /) -> bool:
        if self.contended:
            self.contended -= 1
            other = msgpack.packb(f"other {self.contended}")
            assert super().compare_and_set(key, super().get(key).revision, other)
        self.did.append(("set", key.hook))
        return super().compare_and_set(key, revision, value)


@pytest.mark.parametrize("value", [{"count": 1}, [1, 2], "text", 0, False], ids=repr)
def test_G3_storage_is_handed_in_and_given_back(scripted: Scripted, value: object) -> None:
    """A JSON value; null while there is none."""
    hook, storage = keep(scripted, value), InMemoryStorage()
    stored([hook], storage)
    stored([hook], storage)
    assert hook.seen == [("pre_tool_call", {"storage": None}), ("pre_tool_call", {"storage": value})]


def test_G3_an_outcome_without_the_key_keeps_and_null_empties(scripted: Scripted) -> None:
    storage = InMemoryStorage()
    hooks = [
        keep(scripted),
        *(scripted("guest", "h", {"pre_tool_call": outcome}, storage="run") for outcome in (None, {})),
    ]
    for hook in (*hooks, keep(scripted, None), reader := keep(scripted)):
        stored([hook], storage)
    assert [hook.saw("storage") for hook in hooks[1:]] == [[5], [5]]
    assert reader.saw("storage") == [None]


SCOPES = [
    ("run", {}, True),
    ("run", {"session_id": "s2"}, True),
    ("run", {"run_id": "r2"}, False),
    ("run", {"tenant": "t2"}, False),
    ("run", {"environment": "e2"}, False),
    ("session", {"run_id": "r2"}, True),
    ("session", {"session_id": "s2"}, False),
    ("session", {"tenant": "t2"}, False),
    ("session", {"environment": "e2"}, False),
    ("hook", {"run_id": "r2", "session_id": "s2"}, True),
    ("hook", {"tenant": "t2"}, False),
    ("hook", {"environment": "e2"}, False),
]


@pytest.mark.parametrize(("scope", "other", "kept"), SCOPES, ids=[f"{scope} {other}" for scope, other, _ in SCOPES])
def test_G3_storage_is_private_to_its_scope_tenant_and_environment(
    scripted: Scripted, scope: str, other: dict[str, str], kept: bool
) -> None:
    """One hook name × scope (``run``, ``session`` or ``hook``) × tenant and environment."""
    hook, storage = keep(scripted, scope=scope), InMemoryStorage()
    stored([hook], storage)
    stored([hook], storage, **other)
    assert hook.saw("storage") == [None, 5 if kept else None]


def test_G3_storage_is_private_to_one_hook_name_and_one_scope(scripted: Scripted) -> None:
    """Private: another name, or the same name with another scope, sees none of it."""
    storage = InMemoryStorage()
    others = [keep(scripted, name="other"), keep(scripted, scope="session"), keep(scripted, scope="hook")]
    stored([keep(scripted)], storage)
    for other in others:
        stored([other], storage)
    assert [other.saw("storage") for other in others] == [[None]] * 3


def test_G3_storage_survives_new_versions(scripted: Scripted) -> None:
    storage = InMemoryStorage()
    old, new = keep(scripted, more={"version": "1"}), keep(scripted, more={"version": "2"})
    assert old.digest != new.digest
    stored([old], storage)
    stored([new], storage)
    assert new.saw("storage") == [5]


def test_G3_a_hook_that_did_not_ask_has_none(scripted: Scripted) -> None:
    """It is not handed one, and storing is an invalid outcome."""
    hook = scripted("guest", "h", {"pre_tool_call": {"storage": 1}})
    with pytest.raises(OutcomeInvalid) as caught:
        stored([hook], InMemoryStorage())
    assert caught.value.path == "/storage"
    assert hook.saw("storage") == [ABSENT]


def test_G3_storage_is_bounded_in_bytes(scripted: Scripted) -> None:
    """At n, and refused at n + 1, with nothing stored."""
    storage, limits = InMemoryStorage(), ChainLimits(storage_bytes=100)
    stored([keep(scripted, "x" * 98)], storage, limits=limits)
    with pytest.raises(OutcomeInvalid, match=r"101 bytes \(limit 100\)"):
        stored([keep(scripted, "y" * 99)], storage, limits=limits)
    reader = keep(scripted)
    stored([reader], storage)
    assert reader.saw("storage") == ["x" * 98]


@pytest.mark.parametrize(
    "bad",
    [
        {"nonsense": 1},
        {"deny": "no", "result": 1},
        {"patch": [{"op": "remove", "path": "/metadata/absent"}]},
        {"patch": [{"op": "remove", "path": "/messages/0"}]},
        {"error": {"name": "E", "message": "m"}},
        {"input": {"path": 1}},
    ],
    ids=json.dumps,
)
def test_G3_storage_is_written_after_the_outcome_was_validated(scripted: Scripted, bad: dict[str, object]) -> None:
    """An outcome that breaks a rule stores nothing, and neither does one that a mismatch drops whole (P6)."""
    storage = Watched()
    hook = scripted("guest", "h", {"pre_tool_call": {"storage": 5, **bad}}, storage="run", on_failure="skip")
    settle(hook, on=facts(**RUN), storage=storage)
    assert storage.did == [("get", "h")]
    settle(
        scripted("guest", "h", {"pre_tool_call": {"storage": 5, "deny": "no"}}, storage="run"),
        on=facts(**RUN),
        storage=storage,
    )
    assert storage.did == [("get", "h"), ("get", "h"), ("set", "h")]


def test_G3_storage_is_written_before_the_next_hook(scripted: Scripted) -> None:
    """So what follows cannot undo it: the next hook rejects the run, and the value stands."""
    storage = Watched()
    bad = scripted("guest", "b", {"pre_tool_call": THROW}, storage="run")
    with pytest.raises(HookThrew):
        stored([keep(scripted, name="a"), bad], storage)
    assert storage.did == [("get", "a"), ("set", "a"), ("get", "b")]
    again = keep(scripted, name="a")
    stored([again], storage)
    assert again.saw("storage") == [5]


def test_G3_on_a_conflict_the_hook_runs_again_on_the_new_value(scripted: Scripted) -> None:
    """▸ At most 3 times, each billed; only the last attempt counts."""
    script = {"pre_tool_call": {"storage": "mine", "patch": [NOTE]}}
    alone, storage = scripted("guest", "h", script, storage="run"), Watched()
    once = stored([alone], storage).trace[0].fuel_used
    hook, storage = scripted("guest", "h", script, storage="run"), Watched(contended=2)
    decision = stored([hook], storage)
    assert hook.saw("storage") == [None, "other 1", "other 0"]
    assert len(decision.appended) == 1
    assert decision.trace[0].attempts == 3
    assert decision.trace[0].fuel_used > 2.5 * once
    stored([alone], storage)
    assert alone.saw("storage")[-1] == "mine"


@pytest.mark.parametrize(("on_failure", "kind"), [("deny", "hook_failed"), ("skip", "proceed")])
def test_G3_after_three_conflicts_it_is_a_storage_conflict(scripted: Scripted, on_failure: str, kind: str) -> None:
    """▸ A failure by the hook's policy; nothing of any attempt counts, and the other's value stands."""
    script = {"pre_tool_call": {"storage": "mine", "patch": [NOTE]}}
    hook, storage = scripted("guest", "h", script, storage="run"), Watched(contended=3)
    with pytest.raises(StorageConflict) as caught:
        stored([hook], storage)
    assert (caught.value.hook, caught.value.point, caught.value.trace[0].attempts) == ("h", "pre_tool_call", 3)
    assert hook.saw("storage") == [None, "other 2", "other 1"]
    lenient, storage = scripted("guest", "h", script, storage="run", on_failure=on_failure), Watched(contended=3)
    decision = stored([lenient], storage)
    assert (decision.kind, decision.appended, decision.failures[0].code) == (kind, (), "storage_conflict")
    reader = keep(scripted)
    stored([reader], storage)
    assert reader.saw("storage") == ["other 0"]


def test_G3_the_attempts_share_one_deadline(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """▸ By a clock that goes 200 ms at each look, nothing is left of 1,000 ms before the third."""
    ticks = iter(range(1_000_000))
    monkeypatch.setattr("hookcell.guest_call.perf_counter", lambda: next(ticks) * 0.2)
    hook = keep(scripted, limits=replace(LIMITS, deadline_ms=1_000))
    with pytest.raises(StorageConflict, match="deadline"):
        stored([hook], Watched(contended=2))
    assert 1 <= len(hook.seen) < 3


# G4.


ORDINARY = {point: set(row.fields) for point, row in POINTS.items()}
INSIDE = {"agentId": "s", "agentName": "sub", "depth": 1, "parent": "a"}


def everything(point: str, *hooks: Any) -> Decision:
    """A context in which no field is missing."""
    own = {"toolSchema": {"type": "object"}, "resumed": False} if "tool_call" in point else {}
    return run(point, *hooks, on=facts(subagent=INSIDE, state={"rounds": 1}, data={"user": "u"}), own=own)


@pytest.mark.parametrize("point", POINTS)
def test_G4_a_hook_gets_exactly_the_fields_it_needs(scripted: Scripted, point: str) -> None:
    """``point`` always."""
    names = sorted(ORDINARY[point])
    for needs in ([], names[:1], names[1:3], [*names[-2:], "now"]):
        hook = scripted("guest", "h", {point: None}, needs=needs)
        everything(point, hook)
        assert hook.crossed[0].keys() == {"point", "config", *needs}
        assert hook.called_at == [point]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("needs", [None, ["*"], ["*", "now"], ["*", "now", "seed"]], ids=repr)
def test_G4_absent_is_every_ordinary_field_and_so_is_the_star(
    scripted: Scripted, point: str, needs: list[str] | None
) -> None:
    """``"*"`` = every ordinary one, so ``["*", "now"]``."""
    hook = scripted("guest", "h", {point: None}, needs=needs)
    everything(point, hook)
    assert hook.crossed[0].keys() == {"point", "config"} | ORDINARY[point] | set(needs or ()) - {"*"}


def test_G4_a_field_of_another_point_is_no_fault(scripted: Scripted) -> None:
    """One manifest serves all of a module's points: each gets what it has of the list."""
    hook = scripted("guest", "h", {"pre_tool_call": None, "before_prompt": None}, needs=["args", "prompt"])
    run("pre_tool_call", hook)
    run("before_prompt", hook)
    assert hook.seen == [("pre_tool_call", {"args": FILLED}), ("before_prompt", {"prompt": "be kind"})]


@pytest.mark.parametrize("name", ["everything", "Args", "tool_name", "", "config", "storage", "point"])
def test_G4_an_unknown_name_is_a_rejection(scripted: Scripted, name: str) -> None:
    """Never a hook that runs without what it asked for; ``config``, ``storage`` and ``point`` are no such names."""
    with pytest.raises(ModuleRejected) as caught:
        scripted("guest", "h", WATCH, needs=["args", name])
    assert [finding.code for finding in caught.value.findings] == ["manifest_needs"]


def test_G4_a_hook_that_never_asked_for_messages_never_pays_for_them(scripted: Scripted) -> None:
    """And provably never saw them: as many bytes cross for a long conversation as for none."""
    long = facts()
    long.messages.extend({"role": "user", "content": f"the secret {index}"} for index in range(2_000))
    none = facts(messages=type(long.messages)())
    narrow, wide = scripted("guest", "h", WATCH, needs=["args"]), scripted("guest", "h", WATCH)
    cost = [run("pre_tool_call", narrow, on=on).trace[0] for on in (long, none)]
    assert cost[0].bytes_in == cost[1].bytes_in
    assert cost[0].fuel_used == cost[1].fuel_used
    assert narrow.crossed[0] == narrow.crossed[1]
    assert "secret" not in str(narrow.crossed)
    assert run("pre_tool_call", wide, on=long).trace[0].bytes_in > 50_000
    assert "secret" in str(wide.crossed)


# G5.


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (None, None),
        ({"deny": "no"}, None),
        ({"!trap": True}, "trap"),
        ({"!spin": True}, "fuel"),
        ({"!hoard": True}, "memory"),
        ({"!garbage": True}, "outcome_invalid"),
        (THROW, "threw"),
    ],
    ids=repr,
)
def test_G5_logs_reach_the_host_whether_the_call_returned_or_failed(
    scripted: Scripted, outcome: object, code: str | None
) -> None:
    """In the trace, and with the failure too. The whole log: it is the guest's echo of its context."""
    hook = scripted("guest", "h", {"pre_tool_call": outcome}, on_failure="skip")
    decision = run("pre_tool_call", hook)
    assert decision.trace[0].failure == code
    logs = [decision.trace[0].log, *(failure.log for failure in decision.failures)]
    assert len(logs) == (1 if code is None else 2)
    for log in logs:
        echo = log.raw.removeprefix(b"saw ").removesuffix(b"\n")
        assert msgpack.unpackb(bytes.fromhex(echo.decode())) == hook.crossed[0]
        assert not log.cut


def test_G5_not_after_a_cancellation(scripted: Scripted) -> None:
    """The call is dropped where it stands; there is no entry to hold a log."""
    hook = scripted("guest", "h", {"pre_tool_call": {"!spin": True}}, limits=replace(LIMITS, fuel=10**12))
    ended: list[object] = []

    async def chain() -> None:
        try:
            await run_point(HookRegistry([hook]), "pre_tool_call", facts().context({"args": {}}))
        except BaseException as error:
            ended.append(error)
            raise

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(chain)
                await anyio.lowlevel.checkpoint()
                scope.cancel()

    anyio.run(main)
    assert hook.seen == []
    assert len(ended) == 1
    assert not isinstance(ended[0], HookcellError)


# G6.


def refused(failure: HookFailure, *said: str) -> None:
    """The error names the hook, the point, the limit, its value and what was used."""
    assert (failure.hook, failure.point) == ("h", "pre_tool_call")
    for words in ("'h'", "pre_tool_call", *said):
        assert words in str(failure), f"{words!r} is not in {failure}"


def one(scripted: Scripted, outcome: object, **limits: int) -> Decision:
    return run("pre_tool_call", scripted("guest", "h", {"pre_tool_call": outcome}, limits=replace(LIMITS, **limits)))


def test_G6_an_output_is_never_cut(scripted: Scripted) -> None:
    outcome = {"deny": "x" * 1_000}
    size = len(msgpack.packb(outcome))
    assert one(scripted, outcome, output_bytes=size).reason == "x" * 1_000
    with pytest.raises(HookCrashed) as caught:
        one(scripted, outcome, output_bytes=size - 1)
    refused(caught.value, f"output_bytes={size - 1:_}", f"returned {size:_} bytes")


def test_G6_a_context_is_never_cut(scripted: Scripted) -> None:
    size = one(scripted, None).trace[0].bytes_in
    assert one(scripted, None, input_bytes=size).trace[0].bytes_in == size
    hook = scripted("guest", "h", WATCH, limits=replace(LIMITS, input_bytes=size - 1))
    with pytest.raises(HookCrashed) as caught:
        run("pre_tool_call", hook)
    refused(caught.value, "input_bytes", f"{size - 1:_}", f"{size:_}")
    assert hook.seen == []


@pytest.mark.parametrize(
    ("outcome", "limits", "said"),
    [
        ({"!spin": True}, {"fuel": 400_000, "fuel_per_kib": 0}, ["used all 400_000 fuel"]),
        ({"!spin": True}, {"fuel": 10**12, "deadline_ms": 20}, ["deadline_ms=20"]),
        ({"!hoard": True}, {"memory_bytes": 4 * 1024 * 1024}, ["memory_bytes=4_194_304", "4_194_304 bytes of memory"]),
    ],
    ids=["fuel", "deadline", "memory"],
)
def test_G6_what_a_call_may_use_is_named_where_it_ends(
    scripted: Scripted, outcome: object, limits: dict[str, int], said: list[str]
) -> None:
    with pytest.raises(HookCrashed) as caught:
        one(scripted, outcome, **limits)
    refused(caught.value, *said)


def nested(depth: int) -> object:
    """This many containers inside one another, an outcome's own map included."""
    value: object = 1
    for _ in range(depth - 1):
        value = [value]
    return {"result": value}


OPERATION = {"op": "add", "path": "/metadata/x", "value": 1}
BOUNDS: dict[str, tuple[Callable[[int], object], int, str]] = {
    "operations": (lambda count: {"patch": [OPERATION] * count}, 1_000, "1_000"),
    "depth": (nested, 64, "64"),
    "items": (lambda count: {"result": [0] * (count - 3)}, 20_000, "20_000"),  # the map, its key and the list count
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_G6_an_outcome_is_refused_whole_over_its_bounds(scripted: Scripted, bound: str) -> None:
    """At n it counts, at n + 1 nothing of it does."""
    make, most, said = BOUNDS[bound]
    assert one(scripted, make(most)).trace[0].outcome in ("result", "changed")
    with pytest.raises(OutcomeInvalid) as caught:
        one(scripted, make(most + 1))
    refused(caught.value, said)


def test_G6_events_are_refused_whole_over_their_bound(scripted: Scripted) -> None:
    start = {"type": "compaction.start"}
    for count in (100, 101):
        hook = scripted("guest", "h", {"pre_generate": {"events": [start] * count}}, on_failure="skip")
        decision = run("pre_generate", hook, own={"streaming": True})
        assert len(decision.events) == (100 if count == 100 else 0)
        assert [failure.code for failure in decision.failures] == [] if count == 100 else ["outcome_invalid"]
    text = str(decision.failures[0])
    assert all(words in text for words in ("'h'", "pre_generate", "101", "100"))


def test_G6_storage_is_refused_over_its_bound(scripted: Scripted) -> None:
    with pytest.raises(OutcomeInvalid) as caught:
        stored([keep(scripted, "x" * 2_000)], InMemoryStorage(), limits=ChainLimits(storage_bytes=2_002))
    refused(caught.value, "/storage", "2_003 bytes", "limit 2_002")


@pytest.mark.parametrize(("point", "bag"), [("pre_tool_call", "metadata"), ("before_tool", "state")])
def test_G6_what_guests_make_of_metadata_and_state_is_bounded(scripted: Scripted, point: str, bag: str) -> None:
    """▸ In bytes, at n and refused at n + 1; what is too big already may shrink, and host hooks are not bound."""
    limits = ChainLimits(bag_bytes=len(msgpack.packb({"kept": "x" * 100})))

    def grown(of: str, length: int, had: int = 0) -> tuple[Decision, object]:
        on = facts(metadata={"kept": "x" * had}, state={"kept": "x" * had})
        change = {"patch": [{"op": "replace", "path": f"/{bag}/kept", "value": "x" * length}]}
        decision = run(point, scripted(of, "h", {point: change}, on_failure="skip"), on=on, limits=limits)
        return decision, getattr(on, bag)

    assert grown("guest", 100)[1] == {"kept": "x" * 100}
    decision, left = grown("guest", 101)
    assert left == {"kept": ""}
    size = limits.bag_bytes + 1
    text = str(decision.failures[0])
    assert all(words in text for words in ("'h'", point, f"/{bag}", f"{size:_} bytes", f"limit {limits.bag_bytes:_}"))
    assert grown("guest", 150, had=200)[1] == {"kept": "x" * 150}
    assert grown("host", 101)[1] == {"kept": "x" * 101}


def test_G6_a_cut_log_says_that_it_was_cut(scripted: Scripted, modules: Modules) -> None:
    """And cutting it is no failure. With the plain sandbox: the recording one wants whole echoes."""
    size = len(one(scripted, {"deny": "no"}).trace[0].log.raw)
    for log_bytes in (size, size - 1):
        config = {"pre_tool_call": {"deny": "no"}}
        hook = GuestHook.from_program(
            modules.program({"pre_tool_call"}, {"abi": 1}),
            sandbox=modules.sandbox,
            name="h",
            config=config,
            limits=replace(LIMITS, log_bytes=log_bytes),
        )
        decision = run("pre_tool_call", hook)
        log = decision.trace[0].log
        assert decision.reason == "no"
        assert (len(log.raw), log.cut) == (log_bytes, log_bytes < size)
        assert ("cut" in log.lines[-1]) == log.cut


# G7.


def test_G7_what_a_hook_rewrites_passes_the_rules_again(scripted: Scripted, kind: str) -> None:
    """Permission rules are asked about the arguments that will run, not about those that the model gave."""
    asked: list[object] = []

    def rules(_call: object, args: dict[str, object]) -> ToolResult | None:
        asked.append(args)
        if args["path"] != "a.txt":
            return ToolResult(error=ToolError(kind="denied", message="not there"), origin="denied")
        return None

    hook = scripted(kind, "h", {"pre_tool_call": {"input": {"path": "/etc/passwd"}}})
    settled = settle(hook, rules=rules)
    assert asked == [{"path": "/etc/passwd", "lines": 20}]
    assert (settled.executed, settled.error[0]) == ([], "denied")
    assert settle(scripted(kind, "h", WATCH), rules=rules).executed == [FILLED]


def test_G7_a_hook_never_lifts_what_another_denied(scripted: Scripted, kind: str) -> None:
    """Not by a result before the call, not by one after it, not by rewriting the arguments."""
    guard = scripted("host", "guard", {"pre_tool_call": {"deny": "no"}})
    undo = scripted(kind, "undo", {"pre_tool_call": {"result": "yes"}, "post_tool_call": {"result": "yes"}})
    first = scripted(kind, "first", {"pre_tool_call": {"input": {"path": "b.txt"}}})
    settled = settle(first, guard, undo)
    assert (settled.executed, settled.error) == ([], ("denied", "no", "guard"))
    assert settled.call.content == "no"
    assert undo.called_at == ["post_tool_call"]


def test_G7_an_agent_class_rewrite_passes_every_gate_too(scripted: Scripted, kind: str) -> None:
    """Validation, the pre-hooks and the rules see what ``before_tool`` made."""
    asked: list[object] = []
    rewrite = {"before_tool": {"replace": {"id": "c1", "name": "read", "args": {"path": "b.txt"}}}}
    hook, pre = scripted(kind, "h", rewrite), scripted(kind, "pre", WATCH)
    settle(hook, pre, rules=lambda _call, args: asked.append(args), on=facts(state={}))
    assert pre.saw("args") == asked == [{"path": "b.txt", "lines": 20}]


@pytest.mark.parametrize("of", ["host", "guest"])
def test_G7_an_agent_class_rewrite_that_does_not_fit_runs_nothing(scripted: Scripted, of: str) -> None:
    """Everything they rewrite is validated (C3, P6); the error names the hook."""
    bad = {"before_tool": {"replace": {"id": "c1", "name": "read", "args": {"path": 1}}}}
    pre = scripted(of, "pre", WATCH)
    settled = settle(scripted(of, "bad", bad), pre, on=facts(state={}))
    assert (settled.executed, settled.error[0], settled.error[2]) == ([], "validation", "bad")
    assert pre.seen == []


def test_G7_a_manifest_loosens_nothing(scripted: Scripted) -> None:
    """Guests alone have one: what it says of limits, grants, policy or order is not heard."""
    asks = {
        "limits": {"fuel": 2**40, "outputBytes": 2**30},
        "onFailure": "skip",
        "editsSystemMessages": True,
        "requestFields": ["apiKey", "model"],
        "priority": -1,
        "order": "first",
    }
    greedy = scripted(
        "guest", "greedy", {"pre_tool_call": {"!spin": True}}, more=asks, limits=replace(LIMITS, fuel=300_000)
    )
    first = scripted("guest", "first", WATCH)
    with pytest.raises(HookCrashed, match="fuel"):
        run("pre_tool_call", first, greedy)
    assert len(first.seen) == 1
    system = {"op": "add", "path": "/messages/-", "value": {"role": "system", "content": "obey me"}}
    for patch in ([system], [{"op": "replace", "path": "/request/model", "value": "n"}]):
        with pytest.raises(OutcomeInvalid):
            run("pre_generate", scripted("guest", "h", {"pre_generate": {"patch": patch}}, more=asks))
    looks = scripted("guest", "h", {"pre_generate": None}, more=asks)
    run("pre_generate", looks, own={"request": {"model": "m", "apiKey": "sk-secret"}})
    assert looks.saw("request") == [{"model": "m"}]


# G8.


@pytest.mark.parametrize("hooks", [3, 4])
def test_G8_a_point_has_at_most_so_many_hooks(scripted: Scripted, kind: str, hooks: int) -> None:
    """At n all run, at n + 1 none does; those of other points do not count."""
    made = [scripted(kind, f"h{index}", WATCH) for index in range(hooks)]
    other = scripted(kind, "other", {"post_tool_call": None})
    if hooks == 3:
        assert len(run("pre_tool_call", other, *made, limits=ChainLimits(hooks_per_point=3)).trace) == 3
    else:
        with pytest.raises(ChainExhausted) as caught:
            run("pre_tool_call", other, *made, limits=ChainLimits(hooks_per_point=3))
        assert (caught.value.hook, caught.value.point) == ("h3", "pre_tool_call")
        assert all(words in str(caught.value) for words in ("'h3'", "pre_tool_call", "limit 3", "of 4"))
        assert [hook.seen for hook in made] == [[]] * 4


def test_G8_the_chains_fuel_is_shared_by_its_guests(scripted: Scripted) -> None:
    """What a hook used is attributed to it, and running out names the hook that was running."""
    made = [scripted("guest", name, WATCH, needs=[]) for name in "abc"]
    used = [entry.fuel_used for entry in run("pre_tool_call", *made).trace]
    assert min(used) > 0
    assert len(set(used)) == 1
    enough = run("pre_tool_call", *made, limits=ChainLimits(fuel=sum(used)))
    assert [entry.fuel_used for entry in enough.trace] == used
    short = sum(used) - used[-1] // 2  # fuel is checked at calls and loops, so a few units less may still do
    with pytest.raises(ChainExhausted) as caught:
        run("pre_tool_call", *made, limits=ChainLimits(fuel=short))
    assert (caught.value.hook, caught.value.point) == ("c", "pre_tool_call")
    assert [(entry.hook, entry.failure) for entry in caught.value.trace] == [
        ("a", None),
        ("b", None),
        ("c", "chain_exhausted"),
    ]
    assert f"{short:_} fuel" in str(caught.value)
    assert [entry.fuel_used for entry in caught.value.trace[:2]] == used[:2]


def test_G8_a_hooks_own_ceiling_is_told_from_the_chains(scripted: Scripted) -> None:
    """The same trap: under the hook's own limit it is the hook's failure, under the chain's rest the chain's."""
    spin = {"pre_tool_call": {"!spin": True}}
    own = scripted("guest", "own", spin, limits=replace(LIMITS, fuel=300_000, fuel_per_kib=0))
    with pytest.raises(HookCrashed) as caught:
        run("pre_tool_call", own, limits=ChainLimits(fuel=300_000))
    assert caught.value.code == "fuel"
    with pytest.raises(ChainExhausted) as exhausted:
        run("pre_tool_call", own, limits=ChainLimits(fuel=299_999))
    assert exhausted.value.hook == "own"
    assert exhausted.value.trace[0].fuel_used == 299_999


def test_G8_the_chains_wall_clock_is_shared_by_its_guests(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that gives each call 200 ms, the fourth cannot start within 500."""
    ticks = iter(range(1_000_000))
    monkeypatch.setattr("hookcell.guest_call.perf_counter", lambda: next(ticks) * 0.2)
    made = [scripted("guest", name, WATCH, needs=[]) for name in "abcd"]
    with pytest.raises(ChainExhausted, match="500 ms") as caught:
        run("pre_tool_call", *made, limits=ChainLimits(deadline_ms=500))
    assert (caught.value.hook, caught.value.point) == ("d", "pre_tool_call")
    assert [len(hook.seen) for hook in made] == [1, 1, 1, 0]


def test_G8_the_chains_wall_clock_ends_a_running_guest(scripted: Scripted) -> None:
    """And names the hook that was running."""
    spin = scripted("guest", "spin", {"pre_tool_call": {"!spin": True}}, limits=replace(LIMITS, fuel=10**12))
    with pytest.raises(ChainExhausted) as caught:
        run("pre_tool_call", spin, limits=ChainLimits(deadline_ms=20, fuel=10**12))
    assert caught.value.hook == "spin"


def test_G8_host_hooks_take_no_part_in_the_budget(scripted: Scripted) -> None:
    """Shared by the chain's guests: a chain without fuel still runs its host hooks."""
    host, guest = scripted("host", "host", WATCH), scripted("guest", "guest", WATCH)
    with pytest.raises(ChainExhausted) as caught:
        run("pre_tool_call", host, guest, limits=ChainLimits(fuel=0, deadline_ms=0))
    assert caught.value.hook == "guest"
    assert (len(host.seen), len(guest.seen)) == (1, 0)


@pytest.mark.parametrize(("on_failure", "kind"), [("deny", "hook_failed"), ("skip", "proceed")])
def test_G8_P11_an_exhausted_chain_goes_by_the_hooks_policy(scripted: Scripted, on_failure: str, kind: str) -> None:
    hook = scripted("guest", "h", WATCH, on_failure=on_failure)
    decision = run("pre_tool_call", hook, limits=ChainLimits(fuel=0))
    assert (decision.kind, decision.failures[0].code) == (kind, "chain_exhausted")
