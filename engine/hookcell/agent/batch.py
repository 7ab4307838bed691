"""The tool calls of one model answer (SEMANTICS P3): gates one by one, executions in parallel, then hooks one by one.

A batch whose calls wait for approval is kept with what is known of each of its calls, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from hookcell.conversation import show_final_args
from hookcell.shapes import is_list, is_map
from hookcell.tool_result import Gate, ToolCall, ToolError, ToolResult
from hookcell.trace import Moment
from hookcell.values import copied
from hookcell_sandbox.guest_text import escape

from .approvals import Answer, Deny, PendingCall
from .entry import Entry, Paused
from .events import ApprovalRequired, ToolDone, ToolFailed, ToolStarted
from .execution import execute, run_all
from .tools import ToolOutput
from .verdicts import Verdicts

if TYPE_CHECKING:
    from hookcell.history import Message
    from hookcell.tool_result import SettledCall

    from .turn import Turn

__all__ = ["Batch"]

_DENIED_BY_HUMAN: Final = "The user denied this call."


class Batch:
    """The tool calls of one model answer.

    Args:
        turn: The turn that they belong to.
        calls: The calls, in the model's order.
        can_wait: Whether a call may wait for a human; otherwise one that would is refused.
    """

    def __init__(self, turn: Turn, calls: Iterable[ToolCall], *, can_wait: bool = True) -> None:
        self._turn = turn
        self._can_wait = can_wait
        self._verdicts = Verdicts(turn, can_wait=can_wait)
        self._entries = [Entry(call, Moment.of_now()) for call in calls]

    async def run(self) -> Paused | None:
        """Gate, execute and settle every call; None when all are in the conversation.

        Raises:
            HookFailure: A hook failed under ``raise`` (P11).
            Exception: The host's own code threw: a middleware, a rule, a guardrail.
        """
        for entry in self._entries:
            await self._gate(entry)
        return await self._go_on()

    async def resume(self, answers: Mapping[str, Answer]) -> Paused | None:
        """Go on with a restored batch once a human answered (P16).

        Raises:
            Exception: As `run`.
        """
        for entry in self._entries:
            if entry.settled:
                continue
            if entry.turn_kept is not None:
                entry.answer = "approve"
                entry.gate = self._trusted_gate(entry)
                continue
            entry.answer = answers[self._turn.path + entry.call.id]
            if entry.answer == "approve":
                entry.added.clear()  # the pre-hooks run again, and add again
                await self._gate(entry)
            else:
                reason = entry.answer.reason if isinstance(entry.answer, Deny) else ""
                error = ToolError(kind="denied", message=reason or _DENIED_BY_HUMAN)
                entry.gate = self._trusted_gate(entry, ToolResult(error=error, origin="denied"))
                await self._verdicts.tell(entry, entry.approved_args, "deny", "human", reason=reason)
        return await self._go_on(answers)

    async def run_alone(self) -> ToolOutput:
        """The one call of a batch that no model asked for: what it came to, and nothing in the conversation.

        Raises:
            Exception: As `run`.
        """
        (entry,) = self._entries
        await self._gate(entry)
        if cast("Gate", entry.gate).runs:
            await self._start(entry)
            await execute(self._turn, entry, {}, can_wait=False)
        settled = await self._settle(entry)
        self._turn.run.history.extend(entry.added)
        return ToolOutput(content=settled.content, is_error=settled.result.error is not None)

    @classmethod
    def restored(cls, turn: Turn, kept: Sequence[Mapping[str, Any]]) -> Batch:
        """The batch that was kept in a pending state."""
        batch = cls(turn, ())
        batch._entries = [Entry.restored(each) for each in kept]
        return batch

    async def _go_on(self, answers: Mapping[str, Answer] | None = None) -> Paused | None:
        running = [entry for entry in self._entries if entry.gate is not None and entry.gate.runs]
        for entry in running:
            if entry.turn_kept is None:
                await self._start(entry)
        await run_all(
            [partial(execute, self._turn, entry, answers or {}, can_wait=self._can_wait) for entry in running]
        )
        for entry in self._entries:
            if not entry.settled:
                await self._settle(entry)
        if not all(entry.settled for entry in self._entries):
            return self._pause()
        history = self._turn.run.history
        place = _after_call(history, self._entries[0].call.id)
        history[place:place] = [cast("dict[str, object]", entry.message) for entry in self._entries]
        history.extend(message for entry in self._entries for message in entry.added)  # after the whole batch (P2)
        return None

    async def _start(self, entry: Entry) -> None:
        args = cast("dict[str, object]", copied(cast("Gate", entry.gate).args))
        await self._turn.watch.emit(ToolStarted(**self._about(entry), args=args))

    async def _gate(self, entry: Entry) -> None:
        turn, call = self._turn, entry.call
        tool = turn.agent.tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(turn.agent.tools)) or "none"
            error = ToolError(kind="validation", message=f"there is no tool '{escape(call.name)}'; there is {known}")
            entry.gate = self._trusted_gate(entry, ToolResult(error=error, origin="validation"))
            return
        gate = await turn.pipeline.before_execution(
            call,
            schema=tool.schema,
            rules=partial(self._verdicts.ask, entry, tool),
            resumed=entry.answer is not None,
            moment=entry.moment,
        )
        entry.gate = gate
        turn.note(gate.decisions)
        if self._can_wait:
            show_final_args(turn.run.history, gate)  # a step of its own made the call: no message shows it (C8)
        if gate.decision is not None and gate.decision.denied_by is not None:
            hook, reason = gate.decision.denied_by, gate.decision.reason or ""
            await self._verdicts.tell(entry, gate.args, "deny", "hook", hook=hook, reason=reason)

    async def _settle(self, entry: Entry) -> SettledCall:
        turn, gate = self._turn, cast("Gate", entry.gate)
        settled = await turn.pipeline.after_execution(gate, entry.result, moment=entry.moment)
        turn.note(settled.decisions[len(gate.decisions) :])
        if settled.result.requires_approval:
            entry.added += settled.appended
            if entry.paused is None:
                entry.approved_args = gate.args
                args = cast("dict[str, object]", copied(gate.args))
                await turn.watch.emit(ApprovalRequired(**self._about(entry), args=args, reason=entry.reason))
            return settled
        entry.message = settled.message()
        entry.added += settled.appended
        await self._told(entry, settled)
        return settled

    async def _told(self, entry: Entry, settled: SettledCall) -> None:
        content, error = copied(settled.content), settled.result.error
        if error is not None:
            await self._turn.watch.emit(ToolFailed(**self._about(entry), error=error, content=content))
        else:
            hook = cast("str | None", settled.metadata.get("replacedByHook"))
            await self._turn.watch.emit(ToolDone(**self._about(entry), content=content, replaced_by_hook=hook))

    def _pause(self) -> Paused:
        """Keep the batch as it stands."""
        kept = [entry.kept(f"/calls/{index}") for index, entry in enumerate(self._entries)]
        calls: list[PendingCall] = []
        for entry in self._entries:
            if entry.paused is not None and not entry.settled:
                calls += entry.paused.calls
            elif not entry.settled:
                calls.append(self._pending(entry))
        return Paused(kept=self._turn.kept(kept), calls=tuple(calls))

    def _pending(self, entry: Entry) -> PendingCall:
        turn = self._turn
        return PendingCall(
            id=turn.path + entry.call.id,
            tool=entry.call.name,
            args=cast("dict[str, object]", copied(entry.approved_args)),
            agent=turn.agent.name,
            reason=entry.reason,
        )

    def _trusted_gate(self, entry: Entry, settled: ToolResult | None = None) -> Gate:
        """A gate without hooks: for a call that passed them before, or that there is no tool for."""
        turn = self._turn
        tool = turn.agent.tools.get(entry.call.name)
        args = entry.call.args if entry.answer is None else entry.approved_args
        return Gate(
            call=entry.call,
            args=copied(args),
            settled=settled,
            schema=tool.schema if tool else None,
            resumed=entry.answer is not None,
            hooks=turn.hooks.snapshot(),
        )

    def _about(self, entry: Entry) -> dict[str, Any]:
        turn = self._turn
        return {
            "agent": turn.agent.name,
            "depth": turn.depth,
            "call_id": turn.path + entry.call.id,
            "tool": entry.call.name,
        }


def _after_call(history: Sequence[Message], call_id: str) -> int:
    """Where a batch's results go: right after the message that made the calls, which a hook's own may follow (P12)."""
    for index in range(len(history) - 1, -1, -1):
        calls = history[index].get("toolCalls")
        if is_list(calls) and any(is_map(each) and each.get("id") == call_id for each in calls):
            return index + 1
    return len(history)
