"""A tool call, what stands before its execution, and how it was settled."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Self

from hookcell_sandbox.guest_text import escape

from .shapes import is_list, is_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .errors import HookFailure
    from .registry import Snapshot
    from .schemas import Schema
    from .trace import Decision, TraceEntry

__all__ = ["ErrorKind", "Gate", "Origin", "SettledCall", "ToolCall", "ToolError", "ToolResult", "message_of", "text_of"]

ErrorKind = Literal["denied", "validation", "tool", "hook_failed", "refused"]
Origin = Literal["tool", "hook", "denied", "validation", "hook_failed", "refused", "approval"]
"""Who settled the call: the tool, a hook's result, or one of the engine's own ways not to run it (P10)."""

_NO_METADATA: Final[Mapping[str, object]] = {}


def text_of(value: object) -> str:
    """A tool's value as the text that a model reads: text as it is, nothing for None, else JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def message_of(error: Exception) -> str:
    """What an exception says, as text that can cross; its own ``__str__`` may throw."""
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception as broken:
        return f"(its message cannot be read: {type(broken).__qualname__})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model made it; it never changes.

    Attributes:
        id: The model's id of the call.
        name: The tool.
        args: The arguments; anything but a map with string keys is a ``validation`` error.
    """

    id: str
    name: str
    args: object

    def wire(self) -> dict[str, object]:
        """``{id, name, args}``."""
        return {"id": self.id, "name": self.name, "args": self.args}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolError:
    """An error that goes to the model in place of a result.

    Attributes:
        kind: What kind.
        message: For the model. A deny's reason is guest text, and is meant for it.
        hook: The hook that caused it, if one did.
    """

    kind: ErrorKind
    message: str
    hook: str | None = None

    @classmethod
    def of_failure(cls, failure: HookFailure) -> Self:
        """A failure under the policy ``deny`` (P11). It goes to the model, so what the hook wrote stays out of it."""
        message = f"hook '{escape(failure.hook)}' failed at {failure.point} ({failure.code})"
        return cls(kind="hook_failed", message=message, hook=failure.hook)

    @classmethod
    def of_exception(cls, error: Exception) -> Self:
        """What a tool threw, for the model."""
        return cls(kind="tool", message=f"{type(error).__name__}: {message_of(error)}")

    def wire(self) -> dict[str, object]:
        """``{kind, message, hook?}``."""
        error: dict[str, object] = {"kind": self.kind, "message": self.message}
        if self.hook is not None:
            error["hook"] = self.hook
        return error


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """How a call was settled.

    Attributes:
        result: The value; None with an error, unless a post-hook put one in its place (P9).
        error: The error mark.
        requires_approval: The call waits for a human.
        origin: Who settled it.
    """

    result: object = None
    error: ToolError | None = None
    requires_approval: bool = False
    origin: Origin = "tool"

    def wire(self) -> dict[str, object]:
        """``{result, error?, requiresApproval?}``."""
        wire: dict[str, object] = {"result": self.result}
        if self.error is not None:
            wire["error"] = self.error.wire()
        if self.requires_approval:
            wire["requiresApproval"] = True
        return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What stands before a call's execution.

    Attributes:
        call: The model's call.
        args: What to execute with: validated, and as hooks left them. The model's own when they never were valid.
        settled: Set when the tool must not run.
        before_tool: What the agent-class hooks came to, which run first (C10); None when there was nothing to ask.
        decision: What the pre-hooks came to; None when they were skipped (P3).
        schema: The tool's schema, None when the call goes unvalidated.
        resumed: Whether the call was approved and comes again (P16); None outside approvals.
        hooks: The hooks as they were when the call began; it is theirs to its end (P18).
    """

    call: ToolCall
    args: object
    settled: ToolResult | None = None
    before_tool: Decision | None = None
    decision: Decision | None = None
    schema: Schema | None = field(default=None, repr=False)
    resumed: bool | None = None
    hooks: Snapshot | None = field(default=None, repr=False)

    @property
    def runs(self) -> bool:
        """Whether the tool is to be executed."""
        return self.settled is None

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided so far, in order."""
        return tuple(each for each in (self.before_tool, self.decision) if each is not None)

    @property
    def rewritten_by(self) -> tuple[str, ...]:
        """Hooks that changed the arguments, in order."""
        return tuple(hook for decision in self.decisions for hook in decision.rewritten_by)

    @property
    def appended(self) -> tuple[dict[str, object], ...]:
        """Messages that pre-hooks added."""
        return self.decision.appended if self.decision else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledCall:
    """A call from start to end.

    Attributes:
        gate: What stood before it.
        result: How it was settled, after the post-hooks.
        after_tool: What the agent-class hooks came to (C4); None when there was nothing to ask.
        post: What the post-hooks came to.
    """

    gate: Gate
    result: ToolResult
    after_tool: Decision | None = None
    post: Decision

    @property
    def content(self) -> object:
        """What the model sees: the result, or the error's message where no hook put a value in its place (P9)."""
        error = self.result.error
        return self.result.result if error is None or self.post.replaced_by is not None else error.message

    @property
    def metadata(self) -> Mapping[str, object]:
        """For the tool message and the ``tool.done`` event: ``replacedByHook`` after a pre-hook's result (P5)."""
        hook = self.gate.decision.replaced_by if self.gate.decision else None
        return {"replacedByHook": hook} if hook is not None else _NO_METADATA

    @property
    def appended(self) -> tuple[dict[str, object], ...]:
        """Messages that hooks added; they stand after the results of the whole batch of calls (P2)."""
        return (*self.gate.appended, *self.post.appended)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided, in the order of C10."""
        after = () if self.after_tool is None else (self.after_tool,)
        return (*self.gate.decisions, *after, self.post)

    @property
    def trace(self) -> tuple[TraceEntry, ...]:
        """What each hook did, in the order of C10."""
        return tuple(entry for decision in self.decisions for entry in decision.trace)

    def message(self) -> dict[str, object]:
        """The tool message that the model is sent: ``{role, toolCallId, name, content, metadata?}``."""
        content = self.content
        if not (is_list(content) and content and all(is_map(part) and "type" in part for part in content)):
            content = text_of(content)
        call = self.gate.call
        message: dict[str, object] = {"role": "tool", "toolCallId": call.id, "name": call.name, "content": content}
        if self.metadata:
            message["metadata"] = dict(self.metadata)
        return message
