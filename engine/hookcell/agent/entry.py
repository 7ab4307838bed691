"""One tool call of a batch, as far as it is, and how it is kept while a human thinks (SEMANTICS P16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from hookcell.tool_result import Gate, ToolCall, ToolResult
from hookcell.trace import Moment

from .run_state import check_keepable

if TYPE_CHECKING:
    from .approvals import Answer, PendingCall

__all__ = ["Entry", "Paused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A turn that waits for approvals.

    Attributes:
        kept: Everything that `Turn.resume` needs, JSON-like.
        calls: What is to be answered.
    """

    kept: dict[str, object]
    calls: tuple[PendingCall, ...]


class Entry:
    """One call of the batch, as far as it is."""

    __slots__ = (
        "added",
        "answer",
        "approved_args",
        "call",
        "gate",
        "message",
        "moment",
        "paused",
        "reason",
        "result",
        "turn_kept",
    )

    def __init__(self, call: ToolCall, moment: Moment) -> None:
        self.call = call
        self.moment = moment
        self.gate: Gate | None = None
        self.result: ToolResult | None = None
        self.reason = ""
        # Of a call that waited: what the human said, about which arguments.
        self.answer: Answer | None = None
        self.approved_args: object = None
        # Of a call of a sub-agent that waits: where its turn stands.
        self.paused: Paused | None = None
        self.turn_kept: Mapping[str, Any] | None = None
        # Of a settled call: its tool message, and what hooks added during it.
        self.message: dict[str, object] | None = None
        self.added: list[dict[str, object]] = []

    @property
    def settled(self) -> bool:
        """Whether it has its tool message."""
        return self.message is not None

    def kept(self, path: str) -> dict[str, object]:
        """It as JSON-like values: settled, waiting for a human, or for a sub-agent's calls that do.

        Args:
            path: JSON Pointer of the call, for the error.

        Raises:
            RunNotSerialisable: It holds something that cannot be kept.
        """
        kept: dict[str, object] = {
            "call": self.call.wire(),
            "moment": {"now": self.moment.now, "seed": self.moment.seed},
            "added": self.added,
        }
        if self.message is not None:
            kept["message"] = self.message
        elif self.paused is not None:
            kept["args"] = cast("Gate", self.gate).args
        else:
            kept["args"] = self.approved_args
        check_keepable(kept, path)
        return kept if self.paused is None or self.settled else {**kept, "turn": self.paused.kept}

    @classmethod
    def restored(cls, kept: Mapping[str, Any]) -> Entry:
        """The entry that `kept` gave."""
        entry = cls(ToolCall(**kept["call"]), Moment(**kept["moment"]))
        entry.message = kept.get("message")
        entry.added = list(kept["added"])
        entry.approved_args = kept.get("args")
        entry.turn_kept = kept.get("turn")
        return entry
