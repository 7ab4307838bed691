"""P11: what a failing hook does, by the policy that the host gave it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest

from hookcell import (
    POINTS,
    HookCrashed,
    HookFailure,
    HookRegistry,
    HookThrew,
    OutcomeInvalid,
    ToolPipeline,
)

from .driving import CALL, FILLED, facts, run, settle
from .scripting import LIMITS

Scripted = Callable[..., Any]

THROW = {"!throw": {"name": "Boom", "message": "the secret is 42"}}
TOOL_POINTS = ["pre_tool_call", "post_tool_call"]
TIGHT = replace(LIMITS, fuel=400_000, fuel_per_kib=0)

FAILURES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "host throws": ("host", THROW, {}, "threw"),
    "host outcome": ("host", {"nonsense": 1}, {}, "outcome_invalid"),
    "guest throws": ("guest", THROW, {}, "threw"),
    "guest outcome": ("guest", {"nonsense": 1}, {}, "outcome_invalid"),
    "bad output": ("guest", {"!garbage": True}, {}, "outcome_invalid"),
    "trap": ("guest", {"!trap": True}, {}, "trap"),
    "fuel": ("guest", {"!spin": True}, {"limits": TIGHT}, "fuel"),
    "deadline": ("guest", {"!spin": True}, {"limits": replace(LIMITS, fuel=10**12, deadline_ms=20)}, "deadline"),
    "memory": ("guest", {"!hoard": True}, {}, "memory"),
    "output": ("guest", {"deny": "x" * 100}, {"limits": replace(LIMITS, output_bytes=50)}, "output"),
}
HOW = pytest.mark.parametrize("how", FAILURES)
POINT = pytest.mark.parametrize("point", TOOL_POINTS)


def failing(scripted: Scripted, how: str, point: str, **more: Any) -> Any:
    """A hook that fails in this way at this point, and the code of its failure."""
    kind, outcome, options, code = FAILURES[how]
    if how == "output" and point == "post_tool_call":
        outcome = {"result": "x" * 100}
    return scripted(kind, "bad", {point: outcome}, **options, **more), code


@HOW
@POINT
def test_P11_a_hook_that_fails_rejects_the_run(scripted: Scripted, how: str, point: str) -> None:
    """It never becomes a tool result. ▸ All of a guest's ways to fail are failures; ``raise`` is the default."""
    bad, code = failing(scripted, how, point)
    after = scripted("guest", "after", {point: None})
    with pytest.raises(HookFailure) as caught:
        settle(bad, after)
    failure = caught.value
    assert (failure.hook, failure.point, failure.code, failure.policy) == ("bad", point, code, "raise")
    assert [entry.failure for entry in failure.trace] == [code]
    assert (len(bad.seen), len(after.seen)) == (1, 0)


@pytest.mark.parametrize("point", sorted(set(POINTS) - set(TOOL_POINTS)))
def test_P11_a_throw_rejects_the_run_at_every_point(scripted: Scripted, kind: str, point: str) -> None:
    with pytest.raises(HookThrew) as caught:
        run(point, scripted(kind, "bad", {point: THROW}))
    assert (caught.value.hook, caught.value.point) == ("bad", point)
    assert (caught.value.name, caught.value.message) == ("Boom", "the secret is 42")


@HOW
def test_P11_under_deny_the_call_gets_an_error_of_its_own_kind(scripted: Scripted, how: str) -> None:
    """▸ Closed: ``hook_failed``, and the tool does not run. What the hook wrote stays out of what the model reads."""
    bad, code = failing(scripted, how, "pre_tool_call", on_failure="deny")
    after = scripted("guest", "after", {"pre_tool_call": None, "post_tool_call": None})
    asked: list[object] = []
    settled = settle(bad, after, rules=lambda *question: asked.append(question))
    assert (settled.executed, asked) == ([], [])
    assert settled.error == ("hook_failed", f"hook 'bad' failed at pre_tool_call ({code})", "bad")
    assert after.called_at == ["post_tool_call"]
    assert (after.saw("origin"), after.saw("result")[0]["error"]["kind"]) == (["hook_failed"], "hook_failed")


@HOW
def test_P11_under_deny_a_failure_after_execution_replaces_the_result(scripted: Scripted, how: str) -> None:
    """▸ Whatever an earlier hook made of it; later hooks see the call as what it has become."""
    first = scripted("guest", "first", {"post_tool_call": {"result": "replaced secret"}})
    bad, code = failing(scripted, how, "post_tool_call", on_failure="deny")
    after = scripted("guest", "after", {"post_tool_call": {"result": "fine after all"}})
    settled = settle(first, bad, after, tool=lambda _: "secret")
    assert settled.executed == [FILLED]
    assert settled.error == ("hook_failed", f"hook 'bad' failed at post_tool_call ({code})", "bad")
    assert settled.call.result.result is None
    assert "secret" not in str(settled.call.message())
    assert (after.saw("origin"), after.saw("result")[0]["result"]) == (["hook_failed"], None)


@HOW
@POINT
def test_P11_under_skip_the_chain_goes_on_and_the_failure_is_recorded_loudly(
    scripted: Scripted, how: str, point: str, caplog: pytest.LogCaptureFixture
) -> None:
    """▸ Open: as if the hook had said nothing, with a warning in the log and the failure in decision and trace."""
    bad, code = failing(scripted, how, point, on_failure="skip")
    after = scripted("guest", "after", {point: {"result": "after"}})
    with caplog.at_level(logging.WARNING, logger="hookcell"):
        settled = settle(bad, after)
    decision = settled.call.gate.decision if point == "pre_tool_call" else settled.call.post
    assert [(failure.hook, failure.code, failure.policy) for failure in decision.failures] == [("bad", code, "skip")]
    assert [(entry.outcome, entry.failure) for entry in decision.trace] == [("failed", code), ("result", None)]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "'bad'" in warnings[0]
    assert point in warnings[0]
    assert code in warnings[0]
    assert (len(after.seen), settled.call.content) == (1, "after")


@pytest.mark.parametrize("point", sorted(name for name, row in POINTS.items() if not row.tool_point))
def test_P11_deny_is_refused_where_there_is_no_tool_call(scripted: Scripted, kind: str, point: str) -> None:
    """▸ Only at tool points; refused at registration elsewhere, also beside a tool point."""
    with pytest.raises(ValueError, match=f"{point} has no tool call"):
        scripted(kind, "h", {"pre_tool_call": None, point: None}, on_failure="deny")
    with pytest.raises(ValueError, match=f"{point} has no tool call"):
        HookRegistry().register(scripted(kind, "h", {point: None}), on_failure="deny")


@pytest.mark.parametrize("point", sorted(name for name, row in POINTS.items() if row.tool_point))
def test_P11_deny_is_taken_at_tool_points(scripted: Scripted, kind: str, point: str) -> None:
    """▸ Tool points take it, the agent-class ones too."""
    bad = scripted(kind, "bad", {point: THROW}, on_failure="deny")
    decision = run(point, bad, on=facts(state={}))
    assert (decision.kind, decision.failed_by, decision.denied_by) == ("hook_failed", "bad", None)


def test_P11_the_manifest_has_no_say_in_the_policy(scripted: Scripted) -> None:
    """▸ The host gives each hook its policy. Guests alone have a manifest."""
    asks = {"onFailure": "skip", "on_failure": "skip", "failurePolicy": "skip", "policy": {"onFailure": "skip"}}
    bad = scripted("guest", "bad", {"pre_tool_call": THROW}, more=asks)
    assert bad.on_failure == "raise"
    with pytest.raises(HookThrew):
        settle(bad)
    closed = scripted("guest", "bad", {"pre_tool_call": THROW}, more=asks, on_failure="deny")
    assert settle(closed).error[0] == "hook_failed"


def test_P11_the_registry_may_give_the_policy(scripted: Scripted, kind: str) -> None:
    """▸ The host's choice for each hook, whenever it makes it."""
    registry = HookRegistry()
    registry.register(scripted(kind, "bad", {"pre_tool_call": THROW}), on_failure="deny")
    gate = ToolPipeline(hooks=registry, run=facts()).before_execution_sync(CALL)
    assert gate.settled is not None
    assert gate.settled.origin == "hook_failed"


@pytest.mark.parametrize(
    ("how", "type_"),
    [("trap", HookCrashed), ("fuel", HookCrashed), ("memory", HookCrashed), ("guest throws", HookThrew),
     ("host throws", HookThrew), ("bad output", OutcomeInvalid), ("host outcome", OutcomeInvalid)],
)  # fmt: skip
def test_P11_a_failure_is_never_mistaken_for_a_deny_or_an_allow(
    scripted: Scripted, how: str, type_: type[HookFailure]
) -> None:
    """▸ It has its own type and code, and the decision a kind that neither has."""
    bad, code = failing(scripted, how, "pre_tool_call", on_failure="deny")
    failed = settle(bad).call.gate.decision
    denied = settle(scripted("host", "h", {"pre_tool_call": {"deny": "no"}})).call.gate.decision
    allowed = settle(scripted("host", "h", {"pre_tool_call": None})).call.gate.decision
    assert {failed.kind, denied.kind, allowed.kind} == {"hook_failed", "denied", "proceed"}
    assert (failed.denied_by, failed.reason, failed.failed_by, denied.failed_by) == (None, None, "bad", None)
    assert isinstance(failed.failures[0], type_)
    assert failed.failures[0].code == code
    assert denied.failures == allowed.failures == ()


def test_P11_nothing_else_of_an_outcome_with_an_error_counts(scripted: Scripted) -> None:
    """``error``: the hook threw. Guests alone: a host hook that raises returns nothing."""
    on = facts()
    change = [{"op": "add", "path": "/metadata/note", "value": 1}]
    outcome = {"error": {"name": "E", "message": "m"}, "patch": change}
    bad = scripted("guest", "bad", {"pre_tool_call": outcome}, on_failure="skip")
    settled = settle(bad, on=on)
    assert isinstance(settled.call.gate.decision.failures[0], HookThrew)
    assert on.metadata == {"seeded": 1}


SPOIL = {
    "patch": [
        {"op": "add", "path": "/metadata/note", "value": 1},
        {"op": "replace", "path": "/args/path", "value": "b.txt"},
        {"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "note"}},
    ]
}


@pytest.mark.parametrize("on_failure", ["deny", "skip"])
def test_P11_a_host_hook_works_on_a_copy_under_deny_and_skip(scripted: Scripted, on_failure: str) -> None:
    """▸ Adopted when it succeeds, dropped when it fails. Host hooks alone: a guest never has anything but a copy."""
    on = facts()
    thrown = {**SPOIL, "error": {"name": "E", "message": "m"}}
    bad = scripted("host", "bad", {"pre_tool_call": thrown}, on_failure=on_failure)
    after = scripted("host", "after", {"post_tool_call": None})
    settled = settle(bad, after, on=on)
    assert (on.metadata, settled.call.appended) == ({"seeded": 1}, ())
    assert (after.saw("args"), after.saw("metadata")) == ([FILLED], [{"seeded": 1}])
    good = scripted("host", "good", {"pre_tool_call": SPOIL}, on_failure=on_failure)
    bag = on.metadata
    settled = settle(good, on=on)
    assert settled.executed == [{"path": "b.txt", "lines": 20}]
    assert bag == {"seeded": 1, "note": 1}
    assert len(settled.call.appended) == 1


@pytest.mark.parametrize("on_failure", ["deny", "skip"])
def test_P11_an_outcome_that_breaks_a_rule_drops_the_copy_too(scripted: Scripted, on_failure: str) -> None:
    """▸ Adopted when it succeeds."""
    on = facts()
    bad = scripted("host", "bad", {"pre_tool_call": {**SPOIL, "nonsense": 1}}, on_failure=on_failure)
    settle(bad, on=on)
    assert on.metadata == {"seeded": 1}


def test_P11_a_copied_conversation_is_adopted_at_generate_points(scripted: Scripted) -> None:
    """▸ Into the run's own list, when the hook succeeds; under ``skip``, for ``deny`` has no place there."""
    edit = [{"op": "replace", "path": "/messages/1/content", "value": "edited"}]
    on = facts()
    history = on.messages
    thrown = {"patch": edit, "error": {"name": "E", "message": "m"}}
    run("pre_generate", scripted("host", "bad", {"pre_generate": thrown}, on_failure="skip"), on=on)
    assert history == facts().messages
    run("pre_generate", scripted("host", "good", {"pre_generate": {"patch": edit}}, on_failure="skip"), on=on)
    assert [message["content"] for message in history] == ["rules", "edited"]


@pytest.mark.parametrize("on_failure", ["raise", "deny", "skip"])
def test_P11_one_failure_leaves_the_next_call_right(scripted: Scripted, on_failure: str) -> None:
    """▸ Also of the same guest: a call that trapped has left nothing behind."""
    script = {"pre_tool_call/read": {"!trap": True}, "pre_tool_call/write": {"deny": "second"}}
    hook = scripted("guest", "h", script, on_failure=on_failure)
    for _ in range(3):
        try:
            run("pre_tool_call", hook)
        except HookCrashed:
            assert on_failure == "raise"
        assert run("pre_tool_call", hook, own={"toolName": "write"}).reason == "second"
    assert hook.saw("toolName") == ["read", "write"] * 3


def test_P11_a_failure_in_a_tools_own_run_rejects_the_run_too(scripted: Scripted, kind: str) -> None:
    """A sub-agent runs inside a tool: its hook's throw never becomes the outer tool's result."""

    async def tool(_: object) -> object:
        inner = ToolPipeline(hooks=HookRegistry([scripted(kind, "inner", {"pre_tool_call": THROW})]), run=facts())
        return await inner.call(CALL, lambda _: "never")

    with pytest.raises(HookThrew) as caught:
        settle(tool=tool)
    assert caught.value.hook == "inner"


@pytest.mark.parametrize("on_failure", ["deny", "skip"])
def test_P11_a_cancellation_is_no_failure(scripted: Scripted, on_failure: str) -> None:
    """No policy makes an outcome of it."""
    spin = {"pre_tool_call": {"!spin": True}}
    hook = scripted("guest", "h", spin, on_failure=on_failure, limits=replace(LIMITS, fuel=10**12))
    after = scripted("guest", "after", {"pre_tool_call": None})
    pipeline = ToolPipeline(hooks=HookRegistry([hook, after]), run=facts())
    settled: list[object] = []

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stop, scope)
                settled.append(await pipeline.before_execution(CALL))

    async def stop(scope: anyio.CancelScope) -> None:
        await anyio.lowlevel.checkpoint()
        scope.cancel()

    anyio.run(main)
    assert settled == after.seen == []
