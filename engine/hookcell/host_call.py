"""One host hook's turn in a chain: call it, read what it returned and what it changed (SEMANTICS P1, P2, P11, C2)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, cast

from .context import HookContext
from .errors import HookRecursion, HookThrew, OutcomeInvalid
from .host_hook import HostHook, Replace
from .malformed import Malformed
from .outcomes import ABSENT, Outcome, ThrownError, check_outcome
from .patch import apply_patch, written_paths
from .proposal import Proposal, propose
from .steps import Draft, HostCall, Request
from .tool_result import message_of

if TYPE_CHECKING:
    from .merge import ChainState
    from .points import Point
    from .trace import Moment

__all__ = ["call_host"]

# Fields that a method gets as a parameter: after ``ctx`` at pipeline points, before it at agent-class points.
_SUBJECTS: Final = {
    "post_tool_call": "result",
    "post_generate": "result",
    "before_prompt": "prompt",
    "before_tool": "call",
    "after_tool": "result",
    "after_response": "response",
    "on_error": "error",
}
_NOTHING: Final = Outcome()
# The host hooks that are running in this task, by identity: what they call may come round to them.
_running: ContextVar[frozenset[int]] = ContextVar("hookcell_running", default=frozenset())


def call_host(
    hook: HostHook, state: ChainState, moment: Callable[[], Moment], draft: Draft
) -> Generator[Request, Any, Proposal]:
    """Run a host hook and check what it came to.

    Raises:
        HookThrew: It threw; ``__cause__`` is what it threw. Cancellations pass through as they are.
        HookRecursion: It is running already in this task.
        OutcomeInvalid: What it returned or changed breaks a rule.
    """
    point = state.point

    def given_moment() -> Moment:
        draft.moment = moment()
        return draft.moment

    ctx = HookContext(point, state.context, copies=hook.on_failure != "raise", moment=given_moment)
    subject = _SUBJECTS.get(point.name)
    arguments = (ctx,) if subject is None else (ctx, ctx.subject(subject))
    if point.family == "agent_class":
        arguments = arguments[::-1]
    if id(hook.implementation) in _running.get():
        reason = "it is running already and cannot trigger itself; let it call nothing that has it among its hooks"
        raise HookRecursion(reason, hook=hook.name, point=point.name)
    draft.attempts = 1
    on_copies = hook.on_failure != "raise" and point.message_edits != "append"
    conversation = state.conversation() if on_copies else None
    token = _running.set(_running.get() | {id(hook.implementation)})
    try:
        returned = yield HostCall(hook.methods[point.name], arguments)
    except Exception as error:
        name, message = type(error).__qualname__, message_of(error)
        raise HookThrew(hook=hook.name, point=point.name, name=name, message=message) from error
    finally:
        _leave(token)
        state.edited()  # a trusted hook may have edited a message in place, also one that threw or was cancelled
    try:
        outcome = _outcome(returned, point, ctx, streaming=state.streaming)
        proposal = _proposal(hook, state, ctx, outcome, conversation)
    except Malformed as error:
        ctx.restore()
        raise OutcomeInvalid(
            hook=hook.name, point=point.name, path=error.path, reason=error.reason, hint=error.hint
        ) from error
    if proposal.mismatch is not None:
        ctx.restore()
    return proposal


def _leave(token: Token[frozenset[int]]) -> None:
    try:
        _running.reset(token)
    except ValueError:
        return  # an abandoned chain is closed by the garbage collector in some other context, which never had the mark


def _outcome(returned: object, point: Point, ctx: HookContext, *, streaming: bool) -> Outcome:
    """What the hook returned, emitted and noted, as one outcome under the rules that guests keep (P8)."""
    if isinstance(returned, Outcome):
        given = {
            key: value
            for key in Outcome.__slots__
            if (value := cast("object", getattr(returned, key))) is not ABSENT and (value or key not in _LISTS)
        }
        if "error" in given:
            return check_outcome(returned, point, streaming=streaming)  # nothing else of it counts
    elif returned is None:
        given = {}
    elif point.family == "agent_class":
        given = {"replace": returned.value if isinstance(returned, Replace) else returned}
    elif isinstance(returned, Mapping):
        given = dict(cast("Mapping[str, object]", returned))
    else:
        raise Malformed("", f"it is a {type(returned).__name__}", 'return nothing or a map such as {"deny": "reason"}')
    if ctx.emitted:
        given["events"] = [*cast("list[Any]", given.get("events", [])), *ctx.emitted]
    if ctx.noted:
        given["meta"] = {**cast("dict[str, Any]", given.get("meta", {})), **ctx.noted}
    return check_outcome(given, point, streaming=streaming) if given else _NOTHING


_LISTS: Final = frozenset({"patch", "events", "meta"})


def _proposal(
    hook: HostHook, state: ChainState, ctx: HookContext, outcome: Outcome, conversation: list[object] | None
) -> Proposal:
    if isinstance(outcome.error, ThrownError):
        thrown = outcome.error
        raise HookThrew(
            hook=hook.name, point=state.point.name, name=thrown.name, message=thrown.message, stack=thrown.stack
        )
    if outcome.storage is not ABSENT:
        raise Malformed("/storage", "a host hook has no storage of the engine's", "keep the value yourself")
    fields = ctx.changes()
    wrote = tuple(f"/{field}" for field in fields)
    if outcome.patch:
        point = state.point
        patched = {**state.context, **fields}
        fields |= apply_patch(patched, outcome.patch, roots=point.patch_roots, received=frozenset(point.fields))
        wrote += written_paths(outcome.patch)
    return propose(
        state,
        hook.name,
        outcome,
        fields,
        wrote,
        before={each: value for each in ("messages", "state") if (value := ctx.before(each)) is not None},
        conversation=conversation,
        edits_system_messages=hook.edits_system_messages,
    )
