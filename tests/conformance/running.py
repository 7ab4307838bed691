"""Runs a case with the conformance hook of one language, and says what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgpack

from hookcell import (
    GuestHook,
    History,
    HookFailure,
    HookRegistry,
    HookThrew,
    HostHook,
    InMemoryStorage,
    Moment,
    RunFacts,
    StorageKey,
    Stored,
    admission_policy,
    run_point_sync,
)
from hookcell.outcomes import ABSENT
from hookcell.points import POINTS
from hookcell.values import copied
from hookcell_guest.wasm import set_custom

from .case import INVALID, Case, Effect, Fails
from .contexts import context_of

if TYPE_CHECKING:
    from hookcell import Decision
    from hookcell_sandbox import GuestLog, Limits, Program, Sandbox

__all__ = ["Guests", "Language", "check"]

NAME: Final = "conforms"
_LIVE: Final = ("messages", "metadata", "request", "state")
_RUN: Final = RunFacts(run_id="run-1", session_id="session-1")
_KEY: Final = StorageKey(hook=NAME, scope="run", owner="run-1", tenant="", environment="")
_MOMENT: Final = Moment(now=1_700_000_000_123, seed=2**53 - 1)


class Language(Protocol):
    """What the table needs of a language.

    Attributes:
        stacks: Whether its thrown errors have a stack.
        logs: Whether its hooks have a log of their own.
        throws_early: Whether its SDK may throw where the engine would find the outcome invalid.
    """

    stacks: bool
    logs: bool
    throws_early: bool

    def hook(self, case: Case) -> GuestHook | HostHook:
        """The conformance hook, its config being ``case.does``."""
        ...


class Guests:
    """The conformance hook of a language that compiles to a module.

    Args:
        sandbox: Where it runs.
        wasm: The module: all nine points, and a manifest that is replaced by each case's.
        limits: Of each call.
        stacks: As in `Language`.
        throws_early: Likewise.
    """

    logs = True

    def __init__(
        self,
        sandbox: Sandbox,
        wasm: bytes,
        *,
        limits: Limits | None = None,
        stacks: bool = False,
        throws_early: bool = False,
    ) -> None:
        self.stacks = stacks
        self.throws_early = throws_early
        self._sandbox = sandbox
        self._wasm = wasm
        self._limits = limits or sandbox.limits
        self._programs: dict[str, Program] = {}

    def hook(self, case: Case) -> GuestHook:
        limits = self._limits if case.output_bytes is None else replace(self._limits, output_bytes=case.output_bytes)
        return GuestHook.from_program(
            self._program(case),
            sandbox=self._sandbox,
            name=NAME,
            config=case.does,
            limits=limits,
            edits_system_messages=case.grants_system_messages,
        )

    def _program(self, case: Case) -> Program:
        manifest: dict[str, object] = {"abi": 1}
        if case.needs is not None:
            manifest["needs"] = list(case.needs)
        if case.storage:
            manifest["storage"] = "run"
        key = json.dumps(manifest)
        if key not in self._programs:
            wasm = set_custom(self._wasm, "hookcell", key.encode())
            self._programs[key] = self._sandbox.load(wasm, admission_policy())
        return self._programs[key]


def check(case: Case, language: Language) -> None:
    """Run a case and compare. Raises ``AssertionError`` where it did not go as the table says."""
    storage = _Busy(case)
    hooks = HookRegistry()
    hooks.register(language.hook(case))
    context = context_of(case.point, case.own)
    context["messages"] = history = History(context["messages"])
    if "state" in context:
        context["state"]["history"] = history
    before: Any = copied(context)
    try:
        decision = run_point_sync(hooks, case.point, context, run=_RUN, storage=storage, moment=_MOMENT)
    except HookFailure as failure:
        _check_failure(case, failure, language)
        assert storage.written is ABSENT, "a hook that failed stored something"
        if isinstance(language, Guests):
            assert _same(copied(context), before), "a guest that failed changed the run"
        return
    assert not isinstance(case.expect, Fails), f"it did not fail: {_effect(decision, storage, before, context)}"
    found = _effect(decision, storage, before, context)
    wanted = dict(case.expect)
    if not language.logs:
        wanted.pop("log", None)
    assert _same(found, wanted), f"\nfound:  {_shown(found)}\nwanted: {_shown(wanted)}"


def _effect(decision: Decision, storage: _Busy, before: Mapping[str, Any], context: Mapping[str, Any]) -> Effect:
    """What the call came to: see `Effect`."""
    pipeline = POINTS[decision.point].family == "pipeline"
    effect: Effect = {}
    if decision.kind == "denied":
        effect["deny"] = decision.reason
    elif decision.kind == "replaced":
        effect["result" if pipeline else "replace"] = decision.value
    else:
        assert decision.kind == "proceed", decision
    if decision.rewritten_by and pipeline:
        effect["args"] = decision.args
    if decision.appended:
        effect["appended"] = list(decision.appended)
    # The run's own: a host hook may have edited inside a message, which no decision tells of. At agent-class points the
    # messages are the state's history.
    live = _LIVE if pipeline else _LIVE[1:]
    effect |= {field: context[field] for field in live if not _same(context.get(field), before.get(field))}
    if decision.events:
        assert {event["hook"] for event in decision.events} == {NAME}
        effect["events"] = [{key: value for key, value in each.items() if key != "hook"} for each in decision.events]
    if decision.meta:
        effect["meta"] = decision.meta
    if storage.written is not ABSENT:
        effect["stored"] = storage.written
    if log := _lines(decision.trace[0].log):
        effect["log"] = log
    return effect


def _check_failure(case: Case, failure: HookFailure, language: Language) -> None:
    expect = case.expect
    assert isinstance(expect, Fails), failure
    codes = (*expect.codes, "threw") if expect is INVALID and language.throws_early else expect.codes
    assert failure.code in codes, failure
    if isinstance(failure, HookThrew):
        # How a conformance hook says that it does not know what it was asked.
        assert failure.name != "UnknownCase", failure
        if expect.name is not None:
            assert (failure.name, failure.message) == (expect.name, expect.message)
        assert bool(failure.stack) is language.stacks
    if language.logs:
        assert _lines(failure.log) == list(expect.log)


class _Busy(InMemoryStorage):
    """A storage that somebody else writes to while the hook runs, as often as the case says."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.written: object = ABSENT
        self._conflicts = case.conflicts
        if case.stored is not None:
            super().compare_and_set(_KEY, 0, msgpack.packb(case.stored))

    def get(self, key: StorageKey, /) -> Stored:
        stored = super().get(key)
        if self._conflicts:
            self._conflicts -= 1
            super().compare_and_set(key, stored.revision, msgpack.packb(100))
        return stored

    def compare_and_set(self, key: StorageKey, revision: int, value: bytes | None, /) -> bool:
        done = super().compare_and_set(key, revision, value)
        if done:
            self.written = None if value is None else msgpack.unpackb(value)
        return done


def _lines(log: GuestLog) -> list[str]:
    assert not log.cut
    return log.raw.decode().splitlines()


def _same(a: object, b: object) -> bool:
    """Whether two values are the same to a language with one type of number: ``1`` and ``1.0`` are, ``True`` is not."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    return type(a) is type(b) and a == b


def _shown(effect: Effect) -> str:
    text = repr(effect)
    return text if len(text) < 2_000 else f"{text[:2_000]}… ({len(text):_} characters)"
