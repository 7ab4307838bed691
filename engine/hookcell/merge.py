"""What a checked outcome does to the chain: it is adopted whole or not at all (SEMANTICS P4-P9, P11, C1-C4).

No hook is called here and nothing waits; the chain hands in what a hook came to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from .history import History
from .outcomes import ABSENT
from .state import adopt, splice
from .tool_result import ToolError
from .trace import ArgumentsMismatch, Decision, DecisionKind, Moment, OutcomeKind, TraceEntry
from .values import same

if TYPE_CHECKING:
    from .errors import HookFailure
    from .points import Point
    from .proposal import Proposal

__all__ = ["ChainState", "ValidateArgs"]

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


class ChainState:
    """Where a chain stands: the context as its next hook will see it, and what was decided so far."""

    __slots__ = (
        "_given",
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
        self._given = context
        self.context: dict[str, Any] = dict(context)
        self.context["point"] = point.name
        if point.family == "agent_class" and self.context.get("state") is None:
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
        # At a tool point the context may hold a longer copy of the run's own list by now: the messages are the same.
        for messages in (self.context.get("messages"), self._given.get("messages"), history):
            if isinstance(messages, History):
                messages.changed()

    def conversation(self) -> list[object]:
        """The messages that a hook here may edit as they stand now, for `propose` to see whether they still do."""
        if self.point.message_edits == "none":
            state = self.context.get("state")
            messages = cast("dict[str, object]", state).get("history") if isinstance(state, dict) else None
        else:
            messages = self.context.get("messages")
        return list(cast("list[object]", messages)) if isinstance(messages, list) else []

    def adopt(self, hook: str, proposal: Proposal, notes: list[str]) -> tuple[OutcomeKind, bool]:
        """Merge a checked outcome by the point's rule.

        Returns:
            What the hook came to, and whether the chain ends here (P6, P7, C1).
        """
        if proposal.mismatch is not None:
            self._decide("validation", hook)
            self.mismatch = proposal.mismatch
            proposal.wrote = ()  # the whole outcome is dropped
            return "mismatch", True
        outcome = proposal.outcome
        if proposal.fields:
            self._adopt_fields(hook, proposal.fields)
        if proposal.added:
            self._append(proposal.added)
        # Who emitted is the engine's to say, so that none speaks in another's name (P13).
        self.events += [{**event, "hook": hook} for event in outcome.events]
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
            if field in ("args", "call") and not same(value, live):
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
            self.context["result"] = {"result": None, "error": ToolError.of_failure(failure).wire()}
            self.context["origin"] = "hook_failed"
            self.changed.add("result")
            return False  # later hooks still see the call, as what it has become (P10)
        if self.point.name == "after_tool":
            message = ToolError.of_failure(failure).message
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
