"""Recorded runs through hooks: which points fire in which order, and what stays in the conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from hookcell import ABSENT, ContextInvalid, HookRegistry, compile_schema
from hookcell.cli.openai_dialect import recorded_run
from hookcell.cli.replay import Replay, Step

from ..fake_sandbox import FakeSandbox  # noqa: TID252 tests are no package that could be named
from .small_guests import answer, asked, call, one_call, record, user

POINTS = ("pre_generate", "post_generate", "pre_tool_call", "post_tool_call")


def _hook(name: str = "h", **methods: Callable[..., Any]) -> Any:
    return SimpleNamespace(name=name, **methods)


def _steps(messages: Sequence[Any], *hooks: Any, run_id: str = "r1", **options: Any) -> list[Step]:
    replay = Replay(hooks=HookRegistry(hooks).snapshot(), **options)
    return list(replay.steps(recorded_run(record(list(messages), run_id), fallback_id="line 1")))


def _watcher(seen: list[Any], what: Callable[[Any], Any]) -> Any:
    def see(ctx: Any, *_: Any) -> None:
        seen.append((ctx.point, what(ctx)))

    return _hook("watch", **dict.fromkeys(POINTS, see))


def _texts(ctx: Any) -> list[Any]:
    return [message["content"] for message in ctx.messages]


def test_each_model_call_has_its_points_before_and_after_and_each_tool_call_too() -> None:
    seen: list[Any] = []
    _steps(one_call(), _watcher(seen, _texts))
    assert seen == [
        ("pre_generate", ["hi"]),
        ("post_generate", ["hi", None]),
        ("pre_tool_call", ["hi", None]),
        ("post_tool_call", ["hi", None]),
        ("pre_generate", ["hi", None, "ok"]),
        ("post_generate", ["hi", None, "ok", "done"]),
    ]


def test_gates_of_one_turn_go_first_in_call_order_then_results_in_call_order() -> None:
    """SEMANTICS P3: whatever the order of the recorded results."""
    seen: list[Any] = []
    messages = [asked(call("c1"), call("c2")), answer("c2"), answer("c1")]
    _steps(messages, _watcher(seen, lambda ctx: ctx.tool_call_id if "tool" in ctx.point else ""))
    assert [(point, each) for point, each in seen if each] == [
        ("pre_tool_call", "c1"),
        ("pre_tool_call", "c2"),
        ("post_tool_call", "c1"),
        ("post_tool_call", "c2"),
    ]


def test_a_denied_call_shows_its_error_in_the_conversation_and_post_hooks_see_the_origin() -> None:
    """SEMANTICS P4, P10."""
    seen: list[Any] = []
    deny = _hook("deny", pre_tool_call=lambda ctx: {"deny": "not now"})
    watch = _watcher(seen, lambda ctx: ctx.origin if ctx.point == "post_tool_call" else _texts(ctx))
    steps = _steps(one_call(), deny, watch)
    assert ("post_tool_call", "denied") in seen
    assert ("pre_generate", ["hi", None, "not now"]) in seen
    assert next(step for step in steps if step.point == "pre_tool_call").decision.denied_by == "deny"


def test_a_redacted_result_is_what_later_hooks_see() -> None:
    """SEMANTICS P9."""
    seen: list[Any] = []
    redact = _hook("redact", post_tool_call=lambda ctx, result: {"result": result["result"].replace("secret", "[x]")})
    steps = _steps(one_call(result="a secret"), redact, _watcher(seen, _texts))
    assert ("pre_generate", ["hi", None, "a [x]"]) in seen
    post = next(step for step in steps if step.point == "post_tool_call")
    assert (post.before, post.after) == ("a secret", "a [x]")


def test_a_result_that_is_no_text_stands_as_json_in_the_conversation() -> None:
    seen: list[Any] = []
    _steps(one_call(), _hook(pre_tool_call=lambda ctx: {"result": {"é": [1]}}), _watcher(seen, _texts))
    assert seen[-1] == ("post_generate", ["hi", None, '{"é": [1]}', "done"])


def test_rewritten_arguments_show_in_the_assistant_message_with_the_models_own_kept() -> None:
    """SEMANTICS P6."""
    seen: list[Any] = []
    rewrite = _hook(pre_tool_call=lambda ctx: {"input": {"q": 2}} if ctx.tool_call_id == "c1" else None)
    messages = [asked(call("c1", arguments='{"q": 1}'), call("c2")), answer("c1"), answer("c2"), asked(content="done")]
    steps = _steps(messages, rewrite, _watcher(seen, lambda ctx: [dict(message) for message in ctx.messages]))
    assistant = seen[-1][1][0]
    assert [each["args"] for each in assistant["toolCalls"]] == [{"q": 2}, {}]
    assert assistant["metadata"] == {"modelArgs": {"c1": {"q": 1}}}
    pre = next(step for step in steps if step.point == "pre_tool_call")
    assert (pre.before, pre.after) == ({"q": 1}, {"q": 2})


def test_messages_that_hooks_add_stand_after_the_results_of_the_batch() -> None:
    """SEMANTICS P2."""
    seen: list[Any] = []
    added = {"role": "user", "content": "added"}
    add = _hook(pre_tool_call=lambda ctx: ctx.messages.append(dict(added)))
    messages = [asked(call("c1"), call("c2")), answer("c1", "one"), answer("c2", "two"), asked(content="done")]
    _steps(messages, add, _watcher(seen, _texts))
    assert seen[-2] == ("pre_generate", [None, "one", "two", "added", "added"])


def test_an_edit_before_a_model_call_stays_for_the_rest_of_the_run() -> None:
    """SEMANTICS P2."""

    def shorten(ctx: Any) -> None:
        ctx.messages[:] = ctx.messages[-1:]

    seen: list[Any] = []
    _steps(
        [user("a"), asked(content="b"), user("c"), asked(content="d")],
        _hook(pre_generate=shorten),
        _watcher(seen, _texts),
    )
    assert [texts for _, texts in seen] == [["a"], ["a", "b"], ["c"], ["c", "d"]]


def test_a_call_without_a_recorded_result_has_no_post_hooks_unless_a_hook_settled_it() -> None:
    deny = _hook(pre_tool_call=lambda ctx: {"deny": "no"} if ctx.tool_call_id == "c2" else None)
    steps = _steps([asked(call("c1"), call("c2"))], deny)
    assert [(step.point, step.call.id) for step in steps if step.call] == [
        ("pre_tool_call", "c1"),
        ("pre_tool_call", "c2"),
        ("post_tool_call", "c2"),
    ]


def test_arguments_that_do_not_fit_skip_the_pre_hooks() -> None:
    """SEMANTICS P3, P10: text that is no JSON, or against the schema."""
    schema = compile_schema({"type": "object", "required": ["q"]}, hostile=False)
    for arguments, schemas in (("not json", {}), ("{}", {"find": schema})):
        seen: list[Any] = []
        steps = _steps(one_call(arguments=arguments), _watcher(seen, lambda ctx: None), schemas=schemas)
        assert "pre_tool_call" not in dict(seen)
        assert "post_tool_call" in dict(seen)
        pre = next(step for step in steps if step.point == "pre_tool_call")
        assert pre.decision is None
        assert pre.gate.settled.origin == "validation"


def test_a_failure_under_raise_ends_the_run_and_is_its_last_step() -> None:
    """SEMANTICS P11."""

    def fail(ctx: Any) -> None:
        raise RuntimeError("boom")

    steps = _steps(one_call(), _hook(pre_tool_call=fail))
    assert [step.point for step in steps] == ["pre_generate", "post_generate", "pre_tool_call"]
    assert steps[-1].failure.code == "threw"
    assert [entry.failure for entry in steps[-1].trace] == ["threw"]


def test_a_record_whose_values_cannot_cross_ends_with_the_hosts_error() -> None:
    guest = FakeSandbox().guest("g", pre_tool_call=lambda ctx: None, options={"on_failure": "skip"})
    steps = _steps(one_call(arguments='{"q": "\\ud800"}'), guest)
    assert isinstance(steps[-1].failure, ContextInvalid)


def test_the_same_run_gets_the_same_moments_each_time_and_other_runs_get_others() -> None:
    """SEMANTICS G1."""
    seeds = []
    for run_id in ("r1", "r1", "r2"):
        guest = FakeSandbox()
        hook = guest.guest("g", {"needs": ["now", "seed"]}, pre_tool_call=lambda ctx: None)
        _steps([*one_call("c1"), *one_call("c2")], hook, run_id=run_id, now=123)
        assert {each.context["now"] for each in guest.calls} == {123}
        seeds.append([each.context["seed"] for each in guest.calls])
    assert seeds[0] == seeds[1]
    assert len({*seeds[0], *seeds[2]}) == 4


def test_storage_of_a_run_ends_with_it_and_a_hooks_own_does_not() -> None:
    """SEMANTICS G3: also where two runs have one id."""
    for scope, expected in (("run", [None, 1, None, 1]), ("session", [None, 1, None, 1]), ("hook", [None, 1, 1, 1])):
        sandbox = FakeSandbox()
        hook = sandbox.guest("g", {"storage": scope}, pre_tool_call=lambda ctx: {"storage": 1})
        replay = Replay(hooks=HookRegistry([hook]).snapshot())
        run = recorded_run(record([*one_call("c1"), *one_call("c2")]), fallback_id="")
        for _ in range(2):
            list(replay.steps(run))
        assert [each.context["storage"] for each in sandbox.calls] == expected


def test_a_tool_message_without_content_is_a_result_of_nothing() -> None:
    seen: list[Any] = []
    steps = _steps(one_call(result=None), _watcher(seen, _texts))
    assert next(step for step in steps if step.point == "post_tool_call").before is None
    assert seen[-1][1] == ["hi", None, "", "done"]


def test_points_without_hooks_are_steps_without_a_decision() -> None:
    steps = _steps(one_call(), _hook(pre_tool_call=lambda ctx: None))
    generate = [step for step in steps if step.call is None]
    assert len(generate) == 4
    assert all(step.decision is None and step.before is ABSENT for step in generate)
