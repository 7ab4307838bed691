"""What an outcome does to the chain: checked first, then adopted whole or not at all (SEMANTICS P2, P5-P9, C1-C4).

No hook is called here and nothing waits; the chain hands in what a hook returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from hookcell_sandbox.guest_text import escape

from .history import History
from .malformed import Malformed
from .messages import check_appended, check_edited
from .outcomes import ABSENT, Outcome
from .schemas import SchemaMismatch
from .state import adopt, splice
from .trace import ArgumentsMismatch, Decision, DecisionKind, Moment, OutcomeKind, TraceEntry
from .values import same

if TYPE_CHECKING:
    from .errors import HookFailure
    from .points import Point

__all__ = ["ChainState", "Proposal", "ValidateArgs"]

ValidateArgs = Callable[[object], object]
"""The tool's schema: gives the validated arguments with defaults filled, or raises `SchemaMismatch`."""

# Where a point's replacement goes.
_REPLACED_FIELD: Final = {
    "before_prompt": "prompt",
    "after_response": "response",
    "before_tool": "call",
    "after_tool": "result",
}
_MADE_BY_TOOL_OR_HOOK: Final = frozenset({"tool", "hook"})


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


class ChainState:
    """Where a chain stands: the context as its next hook will see it, and what was decided so far."""

    __slots__ = (
        "appended",
        "changed",
        "context",
        "events",
        "failures",
        "hook",
        "kind",
        "meta",
        "mismatch",
        "point",
        "reason",
        "rewritten_by",
        "streaming",
        "trace",
        "validate_args",
        "value",
    )

    def __init__(self, point: Point, context: Mapping[str, object], validate_args: ValidateArgs | None) -> None:
        self.point = point
        self.context: dict[str, Any] = dict(context)
        self.context["point"] = point.name
        if point.family == "agent_class" and "state" not in self.context:
            self.context["state"] = {}
        self.streaming = context.get("streaming") is True
        self.validate_args = validate_args
        self.kind: DecisionKind = "proceed"
        self.hook: str | None = None
        self.reason: str | None = None
        self.value: object = ABSENT
        self.mismatch: ArgumentsMismatch | None = None
        self.rewritten_by: list[str] = []
        self.failures: list[HookFailure] = []
        self.appended: list[dict[str, object]] = []
        self.events: list[dict[str, object]] = []
        self.meta: dict[str, object] = {}
        self.changed: set[str] = set()
        self.trace: list[TraceEntry] = []

    def edited(self) -> None:
        """A host hook had its hands on the context: what was encoded of the conversation may be stale."""
        state = self.context.get("state")
        history = cast("dict[str, object]", state).get("history") if isinstance(state, dict) else None
        for messages in (self.context.get("messages"), history):
            if isinstance(messages, History):
                messages.changed()

    # Checking.

    def propose(
        self,
        hook: str,
        outcome: Outcome,
        fields: dict[str, Any],
        wrote: tuple[str, ...],
        *,
        messages_before: Sequence[Any] | None = None,
        edits_system_messages: bool = False,
    ) -> Proposal:
        """Check an outcome and the fields it changed against the point's rules. Changes nothing.

        Args:
            hook: The hook's name.
            outcome: Its outcome, keys and shapes checked.
            fields: Fields changed by its patch or in place; `Proposal` takes them over.
            wrote: Where it wrote.
            messages_before: What ``messages`` was before a host hook edited it in place; default: as in the context.
            edits_system_messages: The host's grant (P2).

        Raises:
            Malformed: The outcome breaks a rule.
        """
        proposal = Proposal(outcome, fields, wrote)
        if fields:
            self._check_fields(proposal, messages_before, edits_system_messages)
        if outcome.input is not ABSENT:
            fields["args"] = outcome.input
            proposal.wrote += ("/args",)
        if "args" in fields:
            fields["args"] = self._validated(hook, fields["args"], proposal)
        if outcome.replace is not ABSENT and self.point.name == "before_tool":
            fields["call"] = self._replaced_call(hook, outcome.replace, proposal)
        return proposal

    def _check_fields(self, proposal: Proposal, messages_before: Sequence[Any] | None, grant: bool) -> None:
        fields = proposal.fields
        for field, value in fields.items():
            wanted = list if field == "messages" else dict
            if not isinstance(value, wanted):
                raise Malformed(f"/{field}", f"it became a {type(value).__name__} and must stay a {wanted.__name__}")
        if "messages" in fields:
            before = self.context["messages"] if messages_before is None else messages_before
            if self.point.message_edits == "append":
                proposal.added = check_appended(before, fields.pop("messages"), system_messages=grant)
            else:
                check_edited(before, fields["messages"], system_messages=grant)
        if "state" in fields:
            self._check_state(fields["state"], grant)

    def _check_state(self, state: Mapping[str, Any], grant: bool) -> None:
        """C7: ``state.history`` is the conversation itself, so it stays one and keeps the rules of messages."""
        before = self.context["state"].get("history")
        if not isinstance(before, History):
            return
        after = state.get("history")
        if not isinstance(after, list):
            raise Malformed(
                "/state/history", "the conversation can be edited, not removed", "replace it by an empty list"
            )
        if after is not before:
            check_edited(before, cast("list[Any]", after), system_messages=grant)

    def _validated(self, hook: str, args: Any, proposal: Proposal) -> Any:
        if self.validate_args is None:
            return args
        try:
            validated = self.validate_args(args)
        except SchemaMismatch as error:
            proposal.mismatch = ArgumentsMismatch(hook=hook, path=error.path, reason=error.reason)
            return args
        if not isinstance(validated, dict):
            reason = f"the schema makes a {type(validated).__name__} of it, not an object"
            proposal.mismatch = ArgumentsMismatch(hook=hook, path="", reason=reason)
        return cast("object", validated)

    def _replaced_call(self, hook: str, replacement: Any, proposal: Proposal) -> dict[str, object]:
        call = self.context["call"]
        for key in ("id", "name"):
            if replacement[key] != call[key]:
                raise Malformed(f"/replace/{key}", f"a hook may not change the call's {key}", "change args alone")
        return {**call, "args": self._validated(hook, replacement["args"], proposal)}

    # Adopting.

    def adopt(self, hook: str, proposal: Proposal, notes: list[str]) -> tuple[OutcomeKind, bool]:
        """Merge a checked outcome by the point's rule.

        Returns:
            What the hook came to, and whether the chain ends here (P6, P7, C1).
        """
        if proposal.mismatch is not None:
            self._decide("validation", hook)
            self.mismatch = proposal.mismatch
            return "mismatch", True
        outcome = proposal.outcome
        if proposal.fields:
            self._adopt_fields(hook, proposal.fields)
        if proposal.added:
            self._append(proposal.added)
        self.events += outcome.events
        self.meta.update(outcome.meta)
        if outcome.deny is not ABSENT:
            self._decide("denied", hook)
            self.reason = outcome.deny
            return "deny", True
        if outcome.result is not ABSENT:
            return "result", self._adopt_result(hook, outcome.result, proposal, notes)
        if outcome.replace is not ABSENT:
            return "replace", self._adopt_replacement(hook, outcome.replace, proposal)
        if outcome.input is not ABSENT:
            return "input", False
        return ("changed" if proposal.wrote or outcome.events or outcome.meta else "nothing"), False

    def _adopt_fields(self, hook: str, fields: Mapping[str, Any]) -> None:
        for field, value in fields.items():
            live = self.context.get(field)
            if field == "args" or (field == "call" and not same(value, live)):
                self.rewritten_by.append(hook)
            if field == "messages" and isinstance(live, list):
                splice(cast("list[Any]", live), value)
            elif field in ("metadata", "request", "state") and isinstance(live, dict):
                adopt(cast("dict[str, object]", live), value)
            else:
                self.context[field] = value
            self.changed.add(field)

    def _append(self, added: Sequence[dict[str, object]]) -> None:
        # The history itself waits until the batch's results stand in it (P2); later hooks see a longer copy.
        messages = self.context["messages"].copy()
        messages.extend(added)
        self.context["messages"] = messages
        self.appended += added

    def _adopt_result(self, hook: str, value: object, proposal: Proposal, notes: list[str]) -> bool:
        if self.point.name == "pre_tool_call":
            self._decide("replaced", hook)
            self.value = value
            return True
        origin = self.context.get("origin", "tool")
        if origin not in _MADE_BY_TOOL_OR_HOOK:
            notes.append(f"result ignored: origin {origin} stands (P9)")
            return False
        self._decide("replaced", hook)
        self.value = value
        # The error mark stays (P9).
        self.context["result"] = {**self.context["result"], "result": value}
        self.changed.add("result")
        proposal.wrote += ("/result/result",)
        return False

    def _adopt_replacement(self, hook: str, value: Any, proposal: Proposal) -> bool:
        self._decide("replaced", hook)
        self.value = value
        field = _REPLACED_FIELD.get(self.point.name)
        if field is None:
            return True  # on_error: the first value wins (C1)
        if field == "result":
            result = self.context["result"]
            # A string swaps the text and keeps the error mark (C4).
            value = {**result, **(cast("dict[str, Any]", value) if isinstance(value, dict) else {"output": value})}
        elif field == "call":
            value = self.context["call"]
        self.context[field] = value
        self.changed.add(field)
        proposal.wrote += (f"/{field}",)
        return False

    def _decide(self, kind: DecisionKind, hook: str) -> None:
        self.kind = kind
        self.hook = hook

    def fail_closed(self, failure: HookFailure) -> bool:
        """A failure under the policy ``deny`` (P11); whether the chain ends here."""
        self._decide("hook_failed", failure.hook)
        self.value = ABSENT
        if self.point.name == "post_tool_call":
            self.context["result"] = {"result": None, "error": failed_error(failure)}
            self.context["origin"] = "hook_failed"
            self.changed.add("result")
            return False  # later hooks still see the call, as what it has become (P10)
        if self.point.name == "after_tool":
            message = failed_error(failure)["message"]
            self.context["result"] = {**self.context["result"], "output": message, "isError": True}
            self.changed.add("result")
        return True

    def decision(self, moment: Moment | None) -> Decision:
        """What it all came to."""
        context = self.context
        return Decision(
            point=self.point.name,
            kind=self.kind,
            hook=self.hook,
            reason=self.reason,
            value=self.value,
            args=context["call"]["args"] if self.point.name == "before_tool" else context.get("args", ABSENT),
            rewritten_by=tuple(self.rewritten_by),
            mismatch=self.mismatch,
            failures=tuple(self.failures),
            fields={field: context[field] for field in self.changed},
            appended=tuple(self.appended),
            events=tuple(self.events),
            meta=self.meta,
            trace=tuple(self.trace),
            moment=moment,
        )


def failed_error(failure: HookFailure) -> dict[str, object]:
    """The tool error of kind ``hook_failed``. It goes to the model, so what the hook wrote stays out of it."""
    point = failure.point or ""
    return {
        "kind": "hook_failed",
        "message": f"hook '{escape(failure.hook)}' failed at {point} ({failure.code})",
        "hook": failure.hook,
    }
