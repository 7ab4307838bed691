"""Drive a recorded run through hooks as if it were happening now.

Each assistant message is a model call: `pre_generate` before it, `post_generate` after. Its tool calls go through
`pre_tool_call` one after the other, then their recorded results through `post_tool_call` (P3). What hooks make of the
conversation stays in it: later hooks see redacted results, denied calls and rewritten arguments as in a live run. What
cannot be had from a recording stays as recorded: the model's answers, and the tools' results even where a hook rewrote
the arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from hookcell.chain import run_point_sync
from hookcell.context import RunFacts
from hookcell.conversation import add_results, show_final_args
from hookcell.errors import HookFailure
from hookcell.history import History
from hookcell.outcomes import ABSENT
from hookcell.storage import InMemoryStorage, StorageKey, Stored
from hookcell.tool_call import SettledCall, ToolCall, ToolPipeline, ToolResult
from hookcell.trace import Moment

if TYPE_CHECKING:
    from hookcell.registry import Snapshot
    from hookcell.schemas import Schema
    from hookcell.tool_call import Gate
    from hookcell.trace import Decision, TraceEntry

    from .openai_dialect import RecordedCall, RecordedRun, Turn

__all__ = ["REPLAYED_POINTS", "Replay", "Step"]

REPLAYED_POINTS: Final = ("pre_generate", "post_generate", "pre_tool_call", "post_tool_call")
"""What an OpenAI chat history has something for. The agent-class points come from an agent of the engine's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One point of a replayed run.

    Attributes:
        run: The run.
        index: The assistant message's index in the record.
        point: The hook point.
        call: The model's call, at the tool points.
        gate: What stood before the call's execution, at `pre_tool_call`.
        decision: What the hooks came to; None when they were skipped (P3) or one failed.
        failure: A failure that rejected the run, or the host's `ContextInvalid`; the run ends here.
        before: Arguments or result as recorded; `ABSENT` at the generate points.
        after: The same after the hooks.
    """

    run: RecordedRun
    index: int
    point: str
    call: ToolCall | None = None
    gate: Gate | None = None
    decision: Decision | None = None
    failure: HookFailure | None = None
    before: object = ABSENT
    after: object = ABSENT

    @property
    def trace(self) -> tuple[TraceEntry, ...]:
        """What each hook did."""
        if self.failure is not None:
            return self.failure.trace
        return self.decision.trace if self.decision is not None else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What all runs of one replay have in common.

    Attributes:
        hooks: The hooks, in order.
        schemas: By tool name; a tool without one goes unvalidated.
        now: The time that hooks are given, milliseconds since the epoch: one for all, so that runs can be compared.
        shared: Storage of scope ``hook``, which outlives a run (G3).
    """

    hooks: Snapshot
    schemas: Mapping[str, Schema] = field(default_factory=dict[str, "Schema"])
    now: int = 0
    shared: InMemoryStorage = field(default_factory=InMemoryStorage)

    def steps(self, run: RecordedRun) -> Iterator[Step]:
        """Each point of the run, once its hooks were run."""
        return _Replayed(self, run).steps()


class _RunStorage:
    """Scopes ``run`` and ``session`` end with the run, which is a session of its own here (G3)."""

    def __init__(self, shared: InMemoryStorage) -> None:
        self._shared = shared
        self._own = InMemoryStorage()

    def get(self, key: StorageKey, /) -> Stored:
        return self._of(key).get(key)

    def compare_and_set(self, key: StorageKey, revision: int, value: bytes | None, /) -> bool:
        return self._of(key).compare_and_set(key, revision, value)

    def _of(self, key: StorageKey) -> InMemoryStorage:
        return self._shared if key.scope == "hook" else self._own


class _Replayed:
    """One run on its way: the conversation as it stands."""

    def __init__(self, replay: Replay, run: RecordedRun) -> None:
        self._replay = replay
        self._run = run
        self._history = History()
        self._facts = RunFacts(messages=self._history, agent_id="replay", session_id=run.run_id, run_id=run.run_id)
        self._storage = _RunStorage(replay.shared)
        self._pipeline = ToolPipeline(hooks=replay.hooks, run=self._facts, storage=self._storage)
        self._count = 0

    def steps(self) -> Iterator[Step]:
        for turn in self._run.turns:
            for step in self._turn(turn):
                yield step
                if step.failure is not None:
                    return

    def _turn(self, turn: Turn) -> Iterator[Step]:
        self._history.extend(dict(message) for message in turn.before)
        request = dict(self._run.request)
        yield self._generate(turn, "pre_generate", {"request": request})
        self._history.append(dict(turn.message))
        yield self._generate(turn, "post_generate", {"request": dict(request), "result": {"message": turn.message}})
        gates: list[tuple[RecordedCall, Gate]] = []
        for recorded in turn.calls:
            step = self._before(turn, recorded)
            yield step
            if step.gate is not None:
                gates.append((recorded, step.gate))
        batch: list[SettledCall] = []
        for recorded, gate in gates:
            if gate.runs and recorded.answer is None:
                continue  # nothing is known of how it ended
            step, settled = self._after(turn, recorded, gate)
            yield step
            if settled is not None:
                batch.append(settled)
        add_results(self._history, batch)

    def _generate(self, turn: Turn, point: str, own: Mapping[str, object]) -> Step:
        # A recording does not say whether it was streamed, so hooks are not told so and may not emit (P13).
        step = Step(run=self._run, index=turn.index, point=point)
        if not self._replay.hooks.at(point):
            return step
        try:
            decision = run_point_sync(
                self._replay.hooks,
                point,
                self._facts.context(own),
                run=self._facts,
                storage=self._storage,
                moment=self._moment(),
            )
        except HookFailure as failure:
            return replace(step, failure=failure)
        return replace(step, decision=decision)

    def _before(self, turn: Turn, recorded: RecordedCall) -> Step:
        call = recorded.call
        step = Step(run=self._run, index=turn.index, point="pre_tool_call", call=call, before=call.args)
        schema = self._replay.schemas.get(call.name)
        try:
            gate = self._pipeline.before_execution_sync(call, schema=schema, moment=self._moment())
        except HookFailure as failure:
            return replace(step, failure=failure)
        show_final_args(self._history, gate)
        return replace(step, gate=gate, decision=gate.decision, after=gate.args)

    def _after(self, turn: Turn, recorded: RecordedCall, gate: Gate) -> tuple[Step, SettledCall | None]:
        answer = recorded.answer
        result = ToolResult(result=answer["content"]) if gate.runs and answer is not None else None
        before = result.result if result is not None else ABSENT
        step = Step(run=self._run, index=turn.index, point="post_tool_call", call=recorded.call, before=before)
        try:
            settled = self._pipeline.after_execution_sync(gate, result, moment=self._moment())
        except HookFailure as failure:
            return replace(step, failure=failure), None
        return replace(step, decision=settled.post, after=settled.content), settled

    def _moment(self) -> Moment:
        """The same for the same run each time it is replayed at one ``now``: 53 bits of a hash of where it is."""
        self._count += 1
        place = f"{self._run.run_id}\n{self._count}".encode(errors="surrogatepass")
        seed = int.from_bytes(hashlib.sha256(place).digest()[:7]) >> 3
        return Moment(now=self._replay.now, seed=seed)
