"""Calls that a human must approve, P15 and P16: what is shown, what is kept, and what runs once it is approved."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pydantic
import pytest

from hookcell import ABSENT, HookThrew
from hookcell.agent import (
    Answer,
    ApprovalInvalid,
    ApprovalRequired,
    Approvals,
    ApprovalUsed,
    Deny,
    InMemoryApprovals,
    PendingApproval,
    RunBusy,
    RunNotSerialisable,
    RunState,
    ToolDone,
    ToolFailed,
    TurnDone,
    TurnResult,
    Usage,
    ask,
    create_agent,
    define_tool,
    deny,
    mock_model,
)

from . import elsewhere
from .driving import ARGS, FILLED
from .elsewhere import KEY, agent_of
from .looping import CALL, METHODS, Scripted, calling, watching
from .watched import Story, Watched, results, shapes

TOOL_POINTS = ["pre_tool_call", "post_tool_call"]
MADE = {"path": "b.txt", "lines": 5}
"""What a hook makes of the model's arguments."""

ANY_ARGS = define_tool("free", input={"type": "object"}, execute=lambda args: args)


def pending(result: TurnResult) -> PendingApproval:
    assert result.pending is not None
    return result.pending


def waiting(*hooks: Any, **options: Any) -> Watched:
    """A loop whose tool ``read`` needs approval."""
    return Watched(*hooks, **{"permissions": [ask("read", reason="it reads")], **options})


class Elsewhere:
    """Loops that share a key and a store, as processes do, and nothing else."""

    def __init__(self) -> None:
        self._store = InMemoryApprovals()

    def loop(self, *hooks: Any, **options: Any) -> Watched:
        return waiting(*hooks, approvals=Approvals(key=KEY, store=self._store), **options)

    def resumed(
        self, token: str, *hooks: Any, answer: Answer = "approve", **options: Any
    ) -> tuple[Watched, TurnResult]:
        """Go on with a token of call ``c1`` in a new loop."""
        loop = self.loop(*hooks, **{"turns": ["hello"], **options})
        return loop, loop.resume(token, {"c1": answer})


# P15: everybody sees what a hook produced.

WHO_ASKS: dict[str, dict[str, Any]] = {
    "rule": {"permissions": [ask("read", args={"path": "b*"}, reason="it is b")]},
    "needs_approval": {"tool_options": {"needs_approval": lambda args: args["path"] == "b.txt"}},
}


@pytest.mark.parametrize("who", WHO_ASKS)
def test_P15_the_human_approves_what_a_hook_made_and_that_runs(
    scripted: Scripted, kind: str, who: str, backend: str
) -> None:
    """Public report (a): a hook rewrites, a rule or the tool asks about it, the human approves it. Pending args and
    executed args are the hook's."""
    hook = scripted(kind, "rewriter", {"pre_tool_call": {"input": MADE}})
    loop = Watched(hook, **WHO_ASKS[who])
    paused = loop.send(backend=backend)
    (call,) = pending(paused).calls
    assert (call.id, call.tool, call.agent, call.args) == ("c1", "read", "acts", MADE)
    assert call.reason == ("it is b" if who == "rule" else "")
    assert [event.args for event in loop.events if isinstance(event, ApprovalRequired)] == [MADE]
    assert (paused.output, loop.executed) == (None, [])
    assert loop.resume(paused.pending, "approve", backend=backend).output == "hello"
    assert loop.executed == [MADE]
    assert [(told.decision, told.args) for told in loop.decisions] == [("ask", MADE), ("allow", MADE)]


@pytest.mark.parametrize("outcome", [{"input": {"path": "a.txt"}}, {"patch": []}, None])
def test_P15_nobody_asks_about_what_a_hook_left(scripted: Scripted, kind: str, outcome: Any) -> None:
    hook = scripted(kind, "h", {"pre_tool_call": outcome})
    for options in WHO_ASKS.values():
        assert Watched(hook, **options).send().output == "hello"


@pytest.mark.parametrize("point", ["pre_tool_call", "before_tool"])
def test_P15_rules_guardrails_and_the_tool_see_it(scripted: Scripted, kind: str, point: str) -> None:
    """A rule that denies it denies, whichever family of hook made it; guardrails and `needs_approval` are given it."""
    outcome = {"input": MADE} if point == "pre_tool_call" else {"replace": {**CALL, "args": MADE}}
    hook = scripted(kind, "rewriter", {point: outcome})
    seen: list[Any] = []
    loop = Watched(
        hook,
        guardrails=[lambda call, args: seen.append(args)],
        tool_options={"needs_approval": lambda args: bool(seen.append(args))},
    )
    loop.send()
    assert (seen, loop.executed) == ([MADE, MADE], [MADE])
    denied = Watched(hook, permissions=[deny("read", args={"path": "b*"}, reason="not b")])
    denied.send()
    assert (denied.executed, denied.last_sent["content"]) == ([], "not b")
    assert [(told.decision, told.source, told.args) for told in denied.decisions] == [("deny", "rule", MADE)]


# P16: the pre-hooks run again.


def test_P16_pre_hooks_run_again_on_the_models_own_args(scripted: Scripted, kind: str, backend: str) -> None:
    """On the original ones, not on what hooks made of them; ▸ ``resumed`` says that the call comes again."""
    hook = scripted(kind, "h", {"pre_tool_call": {"input": MADE}, "post_tool_call": None})
    after = scripted("guest", "after", watching("pre_tool_call"))
    loop = waiting(hook, after)
    result = loop.resume(loop.send(backend=backend).pending, "approve", backend=backend)
    assert hook.called_at == TOOL_POINTS * 2
    assert hook.saw("args") == [FILLED, MADE, FILLED, MADE]
    assert hook.saw("toolCall") == [CALL] * 4
    assert hook.saw("resumed") == [False, False, True, True]
    assert after.saw("args") == [MADE, MADE]
    assert (loop.executed, results(result)) == ([MADE], [("c1", "text")])


def test_P16_a_call_that_never_waited_is_not_resumed(scripted: Scripted, kind: str) -> None:
    hook = scripted(kind, "h", watching(*TOOL_POINTS))
    Watched(hook).send()
    assert hook.saw("resumed") == [False, False]


def test_P16_the_recorded_now_and_seed_are_handed_out_again(scripted: Scripted) -> None:
    """So that a hook that uses them makes the same args again. Each call has its own, at every tool point."""
    told: list[tuple[str, int, int]] = []

    def note(ctx: Any, *_: object) -> None:
        told.append((ctx.tool_call_id, ctx.now, ctx.seed))

    guest = scripted("guest", "guest", watching(*TOOL_POINTS), needs=["*", "now", "seed"])
    host = SimpleNamespace(name="host", pre_tool_call=note, post_tool_call=note)
    shared = Elsewhere()
    loop = shared.loop(guest, host, turns=[calling(CALL, {**CALL, "id": "c2"})])
    token = pending(loop.send()).token
    other = shared.loop(guest, host, turns=["hello"])
    other.resume(token, {"c1": "approve", "c2": "approve"})
    seen = list(zip(guest.saw("toolCallId"), guest.saw("now"), guest.saw("seed"), strict=True))
    assert seen == told
    assert [call for call, _, _ in seen] == ["c1", "c2"] * 4
    assert len(set(seen)) == 2
    assert len({seed for _, _, seed in seen}) == 2


def test_P16_a_hook_that_rewrites_by_the_seed_makes_the_same_again() -> None:
    """Which it could not otherwise. A host hook, for a script cannot compute."""

    def pre_tool_call(ctx: Any) -> dict[str, object]:
        return {"input": {"path": f"{ctx.args['path']}-{ctx.seed}-{ctx.now}"}}

    loop = waiting(SimpleNamespace(name="h", pre_tool_call=pre_tool_call))
    paused = loop.send()
    assert loop.resume(paused.pending, "approve").output == "hello"
    assert [args["path"] for args in loop.executed] == [pending(paused).calls[0].args["path"]]


def test_P16_a_deny_holds_after_the_approval(scripted: Scripted, kind: str) -> None:
    """A hook that denies now denies, whatever the human said."""
    shared = Elsewhere()
    token = pending(shared.loop().send()).token
    loop, result = shared.resumed(token, scripted(kind, "guard", {"pre_tool_call": {"deny": "too late"}}))
    assert (loop.executed, results(result), result.output) == ([], [("c1", "too late")], "hello")
    assert [(told.decision, told.hook) for told in loop.decisions] == [("deny", "guard")]


def test_P16_a_result_holds_after_the_approval(scripted: Scripted, kind: str) -> None:
    shared = Elsewhere()
    token = pending(shared.loop().send()).token
    loop, result = shared.resumed(token, scripted(kind, "cache", {"pre_tool_call": {"result": "cached"}}))
    assert (loop.executed, results(result)) == ([], [("c1", "cached")])
    assert [event.replaced_by_hook for event in loop.events if isinstance(event, ToolDone)] == ["cache"]


def test_P16_other_args_than_the_approved_are_refused(scripted: Scripted, kind: str, backend: str) -> None:
    """Final args that differ are refused with a tool error (``refused``) instead of running."""
    shared = Elsewhere()
    token = pending(shared.loop(scripted(kind, "h", {"pre_tool_call": {"input": MADE}})).send()).token
    now = scripted(kind, "h", {"pre_tool_call": {"input": {**MADE, "lines": 6}}, "post_tool_call": None})
    loop = shared.loop(now, turns=["hello"])
    result = loop.resume(token, {"c1": "approve"}, backend=backend)
    message = "the arguments are not those that were approved"
    assert (loop.executed, results(result), result.output) == ([], [("c1", message)], "hello")
    assert [event.error.kind for event in loop.events if isinstance(event, ToolFailed)] == ["refused"]
    assert now.saw("origin") == [ABSENT, "refused"]
    assert [(told.decision, told.source) for told in loop.decisions] == [("deny", "human")]


def test_P16_so_are_the_models_own_where_a_hook_made_others(scripted: Scripted, kind: str) -> None:
    """The hook is gone, or says nothing any more: what the human saw does not run, so nothing does. The other way
    round too."""
    rewriter = scripted(kind, "h", {"pre_tool_call": {"input": MADE}})
    watcher = scripted(kind, "h", watching("pre_tool_call"))
    for before, now in ([rewriter], []), ([rewriter], [watcher]), ([], [rewriter]), ([watcher], [rewriter]):
        shared = Elsewhere()
        token = pending(shared.loop(*before).send()).token
        loop, result = shared.resumed(token, *now)
        assert (loop.executed, len(results(result))) == ([], 1)


class Counted(pydantic.BaseModel):
    n: int


COMPARED: list[tuple[Any, Any, bool]] = [
    ({"n": 1}, {"n": 1}, True),
    ({"n": 1}, {"n": 1.0}, False),
    ({"n": 1}, {"n": "1"}, False),
    ({"n": 1}, {"n": True}, False),
    ({"n": 0}, {"n": False}, False),
    ({"n": 0}, {"n": None}, False),
    ({"n": None}, {}, False),
    ({"n": []}, {"n": {}}, False),
    ({"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 2, "c": 1}, "a": 1}, True),
    ({"n": [1, 2]}, {"n": [2, 1]}, False),
    ({"n": "é"}, {"n": "e\u0301"}, False),
    ({"n": 2**53 + 1}, {"n": float(2**53)}, False),
]


@pytest.mark.parametrize(("approved", "now", "alike"), COMPARED, ids=repr)
def test_P16_args_are_compared_as_values(scripted: Scripted, kind: str, approved: Any, now: Any, alike: bool) -> None:
    """▸ Not as text: the order of keys is nothing, and ``1``, ``1.0``, ``"1"`` and ``true`` are four values."""
    shared = Elsewhere()
    turns = [calling({"id": "c1", "name": "free", "args": {}})]
    options: dict[str, Any] = {"tools": [ANY_ARGS], "permissions": [ask("free")]}
    first = shared.loop(scripted(kind, "h", {"pre_tool_call": {"input": approved}}), turns=turns, **options)
    hook = scripted(kind, "h", {"pre_tool_call": {"input": now}})
    loop, _ = shared.resumed(pending(first.send()).token, hook, **options)
    assert [type(event) for event in loop.events if isinstance(event, ToolDone | ToolFailed)] == [
        ToolDone if alike else ToolFailed
    ]


def test_P16_args_are_compared_as_validated(scripted: Scripted, kind: str) -> None:
    """▸ As validated values: where the tool's schema makes one value of both, they are the same."""
    counts = define_tool("counts", input=Counted, execute=lambda args: args.n)
    options: dict[str, Any] = {"tools": [counts], "permissions": [ask("counts")]}
    for now, content in ((1, "1"), ("1", "1"), (1.0, "1"), (2, "the arguments are not those that were approved")):
        shared = Elsewhere()
        turns = [calling({"id": "c1", "name": "counts", "args": {"n": 1}})]
        token = pending(shared.loop(turns=turns, **options).send()).token
        hook = scripted(kind, "h", {"pre_tool_call": {"input": {"n": now}}})
        _, result = shared.resumed(token, hook, **options)
        assert results(result) == [("c1", content)]


def test_P16_rules_and_guardrails_are_asked_again() -> None:
    """▸ On resuming: a rule or a guardrail of today stops a call that was approved yesterday; one that asks does not
    ask twice."""
    stops: list[tuple[dict[str, Any], str, str]] = [
        ({"permissions": [deny("read", reason="not today")]}, "not today", "denied"),
        ({"guardrails": [lambda call, args: "not like this"]}, "not like this", "refused"),
        ({"tool_options": {"guardrails": [lambda call, args: "never"]}}, "never", "refused"),
    ]
    for options, content, error in stops:
        shared = Elsewhere()
        token = pending(shared.loop().send()).token
        loop, result = shared.resumed(token, **options)
        assert (loop.executed, results(result)) == ([], [("c1", content)])
        assert [event.error.kind for event in loop.events if isinstance(event, ToolFailed)] == [error]
    asked: list[object] = []
    loop = waiting(tool_options={"needs_approval": lambda args: bool(asked.append(args) or True)})
    assert loop.resume(loop.send().pending, "approve").output == "hello"
    assert (loop.executed, asked) == ([FILLED], [FILLED])


def test_P16_a_tool_that_is_gone_is_a_validation_error() -> None:
    shared = Elsewhere()
    turns = [calling({"id": "c1", "name": "free", "args": {}})]
    token = pending(shared.loop(turns=turns, tools=[ANY_ARGS], permissions=[ask("free")]).send()).token
    _, result = shared.resumed(token)
    assert results(result) == [("c1", "there is no tool 'free'; there is read")]


# P16: the pending state.


def test_P16_the_state_is_text_and_goes_on_in_another_process(tmp_path: Path) -> None:
    """▸ Serialisable: with the same key and a shared store, a process that saw nothing of the first half goes on, and
    rewrites by the recorded seed. Nobody goes on twice."""
    agent, _, executed = agent_of(tmp_path)
    paused = anyio.run(agent.send, "hi")
    token = pending(paused).token
    assert token.isascii()
    command = [sys.executable, "-W", "error", elsewhere.__file__, str(tmp_path)]
    ran = subprocess.run(command, input=token, capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout)
    assert (told["output"], told["executed"]) == ("done", [pending(paused).calls[0].args])
    assert shapes(told["messages"]) == ["user", "assistant", "tool c1", "assistant"]
    again = subprocess.run(command, input=token, capture_output=True, text=True, check=False)
    assert again.returncode != 0
    assert "ApprovalUsed" in again.stderr
    with pytest.raises(ApprovalUsed):
        anyio.run(agent.resume, token, {"c1": "approve"})
    assert executed == []


def test_P16_all_of_the_run_is_kept(scripted: Scripted, kind: str) -> None:
    """▸ The conversation, the bag, the state, the prompt of this turn, notes and tokens, session and customer."""
    shared = Elsewhere()
    hook = scripted(kind, "h", {"before_prompt": {"replace": "be brief", "meta": {"a": 1}}, "pre_tool_call": None})
    first = {**calling(), "usage": Usage(input_tokens=7, output_tokens=2)}
    run = RunState(
        metadata={"tags": ["x"]}, state={"step": 1}, data={"who": "me"}, session_id="s", tenant="t", environment="e"
    )
    loop = shared.loop(hook, turns=[first])
    paused = loop.send(state=run)
    last = {"text": "hello", "usage": Usage(input_tokens=3)}
    other, result = shared.resumed(pending(paused).token, hook, turns=[last])
    assert other.prompts == ["be brief"]
    assert result.meta == {"a": 1}
    assert result.usage == Usage(input_tokens=10, output_tokens=2)
    assert shapes(result.messages) == ["user", "assistant", "tool c1", "assistant"]
    assert hook.saw("metadata")[-1] == {"tags": ["x"]}
    after = result.state
    assert (after.state["step"], after.data, after.metadata) == (1, {"who": "me"}, {"tags": ["x"]})
    assert (after.session_id, after.run_id, after.tenant, after.environment) == ("s", run.run_id, "t", "e")


def test_P16_it_is_authenticated(backend: str) -> None:
    """▸ Any byte changed, cut or added, another key, or a text of one's own: nothing runs, and the real one still
    does."""
    shared = Elsewhere()
    loop = shared.loop()
    token = pending(loop.send(backend=backend)).token
    raw = base64.urlsafe_b64decode(token)
    changed = [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :] for at in range(len(raw))]
    changed += [raw[:-1], raw[1:], raw + b"\0", raw[:32], b""]
    tampered = [base64.urlsafe_b64encode(each).decode() for each in changed]
    for bad in [*tampered, "", "x", "not a token", token + "\u00e9", token[:-8]]:
        with pytest.raises(ApprovalInvalid):
            loop.resume(bad, {"c1": "approve"}, backend=backend)
    assert loop.executed == []
    with pytest.raises(ApprovalInvalid, match="another Approvals key"):
        waiting(approvals=Approvals(key=KEY[::-1])).resume(token, {"c1": "approve"})
    assert loop.resume(token, {"c1": "approve"}, backend=backend).output == "hello"


def test_P16_approved_args_cannot_be_swapped() -> None:
    """▸ For those args only: the state holds them readably, and still nobody can put others in."""
    loop = waiting(turns=[calling({**CALL, "args": {"path": "aaaa"}}), "hello"])
    token = pending(loop.send()).token
    raw = base64.urlsafe_b64decode(token)
    assert raw.count(b"aaaa") >= 2
    swapped = base64.urlsafe_b64encode(raw.replace(b"aaaa", b"bbbb")).decode()
    with pytest.raises(ApprovalInvalid):
        loop.resume(swapped, {"c1": "approve"})
    assert loop.executed == []


def test_P16_it_is_its_agents_alone() -> None:
    shared = Elsewhere()
    token = pending(shared.loop().send()).token
    other = shared.loop(name="another")
    with pytest.raises(ApprovalInvalid, match="of agent 'acts', not of 'another'"):
        other.resume(token, {"c1": "approve"})
    assert shared.resumed(token)[1].output == "hello"


@pytest.mark.parametrize("first", ["approve", "deny"])
def test_P16_it_is_used_once(first: Answer, backend: str) -> None:
    """▸ Whatever was answered: not again by the same agent, nor by another one that shares the store."""
    shared = Elsewhere()
    loop = shared.loop()
    token = pending(loop.send(backend=backend)).token
    loop.resume(token, {"c1": first}, backend=backend)
    for again in (loop, shared.loop()):
        with pytest.raises(ApprovalUsed):
            again.resume(token, {"c1": "approve"}, backend=backend)
    assert len(loop.executed) == (1 if first == "approve" else 0)


def test_P16_of_many_who_resume_at_once_one_goes_on(backend: str) -> None:
    """▸ Compare-and-set in the store, here one that is slow to answer."""

    class Slow(InMemoryApprovals):
        async def claim(self, approval_id: str, digest: str, /) -> bool:  # type: ignore[override]  # it may be async
            await anyio.lowlevel.checkpoint()
            return super().claim(approval_id, digest)

    loop = waiting(approvals=Approvals(key=KEY, store=Slow()))
    came_to: list[str] = []

    async def main() -> None:
        token = pending(await loop.agent.send("hi")).token

        async def resume() -> None:
            try:
                came_to.append((await loop.agent.resume(token, {"c1": "approve"})).text)
            except ApprovalUsed:
                came_to.append("used")

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(resume)

    anyio.run(main, backend=backend)
    assert sorted(came_to) == ["hello", *["used"] * 7]
    assert loop.executed == [FILLED]


def test_P16_a_store_that_does_not_know_it_does_not_let_it_be_used() -> None:
    """▸ The seal alone is not enough."""
    token = pending(waiting(approvals=Approvals(key=KEY)).send()).token
    other = waiting(approvals=Approvals(key=KEY))
    with pytest.raises(ApprovalUsed):
        other.resume(token, {"c1": "approve"})
    assert other.executed == []


ANSWERS: dict[str, tuple[Mapping[str, Any], str]] = {
    "none": ({}, "no answer for c1, c2"),
    "one": ({"c1": "approve"}, "no answer for c2"),
    "unknown": ({"c1": "approve", "c2": "approve", "c3": "approve"}, "c3 does not wait"),
    "no answer": ({"c1": "approve", "c2": "yes"}, "the answer for c2 is 'yes'"),
    "true": ({"c1": "approve", "c2": True}, "the answer for c2 is True"),
    "nothing": ({"c1": "approve", "c2": None}, "the answer for c2 is None"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_P16_answers_that_do_not_fit_leave_it_usable(case: str) -> None:
    loop = waiting(turns=[calling(CALL, {**CALL, "id": "c2"}), "hello"])
    paused = loop.send()
    answers, message = ANSWERS[case]
    with pytest.raises(ApprovalInvalid, match=message):
        loop.resume(paused.pending, answers)
    assert loop.executed == []
    assert loop.resume(paused.pending, "approve").output == "hello"
    assert loop.executed == [FILLED, FILLED]


UNKEPT: dict[str, tuple[dict[str, Any], str]] = {
    "metadata": ({"metadata": {"safe": 1, "db": {"pool": object()}}}, "/metadata/db/pool"),
    "state": ({"state": {"tags": [1, object()]}}, "/state/tags/1"),
    "data": ({"data": object()}, "/data"),
    "messages": (
        {"messages": [{"role": "user", "content": "x", "metadata": {"at": object()}}]},
        "/messages/0/metadata/at",
    ),
}


@pytest.mark.parametrize("where", UNKEPT)
def test_P16_what_cannot_be_kept_names_its_path(where: str, backend: str) -> None:
    """Public report (h): the pause fails, says where and what, and leaves a run that goes on."""
    options, path = UNKEPT[where]
    run = RunState(**options)
    loop = waiting()
    with pytest.raises(RunNotSerialisable) as caught:
        loop.send(state=run, backend=backend)
    assert (caught.value.path, caught.value.type) == (path, "object")
    assert shapes(run.history)[-3:] == ["user", "assistant", "tool c1"]
    assert loop.send("again", state=run, backend=backend).output == "hello"
    assert loop.executed == []


def test_P16_a_run_that_waits_takes_no_other_turn(backend: str) -> None:
    """▸ What follows happens to the run that is made of the pending state."""
    run = RunState()
    loop = waiting(turns=[calling(), "hello", "bye"])
    paused = loop.send(state=run, backend=backend)
    with pytest.raises(RunBusy):
        loop.send("another", state=run, backend=backend)
    result = loop.resume(paused.pending, "approve", backend=backend)
    assert result.state is not run
    assert shapes(run.history) == ["user", "assistant"]
    assert loop.send("more", state=result.state, backend=backend).output == "bye"


# P16: what the human said, of one call or of several.


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("deny", "The user denied this call."), (Deny(reason="no"), "no"), (Deny(), "The user denied")],
)
def test_P16_a_human_deny_is_settled_without_its_pre_hooks(
    scripted: Scripted, kind: str, answer: Answer, reason: str, backend: str
) -> None:
    """▸ A call that the human denied; the model is told why, and post-hooks see it."""
    hook = scripted(kind, "h", {"pre_tool_call": {"input": MADE}, "post_tool_call": {"result": "fine"}})
    loop = waiting(hook)
    result = loop.resume(loop.send(backend=backend).pending, answer, backend=backend)
    assert hook.called_at == ["pre_tool_call", "post_tool_call", "post_tool_call"]
    assert hook.saw("origin")[-1] == "denied"
    assert hook.saw("args")[-1] == MADE
    assert (loop.executed, result.output) == ([], "hello")
    ((_, content),) = results(result)
    assert str(content).startswith(reason)
    told = loop.decisions[-1]
    assert (told.decision, told.source, told.hook, told.args) == ("deny", "human", None, MADE)
    assert told.reason == (answer.reason if isinstance(answer, Deny) else "")


FIVE = [{"id": each, "name": "free", "args": {"of": each}} for each in ("c1", "c2", "c3", "c4", "c5")]


def test_P16_several_calls_with_several_answers_beside_settled_ones(
    scripted: Scripted, kind: str, backend: str
) -> None:
    """▸ Calls that nobody need approve run before the pause, and their results wait for the others. All stand in call
    order, and what hooks added stands after the whole batch, each once."""
    story = Story()
    free = define_tool("free", input={"type": "object"}, execute=lambda args: story.told(args["of"], args["of"]))
    note = {"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "pre"}}
    hook = scripted(
        kind,
        "h",
        {
            "pre_tool_call": {"patch": [note]},
            "post_tool_call": {"patch": [{**note, "value": {"role": "user", "content": "post"}}]},
        },
    )
    guard = scripted("guest", "guard", {"pre_tool_call/read": {"deny": "no reading"}})
    read = {"id": "r", "name": "read", "args": ARGS}
    rules = [ask("free", args={"of": each}) for each in ("c2", "c3", "c5")]
    turns = [calling(FIVE[0], FIVE[1], read, FIVE[2], FIVE[3], FIVE[4]), "hello"]
    loop = Watched(hook, guard, turns=turns, tools=[free], permissions=rules)
    paused = loop.send(backend=backend)
    assert [call.id for call in pending(paused).calls] == ["c2", "c3", "c5"]
    assert sorted(story.lines) == ["c1", "c4"]
    assert shapes(paused.messages) == ["user", "assistant"]
    answers: dict[str, Answer] = {"c2": "approve", "c3": Deny(reason="not c3"), "c5": "approve"}
    result = loop.resume(paused.pending, answers, backend=backend)
    assert sorted(story.lines) == ["c1", "c2", "c4", "c5"]
    assert results(result) == [
        ("c1", "c1"), ("c2", "c2"), ("r", "no reading"), ("c3", "not c3"), ("c4", "c4"), ("c5", "c5"),
    ]  # fmt: skip
    assert shapes(result.messages[2:8]) == [f"tool {each}" for each in ("c1", "c2", "r", "c3", "c4", "c5")]
    added = [message["content"] for message in result.messages[8:-1]]
    # c3 had its hooks before the pause, at it and after the deny.
    assert added == [*["pre", "post"] * 3, "pre", "post", "post", *["pre", "post"] * 2]
    # Those that were settled before the pause went through no hook again.
    assert [call for call in hook.saw("toolCallId") if call in ("c1", "r", "c4")] == ["c1", "r", "c4"] * 2


def test_P16_a_second_pause_after_a_resume(scripted: Scripted, kind: str, backend: str) -> None:
    """The turn goes on, and may wait again: another state, each used once; ``before_prompt`` fires once a turn."""
    hook = scripted(kind, "h", watching(*METHODS, *TOOL_POINTS))
    second = {**CALL, "id": "c2", "args": {"path": "b"}}
    loop = waiting(hook, turns=[calling(), calling(second), "hello"])
    first = loop.send(backend=backend)
    then = loop.resume(first.pending, "approve", backend=backend)
    assert [call.id for call in pending(then).calls] == ["c2"]
    assert (then.output, shapes(then.messages)) == (None, ["user", "assistant", "tool c1", "assistant"])
    with pytest.raises(ApprovalUsed):
        loop.resume(first.pending, "approve", backend=backend)
    result = loop.resume(then.pending, "approve", backend=backend)
    assert (result.output, len(loop.executed)) == ("hello", 2)
    assert hook.called_at.count("before_prompt") == 1
    assert hook.called_at.count("after_response") == 1
    assert loop.prompts == ["be kind"] * 3


def test_P16_a_resume_can_be_streamed(scripted: Scripted, kind: str, backend: str) -> None:
    hook = scripted(kind, "h", watching(*TOOL_POINTS, "pre_generate"))
    loop = waiting(hook)
    events, paused = loop.stream(backend=backend)
    assert [event.type for event in events] == ["approval.required", "turn.done"]
    events, result = loop.resume_stream(paused.pending, "approve", backend=backend)
    assert [event.type for event in events] == ["tool.start", "tool.done", "text.delta", "turn.done"]
    assert (result.output, hook.saw("streaming")[-1]) == ("hello", True)
    assert isinstance(events[-1], TurnDone)
    assert events[-1].result is result


def test_P16_a_failure_on_resuming_loses_the_turn_and_no_call(scripted: Scripted, kind: str) -> None:
    """P11 holds there too: the state is used, the run that was made of it is whole, and nothing ran."""
    shared = Elsewhere()
    token = pending(shared.loop().send()).token
    bad = scripted(kind, "bad", {"pre_tool_call": {"!throw": {"name": "Boom", "message": "it broke"}}})
    loop = shared.loop(bad)
    with pytest.raises(HookThrew):
        loop.resume(token, {"c1": "approve"})
    with pytest.raises(ApprovalUsed):
        loop.resume(token, {"c1": "approve"})
    assert loop.executed == []


def test_P16_the_token_stays_out_of_what_is_printed() -> None:
    """▸ It is as secret as the conversation."""
    loop = waiting()
    paused = loop.send()
    assert pending(paused).token not in repr(paused)
    agent = create_agent(provider=mock_model([]), approvals=Approvals(key=KEY))
    assert KEY.decode() not in repr(agent)
