"""An agent that defines its own ``run(input, ctx)`` owns the step (SEMANTICS C8): no agent-class hook fires.

Tool calls it makes through its context still pass P3: validation, pipeline hooks, rules, guardrails, middleware.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from hookcell.tool_result import ToolCall

from .agent_class import injected, slices_of
from .batch import Batch
from .tools import ToolOutput, call_host_code

if TYPE_CHECKING:
    from hookcell.history import History
    from hookcell.state import HookState

    from .agent import Agent
    from .turn import Turn

__all__ = ["StepContext", "run_step"]


class StepContext:
    """What a step of its own works with.

    The conversation is the step's to write: the engine adds neither the input nor the answer.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._calls = 0

    @property
    def state(self) -> HookState:
        """The run's state, live: ``history`` is the conversation (C7)."""
        return self._turn.run.state

    @property
    def history(self) -> History:
        """The conversation, live."""
        return self._turn.run.history

    @property
    def metadata(self) -> dict[str, object]:
        """The run's free bag, live."""
        return self._turn.run.metadata

    @property
    def data(self) -> Any:
        """The caller's own."""
        return self._turn.run.data

    def meta(self, notes: Mapping[str, object]) -> None:
        """Leave notes on the turn's result, merged shallowly (C7)."""
        self._turn.meta.update(notes)

    async def call_tool(self, name: str, args: Mapping[str, object]) -> ToolOutput:
        """Call one of the agent's tools through the whole of P3.

        A call that needs approval is refused: a step of Python cannot be kept while a human thinks.

        Raises:
            HookFailure: A hook failed under ``raise`` (P11).
        """
        self._calls += 1
        call = ToolCall(id=f"step_{self._calls}", name=name, args=dict(args))
        return await Batch(self._turn, [call], can_wait=False).run_alone()


async def run_step(agent: Agent, step: StepContext, content: str | list[dict[str, object]]) -> object:
    """Run the agent's own step; what it returns is the turn's output."""
    with injected(slices_of(agent.agent_class), step.state):
        return cast("object", await call_host_code(cast("Any", agent.own_run), content, step))
