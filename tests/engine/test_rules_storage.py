"""G3: a hook's own persistent value, through the chain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import msgpack
import pytest

from hookcell import (
    ChainLimits,
    Decision,
    GuestHook,
    HookRegistry,
    InMemoryStorage,
    OutcomeInvalid,
    RunFacts,
    StorageConflict,
    StorageFailed,
    StorageKey,
    Stored,
    run_point,
    run_point_sync,
)
from hookcell_sandbox.limits import Limits

from .fake_sandbox import FakeSandbox, host

FACTS = RunFacts(run_id="run 1", session_id="session 1", tenant="tenant", environment="test")


def _count(context: dict[str, Any]) -> dict[str, Any]:
    return {"storage": (context["storage"] or 0) + 1}


def _counter(sandbox: FakeSandbox, scope: str = "run", **options: Any) -> GuestHook:
    return sandbox.guest("counter", {"needs": [], "storage": scope}, pre_tool_call=_count, options=options)


def _run(storage: Any, *hooks: Any, facts: RunFacts = FACTS, **options: Any) -> Decision:
    context = facts.context({"args": {"n": 1}})
    return run_point_sync(HookRegistry(hooks), "pre_tool_call", context, run=facts, storage=storage, **options)


def test_a_value_is_handed_in_and_given_back() -> None:
    """SEMANTICS G3: null when nothing is stored."""
    sandbox = FakeSandbox()
    storage = InMemoryStorage()
    for _ in range(3):
        _run(storage, _counter(sandbox))
    assert [call.context["storage"] for call in sandbox.calls] == [None, 1, 2]


def test_a_hook_without_storage_gets_none_and_cannot_write() -> None:
    """SEMANTICS G3, P8."""
    sandbox = FakeSandbox()
    with pytest.raises(OutcomeInvalid, match="no storage"):
        _run(InMemoryStorage(), sandbox.guest("g", pre_tool_call=lambda _: {"storage": 1}))
    assert "storage" not in sandbox.calls[0].context
    with pytest.raises(OutcomeInvalid):
        _run(InMemoryStorage(), host("h", pre_tool_call=lambda _: {"storage": 1}))


def test_null_empties_the_storage_and_an_absent_key_keeps_it() -> None:
    """SEMANTICS G3."""
    sandbox, storage = FakeSandbox(), InMemoryStorage()
    manifest = {"needs": [], "storage": "run"}
    for outcome, expected in [({"storage": 5}, 5), (None, 5), ({}, 5), ({"storage": None}, None)]:
        _run(storage, sandbox.guest("g", manifest, pre_tool_call=lambda _, outcome=outcome: outcome))
        key = StorageKey(hook="g", scope="run", owner="run 1", tenant="tenant", environment="test")
        raw = storage.get(key).value
        assert (None if raw is None else msgpack.unpackb(raw)) == expected


@pytest.mark.parametrize(
    ("scope", "facts", "kept"),
    [
        ("run", {"session_id": "other"}, True),
        ("run", {"run_id": "other"}, False),
        ("session", {"run_id": "other"}, True),
        ("session", {"session_id": "other"}, False),
        ("hook", {"run_id": "other", "session_id": "other"}, True),
        ("hook", {"tenant": "other"}, False),
        ("hook", {"environment": "other"}, False),
    ],
)
def test_a_value_is_private_to_hook_scope_tenant_and_environment(scope: str, facts: dict[str, Any], kept: bool) -> None:
    """SEMANTICS G3."""
    sandbox, storage = FakeSandbox(), InMemoryStorage()
    _run(storage, _counter(sandbox, scope))
    _run(storage, _counter(sandbox, scope), facts=replace(FACTS, **facts))
    assert sandbox.calls[1].context["storage"] == (1 if kept else None)


def test_a_value_survives_a_new_version_of_the_hook() -> None:
    """SEMANTICS G3: the digest is no part of the key."""
    sandbox, storage = FakeSandbox(), InMemoryStorage()
    _run(storage, _counter(sandbox))
    program = replace(sandbox.program({"pre_tool_call": _count}, {"storage": "run"}), digest="cd" * 32)
    _run(storage, GuestHook.from_program(program, sandbox=sandbox, name="counter"))
    assert sandbox.calls[1].context["storage"] == 1


def test_a_deny_is_stored_too_and_an_invalid_outcome_is_not() -> None:
    """SEMANTICS G3: written after the outcome was validated."""
    sandbox, storage = FakeSandbox(), InMemoryStorage()
    manifest = {"needs": ["args"], "storage": "run"}
    with pytest.raises(OutcomeInvalid):
        _run(storage, sandbox.guest("g", manifest, pre_tool_call=lambda _: {"storage": 1, "bogus": 1}))
    patch = [{"op": "remove", "path": "/args/absent"}]
    with pytest.raises(OutcomeInvalid):
        _run(storage, sandbox.guest("g", manifest, pre_tool_call=lambda _: {"storage": 1, "patch": patch}))
    assert storage.used_bytes == 0
    assert _run(storage, sandbox.guest("g", manifest, pre_tool_call=lambda _: {"storage": 1, "deny": ""})).denied_by
    assert storage.used_bytes > 0


class Contended(InMemoryStorage):
    """Somebody else writes between a hook's read and its write, this many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def compare_and_set(self, key: StorageKey, revision: int, value: bytes | None, /) -> bool:
        if self.times:
            self.times -= 1
            super().compare_and_set(key, super().get(key).revision, msgpack.packb(100 * (self.times + 1)))
        return super().compare_and_set(key, revision, value)


def test_on_a_conflict_the_hook_runs_again_on_the_new_value() -> None:
    """SEMANTICS G3: each attempt billed, only the last one counts."""
    sandbox = FakeSandbox()
    decision = _run(Contended(2), _counter(sandbox))
    assert [call.context["storage"] for call in sandbox.calls] == [None, 200, 100]
    assert (decision.trace[0].attempts, decision.trace[0].fuel_used) == (3, 300)


def test_three_conflicts_are_a_storage_conflict() -> None:
    """SEMANTICS G3: the third attempt is the last, and nothing of it counts."""
    sandbox = FakeSandbox()
    with pytest.raises(StorageConflict) as caught:
        _run(Contended(3), _counter(sandbox))
    assert len(sandbox.calls) == 3
    assert caught.value.trace[0].attempts == 3
    assert caught.value.trace[0].failure == "storage_conflict"


def test_attempts_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEMANTICS G3: a clock that jumps 400 ms at each look leaves a second attempt less, and a third nothing."""
    ticks = iter(range(0, 10_000_000, 1))
    monkeypatch.setattr("hookcell.guest_call.perf_counter", lambda: next(ticks) * 0.2)
    sandbox = FakeSandbox()
    with pytest.raises(StorageConflict, match="deadline"):
        _run(Contended(3), _counter(sandbox, limits=Limits(deadline_ms=1_000)))
    deadlines = [call.limits.deadline_ms for call in sandbox.calls]
    assert deadlines == sorted(deadlines, reverse=True)
    assert len(deadlines) < 3


def test_attempts_share_the_chains_fuel() -> None:
    """SEMANTICS G3, G8."""
    with pytest.raises(Exception, match="chain's budget ran out") as caught:
        _run(Contended(2), _counter(FakeSandbox()), limits=ChainLimits(fuel=200))
    assert type(caught.value).__name__ == "ChainExhausted"


def test_a_value_is_bounded_at_n_and_refused_at_n_plus_1() -> None:
    """SEMANTICS G3, G6: the error names the limit and the size."""
    sandbox, storage = FakeSandbox(), InMemoryStorage()
    limits = ChainLimits(storage_bytes=100)
    for length, fits in [(98, True), (99, False)]:
        guest = sandbox.guest("g", {"storage": "run"}, pre_tool_call=lambda _, length=length: {"storage": "x" * length})
        if fits:
            _run(storage, guest, limits=limits)
        else:
            with pytest.raises(OutcomeInvalid, match=r"101 bytes \(limit 100\)"):
                _run(storage, guest, limits=limits)


def test_a_full_or_broken_storage_is_a_failure_of_the_hooks_policy() -> None:
    """SEMANTICS G3, P11."""
    with pytest.raises(StorageFailed, match="StorageFull") as caught:
        _run(InMemoryStorage(total_bytes=0), _counter(FakeSandbox()))
    assert caught.value.__cause__ is not None

    class Broken(InMemoryStorage):
        def get(self, key: StorageKey, /) -> Stored:
            raise ConnectionError("gone")

    decision = _run(Broken(), _counter(FakeSandbox(), on_failure="deny"))
    assert (decision.kind, decision.failed_by) == ("hook_failed", "counter")


@pytest.mark.parametrize("on_failure", ["raise", "deny", "skip"])
def test_a_host_that_gives_no_storage_hears_of_it(on_failure: str) -> None:
    """Its own mistake: no policy hides it, and no owner is made up."""
    guest = _counter(FakeSandbox(), on_failure=on_failure)
    with pytest.raises(TypeError, match="give storage="):
        _run(None, guest)
    with pytest.raises(TypeError, match="give storage= and run="):
        run_point_sync(HookRegistry([guest]), "pre_tool_call", {}, storage=InMemoryStorage())
    with pytest.raises(TypeError, match="session_id"):
        _run(InMemoryStorage(), _counter(FakeSandbox(), "session"), facts=RunFacts())


class AsyncStorage:
    """As a database driver would do it."""

    def __init__(self) -> None:
        self.inner = InMemoryStorage()

    async def get(self, key: StorageKey, /) -> Stored:
        await anyio.sleep(0)
        return self.inner.get(key)

    async def compare_and_set(self, key: StorageKey, revision: int, value: bytes | None, /) -> bool:
        await anyio.sleep(0)
        return self.inner.compare_and_set(key, revision, value)


@pytest.mark.parametrize("storage", [InMemoryStorage, AsyncStorage])
def test_plain_and_async_storages_serve_a_loop(storage: Any) -> None:
    sandbox = FakeSandbox()

    async def main() -> None:
        place, hooks = storage(), HookRegistry([_counter(sandbox)])
        for _ in range(2):
            await run_point(hooks, "pre_tool_call", FACTS.context({}), run=FACTS, storage=place)

    anyio.run(main)
    assert [call.context["storage"] for call in sandbox.calls] == [None, 1]


def test_an_async_storage_in_a_plain_thread_is_a_clear_error() -> None:
    with pytest.raises(TypeError, match="async and cannot run in run_point_sync"):
        _run(AsyncStorage(), _counter(FakeSandbox()))
