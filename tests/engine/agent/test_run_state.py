"""Runs: what each holds, that one turn has it at a time, and that no way a turn ends leaves it unusable."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import anyio
import pytest

from hookcell import HookRegistry, ToolCall
from hookcell.agent import (
    App,
    Approvals,
    ModelResponse,
    RunBusy,
    RunState,
    StepLimitReached,
    TurnFailed,
    TurnResult,
    ask,
    create_agent,
    define_tool,
    mock_model,
)
from hookcell.agent.run_state import check_keepable

from .loop import BACKENDS, agent_of, calling, drained, host, send, tool


def assert_whole(messages: Sequence[Any]) -> None:
    """Every call has its result right behind it, and no result is of no call."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["toolCallId"])
            continue
        assert open_calls == []
        open_calls = [each["id"] for each in message.get("toolCalls", ())]
    assert open_calls == []


# What it holds.


def test_a_run_of_nothing_is_one_of_its_own() -> None:
    one, other = RunState(), RunState()
    assert one.run_id != other.run_id
    assert (one.session_id, one.tenant, one.environment) == (one.run_id, "", "")
    assert (list(one.history), one.metadata, one.data) == ([], {}, None)


def test_the_state_s_history_is_the_conversation_and_is_not_given_twice() -> None:
    run = RunState(messages=[{"role": "user", "content": "x"}], state={"k": 1})
    assert run.state.history is run.history
    assert run.state.k == 1
    with pytest.raises(ValueError, match="give it as messages="):
        RunState(state={"history": []})


def test_runs_that_are_seeded_with_the_same_values_share_nothing() -> None:
    seed: dict[str, Any] = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
        "metadata": {"tags": ["a"], "deep": {"x": 1}},
        "state": {"notes": ["a"]},
    }
    one, other = RunState(**seed), RunState(**seed)
    one.history[0]["content"][0]["text"] = "b"  # type: ignore[index]
    one.metadata["tags"].append("b")  # type: ignore[attr-defined]
    one.metadata["deep"]["x"] = 2  # type: ignore[index]
    one.state.append("notes", "b")
    assert other.history == seed["messages"] == [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    assert other.metadata == seed["metadata"] == {"tags": ["a"], "deep": {"x": 1}}
    assert other.state.notes == seed["state"]["notes"] == ["a"]


def test_a_turn_s_own_values_are_copied_too_and_data_is_not() -> None:
    metadata, data = {"tags": ["a"]}, ["live"]

    def tag(ctx: Any) -> None:
        ctx.metadata["tags"].append("b")

    def look(_: object, ctx: Any) -> None:
        ctx.data.append("seen")

    agent = agent_of([calling("f"), "done"], tool("f", look), hooks=[host("h", pre_tool_call=tag)])
    result = send(agent, metadata=metadata, data=data)
    assert result.state.metadata == {"tags": ["a", "b"]}
    assert (metadata, data) == ({"tags": ["a"]}, ["live", "seen"])


def test_a_result_s_messages_stay_as_they_stood_then() -> None:
    def redact(ctx: Any, result: Any) -> None:
        for message in ctx.messages:
            message["content"] = message["content"].replace("secret", "***")

    run = RunState()
    first = send(agent_of(["a secret"]), state=run)
    second = send(agent_of(["b"], hooks=[host("redact", post_generate=redact)]), state=run)
    assert [message["content"] for message in first.messages] == ["hi", "a secret"]
    assert [message["content"] for message in second.messages] == ["hi", "a ***", "hi", "b"]


def test_a_run_and_what_it_holds_cannot_both_be_given() -> None:
    agent = agent_of(["x"])
    with pytest.raises(TypeError, match="data, metadata belong to the run"):
        send(agent, state=RunState(), metadata={}, data=1)
    with pytest.raises(TypeError, match="belong"):
        agent.stream("hi", state=RunState(), session_id="s")
    with pytest.raises(TypeError):
        send(agent, sessionId="s")


@pytest.mark.parametrize("value", [{"a": [1, None, b"x", "é"]}, (1, 2), True, -(2**63), 2**64 - 1])
def test_json_values_and_bytes_can_be_kept(value: object) -> None:
    check_keepable(value, "/x")


# One turn at a time.


class Gate:
    """A provider that answers when it is let to."""

    def __init__(self, text: str = "x") -> None:
        self.text = text
        self.asked, self.go = anyio.Event(), anyio.Event()

    async def generate(self, request: Any, on_text: Any, /) -> ModelResponse:
        self.asked.set()
        await self.go.wait()
        return ModelResponse(text=self.text)


@BACKENDS
def test_of_two_turns_at_once_the_second_is_refused_and_changes_nothing(backend: str) -> None:
    run = RunState()

    async def main() -> None:
        gate = Gate("first")
        agent = create_agent(provider=gate)
        async with anyio.create_task_group() as group:
            group.start_soon(partial(agent.send, "one", state=run))
            await gate.asked.wait()
            for refused in (
                agent.send("two", state=run),
                agent_of(["x"]).send("two", state=run),
                drained(agent.stream("two", state=run)),
            ):
                with pytest.raises(RunBusy, match="another turn under way"):
                    await refused
            gate.go.set()
        assert [message["content"] for message in run.history] == ["one", "first"]
        assert (await agent_of(["x"]).send("two", state=run)).text == "x"

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("where", ["tool", "hook", "middleware", "listener", "guardrail"])
def test_code_inside_a_turn_cannot_begin_another_on_its_run(where: str) -> None:
    run = RunState()
    errors: list[BaseException] = []
    inner = agent_of(["inner"])

    async def again(*_: object) -> None:
        try:
            await inner.send("again", state=run)
        except RunBusy as error:
            errors.append(error)

    async def middleware(call: object, proceed: Any) -> Any:
        await again()
        return await proceed()

    options: dict[str, dict[str, Any]] = {
        "tool": {},
        "hook": {"hooks": [host("h", pre_generate=again)]},
        "middleware": {"app": App().use(tool=middleware)},
        "listener": {"on_event": again},
        "guardrail": {"guardrails": [again]},
    }
    agent = agent_of([calling("f"), "done"], tool("f", again if where == "tool" else lambda _: "ok"), **options[where])
    assert send(agent, state=run).text == "done"
    assert errors
    assert "inner" not in str(run.history)


def test_of_many_threads_one_has_the_run() -> None:
    run = RunState()
    barrier, inside = threading.Barrier(6), threading.Lock()
    outcomes: list[str] = []
    together: list[bool] = []

    def look(_: object) -> None:
        together.append(inside.acquire(blocking=False))
        barrier.wait()
        inside.release()

    def one() -> None:
        agent = agent_of(["x"], hooks=[host("h", pre_generate=look)])
        try:
            send(agent, state=run)
            outcomes.append("ran")
        except RunBusy:
            outcomes.append("busy")
            barrier.wait()

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["busy"] * 5 + ["ran"]
    assert together == [True]


def test_a_run_that_waits_is_busy_for_every_agent() -> None:
    run = RunState()
    agent = agent_of([calling("f"), "done"], tool(), permissions=[ask("f")])
    assert send(agent, state=run).pending is not None
    for other in (agent, agent_of(["x"])):
        with pytest.raises(RunBusy, match="wait for approval"):
            send(other, state=run)


def test_a_turn_that_ends_badly_lets_go_of_the_run() -> None:
    run = RunState()
    with pytest.raises(OSError, match="down"):
        send(agent_of([OSError("down")]), state=run)
    with pytest.raises(StepLimitReached):
        send(agent_of([calling("f")], tool(), max_steps=1), state=run)
    assert send(agent_of(["x"]), state=run).text == "x"
    assert_whole(run.history)


# Cancelled in each phase.


async def at(phase: str, here: Callable[[], Any], name: str) -> None:
    if phase == name:
        await here()


PHASES = [
    "before_prompt",
    "pre_generate",
    "chat",
    "model",
    "post_generate",
    "before_tool",
    "pre_tool_call",
    "rule",
    "approval",
    "tool_middleware",
    "tool",
    "after_tool",
    "post_tool_call",
    "after_response",
    "listener",
    "seal",
    "on_error",
]


def agent_that_stops(phase: str, here: Callable[[], Any], calls: int) -> Any:
    """An agent with a host's code in every phase of a turn, of which one stops."""

    class Hook:
        name = "hook"

    def method(name: str) -> Callable[..., Any]:
        async def call(*_: object) -> None:
            await at(phase, here, name)

        return call

    hook: Any = Hook()
    for name in (
        "before_prompt",
        "pre_generate",
        "post_generate",
        "before_tool",
        "pre_tool_call",
        "after_tool",
        "post_tool_call",
        "after_response",
        "on_error",
    ):
        setattr(hook, name, method(name))

    async def around_tool(_: object, proceed: Any) -> Any:
        answer = await proceed()
        await at(phase, here, "tool_middleware")
        return answer

    async def around_chat(_: object, proceed: Any) -> Any:
        await at(phase, here, "chat")
        return await proceed()

    async def listen(event: Any) -> None:
        if event.type == "tool.done":
            await at(phase, here, "listener")

    async def rule(*_: object) -> None:
        await at(phase, here, "rule")

    async def needs_approval(_: object) -> bool:
        await at(phase, here, "approval")
        return phase == "seal"

    async def execute(_: object) -> str:
        await at(phase, here, "tool")
        return "ok"

    class Model:
        def __init__(self) -> None:
            self.asked = 0

        async def generate(self, request: Any, on_text: Any, /) -> ModelResponse:
            self.asked += 1
            await at(phase, here, "model")
            if phase == "on_error" and self.asked == 2:
                raise OSError("down")
            return ModelResponse(text="done") if self.asked > 1 else first

    first = ModelResponse(tool_calls=[ToolCall(id=f"c{n}", name="f", args={}) for n in range(calls)])

    class Store:
        async def open(self, *_: object) -> None:
            await at(phase, here, "seal")

        def claim(self, *_: object) -> bool:
            return True

    return create_agent(
        provider=Model(),
        tools=[tool("f", execute, needs_approval=needs_approval)],
        hooks=HookRegistry([hook]),
        app=App().use(tool=around_tool, chat=around_chat),
        guardrails=[rule],
        on_event=listen,
        approvals=Approvals(store=Store()),
    )


@BACKENDS
@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("phase", PHASES)
def test_a_turn_cancelled_in_any_phase_leaves_a_conversation_that_a_next_turn_can_use(
    phase: str, streamed: bool, calls: int, backend: str
) -> None:
    run = RunState()

    async def main() -> None:
        stopped = anyio.Event()

        async def here() -> None:
            stopped.set()
            await anyio.sleep_forever()

        agent = agent_that_stops(phase, here, calls)
        async with anyio.create_task_group() as group:
            if streamed:
                group.start_soon(lambda: drained(agent.stream("hi", state=run)))
            else:
                group.start_soon(partial(agent.send, "hi", state=run))
            await stopped.wait()
            group.cancel_scope.cancel()
        assert_whole(run.history)
        assert (await agent_of(["next"]).send("again", state=run)).text == "next"

    anyio.run(main, backend=backend)
    assert_whole(run.history)


@BACKENDS
@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase != "listener"])
def test_so_does_one_whose_host_s_code_fails_there(phase: str, calls: int, backend: str) -> None:
    run = RunState()

    async def fail() -> None:
        raise ValueError(phase)

    async def main() -> None:
        agent = agent_that_stops(phase, fail, calls)
        if phase == "tool":  # its errors go to the model
            assert (await agent.send("hi", state=run)).text == "done"
        else:
            with pytest.raises(Exception, match=phase):
                await agent.send("hi", state=run)
        assert_whole(run.history)
        assert (await agent_of(["next"]).send("again", state=run)).text == "next"

    anyio.run(main, backend=backend)


@BACKENDS
@pytest.mark.parametrize("phase", ["tool", "post_tool_call"])
def test_a_note_that_a_hook_put_behind_the_calls_does_not_hide_that_they_are_open(phase: str, backend: str) -> None:
    run = RunState()

    def note(ctx: Any, _: object) -> None:
        ctx.messages.append({"role": "user", "content": "note"})

    async def main() -> None:
        stopped = anyio.Event()

        async def here(*_: object) -> None:
            stopped.set()
            await anyio.sleep_forever()

        stops = host("stops", **({"post_tool_call": here} if phase == "post_tool_call" else {"on_error": here}))
        execute = here if phase == "tool" else lambda _: "ok"
        agent = agent_of([calling("f", "f")], tool("f", execute), hooks=[host("n", post_generate=note), stops])
        async with anyio.create_task_group() as group:
            group.start_soon(partial(agent.send, "hi", state=run))
            await stopped.wait()
            group.cancel_scope.cancel()

    anyio.run(main, backend=backend)
    assert_whole(run.history)
    assert [message["role"] for message in run.history] == ["user", "assistant", "tool", "tool", "user"]


@BACKENDS
def test_sub_agents_that_are_cancelled_touch_nothing_of_the_lead_s_run(backend: str) -> None:
    run = RunState(metadata={"a": 1})

    async def main() -> None:
        gate = Gate()
        sub = create_agent(provider=gate, name="sub")
        lead = agent_of([calling("sub", args={"task": "t"})], sub_agents=[sub])
        async with anyio.create_task_group() as group:
            group.start_soon(partial(lead.send, "hi", state=run))
            await gate.asked.wait()
            group.cancel_scope.cancel()
        assert (await agent_of(["next"]).send("again", state=run)).text == "next"

    anyio.run(main, backend=backend)
    assert_whole(run.history)
    assert run.metadata == {"a": 1}


def test_a_resumed_turn_that_fails_leaves_its_run_to_the_listener() -> None:
    """The pending state is used up by then, and the run before it stands still: this is the way on."""
    failed: list[TurnFailed] = []
    turns = [calling("f"), RuntimeError("the model is down"), "on again"]
    agent = create_agent(
        provider=mock_model(turns),
        tools=[define_tool("f", input={"type": "object"}, execute=lambda _: "ok", needs_approval=True)],
        on_event=lambda event: failed.append(event) if isinstance(event, TurnFailed) else None,
    )

    async def main() -> TurnResult:
        paused = await agent.send("hi")
        assert paused.pending is not None
        with pytest.raises(RuntimeError, match="the model is down"):
            await agent.resume(paused.pending, {paused.pending.calls[0].id: "approve"})
        (event,) = failed
        return await agent.send("and now?", state=event.state)

    result = anyio.run(main)
    assert result.text == "on again"
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "user", "assistant"]


def test_a_turn_that_comes_just_as_the_one_before_it_pauses_is_refused() -> None:
    """From another thread: whether the run waits is asked with the run in hand, and not before."""
    run = RunState()
    lock = run._turn

    class PausesFirst:
        def acquire(self, *, blocking: bool) -> bool:
            run.wait()
            return lock.acquire(blocking=blocking)

        def release(self) -> None:
            lock.release()

    run._turn = PausesFirst()  # type: ignore[assignment]  # stands between the look and the lock
    with pytest.raises(RunBusy, match="wait for approval"), run.one_turn():
        pass
    assert not lock.locked()
