"""A run that somebody else changes while a hook is at work on it (SEMANTICS P2, P11, C7): agents may share one.

Whatever a hook does here "meanwhile", another task or thread of the host does in earnest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hookcell import Decision, History, HookRegistry, OutcomeInvalid, RunFacts, run_point_sync

from .fake_sandbox import FakeSandbox, host

MASK = [{"op": "replace", "path": "/messages/1/content", "value": "***"}]


def _facts() -> RunFacts:
    messages: list[dict[str, object]] = [{"role": "user", "content": "a"}, {"role": "user", "content": "secret"}]
    return RunFacts(messages=History(messages), metadata={"mine": 1})


def _said(facts: RunFacts) -> list[object]:
    return [message["content"] for message in facts.messages]


def _guest(facts: RunFacts, point: str, outcome: dict[str, object], meanwhile: Callable[[], object]) -> Decision:
    def answer(_: object) -> object:
        meanwhile()
        return outcome

    registry = HookRegistry([FakeSandbox().guest("g", **{point: answer})])
    return run_point_sync(registry, point, facts.context({"request": {}, "args": {}}))


def _copying(point: str, hook: Callable[..., Any], context: dict[str, object]) -> Decision:
    registry = HookRegistry()
    registry.register(host("h", **{point: hook}), on_failure="skip")
    return run_point_sync(registry, point, context)


def test_a_guests_edit_never_lands_on_another_message_than_it_saw() -> None:
    """SEMANTICS P2: its index names a message of the conversation it was given."""
    facts = _facts()
    new: dict[str, object] = {"role": "user", "content": "new"}
    with pytest.raises(OutcomeInvalid, match="somebody else changed the conversation") as caught:
        _guest(facts, "pre_generate", {"patch": MASK}, lambda: facts.messages.insert(0, new))
    assert caught.value.path == "/messages"
    assert _said(facts) == ["new", "a", "secret"]


def test_a_guests_edit_of_the_state_never_lands_on_another_message_than_it_saw() -> None:
    """SEMANTICS C7."""
    facts = _facts()
    state: dict[str, object] = {"history": facts.messages, "rounds": 1}

    def answer(_: object) -> object:
        del facts.messages[0]
        return {"patch": [{"op": "remove", "path": "/state/history/0"}]}

    registry = HookRegistry([FakeSandbox().guest("g", after_response=answer)])
    with pytest.raises(OutcomeInvalid, match="somebody else changed the conversation"):
        run_point_sync(registry, "after_response", facts.context({"response": "", "state": state}))
    assert _said(facts) == ["secret"]


def test_a_guest_that_edits_no_message_is_not_in_the_way_of_who_does() -> None:
    facts = _facts()
    new: dict[str, object] = {"role": "user", "content": "new"}
    note = {"patch": [{"op": "add", "path": "/metadata/note", "value": 1}]}

    def meanwhile() -> None:
        facts.messages.append(new)
        facts.metadata["other"] = 2

    _guest(facts, "pre_generate", note, meanwhile)
    assert _said(facts) == ["a", "secret", "new"]
    assert facts.metadata == {"mine": 1, "other": 2, "note": 1}


def test_an_addition_at_a_tool_point_fits_whatever_stands_before_it() -> None:
    """SEMANTICS P2: it waits for the end of the batch."""
    facts = _facts()
    added: dict[str, object] = {"role": "user", "content": "added"}
    outcome: dict[str, object] = {"patch": [{"op": "add", "path": "/messages/-", "value": added}]}
    decision = _guest(
        facts, "pre_tool_call", outcome, lambda: facts.messages.append({"role": "user", "content": "new"})
    )
    assert decision.appended == (added,)
    assert _said(facts) == ["a", "secret", "new"]


def test_a_host_hook_that_only_looks_at_its_copy_undoes_nothing() -> None:
    """SEMANTICS P11."""
    facts = _facts()
    request: dict[str, object] = {"temperature": 1}

    def look(ctx: Any) -> None:
        assert all((ctx.messages, ctx.metadata, ctx.request))
        facts.messages.append({"role": "user", "content": "new"})
        facts.metadata["other"] = 2
        request["temperature"] = 0

    decision = _copying("pre_generate", look, facts.context({"request": request}))
    assert _said(facts) == ["a", "secret", "new"]
    assert (facts.metadata, request) == ({"mine": 1, "other": 2}, {"temperature": 0})
    assert decision.trace[0].wrote == ()


def test_a_host_hooks_copy_and_the_run_are_merged_key_by_key() -> None:
    """SEMANTICS P11: what the hook set, removed and left alone, beside what others set and removed."""
    facts = _facts()
    facts.metadata.update(gone=1, dropped=1)

    def change(ctx: Any) -> None:
        ctx.metadata["mine"] = 2
        del ctx.metadata["dropped"]
        del facts.metadata["gone"]
        facts.metadata["other"] = 2

    _copying("pre_tool_call", change, facts.context({"args": {}}))
    assert facts.metadata == {"mine": 2, "other": 2}


def test_a_host_hooks_state_is_merged_and_its_history_stays_the_conversation() -> None:
    """SEMANTICS C7, P11."""
    facts = _facts()
    state: dict[str, object] = {"history": facts.messages, "rounds": 1}

    def change(_: str, ctx: Any) -> None:
        ctx.state.rounds = 2
        facts.messages.append({"role": "user", "content": "new"})

    _copying("after_response", change, facts.context({"response": "", "state": state}))
    assert state == {"history": facts.messages, "rounds": 2}
    assert state["history"] is facts.messages
    assert _said(facts) == ["a", "secret", "new"]


def test_a_host_hook_that_edits_a_copy_of_another_conversation_fails_loudly() -> None:
    """SEMANTICS P11: adopting its copy would drop what others said."""
    facts = _facts()

    def change(ctx: Any) -> None:
        ctx.messages[1]["content"] = "***"
        facts.messages.append({"role": "user", "content": "new"})

    decision = _copying("pre_generate", change, facts.context({"request": {}}))
    assert decision.trace[0].failure == "outcome_invalid"
    assert _said(facts) == ["a", "secret", "new"]
