"""What a turn came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hookcell.tool_result import text_of

if TYPE_CHECKING:
    from hookcell.errors import HookFailure
    from hookcell.history import Message
    from hookcell.trace import Decision, TraceEntry

    from .approvals import PendingApproval
    from .models import Usage
    from .run_state import RunState

__all__ = ["TurnResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """What a turn came to.

    Attributes:
        output: The answer: the model's text, or what a hook or the agent's own ``run`` put in its place. None while
            calls wait for approval.
        messages: The conversation as it stood then; without the system prompt.
        usage: Tokens of the turn: its resumes, sub-agents and compactions included.
        meta: Notes that hooks left (C7).
        decisions: What the hooks of each point came to, in order, sub-agents' included; since the last resume.
        pending: The calls that wait for approval, and the state to resume with; None when the turn is over.
        state: The run, for a next turn or another agent. A resumed run is a new object.
        error: The error that `on_error` made an answer of (C6).
    """

    output: object
    messages: Sequence[Message] = field(repr=False)
    usage: Usage
    meta: dict[str, object]
    decisions: tuple[Decision, ...] = field(repr=False)
    pending: PendingApproval | None = None
    state: RunState = field(repr=False)
    error: Exception | None = None

    @property
    def text(self) -> str:
        """The answer as text."""
        return text_of(self.output)

    @property
    def trace(self) -> tuple[TraceEntry, ...]:
        """What each hook did, in order."""
        return tuple(entry for decision in self.decisions for entry in decision.trace)

    @property
    def failures(self) -> tuple[HookFailure, ...]:
        """Hooks' failures that a policy turned into a tool error or a skip; each says its ``policy`` (P11)."""
        return tuple(failure for decision in self.decisions for failure in decision.failures)
