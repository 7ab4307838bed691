"""THE table of hook points: what each one's context holds and what an outcome there may say (SEMANTICS, "Points").

Everything that depends on the point reads it from here: encoding, outcome checks, patches, merging, schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

__all__ = ["COMMON_FIELDS", "DECIDING_KEYS", "ON_REQUEST_FIELDS", "POINTS", "Point", "field_names"]

Family = Literal["pipeline", "agent_class"]
MessageEdits = Literal["none", "append", "edit"]

DECIDING_KEYS = frozenset({"deny", "result", "input", "replace", "error"})
"""At most one of these in an outcome (P8)."""

COMMON_FIELDS: tuple[str, ...] = ("agentId", "agentName", "sessionId", "messages", "metadata", "subagent")
"""In every context beside ``point``; ``subagent`` only inside a sub-agent."""

_AGENT_CLASS_FIELDS: tuple[str, ...] = ("state", "data")

ON_REQUEST_FIELDS: tuple[str, ...] = ("now", "seed")
"""Handed over only to a hook whose manifest names them (G1, G4): ``"*"`` does not include them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One row of the table.

    Attributes:
        name: The point's name, which is also the guest's export.
        family: ``pipeline`` (seed 000) or ``agent_class`` (seed 002).
        own_fields: Context fields beyond the common ones, as on the wire.
        keys: Outcome keys that may stand here, ``storage`` and ``error`` included; ``events`` only in a streamed run.
        patch_roots: Top-level context fields a patch may write to, without the slash.
        message_edits: What a patch may do to ``messages``: append alone at tool points, edit at generate points (P2).
        tool_point: Whether the failure policy ``deny`` is allowed (P11).
    """

    name: str
    family: Family
    own_fields: tuple[str, ...]
    keys: frozenset[str]
    patch_roots: frozenset[str]
    message_edits: MessageEdits = "none"
    tool_point: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """Every ordinary context field, ``point`` aside."""
        extra = _AGENT_CLASS_FIELDS if self.family == "agent_class" else ()
        return COMMON_FIELDS + extra + self.own_fields


def _pipeline(
    name: str, own: str, deciding: str, patch: str, *, edits: MessageEdits, tool: bool = False, events: bool = False
) -> Point:
    keys = {*deciding.split(), "patch", "storage", "error"} | ({"events"} if events else set[str]())
    return Point(
        name=name,
        family="pipeline",
        own_fields=tuple(own.split()),
        keys=frozenset(keys),
        patch_roots=frozenset(patch.split()),
        message_edits=edits,
        tool_point=tool,
    )


def _agent_class(name: str, own: str, *, tool: bool = False) -> Point:
    return Point(
        name=name,
        family="agent_class",
        own_fields=(own,),
        keys=frozenset({"replace", "patch", "meta", "storage", "error"}),
        patch_roots=frozenset({"state"}),
        tool_point=tool,
    )


_TOOL = "toolCallId toolName args toolCall toolSchema resumed"

POINTS: Mapping[str, Point] = MappingProxyType(
    {
        point.name: point
        for point in (
            _pipeline("pre_tool_call", _TOOL, "deny result input", "args messages metadata", edits="append", tool=True),
            _pipeline(
                "post_tool_call", f"{_TOOL} result origin", "result", "messages metadata", edits="append", tool=True
            ),
            _pipeline("pre_generate", "request streaming", "", "messages request metadata", edits="edit", events=True),
            _pipeline("post_generate", "request result streaming", "", "messages metadata", edits="edit", events=True),
            _agent_class("before_prompt", "prompt"),
            _agent_class("before_tool", "call", tool=True),
            _agent_class("after_tool", "result", tool=True),
            _agent_class("after_response", "response"),
            _agent_class("on_error", "error"),
        )
    }
)


def field_names() -> frozenset[str]:
    """Every name that a manifest's ``needs`` may hold, ``"*"`` aside (G4)."""
    return frozenset(ON_REQUEST_FIELDS).union(*(point.fields for point in POINTS.values()))
