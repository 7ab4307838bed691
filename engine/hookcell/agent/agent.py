"""The reference host loop's front door: `create_agent`, and what an agent can be asked (SEMANTICS, all of P and C)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, cast

from hookcell.budget import ChainLimits
from hookcell.hook import GuestHook, check_name
from hookcell.registry import HookRegistry, HookSource
from hookcell.storage import HookStorage, InMemoryStorage
from hookcell.values import copied

from .agent_class import agent_class_hook, own_run
from .approvals import Answer, Approvals, PendingApproval, check_answers
from .arrangement import Arrangement
from .entry import Paused
from .errors import ApprovalInvalid
from .events import Event, TurnDone
from .middleware import App
from .permissions import Permissions, Rule
from .result import TurnResult
from .run_state import RunState
from .stream import TurnStream
from .tools import Guardrail, Tool, define_tool
from .turn import Ended, Turn
from .watch import OnEvent, OnPermissionDecision, Watch

if TYPE_CHECKING:
    from hookcell.history import Message
    from hookcell.host_hook import AgentHook, HostHook

    from .compaction import Compaction
    from .models import Provider

__all__ = ["Agent", "create_agent"]

_TASK: Final = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with all that is needed to do it."}},
    "required": ["task"],
    "additionalProperties": False,
}

_APPROVALS: Final = Approvals()
"""Of agents that are given none: good in this process, while it lasts."""

Content = str | list[dict[str, object]]


class RunOptions(TypedDict, total=False):
    """What a turn works on.

    Attributes:
        state: The run to go on with; default: a fresh one of the options below.
        metadata: The fresh run's free bag.
        data: The caller's own, for agent-class hooks and tools.
        session_id: The fresh run's session.
    """

    state: RunState
    metadata: Mapping[str, object]
    data: object
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agent:
    """An agent, ready for turns; holds nothing of any run, so one serves all of them. Made by `create_agent`."""

    name: str
    description: str
    prompt: str
    provider: Provider = field(repr=False)
    tools: Mapping[str, Tool] = field(repr=False)
    sub_agents: Mapping[str, Agent] = field(repr=False)
    hooks: HookSource = field(repr=False)
    agent_class: object = field(repr=False)
    class_hook: HostHook | None = field(repr=False)
    own_run: Callable[..., Any] | None = field(repr=False)
    permissions: Permissions = field(repr=False)
    guardrails: tuple[Guardrail, ...] = field(repr=False)
    app: App = field(repr=False)
    request: Mapping[str, object] = field(repr=False)
    storage: HookStorage = field(repr=False)
    limits: ChainLimits = field(repr=False)
    compaction: Compaction | None = field(repr=False)
    approvals: Approvals = field(repr=False)
    on_event: OnEvent | None = field(repr=False)
    on_permission_decision: OnPermissionDecision | None = field(repr=False)
    max_steps: int
    max_depth: int

    async def send(self, content: Content, **options: Unpack[RunOptions]) -> TurnResult:
        """One turn.

        Args:
            content: What the user says: a text, or parts of a message (``[{"type": "text", "text": …}]``).
            options: See `RunOptions`.

        Returns:
            The answer; or, with ``pending`` set, the calls that wait for approval.

        Raises:
            HookFailure: A hook failed under ``raise`` (P11).
            RunBusy: The given run has another turn under way, or waits for approvals.
            StepLimitReached: The model went on calling tools.
            Exception: What the model, a middleware, a rule or a guardrail raised.
        """
        return await self._begin(_run(options), content, None)

    def stream(self, content: Content, **options: Unpack[RunOptions]) -> TurnStream:
        """The same turn, as an async iterator of its events; the last is `TurnDone`. Arguments and errors as `send`."""
        return TurnStream(partial(self._begin, _run(options), content))

    async def resume(self, pending: PendingApproval | str, answers: Mapping[str, Answer]) -> TurnResult:
        """Go on with a turn that waits for approvals, here or in another process (P16).

        Args:
            pending: What the paused turn gave, or its token.
            answers: ``"approve"``, ``"deny"`` or `Deny` for every pending call, by its id.

        Raises:
            ApprovalInvalid: The token is not of this agent, or a call has no answer. It can still be used.
            ApprovalUsed: It was used before.
            Exception: As `send`.
        """
        return await self._go_on(pending, answers, None)

    def resume_stream(self, pending: PendingApproval | str, answers: Mapping[str, Answer]) -> TurnStream:
        """The same, as an async iterator of its events. Arguments and errors as `resume`."""
        return TurnStream(partial(self._go_on, pending, answers))

    async def _begin(
        self, run: RunState, content: Content, stream: Callable[[Event], Awaitable[None]] | None
    ) -> TurnResult:
        turn = Turn(self, run, self._watch(stream), self.storage)
        with run.one_turn():
            return await self._result(turn, await turn.begin(content))

    async def _go_on(
        self,
        pending: PendingApproval | str,
        answers: Mapping[str, Answer],
        stream: Callable[[Event], Awaitable[None]] | None,
    ) -> TurnResult:
        token = pending if isinstance(pending, str) else pending.token
        contents = self.approvals.open(token)
        if contents["agent"] != self.name:
            raise ApprovalInvalid(f"the pending state is of agent {contents['agent']!r}, not of {self.name!r}")
        check_answers(answers, contents["calls"])
        await self.approvals.claim(token)
        run = RunState.restored(contents["turn"]["run"])
        turn = Turn(self, run, self._watch(stream), self.storage)
        with run.one_turn():
            return await self._result(turn, await turn.resume(contents["turn"], answers))

    async def _result(self, turn: Turn, end: Ended | Paused) -> TurnResult:
        pending: PendingApproval | None = None
        if isinstance(end, Paused):
            token = await self._sealed(turn, end)
            pending = PendingApproval(token=token, calls=end.calls)
        result = TurnResult(
            output=end.output if isinstance(end, Ended) else None,
            messages=cast("list[Message]", copied(list(turn.run.history))),
            usage=turn.usage,
            meta=turn.meta,
            decisions=tuple(turn.decisions),
            pending=pending,
            state=turn.run,
            error=end.error if isinstance(end, Ended) else None,
        )
        try:
            await turn.watch.emit(TurnDone(agent=self.name, result=result))
        except BaseException:
            turn.cut_short()  # cancelled before anybody had the token
            raise
        if pending is not None:
            turn.run.wait()
        return result

    async def _sealed(self, turn: Turn, end: Paused) -> str:
        """The token of a paused turn. A store that fails loses the turn, not the conversation."""
        try:
            calls = [call.id for call in end.calls]
            return await self.approvals.seal({"agent": self.name, "calls": calls, "turn": end.kept})
        except BaseException:
            turn.cut_short()
            raise

    def _watch(self, stream: Callable[[Event], Awaitable[None]] | None) -> Watch:
        return Watch(on_event=self.on_event, on_permission_decision=self.on_permission_decision, stream=stream)


def create_agent(
    *,
    provider: Provider,
    prompt: str = "",
    name: str = "agent",
    description: str = "",
    tools: Iterable[Tool] = (),
    hooks: HookRegistry | Iterable[AgentHook | GuestHook] = (),
    agent_class: object = None,
    permissions: Permissions | Iterable[Rule] | None = None,
    guardrails: Sequence[Guardrail] = (),
    sub_agents: Iterable[Agent] = (),
    app: App | None = None,
    request: Mapping[str, object] | None = None,
    storage: HookStorage | None = None,
    limits: ChainLimits | None = None,
    compaction: Compaction | None = None,
    approvals: Approvals | None = None,
    on_event: OnEvent | None = None,
    on_permission_decision: OnPermissionDecision | None = None,
    max_steps: int = 20,
    max_depth: int = 8,
) -> Agent:
    """Make an agent.

    Args:
        provider: The model.
        prompt: The system prompt.
        name: Who it is, in contexts, events and pending states; as a sub-agent, also the tool that calls it. A pending
            state is resumed by whatever agent has the name and the key: give agents that differ names of their own.
        description: As a sub-agent: what it is good for, for the lead's model.
        tools: What the model may call.
        hooks: Host hooks and guests, in order; a `HookRegistry` may change while the agent lives (P18).
        agent_class: An object, or a class to make one of, with some of ``before_prompt, before_tool, after_tool,
            after_response, on_error``, or with a ``run(input, ctx)`` of its own (C1, C8).
        permissions: Rules by `allow`, `ask` and `deny`; `Permissions` sets the default too. Sub-agents keep their own.
        guardrails: Checks of every tool call, before the tool's own (P3).
        sub_agents: Agents that the model may call like tools (P17).
        app: Middleware (C9). Sub-agents keep their own.
        request: First values of each model request: ``model``, ``temperature``, ``headers``…
        storage: Where guests keep their values (G3); default: this process's memory. Sub-agents use the lead's.
        limits: Ceilings of each chain of hooks (G8).
        compaction: When to compact the conversation; default: never (P14).
        approvals: How calls that wait for a human are sealed (P16); default: good in this process alone.
        on_event: Told of every event (P19). Of a sub-agent's turn the lead's listeners are told, not its own.
        on_permission_decision: Told of every permission decision.
        max_steps: Model calls of one turn.
        max_depth: Agents inside one another.

    Raises:
        ValueError: Two tools have one name, two hooks do that may not, or a name or number does not do.
        TypeError: As `HookRegistry.register`, or the agent class has a pipeline hook's method.
    """
    check_name(name)
    if max_steps < 1 or max_depth < 1:
        raise ValueError(f"max_steps is {max_steps} and max_depth {max_depth}; give 1 or more")
    if isinstance(agent_class, type):
        agent_class = cast("Callable[[], object]", agent_class)()
    class_hook = agent_class_hook(agent_class, name) if agent_class is not None else None
    registry = hooks if isinstance(hooks, HookRegistry) else HookRegistry(hooks)
    arrangement = Arrangement(registry, agent_class=class_hook)
    sub_agents = tuple(sub_agents)
    _check_names(arrangement, sub_agents)
    return Agent(
        name=name,
        description=description,
        prompt=prompt,
        provider=provider,
        tools=_tools([*tools, *map(_as_tool, sub_agents)]),
        sub_agents={agent.name: agent for agent in sub_agents},
        hooks=registry,
        agent_class=agent_class,
        class_hook=class_hook,
        own_run=own_run(agent_class),
        permissions=Permissions.of(permissions),
        guardrails=tuple(guardrails),
        app=App() if app is None else app,
        request=cast("dict[str, object]", copied(dict(request or {}))),
        # A storage that is empty may be false.
        storage=InMemoryStorage() if storage is None else storage,
        limits=ChainLimits() if limits is None else limits,
        compaction=compaction,
        approvals=_APPROVALS if approvals is None else approvals,
        on_event=on_event,
        on_permission_decision=on_permission_decision,
        max_steps=max_steps,
        max_depth=max_depth,
    )


def _check_names(hooks: Arrangement, sub_agents: Iterable[Agent]) -> None:
    """Have a hook's name that cannot be told now, not in the middle of a run: at every depth, as hooks are inherited.

    Raises:
        ValueError: As `Arrangement.snapshot`.
    """
    lead = hooks.inherited(hooks.snapshot())
    for agent in sub_agents:
        own = Arrangement(agent.hooks, lead=lead, agent_class=agent.class_hook)
        _check_names(own, agent.sub_agents.values())


def _run(options: RunOptions) -> RunState:
    """The run to work on.

    Raises:
        TypeError: A run was given, and things that it holds already.
    """
    fresh: dict[str, Any] = {**options}
    state = fresh.pop("state", None)
    if state is None:
        return RunState(**fresh)
    if fresh:
        raise TypeError(f"{', '.join(sorted(fresh))} belong to the run; give them to the RunState")
    return state


def _as_tool(agent: Agent) -> Tool:
    """A sub-agent as the lead's model sees it."""

    def never(_args: object) -> object:
        raise NotImplementedError("a sub-agent is run by the batch")

    return define_tool(agent.name, agent.description, input=_TASK, execute=never)


def _tools(tools: Iterable[Tool]) -> dict[str, Tool]:
    by_name: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in by_name:
            raise ValueError(f"two tools or sub-agents have the name {tool.name!r}; give one of them another")
        by_name[tool.name] = tool
    return by_name
