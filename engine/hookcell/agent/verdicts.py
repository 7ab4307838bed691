"""What stands between the hooks and a call's execution: permission rules, guardrails, approval (P3, P15, P16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from hookcell.tool_result import ToolCall, ToolError, ToolResult
from hookcell.values import copied, same

from .events import PermissionDecision
from .tools import Tool, call_host_code

if TYPE_CHECKING:
    from .entry import Entry
    from .turn import Turn

__all__ = ["CANNOT_WAIT", "Verdicts"]

CANNOT_WAIT: Final = "the call needs approval, and an agent with a run of its own cannot wait for it"


class Verdicts:
    """The host's verdicts on the calls of a turn; each is told to whoever listens (P19).

    Args:
        turn: The turn.
        can_wait: Whether a call may wait for a human; otherwise one that would is refused.
    """

    def __init__(self, turn: Turn, *, can_wait: bool) -> None:
        self._turn = turn
        self._can_wait = can_wait

    async def ask(self, entry: Entry, tool: Tool, call: ToolCall, args: dict[str, object]) -> ToolResult | None:
        """Permission rules, guardrails and approval, in that order, on the arguments as hooks left them.

        Returns:
            None when the call may run, else how it is settled, or that it waits.
        """
        agent = self._turn.agent
        rule = agent.permissions.judge(call.name, args)
        if rule.effect == "deny":
            await self.tell(entry, args, "deny", "rule", reason=rule.reason)
            message = rule.reason or f"permission rules deny '{call.name}'"
            return ToolResult(error=ToolError(kind="denied", message=message), origin="denied")
        for guardrail in (*agent.guardrails, *tool.guardrails):
            reason = await call_host_code(guardrail, call, copied(args))
            if reason is not None:
                if not isinstance(reason, str):
                    raise TypeError(f"a guardrail returns a reason or None, not {type(reason).__name__}")
                return await self._refused(entry, args, "guardrail", reason)
        if entry.answer is not None:
            # Whatever the rules say by now, what runs is what the human saw (P16).
            if not same(args, entry.approved_args):
                return await self._refused(entry, args, "human", "the arguments are not those that were approved")
            await self.tell(entry, args, "allow", "human")
            return None
        asks = tool.needs_approval
        if not isinstance(asks, bool):
            asks = bool(await call_host_code(asks, tool.given(args)))
        if rule.effect != "ask" and not asks:
            await self.tell(entry, args, "allow", "rule")
            return None
        source = "rule" if rule.effect == "ask" else "tool"
        if not self._can_wait:
            return await self._refused(entry, args, source, CANNOT_WAIT)
        entry.reason = rule.reason
        await self.tell(entry, args, "ask", source, reason=rule.reason)
        return ToolResult(requires_approval=True, origin="approval")

    async def _refused(self, entry: Entry, args: object, source: Any, reason: str) -> ToolResult:
        await self.tell(entry, args, "deny", source, reason=reason)
        return ToolResult(error=ToolError(kind="refused", message=reason), origin="refused")

    async def tell(
        self, entry: Entry, args: object, decision: Any, source: Any, *, hook: str | None = None, reason: str = ""
    ) -> None:
        """Tell of a decision."""
        await self._turn.watch.decided(
            PermissionDecision(
                agent=self._turn.agent.name,
                call_id=self._turn.path + entry.call.id,
                tool=entry.call.name,
                args=cast("dict[str, object]", copied(args)),
                decision=decision,
                source=source,
                hook=hook,
                reason=reason,
            )
        )
