"""P11: what a failing hook does, by policy; G5's logs; nothing a cancellation leaves behind."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from hookcell import (
    ContextInvalid,
    Decision,
    History,
    HookCrashed,
    HookFailure,
    HookRegistry,
    HookThrew,
    Outcome,
    OutcomeInvalid,
    RunFacts,
    run_point,
    run_point_sync,
)
from hookcell.outcomes import ThrownError
from hookcell_sandbox.errors import (
    DeadlineExceeded,
    FuelExhausted,
    GuestError,
    GuestTrap,
    InputTooLarge,
    SandboxBusy,
    SandboxError,
    SandboxUnusable,
)
from hookcell_sandbox.guest_text import GuestLog
from hookcell_sandbox.limits import Limits

from .fake_sandbox import Answer, FakeSandbox, either, host

LOG = GuestLog(raw=b"so far\n")


def _guest_error(kind: type[GuestError], **more: Any) -> GuestError:
    return kind("failed", entry="pre_tool_call", digest="ab", limits=Limits(), fuel_used=7, log=LOG, **more)


CRASHES: dict[str, SandboxError] = {
    "fuel": _guest_error(FuelExhausted),
    "deadline": _guest_error(DeadlineExceeded),
    "trap": _guest_error(GuestTrap, trap="unreachable"),
    "busy": SandboxBusy("no slot"),
    "unusable": SandboxUnusable("closed"),
    "input": InputTooLarge("too large", size=2, limit=1),
}

FAILING: dict[str, tuple[str, Answer]] = {
    "host throws": ("host", lambda _: RuntimeError("boom")),
    "guest throws": ("guest", lambda _: {"error": {"name": "E", "message": "boom"}}),
    "host outcome": ("host", lambda _: {"nonsense": 1}),
    "guest outcome": ("guest", lambda _: {"nonsense": 1}),
    "guest bytes": ("guest", lambda _: b"\xc1"),
    "guest empty": ("guest", lambda _: b""),
    "guest trap": ("guest", lambda _: CRASHES["trap"]),
}
FAILURES = pytest.mark.parametrize("how", FAILING)


def _run(point: str, *hooks: Any, context: dict[str, object] | None = None) -> Decision:
    registry = HookRegistry(hooks) if not any(hasattr(hook, "methods") for hook in hooks) else HookRegistry()
    if registry.size == 0:
        for hook in hooks:
            registry.register(hook)
    return run_point_sync(registry, point, RunFacts().context(context or {"args": {"n": 1}, "toolName": "t"}))


@FAILURES
def test_raise_rejects_the_run(how: str) -> None:
    """SEMANTICS P11."""
    kind, answer = FAILING[how]
    with pytest.raises(HookFailure) as caught:
        _run("pre_tool_call", either(kind, FakeSandbox(), "bad", pre_tool_call=answer))
    assert (caught.value.hook, caught.value.point) == ("bad", "pre_tool_call")
    assert [entry.failure for entry in caught.value.trace] == [caught.value.code]


@FAILURES
def test_deny_refuses_the_call_with_a_kind_of_its_own(how: str) -> None:
    """SEMANTICS P11: a failure is never mistaken for a deny."""
    kind, answer = FAILING[how]
    ran: list[str] = []
    decision = _run(
        "pre_tool_call",
        either(kind, FakeSandbox(), "bad", on_failure="deny", pre_tool_call=answer),
        either("host", FakeSandbox(), "next", pre_tool_call=lambda _: ran.append("next")),
    )
    assert (decision.kind, decision.failed_by, decision.denied_by) == ("hook_failed", "bad", None)
    assert isinstance(decision.failures[0], HookFailure)
    assert ran == []


@FAILURES
def test_skip_carries_on_and_is_recorded_loudly(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """SEMANTICS P11."""
    kind, answer = FAILING[how]
    with caplog.at_level(logging.WARNING, logger="hookcell"):
        decision = _run(
            "pre_tool_call",
            either(kind, FakeSandbox(), "bad", on_failure="skip", pre_tool_call=answer),
            either("host", FakeSandbox(), "next", pre_tool_call=lambda _: {"deny": "next"}),
        )
    assert decision.denied_by == "next"
    assert [failure.hook for failure in decision.failures] == ["bad"]
    assert decision.trace[0].outcome == "failed"
    assert decision.trace[0].failure == decision.failures[0].code
    assert "'bad'" in caplog.text
    assert "skip" in caplog.text


@FAILURES
def test_after_execution_deny_replaces_the_result(how: str) -> None:
    """SEMANTICS P11, P10: later hooks see the call as what it has become, and cannot replace it (P9)."""
    kind, answer = FAILING[how]
    seen: list[object] = []

    def audit(context: dict[str, Any]) -> dict[str, Any]:
        seen.append((context["origin"], context["result"]["error"]["kind"]))
        return {"result": "fine after all"}

    decision = _run(
        "post_tool_call",
        either("host", FakeSandbox(), "first", post_tool_call=lambda _: {"result": "replaced"}),
        either(kind, FakeSandbox(), "bad", on_failure="deny", post_tool_call=answer),
        either("host", FakeSandbox(), "audit", post_tool_call=audit),
        context={"args": {}, "result": {"result": "secret"}, "origin": "tool"},
    )
    assert (decision.kind, decision.failed_by) == ("hook_failed", "bad")
    assert decision.fields["result"]["result"] is None  # type: ignore[index]
    assert "secret" not in repr(decision.fields)
    assert seen == [("hook_failed", "hook_failed")]


@pytest.mark.parametrize("code", CRASHES)
def test_a_sandbox_error_keeps_its_code_and_cause(code: str) -> None:
    """Issue case (a): a slow or looping hook is a deadline or fuel error by code, never an internal one."""
    error = CRASHES[code]
    with pytest.raises(HookCrashed) as caught:
        _run("pre_tool_call", FakeSandbox().guest("bad", pre_tool_call=lambda _: error))
    assert caught.value.code == code == caught.value.trace[0].failure
    assert caught.value.cause is error
    fuel = 7 if isinstance(error, GuestError) else 0
    assert caught.value.trace[0].fuel_used == fuel


def test_logs_reach_the_host_whether_the_call_returned_or_failed() -> None:
    """SEMANTICS G5: kept out of the entry's record and repr, for they may echo what a hook was meant to hide."""
    sandbox = FakeSandbox(log=LOG)
    decision = _run(
        "pre_tool_call",
        sandbox.guest("fine", pre_tool_call=lambda _: None),
        sandbox.guest("trap", pre_tool_call=lambda _: CRASHES["trap"], options={"on_failure": "skip"}),
        sandbox.guest("invalid", pre_tool_call=lambda _: b"\xc1", options={"on_failure": "skip"}),
        sandbox.guest("threw", pre_tool_call=FAILING["guest throws"][1], options={"on_failure": "skip"}),
    )
    assert [entry.log.lines for entry in decision.trace] == [("so far",)] * 4
    assert [failure.log.lines for failure in decision.failures] == [("so far",)] * 3
    for entry in decision.trace:
        assert "so far" not in repr(entry)
        assert "so far" not in repr(entry.record())


def test_one_hooks_trap_leaves_the_next_calls_right() -> None:
    """Issue case (h), at the engine: of the same hook and of another."""
    sandbox = FakeSandbox()
    answers = iter([CRASHES["trap"], {"deny": "second"}])
    flaky = sandbox.guest("flaky", pre_tool_call=lambda _: next(answers), options={"on_failure": "skip"})
    registry = HookRegistry([flaky, sandbox.guest("other", pre_tool_call=lambda _: {"deny": "other"})])
    context = RunFacts().context({"args": {}})
    assert run_point_sync(registry, "pre_tool_call", context).denied_by == "other"
    assert run_point_sync(registry, "pre_tool_call", context).denied_by == "flaky"


@pytest.mark.parametrize(
    ("value", "kind"), [("\ud800", "surrogate"), (float("nan"), "NaN"), ({1, 2}, "set"), (2**64, "64 bits")]
)
@pytest.mark.parametrize("on_failure", ["raise", "deny", "skip"])
def test_a_context_that_cannot_cross_is_the_hosts_fault_whatever_the_policy(
    value: object, kind: str, on_failure: str
) -> None:
    """Issue case (n): the error names the path and the type."""
    guest = FakeSandbox().guest("g", pre_tool_call=lambda _: None, options={"on_failure": on_failure})
    with pytest.raises(ContextInvalid, match=kind) as caught:
        _run("pre_tool_call", guest, context={"args": {"deep": [value]}})
    assert caught.value.path == "/args/deep/0"


def test_a_host_hook_works_on_the_live_context_under_raise() -> None:
    """SEMANTICS P2."""
    facts = RunFacts()
    seen: list[object] = []
    hooks = HookRegistry([host("h", pre_tool_call=lambda ctx: seen.append(ctx.metadata))])
    run_point_sync(hooks, "pre_tool_call", facts.context({"args": {}}))
    assert seen[0] is facts.metadata


@pytest.mark.parametrize("on_failure", ["deny", "skip"])
def test_a_host_hook_works_on_a_copy_that_is_dropped_when_it_fails(on_failure: Any) -> None:
    """SEMANTICS P11."""
    facts = RunFacts(metadata={"deep": {"n": 1}}, messages=History([{"role": "user", "content": "hi"}]))

    def spoil(ctx: Any) -> None:
        ctx.metadata["deep"]["n"] = 2
        ctx.args["n"] = 2
        ctx.messages.append({"role": "user", "content": "x"})
        raise RuntimeError("boom")

    registry = HookRegistry()
    registry.register(host("bad", pre_tool_call=spoil), on_failure=on_failure)
    decision = run_point_sync(registry, "pre_tool_call", facts.context({"args": {"n": 1}}))
    assert decision.args == {"n": 1}
    assert decision.fields == {}
    assert facts.metadata == {"deep": {"n": 1}}
    assert len(facts.messages) == 1


@pytest.mark.parametrize("on_failure", ["deny", "skip"])
def test_a_host_hooks_copy_is_adopted_when_it_succeeds(on_failure: Any) -> None:
    """SEMANTICS P11: into the very same bag."""
    facts = RunFacts(metadata={"deep": {"n": 1}})
    bag = facts.metadata

    def change(ctx: Any) -> None:
        ctx.metadata["deep"]["n"] = 2
        ctx.args["n"] = 2

    registry = HookRegistry()
    registry.register(host("good", pre_tool_call=change), on_failure=on_failure)
    decision = run_point_sync(registry, "pre_tool_call", facts.context({"args": {"n": 1}}))
    assert decision.args == {"n": 2}
    assert bag == {"deep": {"n": 2}}
    assert set(decision.trace[0].wrote) == {"/args", "/metadata"}


def test_a_copied_history_is_adopted_at_generate_points_in_place() -> None:
    """SEMANTICS P2, P11: an edit inside a message of the copy is seen."""
    facts = RunFacts(messages=History([{"role": "user", "content": "hi"}, {"role": "user", "content": "ho"}]))
    history = facts.messages

    def change(ctx: Any) -> None:
        ctx.messages[0]["content"] = "hey"

    registry = HookRegistry()
    registry.register(host("good", pre_generate=change), on_failure="skip")
    run_point_sync(registry, "pre_generate", facts.context({"request": {}}))
    assert [message["content"] for message in history] == ["hey", "ho"]


def test_a_guest_sees_what_a_host_hook_edited_inside_a_message() -> None:
    """The history's kept bytes are dropped after trusted code had its hands on it, also when it threw."""
    facts = RunFacts(messages=History([{"role": "user", "content": "secret"}]))
    facts.messages.encoded()
    sandbox = FakeSandbox()

    def redact(ctx: Any) -> None:
        ctx.messages[0]["content"] = "***"

    registry = HookRegistry([host("redact", pre_generate=redact), sandbox.guest("g", pre_generate=lambda _: None)])
    run_point_sync(registry, "pre_generate", facts.context({"request": {}}))
    assert sandbox.calls[0].context["messages"][0]["content"] == "***"

    def redact_and_throw(ctx: Any) -> None:
        ctx.messages[0]["content"] = "+++"
        raise RuntimeError

    with pytest.raises(HookThrew):
        run_point_sync(HookRegistry([host("x", pre_generate=redact_and_throw)]), "pre_generate", facts.context({}))
    assert b"+++" in facts.messages.encoded()


# Both drivers.


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_plain_and_async_host_hooks_work_beside_guests_on_a_loop(backend: str) -> None:
    """SEMANTICS P1."""

    async def rewrite(ctx: Any) -> dict[str, object]:
        await anyio.sleep(0)
        return {"input": {"n": ctx.args["n"] + 1}}

    sandbox = FakeSandbox()
    registry = HookRegistry(
        [
            host("async", pre_tool_call=rewrite),
            sandbox.guest("guest", pre_tool_call=lambda c: {"input": {"n": c["args"]["n"] * 10}}),
            host("plain", pre_tool_call=lambda ctx: {"input": {"n": ctx.args["n"] + 5}}),
        ]
    )

    async def main() -> Decision:
        return await run_point(registry, "pre_tool_call", RunFacts().context({"args": {"n": 1}}))

    assert anyio.run(main, backend=backend).args == {"n": 25}


def test_an_async_host_hook_in_a_plain_thread_is_a_clear_error() -> None:
    async def hook(_: object) -> None: ...

    with pytest.raises(TypeError, match="async and cannot run in run_point_sync"):
        _run("pre_tool_call", host("h", pre_tool_call=hook))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("on_failure", ["raise", "deny", "skip"])
def test_a_cancellation_passes_through_every_policy(backend: str, on_failure: Any) -> None:
    """It is no failure of the hook: nothing is turned into an outcome, and edits in place are still seen."""
    facts = RunFacts(messages=History([{"role": "user", "content": "hi"}]))
    facts.messages.encoded()
    after: list[str] = []

    async def hook(ctx: Any, _result: object) -> None:
        ctx.messages[0]["content"] = "edited"
        await anyio.sleep_forever()

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stop, scope)
                registry = HookRegistry()
                registry.register(host("h", post_tool_call=hook), on_failure=on_failure)
                registry.register(host("next", post_tool_call=lambda _ctx, _result: after.append("ran")))
                await run_point(registry, "post_tool_call", facts.context({"result": {"result": 1}}))

    async def stop(scope: anyio.CancelScope) -> None:
        await anyio.lowlevel.checkpoint()
        scope.cancel()

    anyio.run(main, backend=backend)
    assert after == []
    assert facts.messages.encoded() == History(list(facts.messages)).encoded()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through_the_policy_skip(error: type[BaseException]) -> None:
    def hook(_: object) -> None:
        raise error

    registry = HookRegistry()
    registry.register(host("h", pre_tool_call=hook), on_failure="skip")
    with pytest.raises(error):
        run_point_sync(registry, "pre_tool_call", {"args": {}})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ThrownError(name="E", message="m"), HookThrew),
        ({"name": "E", "message": "m"}, HookThrew),
        ({"name": 1}, OutcomeInvalid),
        ("oops", OutcomeInvalid),
    ],
)
def test_an_error_in_a_host_hooks_outcome_is_never_an_allow(error: Any, expected: type[HookFailure]) -> None:
    """SEMANTICS P8, P11: whatever its shape."""
    with pytest.raises(expected):
        _run("pre_tool_call", host("h", pre_tool_call=lambda _: Outcome(error=error)))
    with pytest.raises(OutcomeInvalid, match="at once"):
        _run("pre_tool_call", host("h", pre_tool_call=lambda _: Outcome(error=error, result=1)))


def test_a_failure_whose_own_text_throws_is_a_failure_like_another() -> None:
    """SEMANTICS P11: the policy holds for it too."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def hook(_: object) -> None:
        raise Broken

    registry = HookRegistry()
    registry.register(host("h", pre_tool_call=hook), on_failure="skip")
    decision = run_point_sync(registry, "pre_tool_call", {"args": {}})
    assert isinstance(decision.failures[0], HookThrew)
    assert decision.failures[0].name.endswith("Broken")


def test_a_hook_that_raises_stop_iteration_ends_no_chain() -> None:
    """The chain is a generator inside; a hook must not be able to end it."""

    def hook(_: object) -> None:
        raise StopIteration({"deny": "x"})

    with pytest.raises(HookThrew, match="StopIteration"):
        _run("pre_tool_call", host("h", pre_tool_call=hook))


def test_guest_text_in_a_failure_is_escaped_and_bounded() -> None:
    thrown = {"error": {"name": "E\x1b[2J", "message": "m\u202e" * 5000}}
    with pytest.raises(HookThrew) as caught:
        _run("pre_tool_call", FakeSandbox().guest("bad", pre_tool_call=lambda _: thrown))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 10_000


def test_a_truncated_outcome_is_invalid_with_a_hint() -> None:
    """Issue case (g)."""
    for raw in (b"", b"\x81", b"\x81\xa4deny", b"\x81\xa4deny\xa5no"):
        with pytest.raises(OutcomeInvalid) as caught:
            _run("pre_tool_call", FakeSandbox().guest("bad", pre_tool_call=lambda _, raw=raw: raw))
        assert caught.value.hint
