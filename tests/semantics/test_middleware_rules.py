"""C8 to C10: an agent with a run of its own, middleware, and the order of everything in one turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pydantic
import pytest

from hookcell.agent import (
    App,
    ModelResponse,
    Permissions,
    Rule,
    RunState,
    StepContext,
    ToolDone,
    ToolFailed,
    ToolOutput,
    ToolRun,
    ask,
    define_tool,
    deny,
    state_slice,
)

from .driving import ARGS, FILLED
from .looping import (
    CALL,
    DOWN,
    METHODS,
    Loop,
    Script,
    Scripted,
    acting,
    calling,
    loop_with,
    raises,
    watching,
)
from .scripting import ScriptedGuest

# C8: an agent with a run of its own.


class Rounds(pydantic.BaseModel):
    """A typed slice of the state."""

    rounds: int = 0


def stepping(
    scripted: Scripted, form: str, script: Script, run: Callable[..., Any], **options: Any
) -> tuple[Any, Loop]:
    """A loop whose agent class has this ``run(input, ctx)``, and a hook of this form."""
    hook, where = acting(scripted, form, script)
    agent_class = where.setdefault("agent_class", type("Step", (), {})())
    agent_class.run = run
    return hook, Loop(**where, **options)


def test_C8_no_agent_class_hook_fires(scripted: Scripted, form: str, backend: str) -> None:
    """The step is its own: what it returns is the output, and round its tool calls no such hook fires either."""

    async def run(content: str, ctx: StepContext) -> str:
        read = await ctx.call_tool("read", ARGS)
        return f"{content}: {read.content}"

    hook, loop = stepping(scripted, form, {point: {"replace": "never"} for point in METHODS}, run)
    result = loop.send("say", backend=backend)
    assert (result.output, loop.executed, hook.seen, loop.model.calls) == ("say: text", [FILLED], [], [])


def test_C8_on_error_does_not_fire_either(scripted: Scripted, form: str) -> None:
    """``on_error`` included: what the step raises leaves the turn as it is."""
    hook, loop = stepping(scripted, form, {"on_error": {"replace": "sorry"}}, raises(DOWN))
    with pytest.raises(ValueError, match="down") as caught:
        loop.send()
    assert caught.value is DOWN
    assert hook.seen == []


def test_C8_its_tool_calls_pass_the_gates_of_P3(scripted: Scripted, kind: str) -> None:
    """▸ Validation, pipeline hooks, rules, guardrails, middleware, post-hooks: each has its say."""
    outputs: list[ToolOutput] = []
    happened: list[str] = []

    async def run(_content: str, ctx: StepContext) -> None:
        outputs.extend([await ctx.call_tool("read", {"path": path}) for path in ("a.txt", "secret", "guarded", 1)])
        outputs.append(await ctx.call_tool("write", {}))

    def layer(call: ToolRun, proceed: Callable[[], Any]) -> Any:
        happened.append(f"middleware {call.args['path']}")
        return proceed()

    script = {
        "pre_tool_call": None,
        "pre_tool_call/write": {"deny": "no writing"},
        "post_tool_call": None,
        "post_tool_call/read": {"result": "redacted"},
    }
    hook = scripted(kind, "hook", script)
    write = define_tool("write", input={"type": "object"}, execute=lambda _: pytest.fail("it ran"))
    loop = Loop(
        hook,
        agent_class=type("Step", (), {"run": staticmethod(run)}),
        permissions=[deny("read", args={"path": "secret"}, reason="a rule")],
        guardrails=[lambda _call, args: "a guardrail" if args.get("path") == "guarded" else None],
        app=App().use(tool=layer),
        tools=[write],
    )
    loop.send()
    said = [("redacted", False), ("a rule", True), ("a guardrail", True)]
    assert [(output.content, output.is_error) for output in (*outputs[:3], outputs[4])] == [*said, ("no writing", True)]
    assert "do not fit the schema" in str(outputs[3].content)
    assert (loop.executed, happened) == ([FILLED], ["middleware a.txt"])
    origins = [context["origin"] for point, context in hook.seen if point == "post_tool_call"]
    assert origins == ["tool", "denied", "refused", "validation", "denied"]


@pytest.mark.parametrize("options", [{"permissions": [ask("read")]}, {"tool_options": {"needs_approval": True}}])
def test_C8_a_call_that_needs_approval_is_refused(options: dict[str, Any]) -> None:
    """▸ It passes P3's approval too, and a step of Python cannot be kept while a human thinks: it fails closed."""

    async def run(_content: str, ctx: StepContext) -> object:
        output = await ctx.call_tool("read", ARGS)
        return output.content if output.is_error else "it ran"

    loop = Loop(agent_class=type("Step", (), {"run": staticmethod(run)}), **options)
    assert "cannot wait for it" in str(loop.send().output)
    assert loop.executed == []


def test_C8_the_step_has_the_runs_state_data_and_meta() -> None:
    """The same as hooks have (C7): it lasts as long as the run, and the conversation is the step's to write."""

    class Step:
        s = state_slice(Rounds)

        def run(self, content: str, ctx: StepContext) -> dict[str, object]:
            self.s.rounds += 1
            ctx.state.append("memory", content)
            ctx.history.append({"role": "user", "content": content})
            ctx.metadata["seen"] = True
            ctx.meta({"user": ctx.data["user"]})
            return {"rounds": self.s.rounds}

    run = RunState(data={"user": "ada"})
    loop = Loop(agent_class=Step)
    loop.send("one", state=run)
    result = loop.send("two", state=run)
    assert (result.output, result.meta) == ({"rounds": 2}, {"user": "ada"})
    assert (run.state.memory, run.metadata) == (["one", "two"], {"seen": True})
    assert [message["content"] for message in result.messages] == ["one", "two"]


# C9: middleware.


def test_C9_layers_lie_in_the_order_of_their_use() -> None:
    """``app.use(tool=…, chat=…)``: the first is the outermost; each wraps the whole tool run or model call."""
    happened: list[str] = []

    def layer(name: str) -> Callable[..., Any]:
        async def middleware(_what: object, proceed: Callable[[], Any]) -> Any:
            happened.append(f"{name} in")
            answer = await proceed()
            happened.append(f"{name} out")
            return answer

        return middleware

    app = App().use(tool=layer("tool 1"), chat=layer("chat 1")).use(tool=layer("tool 2")).use(chat=layer("chat 2"))
    Loop(app=app, tool=lambda _: happened.append("tool")).send()
    chat = ["chat 1 in", "chat 2 in", "chat 2 out", "chat 1 out"]
    assert happened == [*chat, "tool 1 in", "tool 2 in", "tool", "tool 2 out", "tool 1 out", *chat]


def test_C9_it_is_app_wide() -> None:
    """Every agent of the app has it, one added later included."""
    seen: list[tuple[str, str]] = []
    app = App()
    one, two = Loop(app=app, name="one"), Loop(app=app, name="two")
    app.use(tool=lambda call, proceed: seen.append((call.agent_name, call.name)) or proceed())
    one.send()
    two.send()
    assert seen == [("one", "read"), ("two", "read")]


def test_C9_C10_it_sees_the_arguments_that_will_really_execute(scripted: Scripted, form: str) -> None:
    """`before_tool` runs above it and is no security control: what it rewrote is what a middleware judges."""
    judged: list[object] = []

    def no_secrets(call: ToolRun, proceed: Callable[[], Any]) -> Any:
        judged.append(call.args)
        return {"content": "not that file", "isError": True} if call.args["path"] == "secret" else proceed()

    script = {"before_tool": {"replace": {**CALL, "args": {"path": "secret"}}}}
    _, loop = loop_with(scripted, form, script, app=App().use(tool=no_secrets))
    loop.agent.hooks.register(scripted("guest", "more", {"pre_tool_call": {"input": {"path": "secret", "lines": 1}}}))
    assert loop.send().output == "hello"
    assert (judged, loop.executed) == ([{"path": "secret", "lines": 1}], [])
    assert loop.last_sent["content"] == "not that file"


def test_C9_what_it_does_to_the_arguments_changes_nothing() -> None:
    """It sees the arguments that will really execute; changing them is the hooks' part, which passes the gates."""

    def meddles(call: ToolRun, proceed: Callable[[], Any]) -> Any:
        call.args["path"] = "secret"  # type: ignore[index]  # that is the point
        return proceed()

    loop = Loop(app=App().use(tool=meddles))
    loop.send()
    assert loop.executed == [FILLED]


@pytest.mark.parametrize(
    ("answer", "content", "fails"),
    [
        ("cached", "cached", False),
        ({"content": {"n": 1}}, '{"n": 1}', False),
        ({"content": "no", "isError": True}, "no", True),
        (ToolOutput(content="no", is_error=True), "no", True),
    ],
)
def test_C9_it_may_answer_without_next(answer: object, content: str, fails: bool) -> None:
    """Then the tool does not run."""
    loop = Loop(app=App().use(tool=lambda _call, _next: answer))
    loop.send()
    assert (loop.executed, loop.last_sent["content"]) == ([], content)
    (settled,) = (event for event in loop.events if isinstance(event, ToolDone | ToolFailed))
    assert isinstance(settled, ToolFailed) is fails


def test_C9_an_answer_with_the_error_mark_is_the_recoverable_deny(scripted: Scripted, form: str) -> None:
    """``{content, isError: true}``: the model reads the refusal and tries something else; no `on_error` is asked."""
    again = {"id": "c2", "name": "read", "args": {"path": "b.txt"}}
    app = App().use(
        tool=lambda call, proceed: {"content": "try b.txt", "isError": True} if call.call_id == "c1" else proceed()
    )
    hook, loop = loop_with(
        scripted, form, watching("after_tool", "on_error"), app=app, turns=[calling(), calling(again), "hello"]
    )
    assert loop.send().output == "hello"
    assert loop.executed == [{"path": "b.txt", "lines": 20}]
    assert [(result["output"], result["isError"]) for result in hook.saw("result")] == [
        ("try b.txt", True),
        ("text", False),
    ]
    (failed,) = (event for event in loop.events if isinstance(event, ToolFailed))
    assert (failed.error.kind, failed.error.hook) == ("tool", None)


def test_C9_next_gives_what_is_inside_and_may_be_called_again() -> None:
    """A retry is a middleware: whatever it answers stands."""
    outputs: list[ToolOutput] = []

    async def retry(_call: ToolRun, proceed: Callable[[], Any]) -> ToolOutput:
        outputs.extend([await proceed(), await proceed()])
        return outputs[-1]

    def tool(_args: object) -> str:
        if not outputs and len(loop.executed) == 1:
            raise ValueError("busy")
        return "text"

    loop = Loop(app=App().use(tool=retry), tool=tool)
    loop.send()
    assert outputs == [ToolOutput(content="ValueError: busy", is_error=True), ToolOutput(content="text")]
    assert (len(loop.executed), loop.last_sent["content"]) == (2, "text")


def test_C9_it_wraps_model_calls_as_they_are_sent(scripted: Scripted, form: str) -> None:
    """It sees what `before_prompt` and `pre_generate` made of the request, and may answer without the model."""
    requests: list[Any] = []

    def chat(request: Any, proceed: Callable[[], Any]) -> Any:
        requests.append(request)
        return proceed() if len(requests) == 1 else ModelResponse(text="cached")

    _, loop = loop_with(scripted, form, {"before_prompt": {"replace": "be brief"}}, app=App().use(chat=chat))
    patch = [{"op": "add", "path": "/request/temperature", "value": 0}]
    loop.agent.hooks.register(scripted("guest", "cold", {"pre_generate": {"patch": patch}}))
    assert loop.send().output == "cached"
    assert [request.messages[0]["content"] for request in requests] == ["be brief"] * 2
    assert [request.options for request in requests] == [{"temperature": 0}] * 2
    assert len(loop.model.calls) == 1


def test_C9_a_call_that_a_gate_stopped_never_comes_to_it(scripted: Scripted, form: str) -> None:
    """It wraps the run of a tool, and there is none."""
    reached: list[object] = []
    app = App().use(tool=lambda call, proceed: reached.append(call) or proceed())
    hook, loop = loop_with(scripted, form, watching("before_tool"), app=app, permissions=[deny("read")])
    loop.send()
    loop = Loop(scripted("guest", "no", {"pre_tool_call": {"result": "cached"}}), app=app)
    loop.send()
    assert (reached, len(hook.seen)) == ([], 1)


@pytest.mark.parametrize("answer", [None, 1, {"isError": True}, {"content": "x", "more": 1}])
def test_C9_an_answer_of_another_shape_leaves_the_turn(answer: object) -> None:
    """It is host code: a mistake of the host's is no tool error."""
    with pytest.raises(TypeError, match="a tool middleware answers with"):
        Loop(app=App().use(tool=lambda _call, _next: answer)).send()
    with pytest.raises(TypeError, match="a chat middleware answers with"):
        Loop(app=App().use(chat=lambda _request, _next: answer)).send()


# C10: the order of everything.


class Story:
    """One list of all that happened: hooks of both kinds and the host's own code write into it."""

    def __init__(self) -> None:
        self._happened: list[Any] = []

    def told_by(self, *hooks: Any) -> None:
        """Have scripted hooks write here what they see."""
        for hook in hooks:
            if isinstance(hook, ScriptedGuest):
                hook.sandbox.crossed = self._happened
            else:
                hook.implementation.seen = self._happened

    def told(self, what: str, value: Any = None) -> Any:
        """Note that something happened; gives ``value``."""
        self._happened.append(what)
        return value

    @property
    def lines(self) -> list[str]:
        """What happened, in order: points, each with its call's path, and notes."""
        return [each if isinstance(each, str) else self._line(each) for each in self._happened]

    @staticmethod
    def _line(seen: Any) -> str:
        point, context = (seen["point"], seen) if isinstance(seen, dict) else seen
        args = context.get("args") or (context.get("call") or context.get("result") or {}).get("args")
        return f"{point} {args['path']}" if args else point


def told_loop(scripted: Scripted, form: str, kind: str, **options: Any) -> tuple[Story, Loop]:
    """A loop with hooks of both families at every point, and all of the host's own code, telling one story."""
    story = Story()
    pipeline = scripted(kind, "pipeline", watching("pre_generate", "post_generate", "pre_tool_call", "post_tool_call"))
    acts, where = acting(scripted, form, watching(*METHODS))
    story.told_by(pipeline, acts)

    class Rules(Permissions):
        def judge(self, tool: str, args: Mapping[str, object]) -> Rule:
            return story.told(f"rules {args['path']}", super().judge(tool, args))

    app = App().use(
        tool=lambda call, proceed: story.told(f"middleware {call.args['path']}", proceed)(),
        chat=lambda _request, proceed: story.told("chat", proceed)(),
    )
    loop = Loop(
        pipeline,  # before an agent-class hook of the same list: the family decides, not the place
        *where.get("hooks", ()),
        agent_class=where.get("agent_class"),
        permissions=Rules(),
        guardrails=[lambda _call, args: story.told(f"guardrail {args['path']}")],
        tool_options={
            "guardrails": [lambda _call, args: story.told(f"tool guardrail {args['path']}")],
            "needs_approval": lambda args: story.told(f"approval {args['path']}", False),
        },
        tool=lambda args: story.told(f"execute {args['path']}", "text"),
        app=app,
        **options,
    )
    return story, loop


def gates(path: str) -> list[str]:
    """What a call passes before it runs."""
    return [
        f"{gate} {path}"
        for gate in ("before_tool", "pre_tool_call", "rules", "guardrail", "tool guardrail", "approval")
    ]


GENERATION = ["pre_generate", "chat", "post_generate"]


def test_C10_the_order_of_all_in_one_turn(scripted: Scripted, form: str, kind: str, backend: str) -> None:
    """▸ ``before_tool`` → ``pre_tool_call`` → rules → guardrails → approval → middleware → execute → ``after_tool`` →
    ``post_tool_call``; the prompt before all of it, the response after."""
    story, loop = told_loop(scripted, form, kind)
    loop.send(backend=backend)
    assert story.lines == [
        "before_prompt",
        *GENERATION,
        *gates("a.txt"),
        "middleware a.txt",
        "execute a.txt",
        "after_tool a.txt",
        "post_tool_call a.txt",
        *GENERATION,
        "after_response",
    ]


def test_C10_in_a_batch_each_call_has_this_order(scripted: Scripted, form: str, kind: str) -> None:
    """▸ Gates one call after the other, executions at the same time, the rest again in call order (P3)."""
    second = {**CALL, "id": "c2", "args": {"path": "b"}}
    story, loop = told_loop(scripted, form, kind, turns=[calling(CALL, second), ""])
    loop.send()
    calls = story.lines[4 : -len(GENERATION) - 1]
    assert calls[:12] == [*gates("a.txt"), *gates("b")]
    assert sorted(calls[12:16]) == ["execute a.txt", "execute b", "middleware a.txt", "middleware b"]
    assert calls[16:] == [f"{point} {path}" for path in ("a.txt", "b") for point in ("after_tool", "post_tool_call")]


def test_C10_validation_comes_first(scripted: Scripted, form: str, kind: str) -> None:
    """▸ `before_tool` sees the defaults filled in; arguments that do not fit come to no gate, and to no middleware."""
    acts, where = acting(scripted, form, watching("before_tool"))
    pipeline = scripted(kind, "pipeline", watching("pre_tool_call", "post_tool_call"))
    hooks = [pipeline, *where.get("hooks", ())]
    loop = Loop(*hooks, agent_class=where.get("agent_class"))
    loop.send()
    assert acts.saw("call")[0]["args"] == pipeline.saw("args")[0] == FILLED
    story, loop = told_loop(scripted, form, kind, turns=[calling({**CALL, "args": {"path": 1}}), "hello"])
    loop.send()
    assert story.lines[4:-4] == ["post_tool_call 1"]


def test_C10_pre_hooks_and_rules_see_what_before_tool_rewrote(scripted: Scripted, form: str, kind: str) -> None:
    """▸ And ``after_tool`` what the pre-hooks made of that; a post-hook has the last word on the result."""
    script = {
        "before_tool": {"replace": {**CALL, "args": {"path": "b.txt"}}},
        "after_tool": {"replace": "from after_tool"},
    }
    acts, where = acting(scripted, form, script)
    final = {"path": "c.txt", "lines": 1}
    more = {"pre_tool_call": {"input": final}, "post_tool_call": {"result": "from post_tool_call"}}
    pipeline = scripted(kind, "pipeline", more)
    judged: list[object] = []
    loop = Loop(
        pipeline,
        *where.get("hooks", ()),
        agent_class=where.get("agent_class"),
        guardrails=[lambda _call, args: judged.append(args)],
    )
    loop.send()
    assert pipeline.saw("args") == [{"path": "b.txt", "lines": 20}, final]
    assert (judged, loop.executed, acts.saw("result")[1]["args"]) == ([final], [final], final)
    assert pipeline.saw("result")[1] == {"result": "from after_tool"}
    assert loop.last_sent["content"] == "from post_tool_call"


def test_C10_a_deny_by_a_pre_hook_leaves_before_tool_alone_to_have_run(scripted: Scripted, form: str) -> None:
    """▸ No rule, no middleware and no ``after_tool`` is asked of a call that a pre-hook settled."""
    story, loop = told_loop(scripted, form, "host")
    loop.agent.hooks.register(scripted("guest", "no", {"pre_tool_call": {"deny": "no"}}))
    loop.send()
    assert story.lines[4:-4] == ["before_tool a.txt", "pre_tool_call a.txt", "post_tool_call a.txt"]
