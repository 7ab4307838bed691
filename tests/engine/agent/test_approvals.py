"""Pending states: their seal, the store that lets each be used once, and what no change of either gets past (P16)."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookcell.agent import (
    Agent,
    ApprovalInvalid,
    Approvals,
    ApprovalUsed,
    Deny,
    InMemoryApprovals,
    RunBusy,
    RunNotSerialisable,
    RunState,
    TurnResult,
    create_agent,
    mock_model,
)

from .loop import BACKENDS, agent_of, calling, contents, host, send, tool

KEY = b"0123456789abcdef"


def asking(*turns: Any, execute: Callable[..., Any] = lambda _: "ran", args: object = None, **options: Any) -> Agent:
    """An agent whose model calls one tool that needs approval."""
    gated = tool("f", execute, needs_approval=True)
    return agent_of([calling("f", args=args, id="c"), *(turns or ["done"])], gated, **options)


def resume(agent: Agent, pending: Any, answers: Any = None, backend: str = "asyncio") -> TurnResult:
    return anyio.run(partial(agent.resume, pending, answers or {"c": "approve"}), backend=backend)


def sealed(approvals: Approvals, **contents: object) -> str:
    return anyio.run(partial(approvals.seal, contents))


def bytes_of(token: str) -> bytes:
    return base64.urlsafe_b64decode(token)


# The seal.


@pytest.mark.parametrize("length", [0, 1, 15])
def test_a_short_key_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"has {length} bytes"):
        Approvals(key=b"k" * length)


@pytest.mark.parametrize("length", [16, 17, 32, 1000])
def test_a_key_of_sixteen_bytes_or_more_is_taken(length: int) -> None:
    approvals = Approvals(key=b"k" * length)
    assert approvals.open(sealed(approvals, x=1))["x"] == 1


@pytest.mark.parametrize("key", ["0123456789abcdef", 5, [1] * 16])
def test_a_key_that_is_no_bytes_is_told_at_once(key: Any) -> None:
    with pytest.raises(TypeError, match="bytes"):
        Approvals(key=key)


def test_every_bit_of_a_token_counts() -> None:
    approvals = Approvals(key=KEY)
    raw = bytes_of(sealed(approvals, calls=["c"], agent="a", turn={"x": [1, None, b"\x00"]}))
    for index in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[index] ^= 1 << bit
            with pytest.raises(ApprovalInvalid):
                approvals.open(base64.urlsafe_b64encode(bytes(changed)).decode())


def test_a_token_cut_or_made_longer_is_refused() -> None:
    approvals = Approvals(key=KEY)
    raw = bytes_of(sealed(approvals, x="abc"))
    for other in (*(raw[:count] for count in range(len(raw))), raw + b"\x00", b"\x00" + raw, raw + raw):
        with pytest.raises(ApprovalInvalid):
            approvals.open(base64.urlsafe_b64encode(other).decode())


def test_every_other_character_of_the_text_is_refused_or_spells_the_same_bytes() -> None:
    """The last character of base64 may carry bits that mean nothing."""
    approvals = Approvals(key=KEY)
    token = sealed(approvals, x="ab")
    for index in range(len(token)):
        for character in "AB9-_=\n /+é\x00":
            other = token[:index] + character + token[index + 1 :]
            try:
                approvals.open(other)
            except ApprovalInvalid:
                continue
            assert bytes_of(other) == bytes_of(token)


@given(st.text())
def test_nothing_but_a_refusal_comes_of_any_text(text: str) -> None:
    with pytest.raises(ApprovalInvalid):
        Approvals(key=KEY).open(text)


@pytest.mark.parametrize("text", ["", "=", "====", "\ud800", "é", "A" * 43 + "=", " " * 64])
def test_nor_of_these(text: str) -> None:
    with pytest.raises(ApprovalInvalid):
        Approvals(key=KEY).open(text)


def test_another_key_opens_nothing_and_the_default_one_is_this_object_s() -> None:
    token = sealed(Approvals(key=KEY), x=1)
    assert Approvals(key=KEY).open(token)["x"] == 1
    for other in (Approvals(key=KEY[::-1]), Approvals(key=KEY + b"\x01"), Approvals()):
        with pytest.raises(ApprovalInvalid, match="another Approvals key"):
            other.open(token)
    with pytest.raises(ApprovalInvalid):
        Approvals().open(sealed(Approvals()))


def test_no_two_tokens_are_alike_and_none_shows_the_key() -> None:
    approvals = Approvals(key=KEY)
    tokens = [sealed(approvals, x=1) for _ in range(50)]
    assert len({approvals.open(token)["id"] for token in tokens}) == 50
    assert not any(KEY in bytes_of(token) for token in tokens)


def test_contents_come_back_as_they_went_in() -> None:
    approvals = Approvals(key=KEY)
    contents = {"text": "é\n", "bytes": b"\xff", "list": [1, 2.5, None, True], "map": {"a": {}}, "big": 2**64 - 1}
    opened = approvals.open(sealed(approvals, **contents))
    del opened["id"]
    assert opened == contents


def test_a_pending_state_shows_its_token_to_no_log() -> None:
    result = send(asking())
    assert result.pending is not None
    assert result.pending.token not in repr(result)


# The store.


@pytest.mark.parametrize("most", [0, -1])
def test_a_store_holds_one_at_least(most: int) -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        InMemoryApprovals(most=most)


@pytest.mark.parametrize("most", [1, 3])
def test_the_oldest_makes_room_when_the_store_is_full(most: int) -> None:
    store = InMemoryApprovals(most=most)
    for index in range(most + 1):
        store.open(f"id{index}", "d")
    assert [store.claim(f"id{index}", "d") for index in range(most + 1)] == [False, *[True] * most]


def test_a_claim_needs_the_digest_that_was_opened_and_a_wrong_one_closes_nothing() -> None:
    store = InMemoryApprovals()
    store.open("id", "digest")
    assert not store.claim("id", "Digest")
    assert not store.claim("id", "")
    assert not store.claim("", "digest")
    assert store.claim("id", "digest")
    assert not store.claim("id", "digest")


def test_of_many_threads_one_claims() -> None:
    store = InMemoryApprovals()
    gate = threading.Barrier(8)

    def claim(round_: int) -> bool:
        gate.wait()
        return store.claim(str(round_), "d")

    with ThreadPoolExecutor(8) as pool:
        for round_ in range(200):
            store.open(str(round_), "d")
            assert sum(pool.map(claim, [round_] * 8)) == 1


def test_of_many_resumes_at_once_one_runs_the_tool() -> None:
    ran: list[object] = []
    agent = asking("done", execute=ran.append)
    pending = send(agent).pending
    used: list[ApprovalUsed] = []

    async def main() -> None:
        async def one() -> None:
            try:
                await agent.resume(pending, {"c": "approve"})  # type: ignore[arg-type]
            except ApprovalUsed as error:
                used.append(error)

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)

    anyio.run(main)
    assert (len(ran), len(used)) == (1, 7)


class EmptyStore(dict[str, str]):
    """A host's own, which is false while it is empty; its methods may be async."""

    async def open(self, approval_id: str, digest: str, /) -> None:
        await anyio.lowlevel.checkpoint()
        self[approval_id] = digest

    async def claim(self, approval_id: str, digest: str, /) -> bool:
        await anyio.lowlevel.checkpoint()
        return self.pop(approval_id, None) == digest


@BACKENDS
def test_the_host_s_store_is_used_also_while_it_is_empty(backend: str) -> None:
    store = EmptyStore()
    agent = asking(approvals=Approvals(key=KEY, store=store))
    pending = send(agent, backend=backend).pending
    assert pending is not None
    assert list(store) == [agent.approvals.open(pending.token)["id"]]
    assert resume(agent, pending, backend=backend).text == "done"
    assert store == {}
    with pytest.raises(ApprovalUsed):
        resume(agent, pending, backend=backend)


@pytest.mark.parametrize("verdict", [False, None, 0, ""])
def test_a_store_that_does_not_say_yes_says_no(verdict: object) -> None:
    class Never(InMemoryApprovals):
        def claim(self, approval_id: str, digest: str, /) -> Any:
            return verdict

    ran: list[object] = []
    agent = asking(execute=ran.append, approvals=Approvals(store=Never()))
    with pytest.raises(ApprovalUsed):
        resume(agent, send(agent).pending)
    assert ran == []


@pytest.mark.parametrize("at", ["open", "claim"])
def test_a_store_that_fails_loses_no_conversation(at: str) -> None:
    class Broken(InMemoryApprovals):
        def open(self, approval_id: str, digest: str, /) -> None:
            if at == "open":
                raise OSError("store")
            super().open(approval_id, digest)

        def claim(self, approval_id: str, digest: str, /) -> bool:
            raise OSError("store")

    ran: list[object] = []
    run = RunState()
    agent = asking(execute=ran.append, approvals=Approvals(store=Broken()))
    if at == "open":
        with pytest.raises(OSError, match="store"):
            send(agent, state=run)
        assert [message["role"] for message in run.history] == ["user", "assistant", "tool"]
        assert send(agent, state=run).text == "done"
    else:
        pending = send(agent).pending
        with pytest.raises(OSError, match="store"):
            resume(agent, pending)
        # It was never claimed, and is as good as before.
        agent.approvals._store = InMemoryApprovals()
        with pytest.raises(ApprovalUsed):
            resume(agent, pending)
    assert ran == []


# Answers.


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"d": "approve"},
        {"c": "approve", "d": "approve"},
        {"c": "yes"},
        {"c": "Approve"},
        {"c": True},
        {"c": None},
        {"c": ""},
        {"c": Deny},
        {"c": {"deny": "x"}},
    ],
)
def test_answers_that_do_not_fit_use_nothing(answers: Any) -> None:
    ran: list[object] = []
    agent = asking(execute=ran.append)
    pending = send(agent).pending
    with pytest.raises(ApprovalInvalid):
        anyio.run(agent.resume, pending, answers)
    assert ran == []
    assert resume(agent, pending).text == "done"
    assert len(ran) == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("deny", "The user denied this call."),
        (Deny(), "The user denied this call."),
        (Deny(reason="not now"), "not now"),
    ],
)
def test_a_human_s_no_is_what_the_model_reads(answer: Any, told: str) -> None:
    ran: list[object] = []
    agent = asking(execute=ran.append)
    result = resume(agent, send(agent).pending, {"c": answer})
    assert (contents(result), ran, result.text) == ([told], [], "done")


def test_a_token_is_as_good_as_the_pending_state_it_is_of() -> None:
    agent = asking()
    pending = send(agent).pending
    assert pending is not None
    assert resume(agent, pending.token).text == "done"


def test_a_token_of_another_agent_is_refused_and_still_good_for_its_own() -> None:
    approvals = Approvals()
    mine, other = asking(approvals=approvals, name="mine"), asking(approvals=approvals, name="other")
    pending = send(mine).pending
    with pytest.raises(ApprovalInvalid, match="is of agent 'mine', not of 'other'"):
        resume(other, pending)
    assert resume(mine, pending).text == "done"


def test_agents_share_the_process_s_approvals_unless_they_have_their_own() -> None:
    pending = send(asking(name="a")).pending
    with pytest.raises(ApprovalInvalid):
        resume(asking(name="a", approvals=Approvals()), pending)
    gated = tool("f", lambda _: "other object", needs_approval=True)
    again = create_agent(provider=mock_model(["done"]), tools=[gated], name="a")
    assert contents(resume(again, pending)) == ["other object"]


# What is kept.


def test_a_run_waits_and_what_is_resumed_is_another() -> None:
    run = RunState(metadata={"a": [1]}, data={"d": b"x"}, state={"k": (1, 2)})
    agent = asking("done", "more")
    paused = send(agent, state=run)
    with pytest.raises(RunBusy, match="wait for approval"):
        send(agent, state=run)
    done = resume(agent, paused.pending)
    assert done.state is not run
    assert (done.state.metadata, done.state.data, done.state.state.k) == ({"a": [1]}, {"d": b"x"}, [1, 2])
    assert (done.state.run_id, done.state.session_id) == (run.run_id, run.session_id)
    assert send(agent, state=done.state).text == "more"
    with pytest.raises(RunBusy):
        send(agent, state=run)


class Meta:
    def __init__(self, value: object) -> None:
        self.value = value

    def before_prompt(self, prompt: str, ctx: Any) -> None:
        ctx.meta({"note": self.value})


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"metadata": {"db": object()}}, "/metadata/db"),
        ({"metadata": {"a": [float("nan")]}}, "/metadata/a/0"),
        ({"data": object()}, "/data"),
        ({"state": {"s": {1}}}, "/state/s"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "/messages/0/content"),
        ({"tenant": "\udfff"}, "/tenant"),
    ],
)
def test_a_run_that_cannot_be_kept_is_told_by_its_path_and_goes_on(options: dict[str, Any], path: str) -> None:
    run = RunState(**options)
    agent = asking("done")
    with pytest.raises(RunNotSerialisable) as caught:
        send(agent, state=run)
    assert caught.value.path == path
    assert run.history[-1]["role"] == "tool"
    assert send(agent, state=run).text == "done"


def test_notes_and_prompts_that_cannot_be_kept_are_told_by_their_path_too() -> None:
    with pytest.raises(RunNotSerialisable) as caught:
        send(asking(agent_class=Meta(object())))
    assert caught.value.path == "/meta/note"
    with pytest.raises(RunNotSerialisable) as caught:
        send(asking(prompt="\ud800"))
    assert caught.value.path == "/prompt"


def test_arguments_that_cannot_be_kept_are_told_by_the_call() -> None:
    give = host("give", pre_tool_call=lambda ctx: {"input": {"x": float("inf")}})
    with pytest.raises(RunNotSerialisable) as caught:
        send(asking(hooks=[give]))
    assert caught.value.path == "/calls/0/args/x"


def test_a_long_conversation_is_kept_whole() -> None:
    messages: list[dict[str, object]] = [{"role": "user", "content": f"{n} " + "x" * 500} for n in range(2_000)]
    agent = asking()
    done = resume(agent, send(agent, state=RunState(messages=messages)).pending)
    assert list(done.messages[:2_000]) == messages
    assert done.text == "done"


def test_a_pause_after_a_resume_is_a_new_state_of_its_own() -> None:
    agent = asking(calling("f", id="d"), "done")
    first = send(agent).pending
    second = resume(agent, first).pending
    assert second is not None
    assert [call.id for call in second.calls] == ["d"]
    with pytest.raises(ApprovalUsed):
        resume(agent, first)
    assert contents(resume(agent, second, {"d": "approve"})) == ["ran", "ran"]
    with pytest.raises(ApprovalUsed):
        resume(agent, second, {"d": "approve"})
