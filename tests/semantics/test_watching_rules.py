"""Listeners only watch, P19; and a streamed turn is the same turn."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from hookcell import HookThrew
from hookcell.agent import (
    ApprovalRequired,
    Event,
    PermissionDecision,
    RunState,
    TextDelta,
    ToolDone,
    ToolFailed,
    ToolStarted,
    TurnDone,
    TurnFailed,
    TurnResult,
    ask,
    create_agent,
    define_tool,
    deny,
    mock_model,
)

from .driving import FILLED, SCHEMA
from .looping import CALL, DOWN, METHODS, THROW, Scripted, calling, raises, watching
from .watched import Watched, results, shapes

PIPELINE = ["pre_tool_call", "post_tool_call", "pre_generate", "post_generate"]


def rich(*hooks: Any, **options: Any) -> Watched:
    """A loop in whose turn a bit of everything happens: each way to settle a call, a sub-agent and an approval."""
    read = define_tool("read", input=SCHEMA.document, execute=lambda _: "read inside")
    sub = create_agent(name="sub", provider=mock_model([calling(), "done"]), tools=[read])
    calls = [
        CALL,
        {**CALL, "id": "c2", "args": {"path": 1}},
        {"id": "c3", "name": "forbidden", "args": {}},
        {"id": "c4", "name": "broken", "args": {}},
        {"id": "c5", "name": "nothing", "args": {}},
        {"id": "c6", "name": "asks", "args": {"n": [1]}},
        {"id": "c7", "name": "sub", "args": {"task": "look"}},
    ]
    any_args: Any = {"type": "object"}
    return Watched(
        *hooks,
        **{
            "turns": [{**calling(*calls), "text": "let me see"}, "hello there"],
            "tools": [
                define_tool("forbidden", input=any_args, execute=raises(AssertionError())),
                define_tool("broken", input=any_args, execute=raises(DOWN)),
                define_tool("asks", input=any_args, execute=lambda args: args),
            ],
            "sub_agents": [sub],
            "permissions": [deny("forbidden"), ask("asks")],
            **options,
        },
    )


def whole(loop: Watched, *, streamed: bool = False, backend: str = "asyncio") -> tuple[TurnResult, list[Event]]:
    """The turn of `rich` to its end, with the approval, and all events of both halves."""
    run = RunState(session_id="s", run_id="r", metadata={"bag": []})
    if not streamed:
        paused = loop.send(state=run, backend=backend)
        return loop.resume(paused.pending, "approve", backend=backend), loop.events
    before, paused = loop.stream(state=run, backend=backend)
    after, result = loop.resume_stream(paused.pending, "approve", backend=backend)
    return result, [*before, *after]


def told(event: Event) -> Any:
    """An event without what makes each turn's result its own."""
    return (event.type, shapes(event.result.messages)) if isinstance(event, TurnDone) else event


SETTLED = [
    ("c1", "text"),
    ("c2", "the arguments do not fit the schema of 'read' at /path: it is 1, not a string"),
    ("c3", "permission rules deny 'forbidden'"),
    ("c4", "ValueError: down"),
    ("c5", "there is no tool 'nothing'; there is asks, broken, forbidden, read, sub"),
    ("c6", '{"n": [1]}'),
    ("c7", "done"),
]


# P19.


def test_P19_listeners_are_told_of_everything_in_order(scripted: Scripted, kind: str, backend: str) -> None:
    """What starts, what came of it, what waits, who decided; then the end. The lead's are told of a sub-agent's too."""
    loop = rich(scripted(kind, "h", {"pre_tool_call": None}))
    result, events = whole(loop, backend=backend)
    assert [call for call, _ in results(result)] == [call for call, _ in SETTLED]
    kinds = [(event.type, getattr(event, "call_id", None), event.agent) for event in events]
    starts = [("tool.start", each, "acts") for each in ("c1", "c4", "c7")]
    inside = [("tool.start", "c7/c1", "sub"), ("tool.done", "c7/c1", "sub")]
    # The sub-agent runs at the same time as its neighbours, and its events fall among theirs.
    assert kinds[:3] == starts
    assert [each for each in kinds if each[2] == "sub"] == inside
    assert [each for each in kinds[3:] if each[2] != "sub"] == [
        ("tool.done", "c1", "acts"),
        ("tool.error", "c2", "acts"),
        ("tool.error", "c3", "acts"),
        ("tool.error", "c4", "acts"),
        ("tool.error", "c5", "acts"),
        ("approval.required", "c6", "acts"),
        ("tool.done", "c7", "acts"),
        ("turn.done", None, "acts"),
        ("tool.start", "c6", "acts"),
        ("tool.done", "c6", "acts"),
        ("turn.done", None, "acts"),
    ]
    decided = [(each.call_id, each.decision, each.source) for each in loop.decisions]
    assert decided == [
        ("c1", "allow", "rule"),
        ("c3", "deny", "rule"),
        ("c4", "allow", "rule"),
        ("c6", "ask", "rule"),
        ("c7", "allow", "rule"),
        ("c7/c1", "allow", "rule"),
        ("c6", "allow", "human"),
    ]


def test_P19_an_error_that_leaves_the_turn_is_told(scripted: Scripted, kind: str, backend: str) -> None:
    loop = Watched(scripted(kind, "bad", {"post_generate": THROW}))
    with pytest.raises(HookThrew) as caught:
        loop.send(backend=backend)
    (event,) = loop.events
    assert isinstance(event, TurnFailed)
    assert event.error is caught.value


def test_P19_they_are_told_what_the_model_will_see(scripted: Scripted, kind: str, backend: str) -> None:
    """A result is told once the hooks after it have run, so that what they redact passes nobody first."""
    redactor = scripted(kind, "redactor", {"post_tool_call": {"result": "[redacted]"}})
    loop = Watched(redactor, tool=lambda _: "the secret is 42")
    events, _ = loop.stream(backend=backend)
    assert [event.content for event in events if isinstance(event, ToolDone)] == ["[redacted]"]
    assert "secret" not in str([*events, *loop.events, *loop.decisions])


ANSWERS: list[Any] = [{"deny": "no"}, {"result": "mine"}, {"input": {"path": "b"}}, False, "deny", Exception("no")]


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_P19_what_they_return_changes_nothing(answer: object, backend: str) -> None:
    async def later(_: object) -> object:
        await anyio.lowlevel.checkpoint()
        return answer

    for listener in (lambda _: answer, later):
        loop = rich(on_event=listener, on_permission_decision=listener)
        result, _ = whole(loop, backend=backend)
        assert results(result) == results(whole(rich())[0])
        assert (result.output, loop.executed) == ("hello there", [FILLED])


def test_P19_what_they_throw_is_logged_and_no_more(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    async def later(_: object) -> None:
        await anyio.lowlevel.checkpoint()
        raise DOWN

    for listener in (raises(DOWN), later):
        caplog.clear()
        loop = rich(on_event=listener, on_permission_decision=listener)
        with caplog.at_level(logging.ERROR, logger="hookcell"):
            result, _ = whole(loop, backend=backend)
        assert (result.output, loop.executed, result.error) == ("hello there", [FILLED], None)
        messages = [record.getMessage() for record in caplog.records]
        assert len(messages) == 16 + 7  # events and decisions, as told above
        assert all("the run goes on" in message for message in messages)


def spoil(what: Event | PermissionDecision) -> None:
    """Do the worst to everything that an event or a decision holds."""
    for name in ("args", "content", "details"):
        held = getattr(what, name, None)
        if isinstance(held, dict):
            for value in held.values():
                if isinstance(value, list):
                    value.append("spoilt")
            held["path"] = "spoilt"
        elif isinstance(held, list):
            held.append("spoilt")


def test_P19_what_they_do_to_what_they_are_told_changes_nothing(scripted: Scripted, kind: str, backend: str) -> None:
    """The values are copies: of the arguments that run, of the result, of what was decided about."""
    post = scripted(kind, "post", watching("post_tool_call"))
    loop = rich(post, on_event=spoil, on_permission_decision=spoil)
    run = RunState()
    events, paused = loop.stream(state=run, backend=backend)
    for event in events:
        spoil(event)
    assert paused.pending is not None
    assert [dict(call.args) for call in paused.pending.calls] == [{"n": [1]}]
    events, result = loop.resume_stream(paused.pending, "approve", backend=backend)
    assert loop.executed == [FILLED]
    assert results(result) == results(whole(rich())[0])
    assert "spoilt" not in str(post.seen)
    assert "spoilt" not in str(loop.model.calls)


def test_P19_a_content_of_parts_is_a_copy_too(backend: str) -> None:
    """Which the model is sent as it is, and not as text."""
    parts = [{"type": "text", "text": "x"}]
    loop = Watched(on_event=spoil, tool=lambda _: parts)
    loop.send(backend=backend)
    assert loop.last_sent["content"] == parts == [{"type": "text", "text": "x"}]


def test_P19_they_cannot_be_replaced_in_what_they_are_told() -> None:
    """Events and decisions are frozen."""
    loop = Watched()
    loop.send()
    for what in (*loop.events, *loop.decisions):
        with pytest.raises(AttributeError):
            what.agent = "x"  # type: ignore[misc]  # the point


def test_P19_a_turn_that_nobody_watches_is_the_same(scripted: Scripted, kind: str, backend: str) -> None:
    seen = []
    for options in ({}, {"on_event": None, "on_permission_decision": None}):
        hook = scripted(kind, "h", watching(*PIPELINE, *METHODS))
        result, _ = whole(rich(hook, **options), backend=backend)
        seen.append((result.output, result.messages, hook.seen))
    assert seen[0] == seen[1]


def test_P19_a_sub_agents_own_listeners_are_not_told_of_the_leads_turn() -> None:
    """Of a sub-agent's turn the lead's listeners are told, not its own; sent to by itself, its own are."""
    own: list[object] = []
    sub = create_agent(name="sub", provider=mock_model(["done", "alone"]), on_event=own.append)
    loop = Watched(turns=[calling({"id": "s", "name": "sub", "args": {"task": "x"}}), "hello"], sub_agents=[sub])
    loop.send()
    assert own == []
    anyio.run(sub.send, "hi")
    assert [type(event) for event in own] == [TurnDone]


# Streamed and plain.


def test_P19_P13_a_streamed_turn_fires_the_same_hooks(scripted: Scripted, kind: str, backend: str) -> None:
    """Public report (d): in the same order, with the same contexts but ``streaming``, through a pause and its resume;
    and it comes to the same."""
    came_to: list[Any] = []
    for streamed in (False, True):
        change = {"patch": [{"op": "add", "path": "/metadata/bag/-", "value": "x"}]}
        script = {**watching(*PIPELINE, *METHODS), "pre_tool_call": change, "post_generate": change}
        hook = scripted(kind, "h", script)
        loop = rich(hook)
        result, events = whole(loop, streamed=streamed, backend=backend)
        at_generate = [context["streaming"] for _, context in hook.seen if "streaming" in context]
        assert at_generate == [streamed] * 8
        contexts = [(point, {**context, "streaming": None}) for point, context in hook.seen]
        events = [event for event in events if not isinstance(event, TextDelta)]
        came_to.append(
            {
                "contexts": contexts,
                "events": sorted(map(repr, map(told, events))),
                "decisions": loop.decisions,
                "messages": result.messages,
                "output": result.output,
                "usage": result.usage,
                "executed": loop.executed,
                "sent": loop.model.calls,
                "metadata": result.state.metadata,
            }
        )
    plain, streamed_turn = came_to
    assert plain.keys() == streamed_turn.keys()
    for key, value in plain.items():
        assert streamed_turn[key] == value, key
    assert plain["metadata"] == {"bag": ["x"] * 8}


def test_P19_the_stream_carries_what_listeners_are_told_and_text(backend: str) -> None:
    """The same objects in the same order, and beside them the answer's text in pieces."""
    loop = rich()
    events, paused = loop.stream(backend=backend)
    more, _ = loop.resume_stream(paused.pending, "approve", backend=backend)
    assert [*events, *more] == loop.events
    text = [event.text for event in loop.events if isinstance(event, TextDelta) and event.agent == "acts"]
    assert text == ["let ", "me ", "see", "hello ", "there"]
    kinds = {type(event) for event in loop.events}
    assert kinds == {TextDelta, ToolStarted, ToolDone, ToolFailed, ApprovalRequired, TurnDone}


def test_P19_a_plain_turn_tells_no_text(backend: str) -> None:
    loop = Watched()
    loop.send(backend=backend)
    assert not any(isinstance(event, TextDelta) for event in loop.events)


ENDS: dict[str, tuple[dict[str, Any], Callable[[Scripted, str], list[Any]]]] = {
    "model": ({"turns": [DOWN]}, lambda scripted, kind: []),
    "hook": ({}, lambda scripted, kind: [scripted(kind, "bad", {"pre_tool_call": THROW})]),
    "guardrail": ({"guardrails": [raises(DOWN)]}, lambda scripted, kind: []),
}


@pytest.mark.parametrize("end", ENDS)
def test_P19_a_streamed_turn_ends_with_the_same_error(scripted: Scripted, kind: str, end: str, backend: str) -> None:
    """Raised where the iteration ends, after the events that came before it."""
    options, hooks = ENDS[end]
    errors: list[tuple[type, str, list[str]]] = []
    for how in ("send", "stream"):
        run = RunState()
        loop = Watched(*hooks(scripted, kind), **options)
        with pytest.raises(Exception, match=r".") as caught:
            getattr(loop, how)(state=run, backend=backend)
        assert [type(event) for event in loop.events] == [TurnFailed]
        errors.append((caught.type, str(caught.value), shapes(run.history)))
    assert errors[0] == errors[1]
