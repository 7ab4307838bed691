"""Sub-agents, P17: the lead's hooks round their calls, their pending calls, and where agents inside agents end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from hookcell import ABSENT, HookRecursion, HookRegistry, HookThrew
from hookcell.agent import (
    Agent,
    Approvals,
    ApprovalUsed,
    Deny,
    DepthExceeded,
    InMemoryApprovals,
    RunState,
    ToolDone,
    ask,
    create_agent,
    define_tool,
    mock_model,
)

from .driving import FILLED, SCHEMA
from .elsewhere import KEY
from .looping import CALL, METHODS, THROW, Scripted, calling, watching
from .watched import Story, Watched, results, shapes

PIPELINE = ["pre_tool_call", "post_tool_call", "pre_generate", "post_generate"]
ASKING = {"id": "s1", "name": "sub", "args": {"task": "look into it"}}
INSIDE = {"agentId": "sub", "agentName": "sub", "depth": 1, "parent": "acts"}


class Team:
    """A lead agent and its sub-agent ``sub``, which has the tool ``read`` and calls it once.

    Args:
        hooks: The lead's.
        own: The sub-agent's.
        turns: What the sub-agent's model says.
        lead_turns: What the lead's says: by default it calls the sub-agent once.
        sub: Further options of the sub-agent.
        lead: Of the lead.
    """

    def __init__(
        self,
        *hooks: Any,
        own: Any = (),
        turns: Any = None,
        lead_turns: Any = None,
        sub: Any = None,
        lead: Any = None,
    ) -> None:
        self.executed: list[Any] = []

        async def execute(args: Any) -> str:
            self.executed.append(args)
            return "text"

        self.model = mock_model([calling(), "done"] if turns is None else turns)
        self.sub = create_agent(
            **{
                "name": "sub",
                "prompt": "you help",
                "provider": self.model,
                "tools": [define_tool("read", input=SCHEMA.document, execute=execute)],
                "hooks": own,
                **(sub or {}),
            }
        )
        turns = [calling(ASKING), "hello"] if lead_turns is None else lead_turns
        self.loop = Watched(*hooks, turns=turns, sub_agents=[self.sub], **(lead or {}))


# Inheritance.


def test_P17_the_leads_pipeline_hooks_go_round_a_sub_agents_calls(scripted: Scripted, kind: str, backend: str) -> None:
    """Public report (c): a sub-agent's tool call passes the lead's hooks, as do its model calls. ``subagent`` is set
    only there."""
    hook = scripted(kind, "lead", watching(*PIPELINE))
    team = Team(hook)
    result = team.loop.send(backend=backend)
    assert results(result) == [("s1", "done")]
    around = ["pre_generate", "post_generate"]
    inside = [*around, "pre_tool_call", "post_tool_call", *around]
    assert hook.called_at == [*around, "pre_tool_call", *inside, "post_tool_call", *around]
    assert hook.saw("subagent") == [*[ABSENT] * 3, *[INSIDE] * 6, *[ABSENT] * 3]
    assert hook.saw("agentName") == [*["acts"] * 3, *["sub"] * 6, *["acts"] * 3]
    assert [hook.saw("toolName")[at] for at in (2, 5, 6, 9)] == ["sub", "read", "read", "sub"]
    # Each agent's own conversation.
    assert hook.saw("messages")[3] == [{"role": "user", "content": "look into it"}]


OUTCOMES: dict[str, tuple[Any, Any, Any]] = {
    "deny": ({"deny": "not here"}, [], "not here"),
    "result": ({"result": "cached"}, [], "cached"),
    "input": ({"input": {"path": "b.txt", "lines": 1}}, [{"path": "b.txt", "lines": 1}], "text"),
    "invalid": ({"input": {"path": 1}}, [], "hook 'lead' gave arguments that do not fit the schema of 'read' at /path"),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_P17_their_outcomes_count_there(scripted: Scripted, kind: str, case: str) -> None:
    outcome, executed, content = OUTCOMES[case]
    team = Team(scripted(kind, "lead", {"pre_tool_call/read": outcome}))
    result = team.loop.send()
    assert team.executed == executed
    assert str(team.model.calls[1].messages[-1]["content"]).startswith(content)
    assert results(result) == [("s1", "done")]


def test_P17_a_failure_in_a_sub_agent_rejects_the_whole_run(scripted: Scripted, kind: str, backend: str) -> None:
    """P11: it never becomes the result of the lead's call, whose agent it is. Under ``deny`` it stays where it was."""
    run = RunState()
    team = Team(scripted(kind, "lead", {"pre_tool_call/read": THROW}))
    with pytest.raises(HookThrew):
        team.loop.send(state=run, backend=backend)
    assert shapes(run.history) == ["user", "assistant", "tool s1"]
    assert len(team.loop.model.calls) == 1
    closed = Team(scripted(kind, "lead", {"pre_tool_call/read": THROW}, on_failure="deny"))
    result = closed.loop.send(backend=backend)
    assert closed.model.calls[1].messages[-1]["content"] == "hook 'lead' failed at pre_tool_call (threw)"
    assert (results(result), [failure.policy for failure in result.failures]) == ([("s1", "done")], ["deny"])


def test_P17_agent_class_hooks_belong_to_their_class_alone(scripted: Scripted, kind: str) -> None:
    """Neither the lead's nor the sub-agent's fire in the other; as hooks in the list, and as a class."""
    lead, sub = scripted(kind, "lead", watching(*METHODS)), scripted(kind, "own", watching(*METHODS))
    Team(lead, own=[sub]).loop.send()
    assert lead.saw("agentName") == ["acts"] * 4
    assert sub.saw("agentName") == ["sub"] * 4
    assert lead.saw("subagent") == [ABSENT] * 4
    assert sub.saw("subagent") == [INSIDE] * 4
    one, other = scripted("host", "one", watching(*METHODS)), scripted("host", "other", watching(*METHODS))
    Team(lead={"agent_class": one.implementation}, sub={"agent_class": other.implementation}).loop.send()
    assert one.saw("agentName") == ["acts"] * 4
    assert other.saw("agentName") == ["sub"] * 4


def test_P17_agent_class_hooks_of_one_name_do_not_meet(scripted: Scripted, kind: str) -> None:
    """What is not inherited stands in nobody's way: two of one name, or one hook of both agents."""
    lead, own = scripted(kind, "same", watching(*METHODS)), scripted(kind, "same", watching(*METHODS))
    Team(lead, own=[own]).loop.send()
    assert (lead.saw("agentName"), own.saw("agentName")) == (["acts"] * 4, ["sub"] * 4)
    shared = scripted(kind, "shared", watching("before_prompt"))
    Team(shared, own=[shared]).loop.send()
    assert shared.saw("agentName") == ["acts", "sub"]


def test_P17_of_a_hook_of_both_families_the_pipeline_half_is_inherited(scripted: Scripted, kind: str) -> None:
    hook = scripted(kind, "both", watching("pre_tool_call", "before_tool", "before_prompt"))
    Team(hook).loop.send()
    inside = [point for point, context in hook.seen if "subagent" in context]
    assert inside == ["pre_tool_call"]


def test_P17_the_leads_hooks_come_before_the_sub_agents_own(scripted: Scripted, kind: str) -> None:
    """▸ So what the lead decides, a sub-agent's hook comes too late for."""
    lead = scripted(kind, "lead", {"pre_tool_call/read": {"input": {"path": "b"}}, "post_tool_call": None})
    own = scripted(kind, "own", watching("pre_tool_call", "post_tool_call"))
    story = Story(lead, own)
    Team(lead, own=[own]).loop.send()
    inside = ["lead pre_tool_call c1", "own pre_tool_call c1", "lead post_tool_call c1", "own post_tool_call c1"]
    assert story.lines == ["lead pre_tool_call s1", *inside, "lead post_tool_call s1"]
    assert own.saw("args") == [{"path": "b", "lines": 20}] * 2
    denied = scripted(kind, "own", {"pre_tool_call": {"result": "mine"}})
    team = Team(scripted(kind, "lead", {"pre_tool_call/read": {"deny": "no"}}), own=[denied])
    team.loop.send()
    assert (denied.seen, team.model.calls[1].messages[-1]["content"]) == ([], "no")


@pytest.mark.parametrize("own_kind", ["host", "guest"])
def test_P17_they_cannot_be_replaced_by_one_of_the_same_name(scripted: Scripted, kind: str, own_kind: str) -> None:
    """▸ Told when the agents are made; with a hook that comes later, the sub-agent cannot be called."""
    hook = scripted(kind, "guard", {"pre_tool_call/read": {"deny": "no"}})
    with pytest.raises(ValueError, match="'guard' has the name of one of the lead agent's"):
        Team(hook, own=[scripted(own_kind, "guard", watching("pre_tool_call"))])
    own = HookRegistry()
    team = Team(hook, own=own)
    own.register(scripted(own_kind, "guard", watching("pre_tool_call")))
    ((_, content),) = results(team.loop.send())
    assert "'guard' has the name of one of the lead agent's" in str(content)
    assert (team.model.calls, team.executed) == ([], [])


def test_P17_a_hook_of_both_agents_runs_once(scripted: Scripted, kind: str) -> None:
    """▸ One that the host gave to both is the lead's there: nothing is replaced, and nothing happens twice."""
    hook = scripted(kind, "audit", watching("pre_tool_call"))
    given = hook if kind == "guest" else hook.implementation
    Team(given, own=[given]).loop.send()
    assert hook.saw("toolCallId") == ["s1", "c1"]
    assert hook.saw("subagent") == [ABSENT, INSIDE]


def test_P17_the_sub_agents_own_hooks_stay_inside(scripted: Scripted, kind: str) -> None:
    own = scripted(kind, "own", watching(*PIPELINE))
    Team(own=[own]).loop.send()
    assert own.saw("subagent") == [INSIDE] * 6
    assert [each for each in own.saw("toolCallId") if each is not ABSENT] == ["c1", "c1"]


def test_P17_hooks_are_inherited_as_they_were_when_the_call_began(scripted: Scripted, kind: str) -> None:
    """P18: what is registered or removed while the sub-agent runs counts for the next call."""
    guard = scripted(kind, "guard", {"pre_tool_call/read": {"deny": "no"}})
    hooks = HookRegistry([guard])
    drop = SimpleNamespace(name="drop", pre_generate=lambda ctx: hooks.clear())
    team = Team(own=[drop], lead={"hooks": hooks})
    team.loop.send()
    assert (team.executed, len(hooks), len(guard.seen)) == ([], 0, 2)


def test_P17_the_metadata_is_copied_into_it(scripted: Scripted, kind: str) -> None:
    """Shapes: copied into sub-agents, so what hooks write there stays there; session and storage are the run's."""
    lead = scripted(kind, "lead", watching("pre_tool_call"))
    write = {"patch": [{"op": "add", "path": "/metadata/bag/inner", "value": 1}]}
    own = scripted(kind, "own", {"pre_tool_call": write})
    run = RunState(metadata={"bag": {"outer": 1}}, session_id="s")
    team = Team(lead, own=[own], lead_turns=[calling(ASKING), calling({**ASKING, "id": "s2"}), "hello"],
                turns=[calling(), "done", "done"])  # fmt: skip
    team.loop.send(state=run)
    assert lead.saw("metadata") == [{"bag": {"outer": 1}}] * 3
    assert own.saw("metadata") == [{"bag": {"outer": 1}}]
    assert (run.metadata, own.saw("sessionId")) == ({"bag": {"outer": 1}}, ["s"])


def test_P17_a_guests_storage_of_the_run_goes_along(scripted: Scripted) -> None:
    """The lead's storage is used: a guest counts over both agents. Guests alone have storage."""
    counter = scripted("guest", "counter", {"pre_tool_call": {"storage": 1}}, storage="run")
    Team(counter).loop.send()
    assert counter.saw("storage") == [None, 1]


def chain_of(depth: int, hook: Any, *, most: int, rules: Any = ()) -> Watched:
    """A lead with a sub-agent with a sub-agent and so on, the innermost with ``read`` and these rules."""
    agent: Agent | None = None
    for level in range(depth, 0, -1):
        call = {"id": f"to{level + 1}", "name": f"a{level + 1}", "args": {"task": "go"}}
        inner = calling() if agent is None else calling(call)
        read = define_tool("read", input=SCHEMA.document, execute=lambda _: "text")
        agent = create_agent(
            name=f"a{level}",
            provider=mock_model([inner, f"done {level}"]),
            tools=[read] if agent is None else [],
            sub_agents=[agent] if agent is not None else [],
            permissions=rules,
        )
    turns = [calling({"id": "to1", "name": "a1", "args": {"task": "go"}}), "hello"]
    return Watched(hook, turns=turns, sub_agents=[agent], max_depth=most)


def test_P17_it_holds_at_every_depth(scripted: Scripted, kind: str, backend: str) -> None:
    hook = scripted(kind, "lead", watching("pre_tool_call"))
    loop = chain_of(3, hook, most=4)
    assert loop.send(backend=backend).output == "hello"
    top, *inside = hook.saw("subagent")
    assert top is ABSENT
    assert [(each["agentId"], each["depth"], each["parent"]) for each in inside] == [
        ("a1", 1, "acts"),
        ("a2", 2, "a1"),
        ("a3", 3, "a2"),
    ]
    assert hook.saw("toolCallId") == ["to1", "to2", "to3", "c1"]
    done = [(event.agent, event.depth, event.call_id) for event in loop.events if isinstance(event, ToolDone)]
    assert done == [
        ("a3", 3, "to1/to2/to3/c1"),
        ("a2", 2, "to1/to2/to3"),
        ("a1", 1, "to1/to2"),
        ("acts", 0, "to1"),
    ]


# Pending calls.


def test_P17_a_sub_agents_pending_calls_are_the_leads(scripted: Scripted, kind: str, backend: str) -> None:
    """▸ The lead's turn waits, shows them with the way to them, and goes on where the sub-agent stopped."""
    hook = scripted(kind, "lead", {"pre_tool_call/read": {"input": {"path": "b"}}, "post_tool_call": None})
    team = Team(hook, sub={"permissions": [ask("read", reason="it reads")]})
    paused = team.loop.send(backend=backend)
    assert paused.pending is not None
    (call,) = paused.pending.calls
    assert (call.id, call.tool, call.agent, call.reason) == ("s1/c1", "read", "sub", "it reads")
    assert call.args == {"path": "b", "lines": 20}
    assert (paused.output, team.executed) == (None, [])
    result = team.loop.resume(paused.pending, "approve", backend=backend)
    assert (result.output, results(result)) == ("hello", [("s1", "done")])
    assert team.executed == [{"path": "b", "lines": 20}]
    of_inner = [
        (point, context.get("origin"), context["resumed"])
        for point, context in hook.seen
        if context["toolCallId"] == "c1"
    ]
    assert of_inner == [
        ("pre_tool_call", None, False),
        ("post_tool_call", "approval", False),
        ("pre_tool_call", None, True),
        ("post_tool_call", "tool", True),
    ]
    # The lead's call of the sub-agent was allowed before: only its end is new.
    of_outer = [(point, context.get("origin")) for point, context in hook.seen if context["toolCallId"] == "s1"]
    assert of_outer == [("pre_tool_call", None), ("post_tool_call", "approval"), ("post_tool_call", "tool")]


def test_P17_P16_they_go_on_elsewhere_and_once(scripted: Scripted, kind: str) -> None:
    """▸ With new agent objects that share a key and a store: a deny by the lead's hook of today holds inside, and what
    a hook now makes otherwise is refused there."""
    store = InMemoryApprovals()
    today: dict[str, tuple[dict[str, Any], Any, Any]] = {
        "nothing": ({}, [FILLED], "text"),
        "deny": ({"pre_tool_call/read": {"deny": "too late"}}, [], "too late"),
        "other": (
            {"pre_tool_call/read": {"input": {"path": "c"}}},
            [],
            "the arguments are not those that were approved",
        ),
    }
    for script, executed, content in today.values():
        shared: dict[str, Any] = {"lead": {"approvals": Approvals(key=KEY, store=store)}}
        asking = {"permissions": [ask("read")]}
        paused = Team(sub=asking, **shared).loop.send()
        assert paused.pending is not None
        hooks = [scripted(kind, "lead", script)] if script else []
        team = Team(*hooks, sub=asking, turns=["done"], lead_turns=["hello"], **shared)
        result = team.loop.resume(paused.pending.token, {"s1/c1": "approve"})
        assert (result.output, results(result), team.executed) == ("hello", [("s1", "done")], executed)
        assert team.model.calls[0].messages[-1]["content"] == content
        with pytest.raises(ApprovalUsed):
            team.loop.resume(paused.pending.token, {"s1/c1": "approve"})


def test_P17_P16_calls_of_both_agents_wait_together(scripted: Scripted, kind: str, backend: str) -> None:
    """▸ One batch: the lead's own call, two sub-agents' and one that nobody need approve, each with its answer."""
    audit = scripted(kind, "audit", watching("post_tool_call"))
    turns = [calling(), calling(), "one", "two"]
    team = Team(
        audit,
        sub={"permissions": [ask("read")]},
        turns=turns,
        lead={"permissions": [ask("read")], "tools": [define_tool("free", input={"type": "object"}, execute=len)]},
        lead_turns=[calling(ASKING, CALL, {**ASKING, "id": "s2"}, {"id": "f", "name": "free", "args": {}}), "hello"],
    )
    paused = team.loop.send(backend=backend)
    assert paused.pending is not None
    assert [(call.id, call.agent) for call in paused.pending.calls] == [
        ("s1/c1", "sub"),
        ("c1", "acts"),
        ("s2/c1", "sub"),
    ]
    answers: Any = {"s1/c1": "approve", "c1": Deny(reason="not this"), "s2/c1": "deny"}
    result = team.loop.resume(paused.pending, answers, backend=backend)
    contents = dict(results(result))
    assert list(contents) == ["s1", "c1", "s2", "f"]
    assert (contents["c1"], contents["f"]) == ("not this", "0")
    assert sorted([str(contents["s1"]), str(contents["s2"])]) == ["one", "two"]
    assert (team.executed, team.loop.executed) == ([FILLED], [])


def test_P17_P16_a_sub_agent_may_wait_twice(scripted: Scripted, kind: str, backend: str) -> None:
    """Resumed, its next call may wait again; the lead's hooks see every call, and its own turn begins once."""
    own = scripted(kind, "own", watching("before_prompt", "after_response"))
    again = calling({**CALL, "id": "c2"})
    team = Team(own=[own], sub={"permissions": [ask("read")]}, turns=[calling(), again, "done"])
    first = team.loop.send(backend=backend)
    second = team.loop.resume(first.pending, "approve", backend=backend)
    assert second.pending is not None
    assert [call.id for call in second.pending.calls] == ["s1/c2"]
    result = team.loop.resume(second.pending, "approve", backend=backend)
    assert (result.output, len(team.executed)) == ("hello", 2)
    assert own.called_at == ["before_prompt", "after_response"]


def test_P17_P16_the_way_to_a_pending_call_is_as_long_as_it_takes(scripted: Scripted, kind: str, backend: str) -> None:
    """▸ Three agents down, it is still the lead's, and its hooks see it come again there."""
    hook = scripted(kind, "lead", watching("pre_tool_call"))
    loop = chain_of(3, hook, most=4, rules=[ask("read")])
    paused = loop.send(backend=backend)
    assert paused.pending is not None
    assert [(call.id, call.agent) for call in paused.pending.calls] == [("to1/to2/to3/c1", "a3")]
    result = loop.resume(paused.pending, "approve", backend=backend)
    assert (result.output, results(result)) == ("hello", [("to1", "done 1")])
    seen = [(context["toolCallId"], context["resumed"]) for _, context in hook.seen]
    assert seen == [("to1", False), ("to2", False), ("to3", False), ("c1", False), ("c1", True)]
    assert hook.saw("subagent")[-1] == {"agentId": "a3", "agentName": "a3", "depth": 3, "parent": "a2"}


def test_P17_P16_the_way_into_it_may_be_approved_first(backend: str) -> None:
    """The lead's call of the sub-agent waits; once it is approved, the sub-agent runs, and waits for its own call."""
    rules = {"permissions": [ask("*")]}
    team = Team(sub=rules, lead=rules)
    first = team.loop.send(backend=backend)
    assert first.pending is not None
    assert [call.id for call in first.pending.calls] == ["s1"]
    assert team.model.calls == []
    second = team.loop.resume(first.pending, "approve", backend=backend)
    assert second.pending is not None
    assert [call.id for call in second.pending.calls] == ["s1/c1"]
    assert team.loop.resume(second.pending, "approve", backend=backend).output == "hello"
    assert team.executed == [FILLED]


# Where it ends.


def test_P17_agents_inside_one_another_are_bounded(scripted: Scripted, kind: str, backend: str) -> None:
    """▸ With an error that says so: n agents run under a limit of n, and none of n + 1."""
    hook = scripted(kind, "lead", watching("pre_tool_call"))
    assert chain_of(3, hook, most=4).send(backend=backend).output == "hello"
    # Each agent has a limit of its own; the innermost one's is as wide as any.
    deep = chain_of(8, hook, most=9)
    result = deep.send(backend=backend)
    contents = str([event.content for event in deep.events if hasattr(event, "content")])
    assert "agents run inside one another 9 deep (limit 8)" in contents
    assert result.output == "hello"


def test_P17_an_agent_that_sends_to_itself_ends(backend: str) -> None:
    """▸ Bounded, also where no sub-agent is declared: a tool that calls the agent that runs it."""
    agents: list[Agent] = []
    deepest: list[str] = []

    async def again(_: object) -> object:
        try:
            return (await agents[0].send("again")).output
        except DepthExceeded as error:
            deepest.append(str(error))
            raise

    tool = define_tool("again", input={"type": "object"}, execute=again)
    turns = [calling({"id": "c", "name": "again", "args": {}})] * 3 + ["out"] * 3
    agents.append(create_agent(provider=mock_model(turns), tools=[tool], max_depth=3))
    assert anyio.run(agents[0].send, "hi", backend=backend).output == "out"
    assert deepest == ["agents run inside one another 4 deep (limit 3); end the recursion or raise max_depth"]


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_P17_a_host_hook_cannot_trigger_itself(policy: Any, backend: str) -> None:
    """▸ By running an agent that has it too: with an error that says so, and one run of it in all. A guest has no way
    to run anything (G1)."""
    calls: list[str] = []

    class Asks:
        name = "asks"
        agent: Agent

        async def pre_generate(self, ctx: Any) -> None:
            calls.append(ctx.agent_name)
            await self.agent.send("what should I add?")

    hook = Asks()
    hooks = HookRegistry()
    hooks.register(hook, on_failure=policy)
    hook.agent = create_agent(name="inner", provider=mock_model(["inner answer"]), hooks=hooks)
    loop = Watched(hooks=hooks, turns=["hello"])
    if policy == "raise":
        with pytest.raises(HookThrew) as caught:
            loop.send(backend=backend)
        assert isinstance(caught.value.__cause__, HookRecursion)
        assert "cannot trigger itself" in caught.value.message
        assert loop.model.calls == []
    else:
        assert loop.send(backend=backend).output == "hello"
    assert calls == ["acts"]


def test_P17_a_hook_may_run_an_agent_that_has_it_not(backend: str) -> None:
    """▸ Only itself it cannot trigger; and it fires again as soon as it is through."""
    inner = create_agent(name="inner", provider=mock_model(["one", "two"]))
    answers: list[str] = []

    async def pre_generate(ctx: Any) -> None:
        answers.append((await inner.send("?")).text)

    loop = Watched(SimpleNamespace(name="asks", pre_generate=pre_generate))
    assert loop.send(backend=backend).output == "hello"
    assert answers == ["one", "two"]


def test_P17_a_hook_may_run_inside_a_sub_agent_while_it_ran_for_the_call(scripted: Scripted, kind: str) -> None:
    """▸ That is no recursion: round the lead's call it is through before the sub-agent begins."""
    hook = scripted(kind, "lead", watching("pre_tool_call", "post_tool_call"))
    team = Team(hook)
    result = team.loop.send()
    assert (result.output, result.failures, len(hook.seen)) == ("hello", (), 4)
    assert team.executed == [FILLED]
