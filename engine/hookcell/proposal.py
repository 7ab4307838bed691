"""One hook's outcome against its point's rules, checked whole before anything counts (SEMANTICS P2, P6, C3, C7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from .malformed import Malformed
from .messages import check_appended, check_edited
from .outcomes import ABSENT, Outcome
from .schemas import SchemaMismatch
from .trace import ArgumentsMismatch

if TYPE_CHECKING:
    from .merge import ChainState

__all__ = ["Proposal", "propose"]


class Proposal:
    """One hook's outcome, checked and not yet adopted.

    Attributes:
        outcome: What it returned.
        fields: New values of context fields.
        added: Messages appended at a tool point.
        mismatch: Set when the arguments do not fit the tool's schema; nothing else counts then (P6).
        wrote: JSON Pointers into the context, for the trace.
    """

    __slots__ = ("added", "fields", "mismatch", "outcome", "wrote")

    def __init__(self, outcome: Outcome, fields: dict[str, Any], wrote: tuple[str, ...]) -> None:
        self.outcome = outcome
        self.fields = fields
        self.wrote = wrote
        self.added: Sequence[dict[str, object]] = ()
        self.mismatch: ArgumentsMismatch | None = None


_AS_IN_THE_CONTEXT: Final[Mapping[str, Any]] = MappingProxyType({})


def propose(
    state: ChainState,
    hook: str,
    outcome: Outcome,
    fields: dict[str, Any],
    wrote: tuple[str, ...],
    *,
    before: Mapping[str, Any] = _AS_IN_THE_CONTEXT,
    conversation: Sequence[object] | None = None,
    edits_system_messages: bool = False,
    guest: bool = False,
) -> Proposal:
    """Check an outcome and the fields it changed against the point's rules. Changes nothing.

    Args:
        state: Where the chain stands.
        hook: The hook's name.
        outcome: Its outcome, keys and shapes checked.
        fields: Fields changed by its patch or in place; `Proposal` takes them over.
        wrote: Where it wrote.
        before: ``messages`` and ``state`` from before a host hook edited them in place; default: as in the context.
        conversation: `ChainState.conversation` when the hook was given its copy; None for one that edits the real one.
        edits_system_messages: The host's grant (P2).
        guest: Whether it is a guest, which never writes the engine's marks in a message, whatever the grant.

    Raises:
        Malformed: The outcome breaks a rule, or edits a conversation that is no longer the one the hook was given.
    """
    proposal = Proposal(outcome, fields, wrote)
    if fields:
        grant = _Grant(edits_system_messages, edits_system_messages and not guest)
        _check_fields(state, proposal, {**state.context, **before}, grant)
        if conversation is not None:
            _check_unmoved(state, fields, conversation)
    if outcome.input is not ABSENT:
        fields["args"] = outcome.input
        proposal.wrote += ("/args",)
    if "args" in fields:
        fields["args"] = _validated(state, hook, fields["args"], proposal)
    if outcome.replace is not ABSENT and state.point.name == "before_tool":
        fields["call"] = _replaced_call(state, hook, outcome.replace, proposal)
    return proposal


class _Grant(NamedTuple):
    """What a hook may write in a conversation beyond its messages: see `check_edited`."""

    system_messages: bool
    marks: bool


def _check_fields(state: ChainState, proposal: Proposal, before: Mapping[str, Any], grant: _Grant) -> None:
    fields = proposal.fields
    for field, value in fields.items():
        wanted = list if field == "messages" else dict
        if not isinstance(value, wanted):
            raise Malformed(f"/{field}", f"it became a {type(value).__name__} and must stay a {wanted.__name__}")
    if "messages" in fields:
        if state.point.message_edits == "append":
            proposal.added = check_appended(
                before["messages"], fields.pop("messages"), system_messages=grant.system_messages, marks=grant.marks
            )
        else:
            check_edited(
                before["messages"], fields["messages"], system_messages=grant.system_messages, marks=grant.marks
            )
    if "state" in fields:
        _check_state(before["state"], fields["state"], grant)


def _check_unmoved(state: ChainState, fields: Mapping[str, Any], given: Sequence[object]) -> None:
    """An edit of a copy fits the conversation it was copied from: elsewhere an index names another message (P2)."""
    field = "messages" if state.point.message_edits == "edit" else "state"
    if field not in fields:
        return
    live = state.context["state"].get("history") if field == "state" else state.context["messages"]
    edited = fields["state"].get("history") if field == "state" else fields["messages"]
    if edited is live or (len(given) == len(live or ()) and all(map(is_, given, live or ()))):
        return
    reason = "somebody else changed the conversation while the hook ran, so its edit may not fit"
    raise Malformed("/messages" if field == "messages" else "/state/history", reason, "run one hook of a run at a time")


def _check_state(old: Mapping[str, Any], new: Mapping[str, Any], grant: _Grant) -> None:
    """C7: ``state.history`` is the conversation itself, so it stays one and keeps the rules of messages.

    Whatever list the host keeps it in; and where the host has none, a hook makes none that would break them.
    """
    if "history" not in old and "history" not in new:
        return
    before, after = old.get("history"), new.get("history")
    if not isinstance(after, list):
        raise Malformed("/state/history", "the conversation can be edited, not removed", "replace it by an empty list")
    if after is not before:
        known = cast("list[Any]", before) if isinstance(before, list) else []
        check_edited(
            known,
            cast("list[Any]", after),
            "/state/history",
            system_messages=grant.system_messages,
            marks=grant.marks,
            calls_stay=True,  # an agent-class point, which stands beside calls that are under way
        )


def _validated(state: ChainState, hook: str, args: Any, proposal: Proposal) -> Any:
    if state.validate_args is None:
        return args
    try:
        validated = state.validate_args(args)
    except SchemaMismatch as error:
        proposal.mismatch = ArgumentsMismatch(hook=hook, path=error.path, reason=error.reason)
        return args
    if not isinstance(validated, dict):
        reason = f"the schema makes a {type(validated).__name__} of it, not an object"
        proposal.mismatch = ArgumentsMismatch(hook=hook, path="", reason=reason)
    return cast("object", validated)


def _replaced_call(state: ChainState, hook: str, replacement: Any, proposal: Proposal) -> dict[str, object]:
    call = state.context["call"]
    for key in ("id", "name"):
        if replacement[key] != call[key]:
            raise Malformed(f"/replace/{key}", f"a hook may not change the call's {key}", "change args alone")
    return {**call, "args": _validated(state, hook, replacement["args"], proposal)}
