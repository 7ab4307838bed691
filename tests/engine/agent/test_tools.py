"""Tools: which functions are tools, what they are given, what becomes of what they return, raise and do to it."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pydantic
import pytest

from hookcell import HookThrew
from hookcell.agent import RunState, ToolContext, ToolFailed, ToolOutput, create_agent, define_tool, mock_model
from hookcell.schemas import SchemaInvalid

from .loop import ANY, BACKENDS, FakeSandbox, agent_of, calling, contents, host, send, tool, watching


class Query(pydantic.BaseModel):
    text: str
    most: int = 5


def result_of(execute: Callable[..., Any], args: object = None, *, backend: str = "asyncio", **options: Any) -> object:
    """What the model sees of one call."""
    agent = agent_of([calling("f", args=args), "done"], tool("f", execute, **options))
    (content,) = contents(send(agent, backend=backend))
    return content


# What is a tool.


@pytest.mark.parametrize("name", ["f", "F-9_", "a" * 64])
def test_a_name_is_what_models_take(name: str) -> None:
    assert tool(name).name == name


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "a/b", "a.b", "é", "f\n", "\nf", "f\x00"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="tool name"):
        tool(name)


@pytest.mark.parametrize("source", ["text", None, 5, int, [], Query(text="x"), {"type": "nonsense"}])
def test_arguments_are_described_by_a_model_class_or_a_schema(source: object) -> None:
    with pytest.raises(SchemaInvalid):
        define_tool("f", input=source, execute=len)


def two(args: Any, ctx: Any) -> object:
    return type(ctx).__name__


def default(args: Any, ctx: Any = "mine") -> object:
    return ctx


def variadic(*args: Any) -> object:
    return len(args)


def named_default(args: Any, *, most: int = 3) -> object:
    return most


async def asynchronous(args: Any) -> object:
    await anyio.lowlevel.checkpoint()
    return "async"


async def asynchronous_two(args: Any, ctx: ToolContext) -> object:
    await anyio.lowlevel.checkpoint()
    return type(ctx).__name__


class CallableObject:
    def __call__(self, args: Any) -> object:
        return "object"


class AsyncCallable:
    async def __call__(self, args: Any, ctx: ToolContext) -> object:
        await anyio.lowlevel.checkpoint()
        return type(ctx).__name__


class Methods:
    def plain(self, args: Any, ctx: ToolContext) -> object:
        return type(ctx).__name__

    async def later(self, args: Any) -> object:
        await anyio.lowlevel.checkpoint()
        return "method"

    @staticmethod
    def static(args: Any) -> object:
        return "static"

    @classmethod
    def of_class(cls, args: Any) -> object:
        return cls.__name__


def gives_a_coroutine(args: Any) -> object:
    return asynchronous(args)


@pytest.mark.parametrize(
    ("execute", "seen"),
    [
        (lambda args: "lambda", "lambda"),
        (two, "ToolContext"),
        (default, "mine"),
        (variadic, "1"),
        (named_default, "3"),
        (len, "0"),
        (dict, "{}"),
        (asynchronous, "async"),
        (asynchronous_two, "ToolContext"),
        (partial(two, ctx="bound"), "str"),
        (partial(default, ctx=1), "1"),
        (partial(asynchronous), "async"),
        (partial(asynchronous_two), "ToolContext"),
        (CallableObject(), "object"),
        (AsyncCallable(), "ToolContext"),
        (partial(AsyncCallable()), "ToolContext"),
        (Methods().plain, "ToolContext"),
        (Methods().later, "method"),
        (Methods.static, "static"),
        (Methods.of_class, "Methods"),
        (gives_a_coroutine, "async"),
    ],
)
def test_any_callable_of_the_arguments_and_a_context_is_one(execute: Callable[..., Any], seen: str) -> None:
    assert result_of(execute) == seen


def keyword_only(args: Any, *, ctx: Any) -> None: ...
def no_argument() -> None: ...
def three(a: Any, b: Any, c: Any) -> None: ...
def only_named(**named: Any) -> None: ...


@pytest.mark.parametrize("execute", [no_argument, three, keyword_only, only_named, partial(two, {}, {}), "text", None])
def test_a_function_that_could_not_be_called_is_told_at_once(execute: Any) -> None:
    with pytest.raises(TypeError):
        define_tool("f", input=ANY, execute=execute)


# What it is given.


def test_a_plain_function_runs_off_the_event_loop_and_an_async_one_on_it() -> None:
    threads: list[int] = []

    def plain(_: object) -> None:
        threads.append(threading.get_ident())

    async def later(_: object) -> None:
        threads.append(threading.get_ident())

    send(agent_of([calling("a", "b"), "done"], tool("a", plain), tool("b", later)))
    assert len(set(threads)) == 2
    assert threading.get_ident() in threads


@BACKENDS
def test_a_plain_function_sees_the_caller_s_context_variables(backend: str) -> None:
    user = contextvars.ContextVar("user", default="nobody")
    user.set("ann")
    assert result_of(lambda _: user.get(), backend=backend) == "ann"


def test_a_context_says_who_calls_and_holds_the_run_s_own_bag() -> None:
    seen: list[ToolContext] = []

    def look(_: object, ctx: ToolContext) -> None:
        seen.append(ctx)
        ctx.metadata["found"] = 1

    run = RunState(metadata={"a": 0}, data="db", session_id="s")
    send(agent_of([calling("f", id="c9"), "done"], tool("f", look), name="boss"), state=run)
    (ctx,) = seen
    assert (ctx.call_id, ctx.agent_name, ctx.session_id, ctx.data) == ("c9", "boss", "s", "db")
    assert ctx.metadata is run.metadata
    assert run.metadata == {"a": 0, "found": 1}


def test_a_model_s_instance_is_given_where_one_was_declared_and_a_map_elsewhere() -> None:
    assert result_of(lambda args: repr(args), {"text": "x"}, input=Query) == "Query(text='x', most=5)"
    assert result_of(lambda args: repr(args), {"text": "x"}) == "{'text': 'x'}"


class Aliased(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    most_lines: int = pydantic.Field(alias="mostLines")


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")
    day: date
    at: datetime
    pair: tuple[int, int] = (1, 2)
    few: set[int] = {1}


def test_a_model_with_aliases_is_filled_by_them() -> None:
    assert result_of(lambda args: args.most_lines, {"mostLines": 3}, input=Aliased) == "3"
    assert Aliased.model_json_schema()["properties"].keys() == {"mostLines"}


def test_a_strict_model_takes_what_json_has_for_its_types() -> None:
    args = {"day": "2026-01-02", "at": "2026-01-02T03:04:05Z", "pair": [3, 4], "few": [5]}
    seen: list[Strict] = []
    result_of(seen.append, args, input=Strict)
    assert seen == [Strict(day=date(2026, 1, 2), at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), pair=(3, 4), few={5})]


def test_a_strict_model_still_refuses_other_types_and_keys() -> None:
    for args in ({"day": 5, "at": "2026-01-02T03:04:05Z"}, {"day": "2026-01-02", "at": "2026-01-02T03:04:05Z", "x": 1}):
        ran: list[object] = []
        content = str(result_of(ran.append, args, input=Strict))
        assert content.startswith("the arguments do not fit the schema of 'f' at /")
        assert ran == []


@pytest.mark.parametrize("given", [ANY, Query])
def test_what_a_tool_does_to_its_arguments_is_seen_by_nobody(given: object) -> None:
    seen: list[object] = []

    def spoil(args: Any) -> str:
        if isinstance(args, dict):
            args["text"] = args["deep"] = "spoilt"
        else:
            args.text = "spoilt"
        return "ok"

    audit = host("audit", post_tool_call=lambda ctx, _: seen.append(ctx.args["text"]))
    agent = agent_of([calling("f", args={"text": "x"}), "done"], tool("f", spoil, input=given), hooks=[audit])
    result = send(agent)
    assert seen == ["x"]
    (call,) = result.messages[1]["toolCalls"]  # type: ignore[misc]
    assert call["args"]["text"] == "x"  # type: ignore[index]
    assert "deep" not in call["args"]  # type: ignore[operator]


# What it returns.


@dataclasses.dataclass
class Point:
    x: int
    at: date


class Node(pydantic.BaseModel):
    name: str
    more: list[Node] = []


def numbers() -> Any:
    yield from (1, 2)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (None, ""),
        ("text", "text"),
        ("", ""),
        (0, "0"),
        (False, "false"),
        (1.5, "1.5"),
        ([], "[]"),
        ({"a": [1, {"b": None}]}, '{"a": [1, {"b": null}]}'),
        ((1, 2), "[1, 2]"),
        ({3}, "[3]"),
        (b"bytes", "bytes"),
        (date(2026, 1, 2), "2026-01-02"),
        (Point(x=1, at=date(2026, 1, 2)), '{"x": 1, "at": "2026-01-02"}'),
        (Node(name="a", more=[Node(name="b")]), '{"name": "a", "more": [{"name": "b", "more": []}]}'),
        ({1: "a"}, '{"1": "a"}'),
        ("é\n\U0001f600\x00", "é\n\U0001f600\x00"),
        (2**64 - 1, "18446744073709551615"),
        (-(2**63), "-9223372036854775808"),
        (ToolOutput(content=Point(x=1, at=date(2026, 1, 2))), '{"x": 1, "at": "2026-01-02"}'),
    ],
)
def test_a_value_is_turned_into_json(value: object, seen: str) -> None:
    assert result_of(lambda _: value) == seen


def test_a_generator_is_a_list() -> None:
    assert result_of(lambda _: numbers()) == "[1, 2]"


def test_parts_of_a_message_stay_parts() -> None:
    parts = [{"type": "text", "text": "a"}]
    assert result_of(lambda _: parts) == parts


def test_a_large_value_goes_whole() -> None:
    assert result_of(lambda _: "x" * 3_000_000) == "x" * 3_000_000


def cycle() -> object:
    items: list[object] = []
    items.append(items)
    return items


def deep(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (object, "object"),
        (lambda: b"\xff", "utf-8"),
        (cycle, "Circular"),
        (lambda: float("nan"), "NaN"),
        (lambda: {"a": [float("inf")]}, "/result/a/0 is a infinity"),
        (lambda: "\ud800", "lone surrogate"),
        (lambda: {"\ud800": 1}, "surrogates not allowed"),
        (lambda: 2**64, "over 64 bits"),
        (lambda: -(2**63) - 1, "over 64 bits"),
        (lambda: deep(80), "nested"),
        (lambda: anyio.Lock, "type"),
    ],
)
def test_what_is_no_json_is_the_tool_s_error_and_not_the_run_s(make: Callable[[], object], why: str) -> None:
    """A guest after the tool could not be shown it, and the run would be rejected for that."""
    guest = FakeSandbox().guest("audit", post_tool_call=lambda _: None)
    seen, listen = watching(ToolFailed)
    agent = agent_of([calling("f"), "done"], tool("f", lambda _: make()), hooks=[guest], on_event=listen)
    result = send(agent)
    assert result.text == "done"
    assert [event.error.kind for event in seen] == ["tool"]
    assert why in str(contents(result)[0])


def test_an_output_may_say_that_it_is_an_error() -> None:
    seen, listen = watching(ToolFailed)
    output = ToolOutput(content={"why": "no"}, is_error=True)
    result = send(agent_of([calling("f"), "done"], tool("f", lambda _: output), on_event=listen))
    assert [event.error.kind for event in seen] == ["tool"]
    assert contents(result) == ['{"why": "no"}']


# What it raises.


@BACKENDS
@pytest.mark.parametrize("error", [ValueError("bad"), StopAsyncIteration("bad"), TimeoutError("bad"), Exception("bad")])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_an_exception_is_an_answer_to_the_model(error: Exception, kind: str, backend: str) -> None:
    def plain(_: object) -> None:
        raise error

    async def later(_: object) -> None:
        raise error

    assert result_of(plain if kind == "plain" else later, backend=backend) == f"{type(error).__name__}: bad"


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_even_one_that_ends_iterators_is(kind: str) -> None:
    def plain(_: object) -> None:
        raise StopIteration

    async def later(_: object) -> None:
        raise StopIteration

    assert "StopIteration" in str(result_of(plain if kind == "plain" else later))


class Stop(BaseException):
    pass


@BACKENDS
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), Stop("stop")])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_what_ends_a_program_leaves_the_turn_as_it_is(
    kind: str, raised: BaseException, count: int, backend: str
) -> None:
    """Beside other calls too: in no group, told to no `on_error`, and the conversation is whole."""
    heard: list[object] = []

    def plain(_: object) -> None:
        raise raised

    async def later(_: object) -> None:
        raise raised

    execute = plain if kind == "plain" else later
    run = RunState()
    agent = agent_of(
        [calling(*["f"] * count)], tool("f", execute), hooks=[host("h", on_error=lambda *a: heard.append(a))]
    )

    async def main() -> None:
        with pytest.raises(type(raised)) as caught:
            await agent.send("hi", state=run)
        assert caught.value is raised

    anyio.run(main, backend=backend)
    assert heard == []
    assert [message["role"] for message in run.history] == ["user", "assistant", *["tool"] * count]


@pytest.mark.parametrize("count", [1, 3])
def test_a_cancellation_that_a_tool_raises_itself_is_no_missing_result(count: int) -> None:
    """As of a task that somebody else cancelled. It leaves the turn like any other, whatever stands beside it."""

    async def awaits_a_cancelled_task(_: object) -> None:
        task = asyncio.ensure_future(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task

    run = RunState()
    agent = agent_of([calling(*["f"] * count), "again"], tool("f", awaits_a_cancelled_task))

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await agent.send("hi", state=run)
        assert (await agent.send("go on", state=run)).text == "again"

    asyncio.run(main())


@BACKENDS
@pytest.mark.parametrize("grouped", [False, True])
def test_a_hook_s_failure_in_an_agent_that_a_tool_runs_never_becomes_a_tool_result(backend: str, grouped: bool) -> None:
    """P11, also where the tool runs several agents in a task group."""

    def fail(_: object) -> None:
        raise RuntimeError("hook")

    inner = agent_of(["x"], hooks=[host("strict", pre_generate=fail)])

    async def run_inner(_: object) -> object:
        if not grouped:
            return (await inner.send("hi")).text
        async with anyio.create_task_group() as group:
            group.start_soon(inner.send, "hi")
        return "ok"

    outer = agent_of([calling("f"), "done"], tool("f", run_inner))

    async def main() -> None:
        with pytest.raises((HookThrew, ExceptionGroup)) as caught:
            await outer.send("hi")
        error = caught.value
        assert isinstance(error if not isinstance(error, ExceptionGroup) else error.exceptions[0], HookThrew)

    anyio.run(main, backend=backend)


# Cancelled while it runs.


@BACKENDS
@pytest.mark.parametrize("count", [1, 2])
def test_an_async_tool_is_cancelled_with_its_turn(backend: str, count: int) -> None:
    ended: list[str] = []
    run = RunState()

    async def main() -> None:
        started = anyio.Event()

        async def wait(_: object) -> None:
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.append("cancelled")

        agent = agent_of([calling(*["f"] * count), "done"], tool("f", wait))
        async with anyio.create_task_group() as group:
            group.start_soon(partial(agent.send, "hi", state=run))
            await started.wait()
            group.cancel_scope.cancel()
        assert (await agent.send("more", state=run)).text == "done"

    anyio.run(main, backend=backend)
    assert ended == ["cancelled"] * count


@BACKENDS
def test_a_cancelled_turn_waits_for_a_plain_tool_that_is_in_the_middle(backend: str) -> None:
    """A thread cannot be stopped; were it left alone, its effects would come after the turn that asked for them."""
    done: list[str] = []
    run = RunState()

    async def main() -> None:
        started, release = threading.Event(), threading.Event()

        def hang(_: object) -> None:
            started.set()
            release.wait()
            done.append("tool")

        agent = agent_of([calling("f"), "done"], tool("f", hang))
        async with anyio.create_task_group() as group:

            async def turn() -> None:
                try:
                    await agent.send("hi", state=run)
                finally:
                    done.append("turn")

            group.start_soon(turn)
            await anyio.to_thread.run_sync(started.wait)
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                assert done == []
                release.set()

    anyio.run(main, backend=backend)
    assert done == ["tool", "turn"]
    assert [message["role"] for message in run.history][:3] == ["user", "assistant", "tool"]


# Guardrails and needs_approval.


@pytest.mark.parametrize("reason", ["", "too large"])
def test_a_guardrail_s_reason_refuses_and_the_key_is_that_there_is_one(reason: str) -> None:
    ran: list[object] = []
    agent = agent_of([calling("f"), "done"], tool("f", ran.append, guardrails=[lambda call, args: reason]))
    assert contents(send(agent)) == [reason]
    assert ran == []


@pytest.mark.parametrize("answer", [False, True, 0, {"deny": "x"}])
def test_a_guardrail_that_returns_something_else_ends_the_turn(answer: Any) -> None:
    ran: list[object] = []
    agent = agent_of([calling("f")], tool("f", ran.append, guardrails=[lambda call, args: answer]))
    with pytest.raises(TypeError, match="a guardrail returns a reason or None"):
        send(agent)
    assert ran == []


def test_the_agent_s_guardrails_come_first_and_none_can_change_the_arguments() -> None:
    order: list[str] = []
    ran: list[object] = []

    def check(name: str) -> Callable[..., None]:
        def guardrail(call: Any, args: dict[str, object]) -> None:
            order.append(name)
            args["text"] = name

        return guardrail

    async def later(call: Any, args: dict[str, object]) -> None:
        order.append(f"async saw {args['text']}")

    checked = tool("f", ran.append, guardrails=[later, check("own")])
    send(agent_of([calling("f", args={"text": "x"}), "done"], checked, guardrails=[check("agent")]))
    assert order == ["agent", "async saw x", "own"]
    assert ran == [{"text": "x"}]


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("most", [1, 9])
def test_whether_approval_is_needed_may_depend_on_the_final_arguments(kind: str, most: int) -> None:
    def plain(args: Query) -> bool:
        return args.most > 5

    async def later(args: Query) -> bool:
        return args.most > 5

    needs = plain if kind == "plain" else later
    agent = agent_of(
        [calling("f", args={"text": "x", "most": most}), "done"], tool("f", input=Query, needs_approval=needs)
    )
    assert (send(agent).pending is not None) is (most == 9)


def test_a_needs_approval_that_raises_ends_the_turn_and_runs_nothing() -> None:
    ran: list[object] = []

    def broken(_: object) -> bool:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        send(agent_of([calling("f")], tool("f", ran.append, needs_approval=broken)))
    assert ran == []


def test_the_model_is_told_of_name_description_and_schema_and_no_more() -> None:
    model = mock_model(["done"])
    secret = define_tool("f", "does it", input=Query, execute=len, needs_approval=True)
    send(create_agent(provider=model, tools=[secret]))
    (told,) = model.calls[0].tools
    assert (told.name, told.description) == ("f", "does it")
    assert told.parameters == Query.model_json_schema()
