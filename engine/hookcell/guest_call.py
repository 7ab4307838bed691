"""One guest hook's turn in a chain: encode, call, read, check, store; again on a conflict (SEMANTICS G3, G8)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hookcell_sandbox.errors import DeadlineExceeded, FuelExhausted, GuestError, SandboxError
from hookcell_sandbox.guest_text import escape

from . import request_view, state_view
from .codec import Encoded, Uncrossable, encode_context, encode_value
from .errors import ContextInvalid, HookCrashed, HookThrew, OutcomeInvalid, StorageConflict, StorageFailed
from .malformed import Malformed
from .outcomes import ABSENT, Outcome, ThrownError, read_outcome
from .patch import apply_patch, written_paths
from .proposal import Proposal, propose
from .steps import Draft, GuestCall, HostCall, Request
from .storage import HookStorage, StorageKey, Stored

if TYPE_CHECKING:
    from hookcell_sandbox.program import Completion

    from .budget import Budget
    from .context import RunFacts
    from .hook import GuestHook
    from .merge import ChainState
    from .trace import Moment

__all__ = ["StorageAccess", "call_guest"]

ATTEMPTS: Final = 3
"""How often a hook runs when its storage changes under it (G3)."""

_BAGS: Final = ("metadata", "state")
_NOTHING: Final = Outcome()
_NIL: Final = Encoded(b"\xc0")


Steps = Generator[Request, Any, Proposal]


class StorageAccess(NamedTuple):
    """Where a chain's guests keep their values.

    Attributes:
        storage: The storage, or None when the host has none.
        run: Whose run it is, or None.
        value_bytes: Most bytes of one value.
    """

    storage: HookStorage | None
    run: RunFacts | None
    value_bytes: int

    def key(self, hook: GuestHook) -> StorageKey:
        """Where this hook's value lives.

        Raises:
            TypeError: The host gave no storage, or no run or session to own the value. Its own mistake, so no hook's
                policy applies.
        """
        scope, run = hook.storage_scope, self.run
        if self.storage is None or run is None or scope is None:
            raise TypeError(f"hook {hook.name!r} has storage of scope {scope!r}; give storage= and run=")
        owner = {"run": run.run_id, "session": run.session_id, "hook": ""}[scope]
        if scope != "hook" and not owner:
            raise TypeError(f"hook {hook.name!r} has storage of scope {scope!r}; give the RunFacts a {scope}_id")
        return StorageKey(hook=hook.name, scope=scope, owner=owner, tenant=run.tenant, environment=run.environment)


def call_guest(
    hook: GuestHook,
    state: ChainState,
    budget: Budget,
    access: StorageAccess,
    moment: Callable[[], Moment],
    draft: Draft,
) -> Steps:
    """Run a guest hook until its outcome stands.

    Raises:
        HookFailure: The hook failed, in any way; or the host's context cannot cross (`ContextInvalid`).
    """
    crossing = hook.crossings[state.point.name]
    context = _seen(hook, state)
    if crossing.wants_moment:
        draft.moment = moment()
        context = {**context, "now": draft.moment.now, "seed": draft.moment.seed}
    if hook.manifest.storage is None:
        return (yield from _attempt(hook, state, context, hook.extra, budget, hook.limits.deadline_ms, draft))
    key = access.key(hook)
    started = perf_counter()
    while True:
        stored: Stored = yield from _stored(hook, state, HostCall(access.storage.get, (key,)), draft)  # type: ignore[union-attr]  # key() refuses a missing one
        extra = {**hook.extra, "storage": _NIL if stored.value is None else Encoded(stored.value)}
        left_ms = hook.limits.deadline_ms - (perf_counter() - started) * 1000
        if draft.attempts and left_ms < 1:
            raise _conflict(hook, state, draft, "its deadline was over")
        proposal = yield from _attempt(hook, state, context, extra, budget, left_ms, draft)
        value = proposal.outcome.storage
        if value is ABSENT or proposal.mismatch is not None:
            return proposal
        write = HostCall(
            access.storage.compare_and_set,  # type: ignore[union-attr]  # as above
            (key, stored.revision, _storable(hook, state, value, access.value_bytes, draft)),
        )
        if (yield from _stored(hook, state, write, draft)):
            return proposal
        if draft.attempts >= ATTEMPTS:
            raise _conflict(hook, state, draft, f"{ATTEMPTS} attempts met a new value each time")


def _seen(hook: GuestHook, state: ChainState) -> Mapping[str, Any]:
    """The context with what this hook may see of ``request`` and ``state``; the live one where that is all."""
    context: Mapping[str, Any] = state.context
    received = hook.crossings[state.point.name].received
    if "request" in context and "request" in received:
        context = {**context, "request": request_view.view(context["request"], hook.request_fields)}
    if "state" in context and "state" in received and "messages" not in received:
        context = {**context, "state": state_view.view(context["state"], received)}
    return context


def _attempt(
    hook: GuestHook,
    state: ChainState,
    context: Mapping[str, object],
    extra: Mapping[str, object],
    budget: Budget,
    deadline_ms: float,
    draft: Draft,
) -> Steps:
    """One isolated call, billed, its outcome read and checked."""
    point = state.point
    name = point.name
    crossing = hook.crossings[name]
    try:
        payload = encode_context(context, crossing.fields, extra)
    except Uncrossable as error:
        raise _context_invalid(hook, state, error) from error
    draft.bytes_in = len(payload)
    limits = budget.tightened(hook.limits, len(payload), deadline_ms=deadline_ms, hook=hook.name, point=name)
    draft.attempts += 1
    # At tool points an addition fits whatever stands before it.
    conversation = None if point.message_edits == "append" else state.conversation()
    fuel = 0
    chain_bound = deadline_ms > budget.ms_left
    started = perf_counter()
    try:
        completion: Completion = yield GuestCall(hook.sandbox, hook.program, name, payload, limits)
        fuel = completion.fuel_used
        draft.log = completion.log
    except GuestError as error:
        fuel, draft.log = error.fuel_used, error.log
        if (
            isinstance(error, FuelExhausted) and limits.fuel_for(len(payload)) < hook.limits.fuel_for(len(payload))
        ) or (isinstance(error, DeadlineExceeded) and chain_bound):
            raise budget.exhausted("while it was running", hook=hook.name, point=name, log=error.log) from error
        raise HookCrashed(hook=hook.name, point=name, cause=error, log=error.log) from error
    except SandboxError as error:
        raise HookCrashed(hook=hook.name, point=name, cause=error) from error
    finally:
        budget.spend(fuel=fuel, ms=(perf_counter() - started) * 1000)
        draft.fuel_used += fuel
    return _read(hook, state, budget, completion, draft, conversation)


def _read(
    hook: GuestHook,
    state: ChainState,
    budget: Budget,
    completion: Completion,
    draft: Draft,
    conversation: list[object] | None,
) -> Proposal:
    """The outcome of a completed call, checked against the point."""
    point = state.point
    output = completion.output
    if output is None:
        return Proposal(_NOTHING, {}, ())
    draft.bytes_out = len(output)
    try:
        outcome = read_outcome(output, point, streaming=state.streaming)
        if isinstance(outcome.error, ThrownError):
            thrown = outcome.error
            raise HookThrew(
                hook=hook.name,
                point=point.name,
                name=thrown.name,
                message=thrown.message,
                stack=thrown.stack,
                log=completion.log,
            )
        if outcome.storage is not ABSENT and hook.manifest.storage is None:
            raise Malformed("/storage", "the hook has no storage", 'ask for it in the manifest: "storage": "run"')
        fields: dict[str, Any] = {}
        wrote: tuple[str, ...] = ()
        if outcome.patch:
            received = hook.crossings[point.name].received
            fields = apply_patch(_seen(hook, state), outcome.patch, roots=point.patch_roots, received=received)
            if "request" in fields:
                whole = state.context["request"]
                fields["request"] = request_view.overlaid(whole, fields["request"], hook.request_fields)
            if "state" in fields:
                fields["state"] = state_view.overlaid(state.context["state"], fields["state"], received)
            wrote = written_paths(outcome.patch)
        proposal = propose(
            state,
            hook.name,
            outcome,
            fields,
            wrote,
            conversation=conversation,
            edits_system_messages=hook.edits_system_messages,
            guest=True,
        )
        for bag in _BAGS:
            if bag in fields:
                budget.check_bag(bag, state.context[bag], fields[bag])
    except Uncrossable as error:
        raise _context_invalid(hook, state, error) from error
    except Malformed as error:
        raise OutcomeInvalid(
            hook=hook.name,
            point=point.name,
            path=error.path,
            reason=error.reason,
            hint=error.hint,
            log=completion.log,
        ) from error
    return proposal


def _context_invalid(hook: GuestHook, state: ChainState, error: Uncrossable) -> ContextInvalid:
    return ContextInvalid(hook=hook.name, point=state.point.name, path=error.path, type=error.type, hint=error.hint)


def _stored(hook: GuestHook, state: ChainState, call: HostCall, draft: Draft) -> Generator[Request, Any, Any]:
    try:
        return (yield call)
    except Exception as error:
        raise StorageFailed(
            f"its storage failed: {type(error).__name__}: {escape(str(error), characters=500)}",
            hook=hook.name,
            point=state.point.name,
            log=draft.log,
        ) from error


def _storable(hook: GuestHook, state: ChainState, value: object, value_bytes: int, draft: Draft) -> bytes | None:
    """The value's msgpack; None, which empties the storage, for None."""
    if value is None:
        return None
    raw = encode_value(value, "/storage")
    if len(raw) > value_bytes:
        raise OutcomeInvalid(
            hook=hook.name,
            point=state.point.name,
            path="/storage",
            reason=f"the value is {len(raw):_} bytes (limit {value_bytes:_})",
            hint="store less",
            log=draft.log,
        )
    return raw


def _conflict(hook: GuestHook, state: ChainState, draft: Draft, why: str) -> StorageConflict:
    return StorageConflict(
        f"its storage was changed while it ran: {why}; run it less in parallel or give it a narrower scope",
        hook=hook.name,
        point=state.point.name,
        log=draft.log,
    )
