"""What an agent is made of and what is told at once, its limits, sharing, and agents inside one another."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import anyio
import pytest

import hookcell.agent
from hookcell import HookRecursion, HookRegistry, HostHook, InMemoryStorage
from hookcell.agent import (
    Agent,
    DepthExceeded,
    Permissions,
    RunState,
    StepLimitReached,
    ToolFailed,
    create_agent,
    deny,
    mock_model,
)

from .loop import BACKENDS, FakeSandbox, agent_of, calling, contents, drained, host, send, tool, watching


def named(name: str, **options: Any) -> Agent:
    return agent_of(["x"], name=name, **options)


def quiet(name: str) -> Any:
    return host(name, pre_tool_call=lambda ctx: None)


class Plain:
    """An agent class."""

    def before_prompt(self, prompt: str, ctx: object) -> None: ...


# What it is made of.


def test_the_front_door_lists_what_it_has_in_order() -> None:
    assert hookcell.agent.__all__ == sorted(hookcell.agent.__all__)
    assert all(hasattr(hookcell.agent, name) for name in hookcell.agent.__all__)


@pytest.mark.parametrize("name", ["a", "An agent, with spaces: é", "x" * 128])
def test_a_name_is_text_that_can_be_shown(name: str) -> None:
    assert named(name).name == name


@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a\nb", "\x00", "\u202ea", "x" * 129])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        named(name)


@pytest.mark.parametrize("name", [None, 5, b"a"])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(TypeError, match="name"):
        named(name)


@pytest.mark.parametrize("limit", ["max_steps", "max_depth"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_below_one_is_refused(limit: str, value: int) -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        named("a", **{limit: value})


def test_two_tools_or_sub_agents_cannot_have_one_name() -> None:
    sub = partial(named, "f")
    for tools, subs in (([tool("f"), tool("f")], []), ([tool("f")], [sub()]), ([], [sub(), sub()])):
        with pytest.raises(ValueError, match="two tools or sub-agents have the name 'f'"):
            create_agent(provider=mock_model([]), tools=tools, sub_agents=subs)


def test_iterables_are_read_once() -> None:
    agent = create_agent(
        provider=mock_model([calling("s", args={"task": "t"}), "done"]),
        tools=iter([tool("f")]),
        sub_agents=iter([named("s")]),
        hooks=iter([quiet("h")]),
        permissions=iter([deny("nothing")]),
        guardrails=iter([]),  # type: ignore[arg-type]
    )
    assert (list(agent.tools), list(agent.sub_agents)) == (["f", "s"], ["s"])
    assert contents(send(agent)) == ["x"]


@pytest.mark.parametrize("name", ["with spaces", "a.b", "é", "x" * 65])
def test_a_sub_agent_s_name_is_a_tool_s_name_too(name: str) -> None:
    with pytest.raises(ValueError, match="tool name"):
        named("lead", sub_agents=[named(name)])


def test_an_agent_may_have_a_sub_agent_of_its_own_name() -> None:
    lead = agent_of([calling("a", args={"task": "t"}), "done"], name="a", sub_agents=[named("a")])
    assert contents(send(lead)) == ["x"]


# Hooks' names.


def test_two_hooks_of_one_name_are_the_later_one_and_a_warning(caplog: Any) -> None:
    agent = named("a", hooks=[quiet("h"), quiet("h")])
    assert len(agent.hooks.snapshot().hooks) == 1
    assert "h" in caplog.text


def test_a_guest_in_place_of_a_host_hook_is_told_at_once() -> None:
    guest = FakeSandbox().guest("h", pre_tool_call=lambda ctx: None)
    with pytest.raises(ValueError, match="h"):
        named("a", hooks=[quiet("h"), guest])


@pytest.mark.parametrize(
    "make",
    [
        lambda: named("a", agent_class=Plain, hooks=[quiet("a")]),
        lambda: named("a", hooks=[quiet("hookcell.compaction")]),
        lambda: named("a", hooks=[quiet("x")], sub_agents=[named("b", hooks=[quiet("x")])]),
        lambda: named("a", hooks=[quiet("b")], sub_agents=[named("b", agent_class=Plain)]),
        lambda: named("a", hooks=[quiet("x")], sub_agents=[named("b", sub_agents=[named("c", hooks=[quiet("x")])])]),
        lambda: named("b", hooks=[quiet("y")], sub_agents=[named("c", hooks=[quiet("y")])]),
    ],
)
def test_a_hook_s_name_that_cannot_be_is_told_when_the_agent_is_made(make: Any) -> None:
    with pytest.raises(ValueError, match="give it another"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: named("a", agent_class=Plain, sub_agents=[named("b", agent_class=Plain)]),
        lambda: named("a", agent_class=Plain, sub_agents=[named("a", agent_class=Plain)]),
        lambda: named("a", hooks=[SHARED], sub_agents=[named("b", hooks=[SHARED])]),
        lambda: named("a", sub_agents=[named("b", hooks=[quiet("x")]), named("c", hooks=[quiet("x")])]),
    ],
)
def test_a_name_that_is_of_one_hook_or_of_agents_beside_each_other_may_be(make: Any) -> None:
    assert make().name == "a"


SHARED = quiet("shared")


def test_a_registry_may_change_and_a_clash_that_comes_later_ends_the_turn() -> None:
    registry = HookRegistry()
    agent = agent_of(["x", "y"], name="a", agent_class=Plain, hooks=registry)
    assert send(agent).text == "x"
    registry.register(quiet("a"))
    with pytest.raises(ValueError, match="give it another"):
        send(agent)


def test_an_agent_class_with_a_pipeline_hook_s_method_is_told_where_that_belongs() -> None:
    class Mixed(Plain):
        def pre_tool_call(self, ctx: object) -> None: ...

    with pytest.raises(TypeError, match="give it in hooks="):
        named("a", agent_class=Mixed)


@pytest.mark.parametrize("hook", [object(), 5, "hook", None])
def test_what_is_no_hook_is_refused(hook: Any) -> None:
    with pytest.raises(TypeError):
        named("a", hooks=[hook])


def test_a_class_is_made_and_an_object_is_taken() -> None:
    made = Plain()
    assert named("a", agent_class=made).agent_class is made
    assert type(named("a", agent_class=Plain).agent_class) is Plain


class EmptyStorage(InMemoryStorage):
    """False while it is empty, as a host's own may be."""

    def __len__(self) -> int:
        return 0


def test_what_the_host_gives_is_used_also_where_it_is_false() -> None:
    storage = EmptyStorage()
    assert named("a", storage=storage).storage is storage
    assert named("a", permissions=[]).permissions == Permissions()


def test_an_agent_shows_no_secret_of_the_host_s() -> None:
    agent = named("a", request={"headers": {"authorization": "secret"}})
    assert "secret" not in repr(agent)


# Steps.


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_turn_of_as_many_steps_as_it_may_ends_and_one_more_is_an_error(most: int) -> None:
    turns = [*[calling("f")] * (most - 1), "done"]
    assert send(agent_of(turns, tool(), max_steps=most)).text == "done"
    model = mock_model([calling("f")] * (most + 1))
    agent = create_agent(provider=model, tools=[tool()], max_steps=most)
    with pytest.raises(StepLimitReached, match=f"called its model {most} times"):
        send(agent)
    assert len(model.calls) == most


def test_steps_are_counted_on_over_a_pause() -> None:
    agent = agent_of([calling("f")] * 5, tool(needs_approval=True), max_steps=2)
    first = send(agent).pending
    second = anyio.run(agent.resume, first, {first.calls[0].id: "approve"}).pending  # type: ignore[union-attr,arg-type]
    with pytest.raises(StepLimitReached):
        anyio.run(agent.resume, second, {second.calls[0].id: "approve"})  # type: ignore[union-attr,arg-type]


# Depth.


def nested(levels: int, **lead: Any) -> Agent:
    """Agents in agents: the lead calls the next, and so on, the last one answers."""
    agent = agent_of(["end"], name=f"a{levels}")
    for level in range(levels - 1, 0, -1):
        turns = [calling(f"a{level + 1}", args={"task": "t"}), f"from {level}"]
        agent = agent_of(turns, name=f"a{level}", sub_agents=[agent], **(lead if level == 1 else {}))
    return agent


@pytest.mark.parametrize(("levels", "most", "fits"), [(1, 1, True), (2, 2, True), (2, 1, False), (8, 8, True)])
def test_the_lead_s_depth_holds_for_those_it_calls(levels: int, most: int, fits: bool) -> None:
    failed, listen = watching(ToolFailed)
    lead = nested(levels, max_depth=most, on_event=listen)
    send(lead)
    assert [("DepthExceeded" in event.error.message) for event in failed] == ([] if fits else [True])


def test_nine_agents_deep_is_one_too_many_by_default() -> None:
    failed, listen = watching(ToolFailed)
    send(nested(9, on_event=listen))
    (event,) = failed
    assert (event.agent, event.depth) == ("a8", 7)
    assert "DepthExceeded: agents run inside one another 9 deep (limit 8)" in str(event.error.message)


@BACKENDS
@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_tool_that_runs_its_own_agent_comes_to_an_end(kind: str, backend: str) -> None:
    """Without a limit it would go on until the memory is full; also through a worker thread and a loop in it."""
    deep: list[int] = []

    async def again(_: object) -> str:
        deep.append(1)
        return (await agent.send("again")).text

    def again_in_a_loop_of_its_own(_: object) -> str:
        deep.append(1)
        return send(agent, "again", backend=backend).text

    class Calls:
        async def generate(self, request: Any, on_text: Any, /) -> Any:
            answered = request.messages[-1]["role"] == "tool"
            model = mock_model([str(request.messages[-1]["content"]) if answered else calling("f")])
            return await model.generate(request, None)

    execute = again if kind == "async" else again_in_a_loop_of_its_own
    agent = create_agent(provider=Calls(), tools=[tool("f", execute)], max_depth=4)
    result = send(agent, backend=backend)
    assert len(deep) == 4
    assert "DepthExceeded: agents run inside one another 5 deep (limit 4)" in result.text


@BACKENDS
def test_turns_after_one_another_are_not_inside_one_another(backend: str) -> None:
    async def main() -> None:
        agent = agent_of(["a", OSError("down"), "b"], max_depth=1)
        assert (await agent.send("x")).text == "a"
        with pytest.raises(OSError, match="down"):
            await agent.send("x")
        assert (await agent.send("x")).text == "b"

    anyio.run(main, backend=backend)


def test_the_least_depth_of_those_outside_holds_and_a_deeper_one_cannot_loosen_it() -> None:
    inner = agent_of([calling("f"), "inner"], tool("f", lambda _: "ok"), name="inner", max_depth=100)

    async def run_inner(_: object) -> str:
        return (await inner.send("x")).text

    outer = agent_of([calling("f"), "done"], tool("f", run_inner), max_depth=1)
    assert "DepthExceeded" in str(contents(send(outer))[0])


def test_a_depth_that_is_reached_by_a_hook_ends_the_turn() -> None:
    other = agent_of(["x"] * 9)

    async def ask(ctx: object) -> None:
        await other.send("x")

    agent = agent_of(["done"], hooks=[host("h", pre_generate=ask)], max_depth=1)
    with pytest.raises(hookcell.HookThrew) as caught:
        send(agent)
    assert isinstance(caught.value.__cause__, DepthExceeded)


# Hooks that come round to themselves.


class Asks:
    """A hook that asks an agent which has it among its hooks."""

    name = "asks"

    def __init__(self) -> None:
        self.ran = 0
        self.agent: Agent | None = None
        self.answers: list[str] = []

    async def pre_generate(self, ctx: object) -> None:
        self.ran += 1
        if self.agent is not None:
            self.answers.append((await self.agent.send("ask")).text)


@BACKENDS
def test_a_hook_that_triggers_itself_is_a_failure_under_raise(backend: str) -> None:
    hook = Asks()
    hook.agent = agent_of(["never"], hooks=[hook])
    outer = agent_of(["done"], hooks=[hook])

    async def main() -> None:
        with pytest.raises(hookcell.HookThrew) as caught:
            await outer.send("hi")
        assert isinstance(caught.value.__cause__, HookRecursion)

    anyio.run(main, backend=backend)
    assert (hook.ran, hook.answers) == (1, [])


@BACKENDS
def test_under_skip_the_inner_agent_goes_on_without_it_and_says_so(backend: str) -> None:
    hook = Asks()
    skipped = HostHook.of(hook, on_failure="skip")  # type: ignore[arg-type]
    inner = agent_of(["inner"], hooks=HookRegistry([skipped]))  # type: ignore[list-item]
    failures: list[Any] = []

    class Watched:
        async def send(self, content: str) -> Any:
            result = await inner.send(content)
            failures.extend(result.failures)
            return result

    hook.agent = Watched()  # type: ignore[assignment]
    result = send(agent_of(["done"], hooks=[hook]), backend=backend)
    assert (result.text, hook.ran, hook.answers) == ("done", 1, ["inner"])
    assert [(type(failure), failure.policy) for failure in failures] == [(HookRecursion, "skip")]


def test_a_hook_that_ran_may_run_again_in_a_tool_after_it() -> None:
    """It is not running any more: what counts is what stands round, not what was."""
    hook = Asks()
    inner = agent_of(["inner"], hooks=[hook])

    async def ask(_: object) -> str:
        return (await inner.send("x")).text

    assert contents(send(agent_of([calling("f"), "done"], tool("f", ask), hooks=[hook]))) == ["inner"]
    assert hook.ran == 3


# Shared.


class Echoes:
    """A model that answers with what the user said last, after one tool call."""

    async def generate(self, request: Any, on_text: Any, /) -> Any:
        await anyio.lowlevel.checkpoint()
        last = request.messages[-1]
        turn: Any = last["content"] if last["role"] == "tool" else calling("f", args={"x": last["content"]})
        return await mock_model([turn]).generate(request, None)


def echoing() -> Agent:
    class Counts:
        name = "counts"

        def pre_tool_call(self, ctx: Any) -> None:
            ctx.metadata["mine"] = ctx.args["x"]

        def post_tool_call(self, ctx: Any, result: Any) -> None:
            assert ctx.metadata["mine"] == ctx.args["x"]

    def execute(args: dict[str, Any], ctx: Any) -> object:
        assert ctx.metadata["mine"] == args["x"]
        return args["x"]

    return create_agent(provider=Echoes(), tools=[tool("f", execute)], hooks=[Counts()], agent_class=Plain)


@BACKENDS
def test_one_agent_serves_many_turns_at_once(backend: str) -> None:
    agent = echoing()
    texts: dict[int, str] = {}

    async def one(n: int) -> None:
        texts[n] = (await agent.send(f"m{n}")).text

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for n in range(30):
                group.start_soon(one, n)

    anyio.run(main, backend=backend)
    assert texts == {n: f"m{n}" for n in range(30)}


def test_one_agent_serves_many_threads() -> None:
    agent = echoing()
    texts: dict[int, str] = {}

    def one(n: int) -> None:
        texts[n] = send(agent, f"m{n}", backend=("asyncio", "trio")[n % 2]).text

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {n: f"m{n}" for n in range(8)}


def test_two_agents_may_share_one_run_after_one_another() -> None:
    run = RunState()
    send(named("a"), "one", state=run)
    send(named("b"), "two", state=run)
    assert [message["content"] for message in run.history] == ["one", "x", "two", "x"]


@BACKENDS
def test_one_sub_agent_may_be_called_twice_at_once(backend: str) -> None:
    sub = create_agent(provider=Echoes(), tools=[tool("f", lambda args: args["x"])], name="sub")
    turns: list[Any] = [
        {"toolCalls": [{"name": "sub", "args": {"task": f"t{n}"}} for n in range(4)]},
        "done",
    ]
    result = send(agent_of(turns, sub_agents=[sub]), backend=backend)
    assert contents(result) == [f"t{n}" for n in range(4)]


class OwnRun:
    def __init__(self, value: object) -> None:
        self.value = value

    def run(self, content: object, ctx: object) -> object:
        return self.value


@pytest.mark.parametrize(
    ("value", "seen"),
    [("text", "text"), (None, ""), ({"a": (1, 2)}, '{"a": [1, 2]}'), (Permissions(), "{")],
)
def test_what_a_sub_agent_s_own_run_returns_is_turned_into_json_like_a_tool_s(value: object, seen: str) -> None:
    sub = create_agent(provider=mock_model([]), agent_class=OwnRun(value), name="sub")
    guest = FakeSandbox().guest("audit", post_tool_call=lambda _: None)
    result = send(agent_of([calling("sub", args={"task": "t"}), "done"], sub_agents=[sub], hooks=[guest]))
    assert str(contents(result)[0]).startswith(seen)


def test_and_what_is_no_json_is_a_tool_s_error() -> None:
    sub = create_agent(provider=mock_model([]), agent_class=OwnRun(object()), name="sub")
    guest = FakeSandbox().guest("audit", post_tool_call=lambda _: None)
    result = send(agent_of([calling("sub", args={"task": "t"}), "done"], sub_agents=[sub], hooks=[guest]))
    assert "object" in str(contents(result)[0])
    assert result.text == "done"


@pytest.mark.parametrize("content", ["", "text", [], [{"type": "text", "text": "a"}], [{"type": "image", "url": "u"}]])
def test_what_the_user_says_is_text_or_parts(content: Any) -> None:
    model = mock_model(["done"])
    send(create_agent(provider=model), content)
    assert model.calls[0].messages == [{"role": "user", "content": content}]


def test_listeners_hear_of_sub_agents_and_the_sub_agents_own_do_not() -> None:
    heard, listen = watching()
    own, listen_too = watching()
    sub = agent_of([calling("f"), "x"], tool(), name="sub", on_event=listen_too)
    send(agent_of([calling("sub", args={"task": "t"}), "done"], sub_agents=[sub], on_event=listen))
    assert own == []
    assert [(event.type, event.agent) for event in heard] == [
        ("tool.start", "agent"),
        ("tool.start", "sub"),
        ("tool.done", "sub"),
        ("tool.done", "agent"),
        ("turn.done", "agent"),
    ]


@BACKENDS
def test_a_sub_agent_s_words_are_in_the_lead_s_stream(backend: str) -> None:
    sub = agent_of(["sub words"], name="sub")
    lead = agent_of([calling("sub", args={"task": "t"}), "done"], sub_agents=[sub])
    events = anyio.run(lambda: drained(lead.stream("hi")), backend=backend)
    told = [(event.agent, event.depth, event.text) for event in events if event.type == "text.delta"]
    assert told == [("sub", 1, "sub "), ("sub", 1, "words"), ("agent", 0, "done")]
