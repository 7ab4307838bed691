"""C1 to C6: the five agent-class hooks through the reference loop, in all three forms that they come in.

A *form* is ``class`` (the methods of an agent class), ``host`` (a host hook among the agent's hooks) or ``guest``. Each
is scripted and remembers what it saw. Where a hook has to compute, a plain class is written out.
"""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from hookcell import HookThrew, OutcomeInvalid
from hookcell.agent import (
    App,
    RunState,
    StepLimitReached,
    ToolDone,
    ToolFailed,
    ask,
    define_tool,
    deny,
)

from .driving import ARGS, FILLED
from .looping import (
    CALL,
    DOWN,
    METHODS,
    ON_THE_WAY,
    THROW,
    Loop,
    Scripted,
    acting,
    calling,
    loop_with,
    raises,
    watching,
)

# C1: which are called, when, with what.


def test_C1_the_methods_that_exist_are_called_in_the_order_of_the_turn(
    scripted: Scripted, form: str, backend: str
) -> None:
    """Five optional methods; the runtime calls those that exist."""
    hook, loop = loop_with(scripted, form, watching(*METHODS))
    assert loop.send(backend=backend).output == "hello"
    assert hook.called_at == ON_THE_WAY
    hook, loop = loop_with(scripted, form, watching(*METHODS), turns=[ValueError("down")])
    with pytest.raises(ValueError, match="down"):
        loop.send(backend=backend)
    assert hook.called_at == ["before_prompt", "on_error"]


@pytest.mark.parametrize("point", METHODS)
def test_C1_each_method_is_optional(scripted: Scripted, form: str, point: str) -> None:
    hook, loop = loop_with(scripted, form, watching(point), turns=[calling(), ValueError("down")])
    if point == "after_response":
        hook, loop = loop_with(scripted, form, watching(point))
        loop.send()
    else:
        with pytest.raises(ValueError, match="down"):
            loop.send()
    assert hook.called_at == [point]


def test_C1_a_class_may_have_none_of_them() -> None:
    """Most of the time the agent class is empty."""

    class Empty:
        pass

    assert Loop(agent_class=Empty).send().output == Loop(agent_class=Empty()).send().output == "hello"


def test_C1_each_method_gets_its_subject(scripted: Scripted, form: str) -> None:
    """The table of points: what each one's context has beyond the common fields."""
    hook, loop = loop_with(scripted, form, watching(*METHODS), turns=[calling(), ValueError("down")])
    with pytest.raises(ValueError, match="down"):
        loop.send()
    subjects = dict(hook.seen)
    assert subjects["before_prompt"]["prompt"] == "be kind"
    assert subjects["before_tool"]["call"] == {"id": "c1", "name": "read", "args": FILLED}
    assert subjects["after_tool"]["result"] == {"name": "read", "args": FILLED, "output": "text", "isError": False}
    assert subjects["on_error"]["error"] == {"name": "ValueError", "message": "down"}
    hook, loop = loop_with(scripted, form, watching("after_response"), turns=["hello"])
    loop.send()
    assert hook.saw("response") == ["hello"]


def test_C1_every_method_sees_the_common_fields(scripted: Scripted, form: str) -> None:
    """Agent-class points also see ``state`` and ``data``."""
    hook, loop = loop_with(scripted, form, watching(*ON_THE_WAY))
    loop.send(data={"user": "ada"}, metadata={"seeded": 1}, session_id="s1")
    assert hook.saw("agentId") == hook.saw("agentName") == ["acts"] * 4
    assert hook.saw("sessionId") == ["s1"] * 4
    assert hook.saw("metadata") == [{"seeded": 1}] * 4
    assert hook.saw("data") == [{"user": "ada"}] * 4
    assert hook.saw("messages") == [state["history"] for state in hook.saw("state")]
    assert [len(messages) for messages in hook.saw("messages")] == [1, 2, 2, 4]


def test_C1_before_prompt_fires_once_a_turn_before_its_first_model_call(scripted: Scripted, form: str) -> None:
    """The table of points."""
    hook, loop = loop_with(
        scripted, form, watching("before_prompt"), turns=[calling(), calling(), "one", calling(), "two"]
    )
    run = RunState()
    loop.send(state=run)
    assert (len(hook.seen), len(loop.model.calls)) == (1, 3)
    loop.send(state=run)
    assert (len(hook.seen), len(loop.model.calls)) == (2, 5)


def test_C1_sync_and_async_methods_both_work() -> None:
    """Plain classes: a scripted hook is always plain."""

    class Mixed:
        async def before_prompt(self, prompt: str, _ctx: object) -> str:
            await anyio.lowlevel.checkpoint()
            return prompt + "!"

        def after_response(self, response: str, _ctx: object) -> str:
            return response + "?"

    loop = Loop(agent_class=Mixed, turns=["hello"])
    assert loop.send().output == "hello?"
    assert loop.prompts == ["be kind!"]


@pytest.mark.parametrize(
    ("point", "first", "second", "field"),
    [
        ("before_prompt", "one", "two", "prompt"),
        ("before_tool", {**CALL, "args": {"path": "b.txt"}}, {**CALL, "args": {"path": "c.txt"}}, "call"),
        ("after_tool", "one", "two", "result"),
        ("after_response", "one", "two", "response"),
    ],
)
def test_C1_several_hooks_at_one_point_chain(
    scripted: Scripted, form: str, point: str, first: Any, second: Any, field: str
) -> None:
    """▸ As in P7: each sees what the one before it made, the agent class first, and the last one's value stands."""
    one, where = acting(scripted, form, {point: {"replace": first}})
    two, three = scripted("guest", "two", {point: {"replace": second}}), scripted("guest", "three", {point: None})
    result = Loop(*where.get("hooks", ()), two, three, agent_class=where.get("agent_class")).send()
    (decision,) = (each for each in result.decisions if each.point == point)
    assert [entry.outcome for entry in decision.trace] == ["replace", "replace", "nothing"]
    if point == "before_tool":
        first, second = ({**each, "args": {**each["args"], "lines": 20}} for each in (first, second))
    if point == "after_tool":
        read = {"name": "read", "args": FILLED, "isError": False}
        first, second = ({**read, "output": each} for each in (first, second))
    assert (two.saw(field), three.saw(field)) == ([first], [second])
    assert len(one.seen) == 1


def test_C1_for_on_error_the_first_value_wins(scripted: Scripted, form: str) -> None:
    """▸ And the hooks after it are not asked."""
    keeps, where = acting(scripted, form, {"on_error": None})
    wins, late = (scripted("guest", name, {"on_error": {"replace": name}}) for name in ("wins", "late"))
    hooks = [*where.get("hooks", ()), wins, late]
    loop = Loop(*hooks, agent_class=where.get("agent_class"), turns=[ValueError("down")])
    assert loop.send().output == "wins"
    assert (len(keeps.seen), len(wins.seen), len(late.seen)) == (1, 1, 0)


# C2: what a value and what nothing means.


def test_C2_returning_nothing_keeps(scripted: Scripted, form: str) -> None:
    """A hook that only wants to observe can just not return anything."""
    plain = Loop()
    hook, loop = loop_with(scripted, form, watching(*METHODS))
    assert loop.send().messages == plain.send().messages
    assert loop.model.calls == plain.model.calls
    assert loop.executed == plain.executed == [FILLED]
    assert len(hook.seen) == 4


def test_C2_a_value_replaces_the_prompt_for_this_turn(scripted: Scripted, form: str) -> None:
    """The table of points: all of the turn's model calls get it, the next turn begins with the agent's own."""
    hook, loop = loop_with(scripted, form, {"before_prompt": {"replace": "be brief"}}, turns=[calling(), "1", "2"])
    run = RunState()
    loop.send(state=run)
    loop.send(state=run)
    assert loop.prompts == ["be brief"] * 3
    assert hook.saw("prompt") == ["be kind"] * 2


def test_C2_a_value_replaces_the_call_the_output_and_the_response(scripted: Scripted, form: str) -> None:
    script = {
        "before_tool": {"replace": {**CALL, "args": {"path": "b.txt"}}},
        "after_tool": {"replace": "cut"},
        "after_response": {"replace": "bye"},
    }
    _, loop = loop_with(scripted, form, script)
    assert loop.send().output == "bye"
    assert loop.executed == [{"path": "b.txt", "lines": 20}]
    assert loop.last_sent["content"] == "cut"


@pytest.mark.parametrize("value", ["", 0, False])
def test_C2_falsy_values_are_values(scripted: Scripted, form: str, value: object) -> None:
    """▸ ``""``, ``0``, ``false`` are values."""
    _, loop = loop_with(scripted, form, {"on_error": {"replace": value}}, turns=[ValueError("down")])
    result = loop.send()
    assert (result.output, type(result.output)) == (value, type(value))


def test_C2_an_empty_text_replaces(scripted: Scripted, form: str) -> None:
    """▸ Where the type is text, the empty one is a value too."""
    script = {point: {"replace": ""} for point in ("before_prompt", "after_tool", "after_response")}
    _, loop = loop_with(scripted, form, script)
    assert loop.send().output == ""
    assert loop.prompts == ["hi", "hi"], "no system message is sent for an empty prompt"
    assert loop.last_sent["content"] == ""


def test_C2_null_replaces_where_the_type_admits_it(scripted: Scripted, form: str) -> None:
    """▸ ``Replace(None)`` and JavaScript's ``null``: a turn may come to null."""
    _, loop = loop_with(scripted, form, {"on_error": {"replace": None}}, turns=[ValueError("down")])
    result = loop.send()
    assert result.output is None
    assert isinstance(result.error, ValueError)


@pytest.mark.parametrize("point", ON_THE_WAY)
def test_C2_null_is_invalid_where_the_type_has_none(scripted: Scripted, form: str, point: str) -> None:
    """▸ Else the outcome is invalid."""
    _, loop = loop_with(scripted, form, {point: {"replace": None}})
    with pytest.raises(OutcomeInvalid) as caught:
        loop.send()
    assert (caught.value.hook, caught.value.point, caught.value.path) == ("acts", point, "/replace")


# C3: before_tool.


def test_C3_rewritten_args_are_validated_and_run(scripted: Scripted, form: str) -> None:
    """As in P6: the validated dump with its defaults runs, the conversation shows it and keeps the model's own."""
    script = {"before_tool": {"replace": {**CALL, "args": {"path": "b.txt"}}}, "after_tool": None}
    hook, loop = loop_with(scripted, form, script)
    result = loop.send()
    final = {"path": "b.txt", "lines": 20}
    assert loop.executed == [final]
    assert hook.saw("result")[1]["args"] == final
    said = result.messages[1]
    assert said["toolCalls"] == [{**CALL, "args": final}]
    assert said["metadata"] == {"modelArgs": {"c1": ARGS}}


@pytest.mark.parametrize("form", ["class", "host", "guest"])
def test_C3_args_that_do_not_fit_are_a_validation_error_that_names_the_hook(scripted: Scripted, form: str) -> None:
    """As in P6: the tool does not run, the model is told and goes on."""
    hook, loop = loop_with(scripted, form, {"before_tool": {"replace": {**CALL, "args": {"path": 1}}}})
    pre = scripted("guest", "pre", watching("pre_tool_call"))
    loop.agent.hooks.register(pre)
    assert loop.send().output == "hello"
    assert (loop.executed, len(hook.seen), pre.seen) == ([], 1, [])
    assert "hook 'acts' gave arguments that do not fit" in str(loop.last_sent["content"])
    (failed,) = (event for event in loop.events if isinstance(event, ToolFailed))
    assert (failed.error.kind, failed.error.hook) == ("validation", "acts")


@pytest.mark.parametrize(("key", "value"), [("id", "c2"), ("name", "write")])
def test_C3_changing_id_or_name_is_an_invalid_outcome(scripted: Scripted, form: str, key: str, value: str) -> None:
    _, loop = loop_with(scripted, form, {"before_tool": {"replace": {**CALL, key: value}}})
    with pytest.raises(OutcomeInvalid) as caught:
        loop.send()
    assert caught.value.path == f"/replace/{key}"
    assert loop.executed == []


def test_C3_a_throw_cancels_the_whole_run(scripted: Scripted, form: str) -> None:
    """No tool of the batch runs, also none that came before it, and the model is not called again."""
    write = define_tool("write", input={"type": "object"}, execute=lambda _: pytest.fail("it ran"))
    script = {"before_tool": None, "before_tool/write": THROW}
    hook, loop = loop_with(scripted, form, script, turns=[calling(CALL, {"name": "write"})], tools=[write])
    with pytest.raises(HookThrew) as caught:
        loop.send()
    assert (caught.value.hook, caught.value.point, caught.value.name) == ("acts", "before_tool", "Boom")
    assert (loop.executed, len(loop.model.calls), len(hook.seen)) == ([], 1, 2)


# C4: after_tool.


@pytest.mark.parametrize("fails", [False, True])
def test_C4_a_string_swaps_the_text_and_keeps_the_error_mark(scripted: Scripted, form: str, fails: bool) -> None:
    def tool(_args: object) -> str:
        if fails:
            raise ValueError("bad")
        return "text"

    hook, loop = loop_with(scripted, form, {"after_tool": {"replace": "cut"}}, tool=tool)
    loop.send()
    output = "ValueError: bad" if fails else "text"
    assert hook.saw("result") == [{"name": "read", "args": FILLED, "output": output, "isError": fails}]
    assert loop.last_sent["content"] == "cut"
    (settled,) = (event for event in loop.events if isinstance(event, ToolDone | ToolFailed))
    assert (settled.content, isinstance(settled, ToolFailed)) == ("cut", fails)


@pytest.mark.parametrize("fails", [False, True])
def test_C4_a_full_output_may_change_the_error_mark(scripted: Scripted, form: str, fails: bool) -> None:
    def tool(_args: object) -> str:
        if fails:
            raise ValueError("bad")
        return "text"

    post = scripted("guest", "post", watching("post_tool_call"))
    replacement = {"output": "changed", "isError": not fails}
    _, loop = loop_with(scripted, form, {"after_tool": {"replace": replacement}}, tool=tool)
    loop.agent.hooks.register(post)
    loop.send()
    assert loop.last_sent["content"] == "changed"
    if fails:
        assert post.saw("result") == [{"result": "changed"}]
    else:
        assert post.saw("result") == [{"result": None, "error": {"kind": "tool", "message": "changed"}}]
    assert post.saw("origin") == ["tool"]


def test_C4_it_sees_what_a_tool_gave_as_text(scripted: Scripted, form: str) -> None:
    """And a value that nobody replaced reaches the model as it would have without the hook."""
    hook, loop = loop_with(scripted, form, {"after_tool": None}, tool=lambda _: {"n": 1})
    loop.send()
    assert hook.saw("result")[0]["output"] == loop.last_sent["content"] == '{"n": 1}'


def test_C4_it_fires_when_a_middleware_answered(scripted: Scripted, form: str) -> None:
    """▸ It fires only when something answered: a tool or a middleware."""
    app = App().use(tool=lambda _call, _next: {"content": "not now", "isError": True})
    hook, loop = loop_with(scripted, form, {"after_tool": None}, app=app)
    loop.send()
    assert (loop.executed, hook.saw("result")[0]["output"], hook.saw("result")[0]["isError"]) == ([], "not now", True)


@pytest.mark.parametrize(
    ("options", "pre"),
    [
        ({"turns": [calling({"name": "read", "args": {}}), "ok"]}, None),
        ({"turns": [calling({"name": "nothing", "args": {}}), "ok"]}, None),
        ({"permissions": [deny("read")]}, None),
        ({"guardrails": [lambda _call, _args: "no"]}, None),
        ({}, {"deny": "no"}),
        ({}, {"input": {"path": 1}}),
        ({}, {"result": "cached"}),
    ],
    ids=["validation", "no such tool", "rule", "guardrail", "denied", "hook's input", "hook's result"],
)
def test_C4_it_does_not_fire_where_nothing_answered(
    scripted: Scripted, form: str, options: dict[str, Any], pre: object
) -> None:
    """▸ Not for the engine's own errors; nor for a pre-hook's result, which no tool and no middleware gave."""
    hook, loop = loop_with(scripted, form, {"after_tool": {"replace": "seen"}}, **options)
    loop.agent.hooks.register(scripted("guest", "pre", {"pre_tool_call": pre}))
    loop.send()
    assert (loop.executed, hook.seen) == ([], [])
    assert loop.last_sent["content"] != "seen"


def test_C4_it_fires_after_an_approved_call_ran_and_not_at_the_pause(
    scripted: Scripted, form: str, backend: str
) -> None:
    """▸ A pause answers nothing, nor does a human's no."""
    hook, loop = loop_with(
        scripted, form, watching("after_tool"), permissions=[ask("read")], turns=[calling(), "hello", calling(), "bye"]
    )

    async def main() -> None:
        paused = await loop.agent.send("hi")
        assert paused.pending is not None
        assert hook.seen == []
        assert (await loop.agent.resume(paused.pending, {"c1": "approve"})).output == "hello"
        assert len(hook.seen) == 1
        paused = await loop.agent.send("hi")
        assert paused.pending is not None
        assert (await loop.agent.resume(paused.pending, {"c1": "deny"})).output == "bye"

    anyio.run(main, backend=backend)
    assert len(hook.seen) == 1


# C5: after_response.


def test_C5_it_fires_once_after_the_last_model_call(scripted: Scripted, form: str) -> None:
    """Once per turn's answer, however many calls led to it; a text beside tool calls is no answer."""
    model = scripted("guest", "model", watching("post_generate"))
    hook, loop = loop_with(
        scripted, form, watching("after_response"), turns=[{**calling(), "text": "let me see"}, calling(), "hello"]
    )
    loop.agent.hooks.register(model)
    result = loop.send()
    assert (len(model.seen), hook.saw("response")) == (3, ["hello"])
    assert [decision.point for decision in result.decisions][-2:] == ["post_generate", "after_response"]


def test_C5_the_answer_is_already_in_the_history(scripted: Scripted, form: str) -> None:
    """The table of points. A replaced response is the turn's output; the conversation keeps what the model said."""
    hook, loop = loop_with(scripted, form, {"after_response": {"replace": "bye"}}, turns=["hello"])
    result = loop.send()
    assert hook.saw("messages")[0][-1] == result.messages[-1] == {"role": "assistant", "content": "hello"}
    assert result.output == "bye"


def test_C5_it_waits_while_the_turn_waits_for_approval(scripted: Scripted, form: str, backend: str) -> None:
    """A pause is no answer; a turn is one `send` with its resumes."""
    hook, loop = loop_with(scripted, form, watching("before_prompt", "after_response"), permissions=[ask("read")])

    async def main() -> None:
        paused = await loop.agent.send("hi")
        assert paused.pending is not None
        assert hook.called_at == ["before_prompt"]
        await loop.agent.resume(paused.pending, {"c1": "approve"})

    anyio.run(main, backend=backend)
    assert hook.called_at == ["before_prompt", "after_response"]


def test_C5_streamed_runs_fire_the_same_hooks(scripted: Scripted, form: str, backend: str) -> None:
    """Agent-class hooks know no difference; the turn's end has what they replaced."""
    hook, loop = loop_with(scripted, form, {**watching(*ON_THE_WAY), "after_response": {"replace": "bye"}})

    async def main() -> object:
        stream = loop.agent.stream("hi")
        async for _ in stream:
            pass
        return stream.result.output

    assert anyio.run(main, backend=backend) == "bye"
    assert hook.called_at == ON_THE_WAY


# C6: on_error.


LEAVES: dict[str, dict[str, Any]] = {
    "the model": {"turns": [DOWN]},
    "a later model call": {"turns": [calling(), DOWN]},
    "tool middleware": {"app": App().use(tool=raises(DOWN))},
    "chat middleware": {"app": App().use(chat=raises(DOWN))},
    "a guardrail": {"guardrails": [raises(DOWN)]},
    "needs_approval": {"tool_options": {"needs_approval": raises(DOWN)}},
    "a guardrail of the tool": {"tool_options": {"guardrails": [raises(DOWN)]}},
}


@pytest.mark.parametrize("source", LEAVES)
def test_C6_it_sees_every_exception_that_leaves_the_turn(scripted: Scripted, form: str, source: str) -> None:
    """Returning nothing lets the very same error go on."""
    hook, loop = loop_with(scripted, form, watching("on_error", "after_response"), **LEAVES[source])
    with pytest.raises(ValueError, match="down") as caught:
        loop.send()
    assert caught.value is DOWN
    assert hook.called_at == ["on_error"]
    assert hook.saw("error") == [{"name": "ValueError", "message": "down"}]


@pytest.mark.parametrize("point", ["pre_generate", "post_generate", "pre_tool_call", "post_tool_call", *ON_THE_WAY])
@pytest.mark.parametrize("thrower", ["host", "guest"])
def test_C6_it_sees_what_hooks_throw(scripted: Scripted, form: str, point: str, thrower: str) -> None:
    """C3's and P11's among them, also those of ``after_response``; told by what the hook threw, and by its name."""
    hook, loop = loop_with(scripted, form, {"on_error": {"replace": "sorry"}})
    loop.agent.hooks.register(scripted(thrower, "bad", {point: THROW}))
    result = loop.send()
    assert hook.saw("error") == [{"name": "Boom", "message": "it broke", "hook": "bad"}]
    assert result.output == "sorry"
    assert isinstance(result.error, HookThrew)
    assert result.error.point == point


def test_C6_it_sees_failures_that_nobody_threw(scripted: Scripted, form: str) -> None:
    """P11: a trap and an invalid outcome leave the turn under ``raise`` as well, by the engine's name for them."""
    for outcome, name in (({"!trap": True}, "HookCrashed"), ({"nonsense": 1}, "OutcomeInvalid")):
        hook, loop = loop_with(scripted, form, {"on_error": {"replace": "sorry"}})
        loop.agent.hooks.register(scripted("guest", "bad", {"pre_tool_call": outcome}))
        assert loop.send().output == "sorry"
        assert [(error["name"], error["hook"]) for error in hook.saw("error")] == [(name, "bad")]


def test_C6_it_sees_what_its_own_class_throws(scripted: Scripted, form: str) -> None:
    """It sees every exception, whoever threw it."""
    hook, loop = loop_with(scripted, form, {"before_tool": THROW, "on_error": {"replace": "sorry"}})
    assert loop.send().output == "sorry"
    assert hook.called_at == ["before_tool", "on_error"]
    assert hook.saw("error")[1] == {"name": "Boom", "message": "it broke", "hook": "acts"}


def test_C6_it_sees_the_loops_own_errors(scripted: Scripted, form: str) -> None:
    hook, loop = loop_with(scripted, form, watching("on_error"), turns=[calling()] * 2, max_steps=2)
    with pytest.raises(StepLimitReached):
        loop.send()
    assert [error["name"] for error in hook.saw("error")] == ["StepLimitReached"]


def test_C6_it_never_sees_a_cancellation(scripted: Scripted, form: str, backend: str) -> None:
    hook, loop = loop_with(scripted, form, {"on_error": {"replace": "sorry"}}, app=App().use(tool=wait_for_ever))

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(loop.agent.send, "hi")
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught

    anyio.run(main, backend=backend)
    assert hook.seen == []


async def wait_for_ever(_call: object, _next: object) -> None:
    """A middleware that never answers."""
    await anyio.sleep_forever()


def test_C6_it_never_sees_an_approval_pause_or_a_tool_error(scripted: Scripted, form: str) -> None:
    """Nor any other error that goes to the model: those are the turn's business."""
    hook, loop = loop_with(scripted, form, {"on_error": {"replace": "sorry"}}, permissions=[ask("read")])
    assert loop.send().pending is not None
    for options in (
        {"tool": raises(DOWN)},
        {"permissions": [deny("read")]},
        {"app": App().use(tool=lambda _call, _next: {"content": "no", "isError": True})},
        {"turns": [calling({"name": "nothing"}), "hello"]},
    ):
        also, loop = loop_with(scripted, form, {"on_error": {"replace": "sorry"}}, **options)
        assert loop.send().output == "hello"
        assert also.seen == []
    assert hook.seen == []


def test_C6_a_hook_that_fails_closed_is_a_tool_error_and_no_exception(scripted: Scripted, form: str) -> None:
    """P11's ``deny`` and ``skip`` keep the failure in the turn."""
    for policy in ("deny", "skip"):
        hook, loop = loop_with(scripted, form, {"on_error": {"replace": "sorry"}})
        loop.agent.hooks.register(scripted("guest", "bad", {"pre_tool_call": THROW}, on_failure=policy))
        result = loop.send()
        assert (result.output, [failure.policy for failure in result.failures]) == ("hello", [policy])
        assert hook.seen == []


def test_C6_a_value_becomes_the_agents_output(scripted: Scripted, form: str, backend: str) -> None:
    """A crash turns into a degraded answer, which stands in the conversation; ``after_response`` does not run on it."""
    hook, loop = loop_with(
        scripted, form, {"on_error": {"replace": "sorry"}, "after_response": {"replace": "never"}}, turns=[DOWN, "ok"]
    )
    run = RunState()
    result = loop.send(state=run, backend=backend)
    assert (result.output, result.error, hook.called_at) == ("sorry", DOWN, ["on_error"])
    assert [message["content"] for message in run.history] == ["hi", "sorry"]
    assert loop.send("again", state=run, backend=backend).output == "never", "the run goes on"


def test_C6_calls_that_the_turn_left_open_get_a_result_that_says_so(scripted: Scripted, form: str) -> None:
    """▸ So that the conversation can go on; also where nothing makes an answer of the error."""
    _, loop = loop_with(scripted, form, {"on_error": None}, app=App().use(tool=raises(DOWN)))
    run = RunState()
    with pytest.raises(ValueError, match="down"):
        loop.send(state=run)
    *_, said, result = run.history
    assert said["toolCalls"] == [{**CALL, "args": FILLED}]
    assert (result["role"], result["toolCallId"]) == ("tool", "c1")
    assert "cut short before this call had a result" in str(result["content"])
    assert loop.send("again", state=run).output == "hello"


def test_C6_a_value_from_within_a_batch_leaves_a_whole_conversation(scripted: Scripted, form: str) -> None:
    """Each call has its result before the answer, so that a next turn can go on."""
    hook, loop = loop_with(scripted, form, {"on_error": {"replace": "sorry"}}, guardrails=[raises(DOWN)])
    result = loop.send()
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert [message["role"] for message in hook.saw("messages")[0]] == ["user", "assistant", "tool"]


def test_C6_a_throw_inside_it_is_the_new_error_with_the_first_as_its_cause(scripted: Scripted, form: str) -> None:
    """▸ Neither hides the other."""
    hook, loop = loop_with(scripted, form, {"on_error": THROW}, turns=[DOWN])
    late = scripted("guest", "late", {"on_error": {"replace": "sorry"}})
    loop.agent.hooks.register(late)
    with pytest.raises(HookThrew) as caught:
        loop.send()
    assert (caught.value.hook, caught.value.point, caught.value.message) == ("acts", "on_error", "it broke")
    causes = list(causes_of(caught.value))
    assert causes[-1] is DOWN
    # A host hook's own exception stands between the two.
    assert [type(cause).__name__ for cause in causes[:-1]] == ([] if form == "guest" else ["Boom"])
    assert (len(hook.seen), late.seen) == (1, [])


def causes_of(error: BaseException) -> list[BaseException]:
    """Its causes, the nearest first."""
    causes: list[BaseException] = []
    while error.__cause__ is not None:
        error = error.__cause__
        causes.append(error)
    return causes


def test_C6_a_skipped_failure_inside_it_lets_the_first_error_go_on(scripted: Scripted, kind: str) -> None:
    """P11's ``skip``: as if that hook had said nothing."""
    bad = scripted(kind, "bad", {"on_error": THROW}, on_failure="skip")
    loop = Loop(bad, turns=[DOWN])
    with pytest.raises(ValueError, match="down") as caught:
        loop.send()
    assert caught.value is DOWN
    assert len(bad.seen) == 1
