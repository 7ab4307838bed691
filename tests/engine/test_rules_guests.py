"""What guests add (SEMANTICS G1, G2, G4, G6, G8): config, needs, time and randomness, ceilings of the chain."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from hookcell import (
    ChainExhausted,
    ChainLimits,
    ConfigInvalid,
    ContextInvalid,
    Decision,
    GuestHook,
    History,
    HookcellError,
    HookCrashed,
    HookRegistry,
    Moment,
    OutcomeInvalid,
    RunFacts,
    run_point_sync,
)
from hookcell_sandbox.errors import DeadlineExceeded, FuelExhausted, ModuleRejected
from hookcell_sandbox.guest_text import EMPTY_LOG
from hookcell_sandbox.limits import Limits

from .fake_sandbox import FakeSandbox, host

MOMENT = Moment(now=1_700_000_000_000, seed=2**53 - 1)


def _nothing(_: object) -> None: ...


def _context() -> dict[str, object]:
    facts = RunFacts(agent_id="a", messages=History([{"role": "user", "content": "secret"}]), metadata={"m": 1})
    return facts.context({"toolCallId": "1", "toolName": "run", "args": {"n": 1}, "toolCall": {}})


def _run(*guests: GuestHook, **options: Any) -> Decision:
    return run_point_sync(HookRegistry(guests), "pre_tool_call", _context(), **options)


# G4.


def test_a_hook_receives_exactly_the_fields_it_needs() -> None:
    """SEMANTICS G4: it never asked for messages, never pays for them and provably never saw them."""
    sandbox = FakeSandbox()
    _run(sandbox.guest("g", {"needs": ["args"]}, pre_tool_call=_nothing))
    assert sandbox.calls[0].context == {"point": "pre_tool_call", "args": {"n": 1}}
    assert b"secret" not in sandbox.calls[0].payload


@pytest.mark.parametrize("manifest", [None, {}, {"needs": ["*"]}])
def test_without_needs_every_ordinary_field_crosses(manifest: dict[str, object] | None) -> None:
    """SEMANTICS G4: ``now`` and ``seed`` are not among them (G1), nor what the run does not have."""
    sandbox = FakeSandbox()
    _run(sandbox.guest("g", manifest, pre_tool_call=_nothing))
    expected = {"point", "agentId", "agentName", "sessionId", "messages", "metadata"}
    assert set(sandbox.calls[0].context) == expected | {"toolCallId", "toolName", "args", "toolCall"}


def test_an_empty_needs_list_gets_the_point_alone() -> None:
    """SEMANTICS G4."""
    sandbox = FakeSandbox()
    _run(sandbox.guest("g", {"needs": []}, pre_tool_call=_nothing))
    assert sandbox.calls[0].context == {"point": "pre_tool_call"}


def test_a_manifest_that_needs_an_unknown_field_is_rejected() -> None:
    """SEMANTICS G4; issue case (m): with its findings, never skipped."""
    with pytest.raises(ModuleRejected) as caught:
        FakeSandbox().guest("g", {"needs": ["everything"]}, pre_tool_call=_nothing)
    assert caught.value.findings


def test_subagent_is_present_only_inside_a_sub_agent() -> None:
    """SEMANTICS P17."""
    sandbox = FakeSandbox()
    registry = HookRegistry([sandbox.guest("g", {"needs": ["subagent"]}, pre_tool_call=_nothing)])
    subagent = {"agentId": "s", "agentName": "sub", "depth": 1, "parent": "a"}
    run_point_sync(registry, "pre_tool_call", RunFacts().context({"args": {}}))
    run_point_sync(registry, "pre_tool_call", RunFacts(subagent=subagent).context({"args": {}}))
    assert [call.context.get("subagent") for call in sandbox.calls] == [None, subagent]


# G1.


def test_time_and_randomness_cross_only_to_a_hook_that_asks() -> None:
    """SEMANTICS G1: recorded with the call."""
    sandbox = FakeSandbox()
    decision = _run(
        sandbox.guest("asks", {"needs": ["now", "seed"]}, pre_tool_call=_nothing),
        sandbox.guest("does not", pre_tool_call=_nothing),
        moment=MOMENT,
    )
    assert sandbox.calls[0].context == {"point": "pre_tool_call", "now": MOMENT.now, "seed": MOMENT.seed}
    assert not {"now", "seed"} & set(sandbox.calls[1].context)
    assert [entry.moment for entry in decision.trace] == [MOMENT, None]
    assert decision.moment == MOMENT


def test_a_moment_that_nobody_asked_for_is_not_recorded() -> None:
    assert _run(FakeSandbox().guest("g", pre_tool_call=_nothing), moment=MOMENT).moment is None


def test_all_hooks_of_one_chain_get_the_same_moment_and_the_next_chain_another() -> None:
    """SEMANTICS G1."""
    sandbox = FakeSandbox()
    asks = [sandbox.guest(name, {"needs": ["now", "seed"]}, pre_tool_call=_nothing) for name in "ab"]
    first, second = _run(*asks), _run(*asks)
    seeds = [call.context["seed"] for call in sandbox.calls]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]
    assert first.moment is not None
    assert second.moment is not None
    assert 0 <= first.moment.seed < 2**53


def test_a_recorded_moment_replays_the_call_exactly() -> None:
    """SEMANTICS G1: the same bytes go in."""
    sandbox = FakeSandbox()
    guest = sandbox.guest("g", {"needs": ["*", "now", "seed"]}, pre_tool_call=_nothing)
    recorded = _run(guest).moment
    _run(guest, moment=recorded)
    assert sandbox.calls[0].payload == sandbox.calls[1].payload


def test_a_host_hook_asks_by_looking() -> None:
    """SEMANTICS G1, for both kinds."""
    seen: list[int] = []
    registry = HookRegistry([host("h", pre_tool_call=lambda ctx: seen.append(ctx.seed))])
    decision = run_point_sync(registry, "pre_tool_call", _context(), moment=MOMENT)
    assert seen == [MOMENT.seed]
    assert decision.trace[0].moment == MOMENT


# G2.

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "default": "x"}, "most": {"type": "integer"}},
    "additionalProperties": False,
}


def test_config_crosses_with_its_schemas_defaults() -> None:
    """SEMANTICS G2."""
    sandbox = FakeSandbox()
    _run(
        sandbox.guest(
            "g", {"needs": [], "config": CONFIG_SCHEMA}, options={"config": {"most": 3}}, pre_tool_call=_nothing
        )
    )
    _run(sandbox.guest("g", {"needs": [], "config": CONFIG_SCHEMA}, pre_tool_call=_nothing))
    _run(sandbox.guest("g", {"needs": []}, options={"config": [1]}, pre_tool_call=_nothing))
    _run(sandbox.guest("g", {"needs": []}, pre_tool_call=_nothing))
    no_default = {"type": "object", "properties": {"most": {"type": "integer"}}}
    _run(sandbox.guest("g", {"needs": [], "config": no_default}, pre_tool_call=_nothing))
    _run(sandbox.guest("g", {"needs": [], "config": no_default}, options={"config": {}}, pre_tool_call=_nothing))
    assert [call.context.get("config", "absent") for call in sandbox.calls] == [
        {"word": "x", "most": 3},
        {"word": "x"},
        [1],
        "absent",
        "absent",  # nothing was given and no default fills it: the hook can tell that from an empty one
        {},
    ]


def test_a_schema_that_requires_something_refuses_a_hook_without_config() -> None:
    """SEMANTICS G2."""
    schema = {"type": "object", "required": ["most"]}
    with pytest.raises(ConfigInvalid, match="most"):
        FakeSandbox().guest("g", {"config": schema}, pre_tool_call=_nothing)


def test_a_config_that_does_not_fit_is_refused_at_registration() -> None:
    """SEMANTICS G2."""
    with pytest.raises(ConfigInvalid) as caught:
        FakeSandbox().guest("g", {"config": CONFIG_SCHEMA}, options={"config": {"most": "x"}}, pre_tool_call=_nothing)
    assert (caught.value.hook, caught.value.path, caught.value.point) == ("g", "/most", None)


def test_a_config_that_cannot_cross_is_refused_at_registration() -> None:
    with pytest.raises(ConfigInvalid, match="NaN"):
        FakeSandbox().guest("g", options={"config": {"x": float("nan")}}, pre_tool_call=_nothing)


def test_config_is_fixed_at_registration() -> None:
    """SEMANTICS G2: immutable, whatever the host does to its object later."""
    sandbox = FakeSandbox()
    config = {"word": "a"}
    guest = sandbox.guest("g", options={"config": config}, pre_tool_call=_nothing)
    config["word"] = "b"
    _run(guest)
    assert sandbox.calls[0].context["config"] == {"word": "a"}


def test_a_hook_takes_the_manifests_name_unless_the_host_names_it() -> None:
    sandbox = FakeSandbox()
    program = sandbox.program({"pre_tool_call": _nothing}, {"name": "redact"})
    assert GuestHook.from_program(program, sandbox=sandbox).name == "redact"
    assert GuestHook.from_program(program, sandbox=sandbox, name="mine").name == "mine"
    unnamed = sandbox.program({"pre_tool_call": _nothing})
    assert GuestHook.from_program(unnamed, sandbox=sandbox, fallback_name="file").name == "file"
    assert GuestHook.from_program(unnamed, sandbox=sandbox).name == ("ab" * 32)[:12]


# G8.


def test_the_chains_fuel_is_shared_and_running_out_names_the_hook() -> None:
    """SEMANTICS G8: what a hook used is attributed to it."""
    sandbox = FakeSandbox(fuel=60)
    guests = [sandbox.guest(name, pre_tool_call=_nothing) for name in "abc"]
    assert [entry.fuel_used for entry in _run(*guests, limits=ChainLimits(fuel=180)).trace] == [60, 60, 60]
    assert [entry.fuel_used for entry in _run(*guests, limits=ChainLimits(fuel=121)).trace] == [60, 60, 60]
    with pytest.raises(ChainExhausted, match="before it could start") as caught:
        _run(*guests, limits=ChainLimits(fuel=120))
    assert caught.value.hook == "c"
    assert [entry.failure for entry in caught.value.trace] == [None, None, "chain_exhausted"]


def test_a_call_is_tightened_to_what_the_chain_has_left() -> None:
    """SEMANTICS G8."""
    sandbox = FakeSandbox(fuel=60)
    guests = [sandbox.guest(name, pre_tool_call=_nothing) for name in "ab"]
    _run(*guests, limits=ChainLimits(fuel=100, deadline_ms=500))
    first, second = (call.limits for call in sandbox.calls)
    assert (first.fuel, first.fuel_per_kib, first.deadline_ms) == (100, 0, 500)
    assert second.fuel == 40
    assert second.deadline_ms <= 500


def test_a_call_within_the_chains_budget_keeps_the_hooks_own_limits() -> None:
    """No new object on the hot path."""
    sandbox = FakeSandbox()
    guest = sandbox.guest("g", pre_tool_call=_nothing)
    _run(guest)
    assert sandbox.calls[0].limits is guest.limits


@pytest.mark.parametrize(("chain_fuel", "expected"), [(100, ChainExhausted), (10**9, HookCrashed)])
def test_fuel_that_runs_out_is_the_chains_or_the_hooks_by_whose_ceiling_it_met(
    chain_fuel: int, expected: type[HookcellError]
) -> None:
    """SEMANTICS G8: the same trap, told apart."""
    sandbox = FakeSandbox()
    error = FuelExhausted(
        "out of fuel", entry="pre_tool_call", digest="ab", limits=Limits(), fuel_used=100, log=EMPTY_LOG
    )
    with pytest.raises(expected) as caught:
        _run(sandbox.guest("g", pre_tool_call=lambda _: error), limits=ChainLimits(fuel=chain_fuel))
    assert caught.value.hook == "g"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("chain_ms", "expected"), [(10, ChainExhausted), (5_000, HookCrashed)])
def test_a_deadline_is_the_chains_or_the_hooks_by_whose_ceiling_it_met(
    chain_ms: int, expected: type[HookcellError]
) -> None:
    """SEMANTICS G8."""
    sandbox = FakeSandbox()
    error = DeadlineExceeded("late", entry="pre_tool_call", digest="ab", limits=Limits(), fuel_used=1, log=EMPTY_LOG)
    with pytest.raises(expected):
        _run(sandbox.guest("g", pre_tool_call=lambda _: error), limits=ChainLimits(deadline_ms=chain_ms))


def test_an_exhausted_chain_goes_by_the_hooks_policy() -> None:
    """SEMANTICS G8, P11."""
    sandbox = FakeSandbox(fuel=60)
    first = sandbox.guest("a", pre_tool_call=_nothing)
    second = sandbox.guest("b", pre_tool_call=_nothing, options={"on_failure": "deny"})
    decision = _run(first, second, limits=ChainLimits(fuel=60))
    assert (decision.kind, decision.failed_by) == ("hook_failed", "b")


def test_a_point_has_at_most_so_many_hooks_and_one_more_runs_none() -> None:
    """SEMANTICS G8."""
    sandbox = FakeSandbox()
    guests = [sandbox.guest(f"g{i}", pre_tool_call=_nothing) for i in range(4)]
    assert len(_run(*guests[:3], limits=ChainLimits(hooks_per_point=3)).trace) == 3
    sandbox.calls.clear()
    with pytest.raises(ChainExhausted, match="limit 3") as caught:
        _run(*guests, limits=ChainLimits(hooks_per_point=3))
    assert caught.value.hook == "g3"
    assert sandbox.calls == []


# The run's bags: metadata and state last as long as the run, so what guests put there is bounded (G6).


def _bag_run(
    field: str, bag: dict[str, object], patch: list[dict[str, Any]], *, bag_bytes: int, on_failure: str = "raise"
) -> Decision:
    point = "pre_tool_call" if field == "metadata" else "after_response"
    context = {**_context(), "response": "", field: bag}
    guest = FakeSandbox().guest("g", options={"on_failure": on_failure}, **{point: lambda _: {"patch": patch}})
    return run_point_sync(HookRegistry([guest]), point, context, limits=ChainLimits(bag_bytes=bag_bytes))


def _grow(field: str, text: str) -> list[dict[str, Any]]:
    return [{"op": "add", "path": f"/{field}/x", "value": text}]


BAGS = pytest.mark.parametrize("field", ["metadata", "state"])


@BAGS
def test_a_bag_that_a_guest_wrote_to_holds_so_many_bytes_and_no_more(field: str) -> None:
    """SEMANTICS G6."""
    size = len(msgpack.packb({"mine": 1, "x": "y" * 100}))
    bag: dict[str, object] = {"mine": 1}
    _bag_run(field, bag, _grow(field, "y" * 100), bag_bytes=size)
    assert bag == {"mine": 1, "x": "y" * 100}
    bag = {"mine": 1}
    with pytest.raises(OutcomeInvalid) as caught:
        _bag_run(field, bag, _grow(field, "y" * 100), bag_bytes=size - 1)
    assert (caught.value.hook, caught.value.path) == ("g", f"/{field}")
    assert caught.value.reason == f"it would hold {size} bytes (limit {size - 1})"
    assert bag == {"mine": 1}


def test_the_default_of_a_bag_is_256_kib() -> None:
    """SEMANTICS G6: also when it is filled call by call."""
    bag: dict[str, object] = {}
    context = {**_context(), "metadata": bag}
    guest = FakeSandbox().guest(
        "g",
        pre_tool_call=lambda c: {
            "patch": [{"op": "add", "path": f"/metadata/{len(c['metadata'])}", "value": "y" * 65_000}],
        },
    )
    for _ in range(4):
        run_point_sync(HookRegistry([guest]), "pre_tool_call", context)
    with pytest.raises(OutcomeInvalid, match=r"\(limit 262_144\)"):
        run_point_sync(HookRegistry([guest]), "pre_tool_call", context)
    assert len(bag) == 4


@BAGS
@pytest.mark.parametrize(("text", "stands"), [("y" * 99, True), ("z" * 100, True), ("y" * 101, False)])
def test_a_guest_may_shrink_what_is_too_big_already(field: str, text: str, stands: bool) -> None:
    """SEMANTICS G6: or leave it as large as it is."""
    bag: dict[str, object] = {"x": "y" * 100}
    decision = _bag_run(field, bag, _grow(field, text), bag_bytes=10, on_failure="skip")
    assert bag == {"x": text if stands else "y" * 100}
    assert [failure.code for failure in decision.failures] == ([] if stands else ["outcome_invalid"])


@BAGS
def test_a_bag_that_is_replaced_whole_is_bounded_too(field: str) -> None:
    bag: dict[str, object] = {"mine": 1}
    with pytest.raises(OutcomeInvalid, match="it would hold"):
        _bag_run(field, bag, [{"op": "replace", "path": f"/{field}", "value": {"x": "y" * 100}}], bag_bytes=50)
    _bag_run(field, bag, [{"op": "replace", "path": f"/{field}", "value": {}}], bag_bytes=1)
    assert bag == {}


def test_a_states_history_is_no_part_of_its_bag() -> None:
    """SEMANTICS C7: it is the conversation, whether the guest sees it or not."""
    for needs in (["state"], ["state", "messages"]):
        history = History([{"role": "user", "content": "y" * 1_000}])
        state: dict[str, object] = {"history": history}
        guest = FakeSandbox().guest("g", {"needs": needs}, after_response=lambda _: {"patch": _grow("state", "y")})
        context = {**_context(), "response": "", "state": state}
        run_point_sync(HookRegistry([guest]), "after_response", context, limits=ChainLimits(bag_bytes=5))
        assert state == {"history": history, "x": "y"}
        del state["x"]
        with pytest.raises(OutcomeInvalid, match=r"it would hold 5 bytes \(limit 4\)"):
            run_point_sync(HookRegistry([guest]), "after_response", context, limits=ChainLimits(bag_bytes=4))


def test_a_key_named_history_counts_in_the_metadata() -> None:
    patch = [{"op": "add", "path": "/metadata/history", "value": "y" * 100}]
    with pytest.raises(OutcomeInvalid, match="it would hold"):
        _bag_run("metadata", {}, patch, bag_bytes=50)


def test_a_guest_that_writes_elsewhere_is_not_in_the_way_of_a_large_bag() -> None:
    bag: dict[str, object] = {"x": "y" * 100}
    _bag_run("metadata", bag, [{"op": "replace", "path": "/args/n", "value": 2}], bag_bytes=10)


def test_host_hooks_may_fill_the_bags() -> None:
    """They are the host's own code."""
    context = _context()
    hooks = HookRegistry([host("h", pre_tool_call=lambda ctx: ctx.metadata.update(x="y" * 100))])
    run_point_sync(hooks, "pre_tool_call", context, limits=ChainLimits(bag_bytes=10))
    assert context["metadata"] == {"m": 1, "x": "y" * 100}


def test_what_somebody_else_put_into_a_bag_meanwhile_is_no_fault_of_the_guest() -> None:
    """The bag cannot be measured then; the error names the host's value, and is the host's."""
    bag: dict[str, object] = {}

    def answer(_: object) -> object:
        bag["when"] = {1, 2}
        return {"patch": _grow("metadata", "y")}

    guest = FakeSandbox().guest("g", pre_tool_call=answer, options={"on_failure": "skip"})
    with pytest.raises(ContextInvalid) as caught:
        run_point_sync(HookRegistry([guest]), "pre_tool_call", {**_context(), "metadata": bag})
    assert (caught.value.path, caught.value.type) == ("/metadata/when", "set")


@pytest.mark.parametrize("value", [-1, 1.5, True])
def test_a_ceiling_is_a_whole_number_from_0(value: Any) -> None:
    with pytest.raises(ValueError, match="bag_bytes"):
        ChainLimits(bag_bytes=value)


# The trace.


def test_the_trace_says_what_each_hook_did() -> None:
    """Hook, version digest, outcome, fuel, bytes in and out, and which fields it wrote."""
    sandbox = FakeSandbox()
    patch = [{"op": "add", "path": "/metadata/x", "value": 1}]
    decision = _run(
        sandbox.guest("patches", pre_tool_call=lambda _: {"patch": patch, "input": {"n": 2}}),
        sandbox.guest("denies", {"needs": []}, pre_tool_call=lambda _: {"deny": "no"}),
    )
    first, second = decision.trace
    assert (first.hook, first.kind, first.digest, first.outcome) == ("patches", "guest", "ab" * 32, "input")
    assert first.wrote == ("/metadata/x", "/args")
    assert first.bytes_in == len(sandbox.calls[0].payload)
    assert first.bytes_out == len(msgpack.packb({"patch": patch, "input": {"n": 2}}))
    assert (second.outcome, second.fuel_used, second.attempts) == ("deny", 100, 1)
    assert second.elapsed_us >= 0
    assert second.record()["bytesIn"] == len(sandbox.calls[1].payload)
