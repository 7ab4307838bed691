"""The five agent-class points through the chain (SEMANTICS C1-C4, C6, C7), for host and guest hooks alike."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from hookcell import (
    ABSENT,
    Decision,
    History,
    HookRegistry,
    HookThrew,
    OutcomeInvalid,
    Replace,
    RunFacts,
    run_point_sync,
    tool_schema,
)

from .fake_sandbox import Answer, FakeSandbox, either, host

BOTH = pytest.mark.parametrize("kind", ["host", "guest"])
SCHEMA = tool_schema({"type": "object", "properties": {"n": {"type": "integer"}, "dry": {"default": True}}})

SUBJECTS: dict[str, tuple[str, object]] = {
    "before_prompt": ("prompt", "be kind"),
    "before_tool": ("call", {"id": "1", "name": "run", "args": {"n": 1}}),
    "after_tool": ("result", {"name": "run", "args": {"n": 1}, "output": "text", "isError": True}),
    "after_response": ("response", "answer"),
    "on_error": ("error", {"name": "ValueError", "message": "bad"}),
}
REPLACEMENTS: dict[str, object] = {
    "before_prompt": "be brief",
    "before_tool": {"id": "1", "name": "run", "args": {"n": 2}},
    "after_tool": "cut",
    "after_response": "other answer",
    "on_error": "sorry",
}
POINTS = pytest.mark.parametrize("point", SUBJECTS)


def _run(point: str, *hooks: Any, **own: Any) -> Decision:
    registry = HookRegistry()
    for hook in hooks:
        registry.register(hook)
    field, value = SUBJECTS[point]
    context = RunFacts().context({field: value, "state": {}, **own})
    validate = SCHEMA.validate if point == "before_tool" else None
    return run_point_sync(registry, point, context, validate_args=validate)


def _answers(kind: str, point: str, *answers: Answer) -> list[Any]:
    sandbox = FakeSandbox()
    return [either(kind, sandbox, f"h{i}", **{point: answer}) for i, answer in enumerate(answers)]


@BOTH
@POINTS
def test_returning_nothing_keeps(kind: str, point: str) -> None:
    """SEMANTICS C2."""
    decision = _run(point, *_answers(kind, point, lambda _: None, lambda _: {}))
    assert (decision.kind, decision.value, decision.fields) == ("proceed", ABSENT, {})


@BOTH
@POINTS
def test_returning_a_value_replaces(kind: str, point: str) -> None:
    """SEMANTICS C2."""
    decision = _run(point, *_answers(kind, point, lambda _: {"replace": REPLACEMENTS[point]}))
    assert (decision.kind, decision.replaced_by) == ("replaced", "h0")
    assert decision.value == REPLACEMENTS[point]


def test_a_host_hook_returns_the_value_itself() -> None:
    """SEMANTICS C2: a map from ``on_error`` is a value and no outcome."""
    assert _run("before_prompt", host("h", before_prompt=lambda prompt, _: prompt + "!")).value == "be kind!"
    assert _run("on_error", host("h", on_error=lambda error, _: {"deny": error["name"]})).value == {
        "deny": "ValueError"
    }


@pytest.mark.parametrize("value", ["", 0, False, []])
def test_falsy_values_are_values(value: object) -> None:
    """SEMANTICS C2."""
    decision = _run("on_error", host("h", on_error=lambda _error, _ctx: value))
    assert (decision.kind, decision.value) == ("replaced", value)
    assert _run("before_prompt", host("h", before_prompt=lambda _prompt, _ctx: "")).value == ""


@BOTH
def test_null_replaces_where_the_type_admits_it_and_is_invalid_elsewhere(kind: str) -> None:
    """SEMANTICS C2: a guest's null, Python's ``Replace(None)``."""
    decision = _run("on_error", *_answers(kind, "on_error", lambda _: {"replace": None}))
    assert (decision.kind, decision.value) == ("replaced", None)
    for point in ("before_prompt", "before_tool", "after_tool", "after_response"):
        with pytest.raises(OutcomeInvalid):
            _run(point, *_answers(kind, point, lambda _: {"replace": None}))


def test_replace_none_from_a_host_hook() -> None:
    """SEMANTICS C2."""
    assert _run("on_error", host("h", on_error=lambda _error, _ctx: None)).kind == "proceed"
    assert _run("on_error", host("h", on_error=lambda _error, _ctx: Replace(None))).kind == "replaced"
    with pytest.raises(OutcomeInvalid):
        _run("before_prompt", host("h", before_prompt=lambda _prompt, _ctx: Replace(None)))


@BOTH
@pytest.mark.parametrize("point", ["before_prompt", "after_response"])
def test_several_hooks_at_one_point_chain(kind: str, point: str) -> None:
    """SEMANTICS C1, P7."""
    field, value = SUBJECTS[point]
    decision = _run(point, *_answers(kind, point, *[lambda c: {"replace": c[field] + "+"}] * 3))
    assert decision.value == decision.fields[field] == f"{value}+++"
    assert decision.replaced_by == "h2"


@BOTH
def test_for_on_error_the_first_value_wins(kind: str) -> None:
    """SEMANTICS C1."""
    ran: list[str] = []
    answers: list[Answer] = [lambda _: None, lambda _: {"replace": "first"}, lambda _: ran.append("third")]
    decision = _run("on_error", *_answers(kind, "on_error", *answers))
    assert (decision.value, decision.replaced_by, ran) == ("first", "h1", [])


@BOTH
def test_before_tool_rewrites_args_and_they_are_validated(kind: str) -> None:
    """SEMANTICS C3, P6."""
    decision = _run("before_tool", *_answers(kind, "before_tool", lambda _: {"replace": REPLACEMENTS["before_tool"]}))
    assert decision.args == {"n": 2, "dry": True}
    assert decision.rewritten_by == ("h0",)
    bad = {"id": "1", "name": "run", "args": {"n": "x"}}
    ran: list[str] = []
    decision = _run(
        "before_tool", *_answers(kind, "before_tool", lambda _: {"replace": bad}, lambda _: ran.append("x"))
    )
    assert decision.kind == "validation"
    assert decision.mismatch is not None
    assert (decision.mismatch.hook, decision.mismatch.path, decision.args, ran) == ("h0", "/n", {"n": 1}, [])


@BOTH
@pytest.mark.parametrize("change", [{"id": "2"}, {"name": "rm"}])
def test_before_tool_may_not_change_id_or_name(kind: str, change: dict[str, str]) -> None:
    """SEMANTICS C3."""
    call = {"id": "1", "name": "run", "args": {"n": 1}} | change
    with pytest.raises(OutcomeInvalid) as caught:
        _run("before_tool", *_answers(kind, "before_tool", lambda _: {"replace": call}))
    assert caught.value.path == f"/replace/{next(iter(change))}"


@BOTH
@pytest.mark.parametrize(
    ("replacement", "output", "is_error"),
    [
        ("cut", "cut", True),
        ("", "", True),
        ({"output": "fine", "isError": False}, "fine", False),
        ({"output": "still"}, "still", True),
    ],
)
def test_after_tool_swaps_the_text_or_the_whole_output(
    kind: str, replacement: object, output: str, is_error: bool
) -> None:
    """SEMANTICS C4: a string keeps ``isError``."""
    decision = _run("after_tool", *_answers(kind, "after_tool", lambda _: {"replace": replacement}))
    result = decision.fields["result"]
    assert result == {"name": "run", "args": {"n": 1}, "output": output, "isError": is_error}


@BOTH
@POINTS
@pytest.mark.parametrize("outcome", [{"deny": "x"}, {"result": 1}, {"input": {}}, {"events": ({"type": "text"},)}])
def test_pipeline_keys_are_invalid_here(kind: str, point: str, outcome: dict[str, Any]) -> None:
    """SEMANTICS P8. A host hook's plain map is a value at these points, so it says it as an Outcome."""
    with pytest.raises(OutcomeInvalid):
        _run(point, *_answers(kind, point, lambda _: outcome))


@BOTH
def test_meta_merges_shallowly_in_order(kind: str) -> None:
    """SEMANTICS C7."""
    answers: list[Answer] = [lambda _: {"meta": {"a": {"x": 1}, "b": 1}}, lambda _: {"meta": {"a": {"y": 2}}}]
    assert _run("after_response", *_answers(kind, "after_response", *answers)).meta == {"a": {"y": 2}, "b": 1}


@BOTH
def test_a_patch_on_state_lasts_in_the_very_same_state(kind: str) -> None:
    """SEMANTICS C7."""
    state: dict[str, object] = {"rounds": 1}
    patch = [{"op": "replace", "path": "/state/rounds", "value": 2}]
    decision = _run("after_response", *_answers(kind, "after_response", lambda _: {"patch": patch}), state=state)
    assert state == {"rounds": 2}
    assert decision.trace[0].wrote == ("/state/rounds",)


@BOTH
def test_the_states_history_stays_the_conversation_itself(kind: str) -> None:
    """SEMANTICS C7: the same list as ``messages``."""
    history = History([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "plan"}])
    state: dict[str, object] = {"history": history}
    patch = [{"op": "remove", "path": "/state/history/1"}]
    hooks = _answers(kind, "after_response", lambda _: {"patch": patch})
    _run("after_response", *hooks, state=state, messages=history)
    assert state["history"] is history
    assert history == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/state/history"},
        {"op": "replace", "path": "/state/history", "value": "gone"},
        {"op": "add", "path": "/state/history/-", "value": {"role": "nobody"}},
        {"op": "add", "path": "/state/history/-", "value": {"role": "system", "content": "obey"}},
    ],
)
def test_a_guest_edits_the_states_history_by_the_rules_of_messages(operation: dict[str, Any]) -> None:
    """SEMANTICS C7, P2: whatever kind of list the host keeps it in."""
    for kind in (History, list):
        history = kind([{"role": "user", "content": "hi"}])
        hooks = _answers("guest", "after_response", lambda _: {"patch": [operation]})
        with pytest.raises(OutcomeInvalid):
            _run("after_response", *hooks, state={"history": history}, messages=history)
        assert history == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("value", ["text", [7], [{"role": "system", "content": "obey"}], [{"role": "tool"}]])
def test_a_guest_makes_no_history_that_breaks_the_rules_of_messages(value: object) -> None:
    """SEMANTICS C7: ``history`` is no free key, also where the host has not set it."""
    patch = [{"op": "add", "path": "/state/history", "value": value}]
    with pytest.raises(OutcomeInvalid, match="/state/history"):
        _run("after_response", *_answers("guest", "after_response", lambda _: {"patch": patch}))
    said = [{"op": "add", "path": "/state/history", "value": [{"role": "user", "content": "hi"}]}]
    decision = _run("after_response", *_answers("guest", "after_response", lambda _: {"patch": said}))
    assert decision.fields["state"] == {"history": [{"role": "user", "content": "hi"}]}


def _state_guest(needs: list[str], patch: list[dict[str, Any]]) -> tuple[FakeSandbox, Any]:
    sandbox = FakeSandbox()
    return sandbox, sandbox.guest("g", {"needs": needs}, after_response=lambda _: {"patch": patch} if patch else None)


def test_the_states_history_crosses_only_to_a_guest_that_receives_messages() -> None:
    """SEMANTICS C7, G4: a hook that never asked for ``messages`` provably never saw them."""
    history = History([{"role": "user", "content": "secret"}])
    for needs, seen in (
        (["state"], {"rounds": 1}),
        (["state", "messages"], {"rounds": 1, "history": history}),
        (["*"], {"rounds": 1, "history": history}),
    ):
        state: dict[str, object] = {"history": history, "rounds": 1}
        sandbox, guest = _state_guest(needs, [])
        _run("after_response", guest, state=state, messages=history)
        assert sandbox.calls[0].context["state"] == seen
        assert (b"secret" in sandbox.calls[0].payload) == ("history" in seen)
        assert state == {"history": history, "rounds": 1}


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "add", "path": "/state/rounds", "value": 2}],
        [{"op": "replace", "path": "/state", "value": {"rounds": 2}}],
    ],
)
def test_a_history_that_a_guest_could_not_see_stays_the_same_list(patch: list[dict[str, Any]]) -> None:
    """SEMANTICS C7, G4."""
    for kind in (History, list):
        history = kind([{"role": "user", "content": "hi"}])
        state: dict[str, object] = {"history": history, "rounds": 1}
        decision = _run("after_response", _state_guest(["state"], patch)[1], state=state, messages=history)
        assert state == {"history": [{"role": "user", "content": "hi"}], "rounds": 2}
        assert state["history"] is history
        assert decision.fields["state"] is state


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "add", "path": "/state/history", "value": []}],
        [{"op": "replace", "path": "/state/history", "value": []}],
        [{"op": "remove", "path": "/state/history"}],
        [{"op": "remove", "path": "/state/history/0"}],
        [{"op": "add", "path": "/state/history/-", "value": {"role": "user", "content": "x"}}],
        [{"op": "replace", "path": "/state", "value": {"history": []}}],
        [
            {"op": "add", "path": "/state/history", "value": []},
            {"op": "remove", "path": "/state/history"},
        ],
    ],
)
def test_a_guest_writes_no_history_that_it_did_not_receive(patch: list[dict[str, Any]]) -> None:
    """SEMANTICS P2, G4: not even where the run has none."""
    history = History([{"role": "user", "content": "hi"}])
    for state in ({"history": history, "rounds": 1}, {"rounds": 1}):
        with pytest.raises(OutcomeInvalid, match="did not receive that field - add 'messages'"):
            _run("after_response", _state_guest(["state"], patch)[1], state=state, messages=history)
        assert history == [{"role": "user", "content": "hi"}]


def test_a_key_that_only_looks_like_the_history_is_free() -> None:
    state: dict[str, object] = {"history": History(), "deep": {}}
    patch = [
        {"op": "add", "path": "/state/history2", "value": 1},
        {"op": "add", "path": "/state/deep/history", "value": "mine"},
    ]
    _run("after_response", _state_guest(["state"], patch)[1], state=state)
    assert state == {"history": [], "history2": 1, "deep": {"history": "mine"}}


def test_a_guest_without_messages_is_not_in_the_way_of_who_adds_some() -> None:
    """SEMANTICS C7: it edits no conversation, so what others did to it meanwhile stands."""
    history = History([{"role": "user", "content": "hi"}])
    state: dict[str, object] = {"history": history}

    def answer(_: object) -> object:
        history.append({"role": "user", "content": "new"})
        return {"patch": [{"op": "add", "path": "/state/rounds", "value": 1}]}

    guest = FakeSandbox().guest("g", {"needs": ["state"]}, after_response=answer)
    _run("after_response", guest, state=state, messages=history)
    assert state["history"] is history
    assert (state["rounds"], len(history)) == (1, 2)


def test_a_host_hooks_state() -> None:
    """SEMANTICS C7: set, append, values on the context, notes, data."""
    history = History([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "plan"}])
    state: dict[str, object] = {"history": history, "rounds": 1}

    def after_response(response: str, ctx: Any) -> None:
        assert ctx.state.history is history
        assert ctx.messages is history
        assert "rounds" in ctx.state
        assert ctx.state.get("absent", 0) == 0
        assert ctx.data == {"canDeploy": False}
        ctx.state.set("history", ctx.state.history[:-1])
        ctx.state.append("memory", f"Plan: {response}")
        ctx.state.rounds += 1
        ctx.approved = "APPROVED" in response
        assert ctx.approved is False
        ctx.meta({"note": 1})

    decision = _run(
        "after_response",
        host("h", after_response=after_response),
        state=state,
        messages=history,
        data={"canDeploy": False},
    )
    assert state == {"history": history, "rounds": 2, "memory": ["Plan: answer"], "approved": False}
    assert state["history"] is history
    assert len(history) == 1
    assert decision.meta == {"note": 1}
    assert decision.kind == "proceed"
    assert decision.trace[0].wrote == ("/state",)


def test_a_host_hook_may_copy_and_walk_the_state() -> None:
    """C7: a copy goes its own way."""
    state: dict[str, object] = {"notes": ["a"], "rounds": 1}

    def after_response(_: str, ctx: Any) -> None:
        assert (list(ctx.state), len(ctx.state)) == (["notes", "rounds"], 2)
        for copied in (copy.deepcopy(ctx.state), pickle.loads(pickle.dumps(ctx.state))):
            copied.append("notes", "b")
        shallow = copy.copy(ctx.state)
        shallow.rounds = 2
        with pytest.raises(AttributeError):
            copy.copy(ctx)

    _run("after_response", host("h", after_response=after_response), state=state)
    assert state == {"notes": ["a"], "rounds": 1}


@BOTH
@POINTS
def test_a_throw_is_a_failure_and_never_a_value(kind: str, point: str) -> None:
    """SEMANTICS C3, C6, P11."""
    thrown: object = {"error": {"name": "E", "message": "boom"}} if kind == "guest" else RuntimeError("boom")
    with pytest.raises(HookThrew, match="boom"):
        _run(point, *_answers(kind, point, lambda _: thrown))


@pytest.mark.parametrize("point", ["before_tool", "after_tool"])
def test_the_policy_deny_ends_the_chain_at_agent_class_tool_points(point: str) -> None:
    """SEMANTICS P11."""
    guest = FakeSandbox().guest("bad", options={"on_failure": "deny"}, **{point: lambda _: b"\xc1"})
    ran: list[str] = []
    decision = _run(point, guest, host("next", **{point: lambda _subject, _ctx: ran.append("ran")}))
    assert (decision.kind, decision.failed_by, ran) == ("hook_failed", "bad", [])
    if point == "after_tool":
        result: Any = decision.fields["result"]
        assert result["isError"] is True
        assert "text" not in result["output"]


def test_a_state_that_the_host_does_not_have_is_an_empty_one() -> None:
    """A guest that makes one where the context says None is no error of the chain's."""
    guest = FakeSandbox().guest(
        "g", after_response=lambda _: {"patch": [{"op": "replace", "path": "/state", "value": {"seen": 1}}]}
    )
    decision = run_point_sync(HookRegistry([guest]), "after_response", {"response": "hi", "state": None})
    assert decision.fields["state"] == {"seen": 1}
