"""Run the hooks of one point in order and say what they came to (SEMANTICS P7, P11, G3, G8).

The loop is a generator that asks for calls and is handed their answers; it never waits itself. `run_point` answers on
an event loop and `run_point_sync` in a plain thread, so that both keep the same rules.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Generator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

from .budget import Budget, ChainLimits
from .errors import ChainExhausted, ContextInvalid, HookFailure
from .guest_call import StorageAccess, call_guest
from .hook import GuestHook
from .host_call import call_host
from .merge import ChainState, ValidateArgs
from .points import POINTS
from .steps import Draft, GuestCall, HostCall, Request
from .trace import Decision, Moment, OutcomeKind, TraceEntry

if TYPE_CHECKING:
    from .context import RunFacts
    from .host_hook import HostHook
    from .registry import HookSource
    from .storage import HookStorage

__all__ = ["run_point", "run_point_sync"]

_log: Final = logging.getLogger(__name__)
_DEFAULT_LIMITS: Final = ChainLimits()

Steps = Generator[Request, Any, Decision]


async def run_point(
    hooks: HookSource,
    point: str,
    context: Mapping[str, object],
    *,
    run: RunFacts | None = None,
    limits: ChainLimits = _DEFAULT_LIMITS,
    storage: HookStorage | None = None,
    moment: Moment | None = None,
    validate_args: ValidateArgs | None = None,
) -> Decision:
    """Run the hooks of one point, one at a time in order.

    Args:
        hooks: The hooks; a registry is taken as it is now (P18).
        point: Which of the nine points.
        context: Its fields by the wire's names, as `RunFacts.context` gives them. Its ``metadata``, ``request``,
            ``state`` and, at generate points, ``messages`` are changed in place by hooks of both kinds; every other
            change, ``args`` among them, is in the decision alone.
        run: Whose storage is used (G3); needed when a guest has storage of its own.
        limits: Ceilings of this chain (G8).
        storage: Where guests keep their values.
        moment: The time and seed of a recorded call, to replay it exactly; default: now, and a fresh seed (G1).
        validate_args: The tool's schema, for points where hooks may change arguments (P6, C3).

    Raises:
        HookFailure: A hook failed under the policy ``raise``, or the context cannot cross (`ContextInvalid`), or the
            point has more hooks than it may (`ChainExhausted`). Its ``trace`` says what ran.
        KeyError: There is no such point.
        TypeError: A guest has storage and ``storage`` or ``run`` is missing.
    """
    steps = _chain(hooks, point, context, run, limits, storage, moment, validate_args)
    try:
        request = next(steps)
        while True:
            try:
                if type(request) is GuestCall:
                    sandbox, program, entry, payload, call_limits = request
                    answer: Any = await sandbox.run(program, entry, payload, call_limits)
                else:
                    answer = cast("HostCall", request).function(*cast("HostCall", request).arguments)
                    if inspect.isawaitable(answer):
                        answer = await answer
            except Exception as error:
                request = steps.throw(error)
            else:
                request = steps.send(answer)
    except StopIteration as done:
        return done.value
    finally:
        steps.close()  # a cancellation passes through here, and what a host hook edited is seen to


def run_point_sync(
    hooks: HookSource,
    point: str,
    context: Mapping[str, object],
    *,
    run: RunFacts | None = None,
    limits: ChainLimits = _DEFAULT_LIMITS,
    storage: HookStorage | None = None,
    moment: Moment | None = None,
    validate_args: ValidateArgs | None = None,
) -> Decision:
    """`run_point` for a plain thread, with the same arguments and errors.

    Raises:
        TypeError: Also when a host hook or the storage is ``async``: there is no event loop to await it on.
    """
    steps = _chain(hooks, point, context, run, limits, storage, moment, validate_args)
    try:
        request = next(steps)
        while True:
            try:
                if type(request) is GuestCall:
                    sandbox, program, entry, payload, call_limits = request
                    answer: Any = sandbox.run_sync(program, entry, payload, call_limits)
                else:
                    answer = cast("HostCall", request).function(*cast("HostCall", request).arguments)
            except Exception as error:
                request = steps.throw(error)
            else:
                if type(request) is HostCall and inspect.isawaitable(answer):
                    if inspect.iscoroutine(answer):
                        answer.close()
                    raise TypeError(f"{request.function!r} is async and cannot run in run_point_sync; use run_point")
                request = steps.send(answer)
    except StopIteration as done:
        return done.value
    finally:
        steps.close()


def _chain(
    source: HookSource,
    point: str,
    context: Mapping[str, object],
    run: RunFacts | None,
    limits: ChainLimits,
    storage: HookStorage | None,
    moment: Moment | None,
    validate_args: ValidateArgs | None,
) -> Steps:
    """The loop over a point's hooks: asks for calls, is handed their answers, returns the decision."""
    hooks = source.snapshot().at(point)
    if len(hooks) > limits.hooks_per_point:
        raise ChainExhausted(
            f"it is hook {limits.hooks_per_point + 1} of {len(hooks)} there (limit {limits.hooks_per_point}), "
            "so none ran; register fewer or raise ChainLimits.hooks_per_point",
            hook=hooks[limits.hooks_per_point].name,
            point=point,
        )
    state = ChainState(POINTS[point], context, validate_args)
    moments = _Moments(moment)
    budget = Budget(limits)
    access = StorageAccess(storage=storage, run=run, value_bytes=limits.storage_bytes)
    for hook in hooks:
        draft = Draft()
        started = perf_counter()
        try:
            if isinstance(hook, GuestHook):
                proposal = yield from call_guest(hook, state, budget, access, moments.get, draft)
            else:
                proposal = yield from call_host(hook, state, moments.get, draft)
        except HookFailure as failure:
            elapsed_us = (perf_counter() - started) * 1e6
            state.trace.append(_entry(hook, point, draft, "failed", elapsed_us, (), failure.code))
            failure.policy = hook.on_failure
            if hook.on_failure == "raise" or isinstance(failure, ContextInvalid):
                failure.trace = tuple(state.trace)
                raise
            state.failures.append(failure)
            _log.warning("%s [%s], policy %s", failure, failure.code, hook.on_failure)
            if hook.on_failure == "deny" and state.fail_closed(failure):
                break
            continue
        outcome, ended = state.adopt(hook.name, proposal, draft.notes)
        elapsed_us = (perf_counter() - started) * 1e6
        state.trace.append(_entry(hook, point, draft, outcome, elapsed_us, proposal.wrote, None))
        if ended:
            break
    return state.decision(moments.given)


def _entry(
    hook: HostHook | GuestHook,
    point: str,
    draft: Draft,
    outcome: OutcomeKind,
    elapsed_us: float,
    wrote: tuple[str, ...],
    failure: str | None,
) -> TraceEntry:
    guest = isinstance(hook, GuestHook)
    return TraceEntry(
        hook=hook.name,
        point=point,
        kind="guest" if guest else "host",
        digest=hook.program.digest if guest else None,
        outcome=outcome,
        elapsed_us=elapsed_us,
        fuel_used=draft.fuel_used,
        bytes_in=draft.bytes_in,
        bytes_out=draft.bytes_out,
        attempts=draft.attempts,
        wrote=wrote,
        failure=failure,
        notes=tuple(draft.notes),
        moment=draft.moment,
        log=draft.log,
    )


class _Moments:
    """The chain's one moment, made when a hook first asks for it (G1)."""

    __slots__ = ("_recorded", "given")

    def __init__(self, recorded: Moment | None) -> None:
        self._recorded = recorded
        self.given: Moment | None = None

    def get(self) -> Moment:
        if self.given is None:
            self.given = self._recorded or Moment.of_now()
        return self.given
