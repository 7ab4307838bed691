"""C7: what a run keeps for agent-class hooks, in all three forms that they come in (see test_agent_class_rules.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pydantic
import pytest

from hookcell import HookContext, HookThrew, OutcomeInvalid
from hookcell.agent import (
    RunState,
    TurnResult,
    ask,
    state_slice,
)

from .looping import (
    DOWN,
    Loop,
    Scripted,
    calling,
    loop_with,
    watching,
)

# C7: what a run keeps.


WHERE = pytest.mark.parametrize("where", ["class", "host"])


def plain(where: str, agent_class: type) -> dict[str, Any]:
    """Arguments for `Loop`, for a hook that computes: as an agent class, or among the hooks."""
    return {"agent_class": agent_class} if where == "class" else {"hooks": [agent_class()]}


@WHERE
def test_C7_history_is_the_same_list_as_messages(where: str) -> None:
    """For a host's code the very same object, at every point; written out, for a script cannot compare."""
    histories: list[tuple[object, object]] = []

    class Acts:
        name = "acts"

        def before_prompt(self, _prompt: str, ctx: HookContext) -> None:
            histories.append((ctx.state.history, ctx.messages))

        def after_response(self, _response: str, ctx: HookContext) -> None:
            histories.append((ctx.messages, ctx.state["history"]))

    run = RunState()
    Loop(**plain(where, Acts)).send(state=run)
    assert [one is two is run.history for one, two in histories] == [True, True]


def test_C7_editing_the_history_edits_the_conversation(scripted: Scripted, form: str) -> None:
    """``history`` is the conversation itself: the model and the next hook see the edit."""
    added = {"role": "user", "content": "and quickly"}
    patch = [{"op": "add", "path": "/state/history/-", "value": added}]
    hook, loop = loop_with(scripted, form, {"before_prompt": {"patch": patch}, "after_response": None}, turns=["hello"])
    result = loop.send()
    assert loop.model.calls[0].messages[1:] == [{"role": "user", "content": "hi"}, added]
    assert hook.saw("messages")[1] == result.messages == [*loop.model.calls[0].messages[1:], result.messages[-1]]


@pytest.mark.parametrize("form", ["class", "host", "guest"])
@pytest.mark.parametrize("value", ["x", [{"role": "king", "content": "x"}], [{"role": "tool", "content": "x"}]])
def test_C7_the_history_keeps_the_rules_of_messages(scripted: Scripted, form: str, value: object) -> None:
    """It is the conversation, and P2's shape check holds for it."""
    patch = [{"op": "replace", "path": "/state/history", "value": value}]
    _, loop = loop_with(scripted, form, {"before_prompt": {"patch": patch}})
    with pytest.raises(OutcomeInvalid):
        loop.send()


def test_C7_G4_a_guest_has_the_history_only_if_it_receives_messages(scripted: Scripted) -> None:
    """And what it makes of the rest leaves the history alone (G4)."""
    patch = [{"op": "add", "path": "/state/seen", "value": True}]
    hook = scripted("guest", "acts", {"before_prompt": {"patch": patch}}, needs=["state"])
    run = RunState(state={"given": 1})
    Loop(hook, turns=["hello"]).send(state=run)
    assert hook.saw("state") == [{"given": 1}]
    assert {key: run.state[key] for key in run.state} == {"given": 1, "seen": True, "history": run.history}
    assert run.state.history is run.history
    assert len(run.history) == 2


def test_C7_any_other_key_is_free(scripted: Scripted, form: str) -> None:
    """Whatever JSON; a later hook of either kind sees it, and a later turn."""
    value = {"deep": [1, None, {"x": "y"}]}
    patch = [{"op": "add", "path": "/state/notes", "value": value}]
    hook, loop = loop_with(scripted, form, {"before_prompt": {"patch": patch}, "after_response": None})
    late = scripted("guest", "late", watching("after_response"))
    loop.agent.hooks.register(late)
    run = RunState(state={"given": 1})
    loop.send(state=run)
    assert [state["notes"] for state in (run.state, hook.saw("state")[1], late.saw("state")[0])] == [value] * 3
    assert (run.state.given, hook.saw("state")[0]["given"]) == (1, 1)


@WHERE
def test_C7_set_and_append(where: str) -> None:
    """``set(key, value)``, ``append(key, value)``: an absent list is made. ``history`` stays the conversation."""

    class Acts:
        name = "acts"

        def after_response(self, response: str, ctx: HookContext) -> None:
            ctx.state.set("history", ctx.state.history[:-1])
            ctx.state.append("history", {"role": "assistant", "content": "noted"})
            ctx.state.append("memory", response)
            ctx.state.set("rounds", ctx.state.get("rounds", 0) + 1)

    run = RunState()
    history = run.history
    loop = Loop(**plain(where, Acts), turns=["one", "two"])
    loop.send("1", state=run)
    loop.send("2", state=run)
    assert (run.state.memory, run.state.rounds) == (["one", "two"], 2)
    assert [message["content"] for message in run.history] == ["1", "noted", "2", "noted"]
    assert run.history is run.state.history is history


@WHERE
def test_C7_data_is_the_callers_and_read_only(where: str) -> None:
    """A hook has a copy: what it does to it is lost, and putting another in its place is an error."""

    class Acts:
        name = "acts"

        def before_prompt(self, prompt: str, ctx: HookContext) -> str:
            ctx.data["user"] = "eve"
            ctx.data["roles"].append("admin")
            return prompt

        def before_tool(self, _call: object, ctx: HookContext) -> None:
            assert ctx.data == {"user": "ada", "roles": []}
            ctx.data = {}

    data: dict[str, object] = {"user": "ada", "roles": []}
    with pytest.raises(HookThrew, match="'data' cannot be set at before_tool"):
        Loop(**plain(where, Acts)).send(data=data)
    assert data == {"user": "ada", "roles": []}


def test_C7_a_guest_cannot_patch_data(scripted: Scripted) -> None:
    """Read-only; a host hook has nothing to patch with, see above."""
    patch = [{"op": "replace", "path": "/data/user", "value": "eve"}]
    loop = Loop(scripted("guest", "acts", {"before_prompt": {"patch": patch}}))
    with pytest.raises(OutcomeInvalid):
        loop.send(data={"user": "ada"})


def test_C7_meta_is_merged_shallowly_into_the_result(scripted: Scripted, form: str, backend: str) -> None:
    """Over all points of the turn, its resume included; the next turn begins with none."""
    script = {
        "before_prompt": {"meta": {"a": {"x": 1}, "b": 1}},
        "before_tool": {"meta": {"a": {"y": 2}}},
        "after_response": {"meta": {"c": [3]}},
    }
    _, loop = loop_with(scripted, form, script, permissions=[ask("read")])

    async def main() -> TurnResult:
        paused = await loop.agent.send("hi")
        assert paused.pending is not None
        assert paused.meta == {"a": {"y": 2}, "b": 1}
        return await loop.agent.resume(paused.pending, {"c1": "approve"})

    result = anyio.run(main, backend=backend)
    assert result.meta == {"a": {"y": 2}, "b": 1, "c": [3]}


def test_C7_meta_that_on_error_leaves_is_on_the_result(scripted: Scripted, form: str) -> None:
    """It is write-only: the model and the state see nothing of it."""
    script = {"on_error": {"meta": {"failed": "ValueError"}, "replace": "sorry"}}
    _, loop = loop_with(scripted, form, script, turns=[DOWN])
    run = RunState()
    result = loop.send(state=run)
    assert (result.output, result.meta, list(run.state)) == ("sorry", {"failed": "ValueError"}, ["history"])


@WHERE
def test_C7_a_value_stored_on_the_context_is_kept_for_a_later_step(scripted: Scripted, where: str) -> None:
    """``ctx.approved = …``; a guest finds it in ``state``. A name that nobody stored is an AttributeError."""
    seen: list[object] = []

    class Acts:
        name = "acts"

        def before_prompt(self, _prompt: str, ctx: HookContext) -> None:
            seen.append(getattr(ctx, "approved", "nothing yet"))

        def after_tool(self, result: Mapping[str, object], ctx: HookContext) -> None:
            ctx.approved = result["output"] == "text"

        def after_response(self, _response: str, ctx: HookContext) -> None:
            seen.append(ctx.approved)

    guest = scripted("guest", "guest", watching("after_response"))
    loop = Loop(**plain(where, Acts), turns=[calling(), "one", "two"])
    loop.agent.hooks.register(guest)
    run = RunState()
    loop.send(state=run)
    loop.send(state=run)
    assert seen == ["nothing yet", True, True, True]
    assert [state["approved"] for state in guest.saw("state")] == [True, True]
    assert run.state.approved is True


ROUND = {"op": "add", "path": "/state/rounds", "value": 1}


def test_C7_all_of_it_lasts_as_long_as_the_run(scripted: Scripted, form: str) -> None:
    """Over several sends, and over two agents that share one `RunState`; another run sees nothing of it."""
    writes, writer = loop_with(scripted, form, {"before_prompt": {"patch": [ROUND]}}, turns=["one", "two", "three"])
    reads, reader = loop_with(scripted, form, watching("before_prompt"), turns=["seen", "seen"])
    run, data = RunState(data={"user": "ada"}, metadata={"seeded": 1}), {"user": "ada"}
    writer.send("1", state=run)
    reader.send("2", state=run)
    writer.send("3", state=run)
    assert [message["content"] for message in run.history] == ["1", "one", "2", "seen", "3", "two"]
    assert ["rounds" in state for state in writes.saw("state")] == [False, True]
    assert [state["rounds"] for state in reads.saw("state")] == [1]
    assert (reads.saw("data"), reads.saw("metadata")) == ([data], [{"seeded": 1}])
    assert [len(messages) for messages in reads.saw("messages")] == [3]
    writer.send("elsewhere", state=RunState())
    reader.send("elsewhere")
    assert ("rounds" in writes.saw("state")[-1], "rounds" in reads.saw("state")[-1]) == (False, False)
    assert run.state.rounds == 1


def test_C7_a_run_that_waits_for_approval_keeps_it(scripted: Scripted, form: str, backend: str) -> None:
    """It goes on in the run that the result has, with the conversation still the same list."""
    script = {"before_prompt": {"patch": [ROUND]}, "after_response": None}
    hook, loop = loop_with(scripted, form, script, permissions=[ask("read")])

    async def main() -> TurnResult:
        paused = await loop.agent.send("hi", data={"user": "ada"})
        assert paused.pending is not None
        return await loop.agent.resume(paused.pending, {"c1": "approve"})

    result = anyio.run(main, backend=backend)
    assert (hook.saw("state")[1]["rounds"], hook.saw("data")[1]) == (1, {"user": "ada"})
    assert result.state.state.rounds == 1
    assert result.state.state.history is result.state.history


class ReviewState(pydantic.BaseModel):
    """A typed slice of the state."""

    rounds: int = 0
    approved: bool = False


class Reviewer:
    """The seed's reviewer: it records its decision and returns nothing."""

    s = state_slice(ReviewState)

    def after_response(self, response: str, _ctx: object) -> None:
        self.s.rounds += 1
        self.s.approved = "APPROVED" in response


def test_C7_a_typed_slice_is_injected_and_kept_the_same_way() -> None:
    """▸ With its defaults where the state has none yet; two agents on one run share it, another run does not."""
    loop, other = Loop(agent_class=Reviewer, turns=["not yet", "no"]), Loop(agent_class=Reviewer, turns=["APPROVED"])
    run = RunState()
    assert loop.send(state=run).output == "not yet"
    assert run.state.reviewState == {"rounds": 1, "approved": False}
    other.send(state=run)
    assert run.state.reviewState == {"rounds": 2, "approved": True}
    assert loop.send().state.state.reviewState == {"rounds": 1, "approved": False}


def test_C7_a_guest_sees_a_typed_slice_as_json_and_may_change_it(scripted: Scripted) -> None:
    """▸ Kept the same way: it is a key of the state as any other."""
    patch = [{"op": "replace", "path": "/state/reviewState/rounds", "value": 10}]
    guest = scripted("guest", "guest", {"after_response": {"patch": patch}})
    loop = Loop(guest, agent_class=Reviewer, turns=["one", "two"])
    run = RunState()
    loop.send(state=run)
    loop.send(state=run)
    assert [state["reviewState"]["rounds"] for state in guest.saw("state")] == [1, 11]


def test_C7_a_typed_slice_may_be_a_dataclass_under_any_key() -> None:
    """▸ And may be set whole; a class inherits its parent's."""

    @dataclass
    class Tally:
        words: list[str] = field(default_factory=list)

    class Parent:
        tally = state_slice(Tally, key="said")

    class Child(Parent):
        def before_prompt(self, prompt: str, _ctx: object) -> str:
            self.tally.words.append("asked")
            return prompt

        async def after_response(self, response: str, _ctx: object) -> None:
            self.tally = Tally(words=[*self.tally.words, response])

    assert Loop(agent_class=Child, turns=["hello"]).send().state.state.said == {"words": ["asked", "hello"]}


def test_C7_two_runs_at_once_have_each_its_own_slice(backend: str) -> None:
    """▸ Of one agent and one object of its class, which holds nothing of any run."""
    both = anyio.Event()
    arrived: list[int] = []

    class Counts:
        s = state_slice(ReviewState)

        async def after_response(self, _response: str, _ctx: object) -> None:
            arrived.append(self.s.rounds)
            if len(arrived) == 2:
                both.set()
            await both.wait()
            self.s.rounds += 1

    loop = Loop(agent_class=Counts, turns=["one", "two"])
    runs = [RunState(state={"reviewState": {"rounds": rounds}}) for rounds in (0, 10)]

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for run in runs:
                group.start_soon(partial(loop.agent.send, "hi", state=run))

    anyio.run(main, backend=backend)
    assert sorted(arrived) == [0, 10]
    assert [run.state.reviewState["rounds"] for run in runs] == [1, 11]


def test_C7_what_a_hook_threw_keeps_nothing_of_its_slice() -> None:
    """▸ As with an outcome that is dropped."""

    class Throws:
        s = state_slice(ReviewState)

        def after_response(self, _response: str, _ctx: object) -> None:
            self.s.rounds = 99
            raise DOWN

    run = RunState(state={"reviewState": {"rounds": 1}})
    with pytest.raises(HookThrew):
        Loop(agent_class=Throws).send(state=run)
    assert run.state.reviewState == {"rounds": 1}


def test_C7_a_state_that_does_not_fit_the_slice_is_the_hooks_failure() -> None:
    """▸ Typed: nothing is guessed."""
    with pytest.raises(HookThrew) as caught:
        Loop(agent_class=Reviewer).send(state=RunState(state={"reviewState": {"rounds": "many"}}))
    assert caught.value.name == "ValidationError"


def test_C7_a_slice_is_there_only_while_a_hook_runs() -> None:
    """▸ Injected: outside of a run there is none."""
    reviewer = Reviewer()
    Loop(agent_class=reviewer).send()
    with pytest.raises(AttributeError, match="only while a hook of Reviewer runs"):
        _ = reviewer.s
    with pytest.raises(AttributeError, match="only while a hook of its class runs"):
        reviewer.s = ReviewState()
