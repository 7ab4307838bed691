"""One call of one hook by the engine's own rules, and everything there is to say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast

from hookcell.budget import ChainLimits
from hookcell.chain import run_point_sync
from hookcell.codec import decode
from hookcell.context import RunFacts
from hookcell.crossing import encode_value
from hookcell.errors import HookFailure
from hookcell.malformed import Malformed
from hookcell.outcomes import ABSENT
from hookcell.packing import unpack
from hookcell.registry import HookRegistry
from hookcell.schemas import compile_schema
from hookcell.storage import StorageKey, Stored
from hookcell.values import copied
from hookcell_sandbox.errors import GuestError
from hookcell_sandbox.guest_text import EMPTY_LOG, GuestLog

if TYPE_CHECKING:
    from hookcell.hook import GuestHook
    from hookcell.trace import Decision
    from hookcell_sandbox import AdmissionPolicy, Completion, Limits, Program, Sandbox

    from .cases import Case

__all__ = ["Called", "WatchedSandbox", "call_once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What one call came to.

    Attributes:
        outcome: What the hook returned, ``{}`` for nothing; None when it returned no outcome that can be read.
        failure: Why it failed; None when it did not.
        decision: What the engine made of the outcome; None when it failed.
        before: The context, and the hook's storage, before.
        after: The same after.
        payload: What crossed to the guest; None when nothing ran.
        output_bytes: Size of what the guest gave back.
        fuel_used: Fuel billed.
        elapsed_us: Wall clock, microseconds.
        log: What it logged.
    """

    outcome: dict[str, object] | None
    failure: HookFailure | None
    decision: Decision | None
    before: dict[str, object]
    after: dict[str, object]
    payload: bytes | None
    output_bytes: int
    fuel_used: int
    elapsed_us: float
    log: GuestLog

    @property
    def error_code(self) -> str | None:
        """The failure's code, or ``validation`` where the arguments do not fit the case's ``toolSchema`` (P6)."""
        if self.failure is not None:
            return self.failure.code
        return "validation" if self.decision is not None and self.decision.mismatch is not None else None

    @property
    def error_text(self) -> str | None:
        """What went wrong, for a person, escaped."""
        if self.failure is not None:
            return str(self.failure)
        mismatch = self.decision.mismatch if self.decision is not None else None
        return None if mismatch is None else f"the arguments do not fit at {mismatch.path or '/'}: {mismatch.reason}"


class WatchedSandbox:
    """A sandbox that remembers its last call, and what it loaded. For one hook that is called once at a time."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._programs: dict[bytes, Program] = {}
        self.payload: bytes | None = None
        self.completion: Completion | None = None
        self.error: GuestError | None = None

    @property
    def limits(self) -> Limits:
        return self._sandbox.limits

    def load(self, wasm: bytes, policy: AdmissionPolicy, /) -> Program:
        if wasm not in self._programs:
            self._programs[wasm] = self._sandbox.load(wasm, policy)
        return self._programs[wasm]

    async def load_async(self, wasm: bytes, policy: AdmissionPolicy, /) -> Program:
        return await self._sandbox.load_async(wasm, policy)

    def check_limits(self, limits: Limits, /) -> None:
        self._sandbox.check_limits(limits)

    async def run(self, program: Program, entry: str, payload: bytes, limits: Limits, /) -> Completion:
        return await self._sandbox.run(program, entry, payload, limits)

    def run_sync(self, program: Program, entry: str, payload: bytes, limits: Limits, /) -> Completion:
        self.payload, self.completion, self.error = payload, None, None
        try:
            self.completion = self._sandbox.run_sync(program, entry, payload, limits)
        except GuestError as error:
            self.error = error
            raise
        return self.completion


def call_once(hook: GuestHook, watched: WatchedSandbox, case: Case) -> Called:
    """Call a hook once.

    Args:
        hook: Loaded into ``watched``, with the case's config, under limits of its own.
        watched: Its sandbox.
        case: The call.
    """
    storage = _OneValue(case.storage) if hook.manifest.storage is not None else None
    before = cast("dict[str, Any]", copied(case.context))
    # Copied together: where `state.history` is the conversation, it is that very list.
    live = _live(case.context)
    watched.payload = watched.completion = watched.error = None
    decision: Decision | None = None
    failure: HookFailure | None = None
    # One hook may use what its own limits allow it: the chain's are there for several.
    limits = ChainLimits(fuel=2**53, deadline_ms=2 * hook.limits.deadline_ms)
    schema = case.context.get("toolSchema")
    try:
        decision = run_point_sync(
            HookRegistry([hook.with_policy("raise")]),
            case.point,
            live,
            run=RunFacts(run_id="run", session_id="session"),
            limits=limits,
            storage=storage,
            moment=case.moment,
            validate_args=None if schema is None else compile_schema(schema, hostile=False).validate,
        )
    except HookFailure as error:
        failure = error
    after = _after(before, live, decision)
    if storage is not None:
        before["storage"], after["storage"] = storage.before, storage.now
    return Called(
        outcome=_outcome(watched.completion),
        failure=failure,
        decision=decision,
        before=before,
        after=after,
        payload=watched.payload,
        **_figures(watched, failure),
    )


class _Figures(TypedDict):
    output_bytes: int
    fuel_used: int
    elapsed_us: float
    log: GuestLog


def _figures(watched: WatchedSandbox, failure: HookFailure | None) -> _Figures:
    done, stopped = watched.completion, watched.error
    if done is not None:
        size = len(done.output or b"")
        return _Figures(output_bytes=size, fuel_used=done.fuel_used, elapsed_us=done.elapsed_us, log=done.log)
    if stopped is not None:
        elapsed_us = failure.trace[-1].elapsed_us if failure is not None and failure.trace else 0.0
        return _Figures(output_bytes=0, fuel_used=stopped.fuel_used, elapsed_us=elapsed_us, log=stopped.log)
    return _Figures(output_bytes=0, fuel_used=0, elapsed_us=0.0, log=EMPTY_LOG)


def _live(context: Mapping[str, object]) -> dict[str, Any]:
    live = cast("dict[str, Any]", copied(context))
    if "state" in context and cast("dict[str, object]", context["state"]).get("history") is context["messages"]:
        live["state"]["history"] = live["messages"]
    return live


def _outcome(completion: Completion | None) -> dict[str, object] | None:
    if completion is None:
        return None
    if completion.output is None:
        return {}
    try:
        return decode(completion.output)
    except Malformed:
        return None  # the failure says why


def _after(before: dict[str, Any], live: dict[str, Any], decision: Decision | None) -> dict[str, Any]:
    if decision is None:
        return dict(before)
    after = {**live, **decision.fields}
    if decision.args is not ABSENT and "args" in live:
        after["args"] = decision.args
    if decision.appended:
        after["messages"] = [*live["messages"], *decision.appended]
    return after


class _OneValue:
    """The storage of one hook (G3)."""

    def __init__(self, value: object) -> None:
        self.before: object = None if value is ABSENT else value
        self._value = None if self.before is None else encode_value(self.before)

    @property
    def now(self) -> object:
        return None if self._value is None else cast("object", unpack(self._value))

    def get(self, _key: StorageKey, /) -> Stored:
        return Stored(revision=1, value=self._value)

    def compare_and_set(self, _key: StorageKey, _revision: int, value: bytes | None, /) -> bool:
        self._value = value
        return True
