"""Running the tools of a batch: inside middleware, in parallel, and sub-agents as tools (SEMANTICS P3, P17, C9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import anyio

from hookcell.errors import HookFailure, exceptions_in
from hookcell.tool_result import Gate, ToolError, ToolResult, text_of

from .entry import Entry, Paused
from .middleware import ToolRun
from .run_state import RunState
from .tools import ToolContext, ToolOutput, json_value, run_tool
from .verdicts import CANNOT_WAIT

if TYPE_CHECKING:
    from .approvals import Answer
    from .turn import Turn

__all__ = ["execute", "run_all"]


class _SubAgentPaused(BaseException):
    """Carries a sub-agent's pause past middleware that catches exceptions: it is none (C6)."""

    def __init__(self, paused: Paused) -> None:
        self.paused = paused


async def execute(turn: Turn, entry: Entry, answers: Mapping[str, Answer], *, can_wait: bool) -> None:
    """Run a call's tool inside the app's middleware, and note in the entry what came of it.

    Raises:
        HookFailure: A hook of a sub-agent's failed under ``raise`` (P11).
        Exception: A middleware threw.
    """
    gate = cast("Gate", entry.gate)
    args = cast("dict[str, object]", gate.args)
    run = ToolRun(
        call_id=entry.call.id,
        name=entry.call.name,
        args=args,
        agent_name=turn.agent.name,
        session_id=turn.run.session_id,
    )
    try:
        output = await turn.agent.app.run_tool(run, partial(_run_tool, turn, entry, args, answers))
    except (_SubAgentPaused, BaseExceptionGroup) as error:
        paused = _pause_in(error)
        if paused is None:
            raise
        if not can_wait:
            entry.result = ToolResult(error=ToolError(kind="refused", message=CANNOT_WAIT), origin="refused")
            return
        entry.paused = paused
        entry.result = ToolResult(requires_approval=True, origin="approval")
        return
    try:
        content = json_value(output.content)  # a middleware's own answer was checked by nobody yet
    except ValueError as error:
        entry.result = ToolResult(error=ToolError.of_exception(error))
        return
    if output.is_error:
        entry.result = ToolResult(error=ToolError(kind="tool", message=text_of(content)))
    else:
        entry.result = ToolResult(result=content)


async def _run_tool(turn: Turn, entry: Entry, args: Mapping[str, object], answers: Mapping[str, Answer]) -> ToolOutput:
    """The innermost layer: what the tool throws is an answer to the model, and only that."""
    try:
        sub_agent = turn.agent.sub_agents.get(entry.call.name)
        if sub_agent is None and entry.turn_kept is not None:
            return ToolOutput(content=f"sub-agent '{entry.call.name}' is not there any more", is_error=True)
        if sub_agent is not None:
            return ToolOutput(content=json_value(await _run_sub_agent(turn, entry, args, answers)))
        context = ToolContext(
            call_id=entry.call.id,
            agent_name=turn.agent.name,
            session_id=turn.run.session_id,
            metadata=turn.run.metadata,
            data=turn.run.data,
        )
        return await run_tool(turn.agent.tools[entry.call.name], args, context)
    except Exception as error:
        if any(isinstance(each, HookFailure) for each in exceptions_in(error)):
            raise  # a hook inside a sub-agent, or an agent that the tool runs, rejects the run too (P11)
        return ToolOutput(content=ToolError.of_exception(error).message, is_error=True)


async def _run_sub_agent(turn: Turn, entry: Entry, args: Mapping[str, object], answers: Mapping[str, Answer]) -> object:
    """A turn of a sub-agent, under this agent's pipeline hooks as they were when the call began (P17, P18)."""
    from .turn import Turn

    # Once: a middleware that asks again starts the sub-agent anew, and what was approved does not run twice.
    kept, entry.turn_kept = entry.turn_kept, None
    hooks = cast("Gate", entry.gate).hooks or turn.hooks.snapshot()
    agent = turn.agent.sub_agents[entry.call.name]
    depth = turn.depth + 1
    sub = Turn(
        agent,
        turn.run.for_sub_agent() if kept is None else RunState.restored(kept["run"]),
        turn.watch,
        turn.storage,
        lead=turn.hooks.inherited(hooks),
        subagent={"agentId": agent.name, "agentName": agent.name, "depth": depth, "parent": turn.agent.name},
        depth=depth,
        path=f"{turn.path}{entry.call.id}/",
    )
    try:
        ended = await (sub.begin(str(args["task"])) if kept is None else sub.resume(kept, answers))
    finally:
        turn.absorb(sub)
    if isinstance(ended, Paused):
        raise _SubAgentPaused(ended)
    return ended.output


def _pause_in(error: BaseException) -> Paused | None:
    """The pause that comes out of middleware: as it is, or in the groups of task groups that were open round it."""
    raised = exceptions_in(error)
    paused = raised[0]
    return paused.paused if len(raised) == 1 and isinstance(paused, _SubAgentPaused) else None


async def run_all(jobs: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Run jobs at the same time; the first exception cancels the others and is raised as it is, in no group."""
    if len(jobs) == 1:
        await jobs[0]()
        return
    failed: list[BaseException] = []

    async def guarded(job: Callable[[], Awaitable[None]], group: anyio.abc.TaskGroup) -> None:
        try:
            await job()
        except BaseException as error:
            failed.append(error)
            group.cancel_scope.cancel()
            if isinstance(error, anyio.get_cancelled_exc_class()):
                raise  # the group is to know; one that a tool raised by itself would end here, and its call with it

    async with anyio.create_task_group() as group:
        for job in jobs:
            group.start_soon(guarded, job, group)
    if failed:
        raise failed[0]
