"""What a turn tells whoever watches it (SEMANTICS P19): typed events, and the record of permission decisions.

Events are about what the model will see: a result is told once the hooks after it have run, so that what they redact
never passes by here first. The values in them are copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from hookcell.tool_result import ToolError

    from .result import TurnResult
    from .run_state import RunState

__all__ = [
    "ApprovalRequired",
    "CompactionDone",
    "CompactionStarted",
    "Event",
    "PermissionDecision",
    "TextDelta",
    "ToolDone",
    "ToolFailed",
    "ToolStarted",
    "TurnDone",
    "TurnFailed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a turn.

    Attributes:
        type: What, as on the wire.
        agent: The name of the agent that it happened to.
        depth: 0 for the agent that was sent to, 1 for its sub-agents, and so on.
    """

    type: ClassVar[str] = "event"
    agent: str
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """A piece of the answer's text, as the model gives it; in streamed runs only."""

    type: ClassVar[str] = "text.delta"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """A tool is about to run with these arguments. A call that is denied or answered by a hook never starts."""

    type: ClassVar[str] = "tool.start"
    call_id: str
    tool: str
    args: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDone(Event):
    """A call has its result. ``content`` is what the model sees; ``replaced_by_hook`` names a pre-hook that gave it."""

    type: ClassVar[str] = "tool.done"
    call_id: str
    tool: str
    content: object
    replaced_by_hook: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailed(Event):
    """A call has an error: denied, not valid, refused, failed. ``content`` is what the model sees."""

    type: ClassVar[str] = "tool.error"
    call_id: str
    tool: str
    error: ToolError
    content: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequired(Event):
    """A call waits for a human, with the arguments as hooks made them (P15)."""

    type: ClassVar[str] = "approval.required"
    call_id: str
    tool: str
    args: Mapping[str, object]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted(Event):
    """The conversation is being compacted; ``hook`` says by whom. Streamed runs only (P13)."""

    type: ClassVar[str] = "compaction.start"
    hook: str
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDone(Event):
    """It was."""

    type: ClassVar[str] = "compaction.done"
    hook: str
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDone(Event):
    """The turn ended with an answer, or waits for approvals: ``result.pending``."""

    type: ClassVar[str] = "turn.done"
    result: TurnResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed(Event):
    """An error leaves the turn, or left it and `on_error` made an answer of it: then `TurnDone` follows.

    ``state`` is the run, live: its conversation is whole, and a next turn can go on with it. Of a resumed turn that
    fails there is no other way to it.
    """

    type: ClassVar[str] = "turn.error"
    error: Exception
    state: RunState = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDecision:
    """Whether a call may run, and who said so.

    Attributes:
        agent: The agent's name.
        call_id: The model's id of the call.
        tool: The tool.
        args: A copy of the arguments that were decided about.
        decision: ``ask`` when a human will be.
        source: Who decided.
        hook: The hook that denied, where one did (P4).
        reason: Its reason, or the rule's, guardrail's or human's.
    """

    agent: str
    call_id: str
    tool: str
    args: Mapping[str, object]
    decision: Literal["allow", "deny", "ask"]
    source: Literal["hook", "rule", "guardrail", "tool", "human"]
    hook: str | None = None
    reason: str = ""
