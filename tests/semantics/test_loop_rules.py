"""The pipeline hooks in a whole turn: P3, P12 to P14, and what a run shows of P4 to P7, P10 and P11."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from hookcell import (
    ABSENT,
    ContextInvalid,
    HookCrashed,
    HookFailure,
    HookRegistry,
    HookThrew,
    OutcomeInvalid,
    ToolCall,
)
from hookcell.agent import (
    App,
    Compaction,
    CompactionDone,
    CompactionStarted,
    Deny,
    ModelResponse,
    Permissions,
    Rule,
    RunState,
    TextDelta,
    ToolDone,
    ToolFailed,
    ToolStarted,
    Usage,
    ask,
    create_agent,
    define_tool,
    deny,
    mock_model,
)

from .driving import ARGS, FILLED, SCHEMA
from .looping import CALL, DOWN, THROW, Scripted, calling, raises, watching
from .watched import Story, Watched, results, shapes

TOOL_POINTS = ["pre_tool_call", "post_tool_call"]
GENERATE_POINTS = ["pre_generate", "post_generate"]
THREE = [{**CALL, "id": each} for each in ("c1", "c2", "c3")]

STARTED: dict[str, object] = {"type": "compaction.start", "tokens": 9}
DONE: dict[str, object] = {"type": "compaction.done", "tokens": 3}


def put(path: str, value: object) -> dict[str, object]:
    return {"op": "replace", "path": path, "value": value}


def add(path: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": path, "value": value}


def patched(*operations: dict[str, object]) -> dict[str, object]:
    return {"patch": list(operations)}


# P3: one call.


def every_gate(hook: Any, story: Story, **options: Any) -> Watched:
    """A loop whose every gate writes into the story."""

    class Rules(Permissions):
        def judge(self, tool: str, args: Mapping[str, object]) -> Rule:
            return story.told("rules", super().judge(tool, args))

    rules = options.pop("rules", ())
    return Watched(
        hook,
        permissions=Rules(rules=tuple(rules)),
        **{
            "guardrails": [lambda call, args: story.told("guardrail")],
            "tool_options": {
                "guardrails": [lambda call, args: story.told("tool guardrail")],
                "needs_approval": lambda args: story.told("needs_approval", True),
            },
            "tool": lambda args: story.told("execute", "text"),
            **options,
        },
    )


def test_P3_one_call_passes_every_gate_in_order(scripted: Scripted, kind: str, backend: str) -> None:
    """Validate → ``pre_tool_call`` → rules → guardrails → ``needs_approval`` → pause → execute → ``post_tool_call``."""
    hook = scripted(kind, "h", watching(*TOOL_POINTS))
    story = Story(hook)
    loop = every_gate(hook, story)
    paused = loop.send(backend=backend)
    before = ["h pre_tool_call c1", "rules", "guardrail", "tool guardrail"]
    assert story.lines == [*before, "needs_approval", "h post_tool_call c1"]
    assert hook.saw("args") == [FILLED, FILLED]
    story.told("resumed")
    loop.resume(paused.pending, "approve", backend=backend)
    assert story.lines[6:] == ["resumed", *before, "execute", "h post_tool_call c1"]
    assert hook.saw("origin") == [ABSENT, "approval", ABSENT, "tool"]


STOPS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "hook denies": ({"deny": "no"}, {}, "h pre_tool_call c1"),
    "hook answers": ({"result": "mine"}, {}, "h pre_tool_call c1"),
    "rule": (None, {"rules": [deny("read")]}, "rules"),
    "guardrail": (None, {"guardrails": [lambda call, args: "no"]}, "rules"),
    "tool guardrail": (None, {"tool_options": {"guardrails": [lambda call, args: "no"]}}, "guardrail"),
    "approval": (None, {}, "needs_approval"),
}


@pytest.mark.parametrize("gate", STOPS)
def test_P3_what_a_gate_stops_comes_to_no_later_one(scripted: Scripted, kind: str, gate: str) -> None:
    outcome, options, last = STOPS[gate]
    hook = scripted(kind, "h", {"pre_tool_call": outcome, "post_tool_call": None})
    story = Story(hook)
    loop = every_gate(hook, story, **options)
    loop.send()
    assert (story.lines[-2:], loop.executed) == ([last, "h post_tool_call c1"], [])


BAD_CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "a value of another type": ({**CALL, "args": {"path": 1}}, "the arguments do not fit the schema of 'read'"),
    "an unknown argument": ({**CALL, "args": {"path": "a", "depth": 1}}, "the arguments do not fit the schema"),
    "no object": ({**CALL, "args": "path"}, "the arguments are a str, not an object"),
    "a tool that is not there": ({**CALL, "name": "write"}, "there is no tool 'write'; there is read"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_P3_a_call_that_is_not_valid_skips_the_pre_hooks(scripted: Scripted, kind: str, case: str) -> None:
    """▸ Arguments that fail the first validation skip the pre-hooks, and so does a call of a tool that is not there;
    post-hooks see the error. No gate is asked."""
    call, message = BAD_CALLS[case]
    hook = scripted(kind, "h", watching(*TOOL_POINTS))
    story = Story(hook)
    loop = every_gate(hook, story, turns=[calling(call), "sorry"])
    assert loop.send().output == "sorry"
    assert (story.lines, loop.executed, loop.decisions) == (["h post_tool_call c1"], [], [])
    assert hook.saw("origin") == ["validation"]
    assert (error := hook.saw("result")[0]["error"])["kind"] == "validation"
    assert error["message"].startswith(message)
    assert loop.last_sent["content"] == error["message"]


# P3: several calls of one turn.


def test_P3_gates_and_post_hooks_run_in_call_order_and_executions_in_parallel(
    scripted: Scripted, kind: str, backend: str
) -> None:
    """▸ All executions begin before one ends, and the last call's ends first."""
    hook = scripted(kind, "h", watching(*TOOL_POINTS))
    story = Story(hook)
    steps = {"c1": 30, "c2": 20, "c3": 10}

    async def execute(args: dict[str, str]) -> str:
        story.told(f"{args['path']} begins")
        for _ in range(steps[args["path"]]):
            await anyio.lowlevel.checkpoint()
        return story.told(f"{args['path']} ends", f"text of {args['path']}")

    async def guardrail(call: ToolCall, args: dict[str, object]) -> None:
        await anyio.lowlevel.checkpoint()  # whoever could come between, would
        story.told(f"guardrail {call.id}")

    agent = create_agent(
        provider=mock_model([calling(*({**each, "args": {"path": each["id"]}} for each in THREE)), "hello"]),
        tools=[define_tool("read", input=SCHEMA.document, execute=execute)],
        hooks=[hook],
        guardrails=[guardrail],
    )
    result = anyio.run(agent.send, "hi", backend=backend)
    gates = [line for each in ("c1", "c2", "c3") for line in (f"h pre_tool_call {each}", f"guardrail {each}")]
    assert story.lines[:6] == gates
    assert sorted(story.lines[6:9]) == ["c1 begins", "c2 begins", "c3 begins"]
    assert story.lines[9:12] == ["c3 ends", "c2 ends", "c1 ends"]
    assert story.lines[12:] == [f"h post_tool_call {each}" for each in ("c1", "c2", "c3")]
    assert results(result) == [(each, f"text of {each}") for each in ("c1", "c2", "c3")]


def test_P3_a_call_that_is_stopped_leaves_the_others_alone(scripted: Scripted, kind: str) -> None:
    hook = scripted(kind, "h", {"pre_tool_call/write": {"deny": "read only"}, "post_tool_call": None})
    write = define_tool("write", input={"type": "object"}, execute=raises(AssertionError()))
    broken = define_tool("broken", input={"type": "object"}, execute=raises(DOWN))
    calls = [{"name": name, "id": name, "args": {}} for name in ("write", "broken", "nothing")]
    loop = Watched(hook, turns=[calling(*calls, CALL), "hello"], tools=[write, broken])
    result = loop.send()
    assert loop.executed == [FILLED]
    assert [call for call, _ in results(result)] == ["write", "broken", "nothing", "c1"]
    assert hook.saw("origin")[-4:] == ["denied", "tool", "validation", "tool"]


# P4 to P7 in a run.


def test_P4_the_stream_carries_an_error_and_the_listener_hears_who_denied(
    scripted: Scripted, kind: str, backend: str
) -> None:
    """Tool error of kind ``denied`` on the stream; ``decision="deny"`` with ``hook`` and ``reason``."""
    loop = Watched(scripted(kind, "guard", {"pre_tool_call": {"deny": "use search"}}))
    events, _ = loop.stream(backend=backend)
    failed = [event for event in events if isinstance(event, ToolFailed)]
    assert [(each.call_id, each.error.kind, each.error.hook, each.content) for each in failed] == [
        ("c1", "denied", "guard", "use search")
    ]
    assert not any(isinstance(event, ToolStarted | ToolDone) for event in events)
    (told,) = loop.decisions
    assert (told.decision, told.source, told.hook, told.reason) == ("deny", "hook", "guard", "use search")
    assert (told.call_id, told.tool, told.args) == ("c1", "read", FILLED)
    assert loop.last_sent == {"role": "tool", "toolCallId": "c1", "name": "read", "content": "use search"}


def test_P4_an_empty_reason_is_told_as_a_deny(scripted: Scripted, kind: str) -> None:
    """▸ The key's presence decides."""
    loop = Watched(scripted(kind, "guard", {"pre_tool_call": {"deny": ""}}))
    loop.send()
    assert [(told.decision, told.hook, told.reason) for told in loop.decisions] == [("deny", "guard", "")]
    assert loop.executed == []


def test_P4_the_model_gets_what_a_human_deny_gives(scripted: Scripted, kind: str) -> None:
    """The same tool error of kind ``denied``: only the hook's name, which the model is not told, differs."""
    by_hook = Watched(scripted(kind, "guard", {"pre_tool_call": {"deny": "not now"}}))
    by_hook.send()
    by_human = Watched(tool_options={"needs_approval": True})
    by_human.resume(by_human.send().pending, Deny(reason="not now"))
    assert by_hook.last_sent == by_human.last_sent
    errors = [event.error for loop in (by_hook, by_human) for event in loop.events if isinstance(event, ToolFailed)]
    assert [(error.kind, error.message, error.hook) for error in errors] == [
        ("denied", "not now", "guard"),
        ("denied", "not now", None),
    ]


@pytest.mark.parametrize("value", ["mine", {"rows": 3}, None, 0, False, ""])
def test_P5_the_event_and_the_message_say_which_hook_answered(scripted: Scripted, kind: str, value: object) -> None:
    """``replacedByHook`` on ``tool.done`` and in the tool message's metadata; no rule or approval is asked. ▸ ``null``
    is a value."""
    hook = scripted(kind, "cache", {"pre_tool_call": {"result": value}})
    loop = Watched(hook, permissions=[deny("read")], tool_options={"needs_approval": True})
    result = loop.send()
    done = [event for event in loop.events if isinstance(event, ToolDone)]
    assert [(event.content, event.replaced_by_hook) for event in done] == [(value, "cache")]
    assert (loop.executed, loop.decisions, result.pending) == ([], [], None)
    (message,) = [message for message in result.messages if message["role"] == "tool"]
    assert message["metadata"] == {"replacedByHook": "cache"}
    assert "metadata" not in loop.last_sent  # never sent to the model


def test_P6_every_copy_of_the_args_agrees(scripted: Scripted, kind: str) -> None:
    """Public report (e): history, events, execution, permission decision, pending call and middleware, before the
    pause and after it; the model's own arguments stay in its message's metadata alone."""
    final = {"path": "b.txt", "lines": 5}
    hook = scripted(kind, "h", {"pre_tool_call": {"input": final}, "post_tool_call": None})
    seen: list[object] = []
    guarded: list[object] = []
    app = App().use(tool=lambda call, proceed: (seen.append(call.args), proceed())[1])
    loop = Watched(
        hook,
        app=app,
        permissions=[ask("read")],
        guardrails=[lambda call, args: guarded.append(args)],
        tool_options={"needs_approval": lambda args: bool(guarded.append(args))},
    )
    paused = loop.send()
    (waiting,) = paused.pending.calls  # type: ignore[union-attr]
    result = loop.resume(paused.pending, "approve")
    for messages in (paused.messages, result.messages):
        assert messages[1]["toolCalls"] == [{"id": "c1", "name": "read", "args": final}]
        assert messages[1]["metadata"] == {"modelArgs": {"c1": ARGS}}
    assert loop.model.calls[1].messages[2]["toolCalls"] == [{"id": "c1", "name": "read", "args": final}]
    told = [event.args for event in loop.events if hasattr(event, "args")]
    decided = [each.args for each in loop.decisions]
    copies = [waiting.args, *told, *decided, *guarded, *seen, *loop.executed]
    assert copies == [final] * len(copies)
    assert (len(told), len(decided), len(guarded), len(seen), len(loop.executed)) == (2, 2, 3, 1, 1)
    # Pre-hooks see what the model gave, also when they run again; post-hooks what runs.
    assert hook.saw("args") == [FILLED, final, FILLED, final]
    assert [call["args"] for call in hook.saw("toolCall")] == [ARGS] * 4


def test_P7_two_hooks_rewrite_different_fields_of_one_call(scripted: Scripted, kind: str) -> None:
    """Public report (b): both stand, in order, each made on what the one before it left."""
    first = scripted(kind, "first", {"pre_tool_call": patched(put("/args/path", "b.txt"))})
    second = scripted("guest", "second", {"pre_tool_call": patched(put("/args/lines", 5))})
    third = scripted(kind, "third", watching("pre_tool_call"))
    loop = Watched(first, second, third)
    result = loop.send()
    assert [hook.saw("args") for hook in (first, second, third)] == [
        [FILLED],
        [{"path": "b.txt", "lines": 20}],
        [{"path": "b.txt", "lines": 5}],
    ]
    assert loop.executed == [{"path": "b.txt", "lines": 5}]
    (decision,) = [decision for decision in result.decisions if decision.point == "pre_tool_call"]
    assert decision.rewritten_by == ("first", "second")


# P9, P10: hooks after a call.


def test_P9_a_redactor_after_a_deny_leaves_the_denys_text(scripted: Scripted, kind: str) -> None:
    """Public report (g): ▸ the engine's own errors stand, so the model still learns why."""
    guard = scripted(kind, "guard", {"pre_tool_call": {"deny": "write to the scratch folder instead"}})
    redactor = scripted(kind, "redactor", {"post_tool_call": {"result": "[redacted]"}})
    loop = Watched(guard, redactor)
    result = loop.send()
    assert loop.last_sent["content"] == "write to the scratch folder instead"
    assert redactor.saw("origin") == ["denied"]
    (entry,) = [entry for entry in result.trace if entry.hook == "redactor"]
    assert entry.notes == ("result ignored: origin denied stands (P9)",)


ORIGINS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "tool": (None, {}, "tool"),
    "tool error": (None, {"tool": raises(DOWN)}, "tool"),
    "middleware": (None, {"app": App().use(tool=lambda call, proceed: "cached")}, "tool"),
    "hook": ({"result": "mine"}, {}, "hook"),
    "hook's deny": ({"deny": "no"}, {}, "denied"),
    "rule's deny": (None, {"permissions": [deny("read")]}, "denied"),
    "hook's args": ({"input": {"path": 1}}, {}, "validation"),
    "model's args": (None, {"turns": [calling({**CALL, "args": {}}), "hello"]}, "validation"),
    "no such tool": (None, {"turns": [calling({**CALL, "name": "write"}), "hello"]}, "validation"),
    "guardrail": (None, {"guardrails": [lambda call, args: "no"]}, "refused"),
    "pause": (None, {"permissions": [ask("read")]}, "approval"),
}


@pytest.mark.parametrize("case", ORIGINS)
def test_P10_an_audit_hook_sees_every_call(scripted: Scripted, kind: str, case: str) -> None:
    """▸ After a deny, a hook's result, a validation error, a refusal and at the pause, with ``origin`` saying so."""
    outcome, options, origin = ORIGINS[case]
    actor = scripted("guest", "actor", {"pre_tool_call": outcome})
    audit = scripted(kind, "audit", watching("post_tool_call"))
    Watched(actor, audit, **options).send()
    assert audit.saw("origin") == [origin]
    (result,) = audit.saw("result")
    assert result.get("requiresApproval", False) is (origin == "approval")
    kinds = {"tool": "tool" if case == "tool error" else None, "hook": None, "approval": None}
    assert result.get("error", {"kind": None})["kind"] == kinds.get(origin, origin)


def test_P10_it_sees_a_failure_under_deny_and_what_the_human_said(scripted: Scripted, kind: str) -> None:
    """▸ ``hook_failed``; and of a call that waits, the pause first and then what became of it."""
    audit = scripted(kind, "audit", watching("post_tool_call"))
    Watched(scripted("guest", "bad", {"pre_tool_call": THROW}, on_failure="deny"), audit).send()
    for answer in ("approve", "deny"):
        loop = Watched(audit, permissions=[ask("read")])
        loop.resume(loop.send().pending, answer)
    assert audit.saw("origin") == ["hook_failed", "approval", "tool", "approval", "denied"]


# P11: a failing hook in a run.

FAIL_AT = {
    "pre_generate": [],
    "post_generate": ["user", "assistant", "tool c1", "tool c2"],
    "pre_tool_call": ["user", "assistant", "tool c1", "tool c2"],
    "post_tool_call": ["user", "assistant", "tool c1", "tool c2"],
    "before_prompt": [],
    "before_tool": ["user", "assistant", "tool c1", "tool c2"],
    "after_tool": ["user", "assistant", "tool c1", "tool c2"],
}
TWO_CALLS = calling(CALL, {**CALL, "id": "c2"})


@pytest.mark.parametrize("how", ["send", "stream"])
@pytest.mark.parametrize("point", FAIL_AT)
def test_P11_under_raise_the_turn_is_rejected_and_the_run_goes_on(
    scripted: Scripted, kind: str, point: str, how: str, backend: str
) -> None:
    """It never becomes a tool result. The conversation is whole afterwards, each call has a result, and the next turn
    of the same run works."""
    hooks = HookRegistry([scripted(kind, "bad", {point: THROW})])
    run = RunState()
    loop = Watched(turns=[TWO_CALLS, "hello"] if FAIL_AT[point] else ["hello"], hooks=hooks)
    with pytest.raises(HookThrew) as caught:
        getattr(loop, how)(state=run, backend=backend)
    assert (caught.value.hook, caught.value.point, caught.value.policy) == ("bad", point, "raise")
    assert shapes(run.history) == (FAIL_AT[point] or ["user"])
    assert "it broke" not in str(run.history)
    assert len(loop.model.calls) == (1 if FAIL_AT[point] else 0)
    hooks.clear()
    assert loop.send("again", state=run, backend=backend).output == "hello"
    assert shapes(run.history) == [*(FAIL_AT[point] or ["user"]), "user", "assistant"]


THROWS_AFTER = {"post_tool_call": THROW}
POST_FAILURES: dict[str, tuple[str, dict[str, Any]]] = {
    "host throws": ("host", THROWS_AFTER),
    "guest throws": ("guest", THROWS_AFTER),
    "guest traps": ("guest", {"post_tool_call": {"!trap": True}}),
}


@pytest.mark.parametrize("policy", ["raise", "deny", "skip"])
@pytest.mark.parametrize("how", POST_FAILURES)
def test_P11_a_post_hook_that_fails_never_makes_the_tool_run_again(
    scripted: Scripted, how: str, policy: str, backend: str
) -> None:
    """Public report (f): with parallel calls, and under every policy."""
    kind, script = POST_FAILURES[how]
    bad = scripted(kind, "bad", script, on_failure=policy)
    run = RunState()
    loop = Watched(bad, turns=[calling(*THREE), "hello"])
    if policy == "raise":
        with pytest.raises(HookFailure):
            loop.send(state=run, backend=backend)
        assert len(bad.seen) == 1
    else:
        assert loop.send(state=run, backend=backend).output == "hello"
        assert bad.saw("toolCallId") == ["c1", "c2", "c3"]
    assert loop.executed == [FILLED] * 3
    assert shapes(run.history)[:5] == ["user", "assistant", "tool c1", "tool c2", "tool c3"]


def test_P11_under_deny_the_call_is_an_error_that_the_model_sees(scripted: Scripted, kind: str, backend: str) -> None:
    """▸ Closed: that call alone gets a tool error of kind ``hook_failed``, and the turn goes on."""
    bad = scripted(kind, "bad", {"pre_tool_call/read": THROW}, on_failure="deny")
    other = define_tool("other", input={"type": "object"}, execute=lambda _: "fine")
    turns = [calling(CALL, {"id": "c2", "name": "other", "args": {}}), "hello"]
    loop = Watched(bad, turns=turns, tools=[other])
    events, result = loop.stream(backend=backend)
    message = "hook 'bad' failed at pre_tool_call (threw)"
    assert results(result) == [("c1", message), ("c2", "fine")]
    failed = [event for event in events if isinstance(event, ToolFailed)]
    assert [(event.error.kind, event.error.hook, event.content) for event in failed] == [
        ("hook_failed", "bad", message)
    ]
    assert [(failure.hook, failure.policy) for failure in result.failures] == [("bad", "deny")]
    assert (result.output, loop.executed) == ("hello", [])


@pytest.mark.parametrize("point", [*TOOL_POINTS, *GENERATE_POINTS, "before_prompt", "before_tool", "after_response"])
def test_P11_under_skip_the_run_goes_on_and_says_so_loudly(
    scripted: Scripted, kind: str, point: str, caplog: pytest.LogCaptureFixture
) -> None:
    """▸ Open: each failure is in ``result.failures`` with its policy, in the trace, and a warning in the log."""
    loop = Watched(scripted(kind, "bad", {point: THROW}, on_failure="skip"))
    with caplog.at_level(logging.WARNING, logger="hookcell"):
        result = loop.send()
    times = 2 if point in GENERATE_POINTS else 1
    assert (result.output, loop.executed, loop.last_sent["content"]) == ("hello", [FILLED], "text")
    failures = [(each.hook, each.point, each.code, each.policy) for each in result.failures]
    assert failures == [("bad", point, "threw", "skip")] * times
    assert [(entry.hook, entry.failure) for entry in result.trace] == [("bad", "threw")] * times
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == times
    assert all("'bad'" in each and point in each and "policy skip" in each for each in warnings)


def test_P11_a_guests_crash_rejects_the_turn(scripted: Scripted, backend: str) -> None:
    """▸ A trap, exhausted fuel and the like are failures like a throw. Guests alone crash."""
    for outcome, code in (({"!trap": True}, "trap"), ({"!spin": True}, "fuel"), ({"!hoard": True}, "memory")):
        loop = Watched(scripted("guest", "bad", {"pre_generate": outcome}))
        with pytest.raises(HookCrashed) as caught:
            loop.send(backend=backend)
        assert (caught.value.code, loop.model.calls) == (code, [])


def test_P11_a_value_that_cannot_cross_names_its_path(scripted: Scripted) -> None:
    """Public report (h): the host's fault is told as such, under every policy, and no guest runs on half a context."""
    for policy in ("raise", "deny", "skip"):
        guest = scripted("guest", "h", {"pre_tool_call": None}, on_failure=policy)
        loop = Watched(guest)
        with pytest.raises(ContextInvalid) as caught:
            loop.send(metadata={"safe": 1, "db": {"pool": object()}})
        assert (caught.value.path, caught.value.type) == ("/metadata/db/pool", "object")
        assert (guest.seen, loop.executed) == ([], [])


CUT_AT = ["pre_generate", "model", "post_generate", "pre_tool_call", "guardrail", "tool", "post_tool_call"]


@pytest.mark.parametrize("where", CUT_AT)
def test_P11_a_cancelled_turn_leaves_a_whole_conversation(where: str, backend: str) -> None:
    """▸ A cancellation is no failure: it passes, each call has a result, and the next turn of the run works. Host code
    is what can be made to wait, so the hook is a host's."""
    run = RunState()
    waiting = True

    async def main() -> None:
        began = anyio.Event()

        async def wait(*_: object) -> None:
            if waiting:
                began.set()
                await anyio.sleep_forever()

        async def execute(_: object) -> str:
            if where == "tool":
                await wait()
            return "text"

        async def chat(request: object, proceed: Callable[[], Any]) -> ModelResponse:
            if where == "model":
                await wait()
            return await proceed()

        hook = {where: wait} if where in (*TOOL_POINTS, *GENERATE_POINTS) else {}
        agent = create_agent(
            provider=mock_model([TWO_CALLS, "hello"]),
            tools=[define_tool("read", input=SCHEMA.document, execute=execute)],
            hooks=[SimpleNamespace(name="h", **hook)],
            guardrails=[wait] if where == "guardrail" else [],
            app=App().use(chat=chat),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: agent.send("hi", state=run))
            await began.wait()
            tasks.cancel_scope.cancel()
        nonlocal waiting
        waiting = False
        called = where not in ("pre_generate", "model")
        assert shapes(run.history) == ["user", *(["assistant", "tool c1", "tool c2"] if called else [])]
        before = len(run.history)
        result = await agent.send("again", state=run)
        assert result.output == "hello"
        expected = ["user", "assistant"] if called else ["user", "assistant", "tool c1", "tool c2", "assistant"]
        assert shapes(run.history)[before:] == expected

    anyio.run(main, backend=backend)


# P12: hooks round a model call.


def test_P12_they_run_before_and_after_each_model_call(scripted: Scripted, kind: str, backend: str) -> None:
    hook = scripted(kind, "h", watching(*GENERATE_POINTS))
    story = Story(hook)
    app = App().use(chat=lambda request, proceed: story.told("model", proceed()))
    first = {**calling(), "usage": Usage(input_tokens=7, output_tokens=2)}
    loop = Watched(hook, app=app, request={"model": "m", "temperature": 1.0}, turns=[first, "hello"])
    loop.send(backend=backend)
    assert story.lines == ["h pre_generate", "model", "h post_generate"] * 2
    assert hook.saw("request") == [{"model": "m", "temperature": 1.0}] * 4
    assert hook.saw("streaming") == [False] * 4
    usage = {"inputTokens": 7, "outputTokens": 2}
    none = {"inputTokens": 0, "outputTokens": 0}
    assert hook.saw("result") == [
        ABSENT,
        {"message": {"role": "assistant", "content": "", "toolCalls": [CALL]}, "usage": usage},
        ABSENT,
        {"message": {"role": "assistant", "content": "hello"}, "usage": none},
    ]
    assert [len(messages) for messages in hook.saw("messages")] == [1, 2, 3, 4]


def test_P12_before_it_they_change_by_patch(scripted: Scripted, kind: str) -> None:
    """Messages for good, the request for this call, the bag for the run; the later hook sees what the first did."""
    note = {"role": "user", "content": "mind the date"}
    first = scripted(
        kind,
        "first",
        {"pre_generate": patched(add("/messages/-", note), put("/request/temperature", 0.0), add("/metadata/n", 1))},
    )
    second = scripted("guest", "second", watching("pre_generate"))
    run = RunState()
    loop = Watched(first, second, turns=["one", "two"], request={"temperature": 1.0})
    loop.send(state=run)
    (sent,) = loop.model.calls
    assert (sent.messages[-1], sent.options) == (note, {"temperature": 0.0})
    assert second.saw("messages") == [[{"role": "user", "content": "hi"}, note]]
    assert (second.saw("request"), second.saw("metadata")) == ([{"temperature": 0.0}], [{"n": 1}])
    assert (run.history[1], run.metadata) == (note, {"n": 1})
    loop.send("again", state=run)
    assert first.saw("request") == [{"temperature": 1.0}] * 2


def test_P12_after_it_the_answer_is_what_they_left(scripted: Scripted, kind: str) -> None:
    """▸ The answer and its calls are those of the assistant message as ``post_generate`` leaves it."""
    hook = scripted(kind, "h", {"post_generate": patched(put("/messages/1/content", "[redacted]"))})
    loop = Watched(hook, turns=["the secret is 42"])
    result = loop.send()
    assert result.output == "[redacted]"
    assert "secret" not in str(result.messages)


def test_P12_a_call_that_they_took_out_is_not_run(scripted: Scripted, kind: str) -> None:
    """▸ What a hook took out is neither run nor said."""
    drop = {"op": "remove", "path": "/messages/1/toolCalls/0"}
    hooks = HookRegistry([scripted(kind, "h", {"post_generate": patched(drop)})])
    turns = [calling(CALL, {**CALL, "id": "c2", "args": {"path": "b"}}), "hello"]
    loop = Watched(hooks=hooks, turns=turns, tool=lambda _: hooks.clear())  # once is enough
    result = loop.send()
    assert loop.executed == [{"path": "b", "lines": 20}]
    assert shapes(result.messages) == ["user", "assistant", "tool c2", "assistant"]


def test_P12_an_answer_that_they_took_out_is_not_said(scripted: Scripted, kind: str) -> None:
    """▸ The same for the whole message; what was said before is not said again."""
    for policy in ("raise", "skip"):  # a host hook edits a copy under skip
        drop = {"op": "remove", "path": "/messages/3"}
        loop = Watched(scripted(kind, "h", {"post_generate": patched(drop)}, on_failure=policy), turns=["the secret"])
        run = RunState(messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
        result = loop.send(state=run)
        assert (result.output, shapes(run.history), result.failures) == ("", ["user", "assistant", "user"], ())


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_P12_a_message_added_after_the_calls_follows_their_results(scripted: Scripted, kind: str, policy: str) -> None:
    """▸ The calls still stand in the assistant message, so they run; and no message comes between them and their
    results."""
    note = {"role": "user", "content": "mind the date"}
    hooks = HookRegistry([scripted(kind, "h", {"post_generate": patched(add("/messages/-", note))}, on_failure=policy)])
    loop = Watched(hooks=hooks, tool=lambda _: hooks.clear())
    result = loop.send()
    assert (result.output, loop.executed) == ("hello", [FILLED])
    assert shapes(loop.model.calls[1].messages) == ["system", "user", "assistant", "tool c1", "user"]
    assert loop.last_sent == note


def test_P12_a_throw_before_it_keeps_the_model_from_being_called(scripted: Scripted, kind: str) -> None:
    loop = Watched(scripted(kind, "bad", {"pre_generate": THROW}))
    with pytest.raises(HookThrew):
        loop.send()
    assert loop.model.calls == []


def test_P12_a_throw_after_it_keeps_its_calls_from_being_run(scripted: Scripted, kind: str) -> None:
    loop = Watched(scripted(kind, "bad", {"post_generate": THROW}))
    with pytest.raises(HookThrew):
        loop.send()
    assert (len(loop.model.calls), loop.executed) == (1, [])


@pytest.mark.parametrize("key", ["deny", "result", "input", "replace"])
@pytest.mark.parametrize("point", GENERATE_POINTS)
def test_P12_a_returned_decision_is_an_invalid_outcome(scripted: Scripted, kind: str, point: str, key: str) -> None:
    """▸ ``deny``, ``result``, ``input`` and ``replace`` are nothing that a model call could take."""
    loop = Watched(scripted(kind, "bad", {point: {key: "x" if key in ("deny", "result") else {}}}))
    with pytest.raises(OutcomeInvalid) as caught:
        loop.send()
    assert (caught.value.hook, caught.value.point, caught.value.path) == ("bad", point, f"/{key}")
    assert loop.executed == []


# P13: emit.


@pytest.mark.parametrize("point", GENERATE_POINTS)
def test_P13_emitted_events_are_on_the_stream_under_the_hooks_name(
    scripted: Scripted, kind: str, point: str, backend: str
) -> None:
    """``compaction.start`` and ``compaction.done``. ▸ A guest emits by ``events`` where the context says ``streaming:
    true``; the engine adds the hook's name to each, so that none speaks in another's."""
    forged = {**DONE, "hook": "somebody else"}
    hook = scripted(kind, "h", {point: {"events": [STARTED, forged]}})
    loop = Watched(hook, turns=["hello"])
    events, _ = loop.stream(backend=backend)
    assert hook.saw("streaming") == [True]
    told = [event for event in events if isinstance(event, CompactionStarted | CompactionDone)]
    assert [(event.type, event.hook, event.details) for event in told] == [
        ("compaction.start", "h", {"tokens": 9}),
        ("compaction.done", "h", {"tokens": 3}),
    ]
    places = [index for index, event in enumerate(events) if isinstance(event, TextDelta)]
    assert (events.index(told[0]) < places[0]) is (point == "pre_generate")
    assert [event for event in loop.events if event in told] == told


def test_P13_emit_exists_only_in_streamed_runs() -> None:
    """At the generate points: None in a plain run, and at every other point of a streamed one. A host hook's."""
    seen: list[tuple[str, bool]] = []

    def note(*arguments: Any) -> None:
        ctx = arguments[0] if hasattr(arguments[0], "emit") else arguments[1]
        seen.append((ctx.point, ctx.emit is not None))

    points = [*TOOL_POINTS, *GENERATE_POINTS, "before_prompt", "after_response"]
    for streamed in (False, True):
        loop = Watched(SimpleNamespace(name="h", **dict.fromkeys(points, note)))
        (loop.stream if streamed else loop.send)()
        assert {point for point, _ in seen} == set(points)
        assert {point for point, has in seen if has} == (set(GENERATE_POINTS) if streamed else set())
        seen.clear()


@pytest.mark.parametrize("point", GENERATE_POINTS)
def test_P13_in_a_plain_run_the_key_is_invalid(scripted: Scripted, point: str) -> None:
    """▸ Otherwise the key is invalid. A host hook has no ``emit`` to call then."""
    guest = scripted("guest", "h", {point: {"events": [STARTED]}})
    with pytest.raises(OutcomeInvalid) as caught:
        Watched(guest).send()
    assert caught.value.path == "/events"
    assert guest.saw("streaming") == [False]


@pytest.mark.parametrize("kind_of_event", ["text.delta", "tool.done", "turn.done", "compaction.other", ""])
def test_P13_no_other_type_can_be_emitted(scripted: Scripted, kind: str, kind_of_event: str) -> None:
    """▸ Those two types only."""
    hook = scripted(kind, "h", {"pre_generate": {"events": [STARTED, {"type": kind_of_event}]}})
    loop = Watched(hook)
    with pytest.raises(OutcomeInvalid) as caught:
        loop.stream()
    assert caught.value.path == "/events/1/type"
    assert [event.type for event in loop.events] == ["turn.error"]  # the good one went with the bad one


def test_P13_events_belong_to_the_generate_points(scripted: Scripted, kind: str) -> None:
    for point in (*TOOL_POINTS, "before_prompt", "after_response"):
        if kind == "host" and point not in TOOL_POINTS:
            continue  # what a host's agent-class method returns is the value itself
        with pytest.raises(OutcomeInvalid) as caught:
            Watched(scripted(kind, "h", {point: {"events": [STARTED]}})).stream()
        assert caught.value.path == "/events"


# P14: compaction comes last.

SUMMARISED = [
    {"role": "user", "content": "Summary of the conversation so far:\nin short", "metadata": {"compacted": 2}}
]


def test_P14_compaction_sees_what_the_users_hooks_added(scripted: Scripted, kind: str, backend: str) -> None:
    """The user's hooks run first: it is what they add that goes over the budget here."""
    long = {"role": "user", "content": "retrieved " * 50}
    hook = scripted(kind, "h", {"pre_generate": patched(add("/messages/0", long))})
    loop = Watched(hook, turns=["in short", "hello"], compaction=Compaction(budget_tokens=100, keep_tokens=5))
    run = RunState(messages=[{"role": "user", "content": "before"}])
    result = loop.send(state=run, backend=backend)
    summary, sent = loop.model.calls
    assert "retrieved retrieved" in str(summary.messages[-1]["content"])
    assert [message["content"] for message in sent.messages[1:]] == [SUMMARISED[0]["content"], "hi"]
    assert list(run.history[:1]) == SUMMARISED
    names = [entry.hook for entry in result.trace if entry.point == "pre_generate"]
    assert names == ["h", "hookcell.compaction"]
    assert hook.saw("messages") == [[{"role": "user", "content": "before"}, {"role": "user", "content": "hi"}]]


def test_P14_it_stays_last_whoever_comes_later(scripted: Scripted, kind: str) -> None:
    """Also after hooks that are registered while the agent lives, and after a sub-agent's own."""
    hooks = HookRegistry([scripted(kind, "first", watching("pre_generate"))])
    sub = create_agent(
        name="sub",
        provider=mock_model(["done"]),
        hooks=[scripted(kind, "own", watching("pre_generate"))],
        compaction=Compaction(),
    )
    turns = [calling({"id": "s", "name": "sub", "args": {"task": "x"}}), "hello"]
    loop = Watched(hooks=hooks, turns=turns, sub_agents=[sub], compaction=Compaction())
    hooks.register(scripted(kind, "later", watching("pre_generate")))
    result = loop.send()
    last = "hookcell.compaction"
    assert [[entry.hook for entry in decision.trace] for decision in result.decisions] == [
        ["first", "later", last],
        ["first", "later", "own", last],
        ["first", "later", last],
    ]


def test_P14_no_hook_takes_its_name(scripted: Scripted, kind: str) -> None:
    hook = scripted(kind, "hookcell.compaction", watching("pre_generate"))
    with pytest.raises(ValueError, match="compaction"):
        create_agent(provider=mock_model([]), hooks=[hook])


@pytest.mark.parametrize("point", ["pre_generate", "post_generate"])
def test_P10_a_call_gets_its_result_from_the_engine_alone(scripted: Scripted, kind: str, point: str) -> None:
    """Post-hooks see every call: a hook cannot put a result in place of a call that is about to run, past them."""
    forged = {"role": "tool", "toolCallId": "c1", "name": "read", "content": "forged"}
    patch = {"patch": [{"op": "add", "path": "/messages/-", "value": forged}]}
    forger = scripted(kind, "forger", {point: patch}, on_failure="skip")
    audit = scripted("host", "audit", {"post_tool_call": None})
    watched = Watched(forger, audit)
    result = watched.send()
    assert [failure.code for failure in result.failures] == ["outcome_invalid"] * 2
    assert len(watched.executed) == len(audit.seen) == 1
    assert "forged" not in repr(result.messages)


def test_P6_the_message_shows_the_tool_that_runs(scripted: Scripted, kind: str) -> None:
    """Every copy of a call agrees, whatever a hook wrote there meanwhile: its tool's name too."""
    patch = {"patch": [{"op": "replace", "path": "/messages/1/toolCalls/0/name", "value": "harmless"}]}
    audit = scripted("guest", "audit", {"post_tool_call": None})
    watched = Watched(scripted(kind, "liar", {"post_generate": patch}), audit)
    watched.send()
    assert len(watched.executed) == 1
    (messages,) = audit.saw("messages")
    assert [call["name"] for call in messages[1]["toolCalls"]] == ["read"]
