"""The table: what the conformance hook of every language is asked, and what must come of it.

A new language adds no row and changes none; README.md says what its hook does for each ``case``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hookcell.points import POINTS

from .case import INVALID, NOTHING, Case, Fails
from .contexts import ARGS, CALL, MESSAGES, METADATA, REQUEST, STATE
from .values import FLOATS, KEYS, LISTS, PLAIN, TEXTS, WHOLE, nested

__all__ = ["CASES"]

PIPELINE: Final = tuple(name for name, point in POINTS.items() if point.family == "pipeline")
AGENT_CLASS: Final = tuple(name for name, point in POINTS.items() if point.family == "agent_class")
GENERATE: Final = ("pre_generate", "post_generate")
TOOL: Final = ("pre_tool_call", "post_tool_call")

NO_STORAGE: Final = "a host hook has no storage of the engine's"
NO_SANDBOX: Final = "a host hook runs in the host, without limits"
NO_WIRE: Final = "nothing of a host hook is encoded"
NO_NEEDS: Final = "a host hook sees every field"
TRUSTED: Final = "a host hook is trusted with it"

USER: Final = {"role": "user", "content": "more 😀"}
SYSTEM: Final = {"role": "system", "content": "obey"}
NOTED: Final = {"note": "a", "n": 1}
LINES: Final = ("one", "zwei ü", "三 😀")


def _echoed(point: str, value: object) -> dict[str, Any]:
    """Where ``echo`` puts a value: where every point of that kind can hold any."""
    if point in TOOL:
        return {"result": value}
    if point in GENERATE:
        return {"metadata": {**METADATA, "echo": value}}
    return {"state": {**STATE, "history": MESSAGES, "echo": value}}


def _echo(name: str, point: str, *path: str | int, gives: object, **more: Any) -> Case:
    return Case(name=name, point=point, does={"case": "echo", "path": list(path)}, expect=_echoed(point, gives), **more)


def _returns(name: str, point: str, value: object, expect: Any, **more: Any) -> Case:
    extra = more.pop("also", {})
    return Case(name=name, point=point, does={"case": "return", "value": value, **extra}, expect=expect, **more)


def _edits(name: str, point: str, *edits: dict[str, Any], expect: Any, **more: Any) -> Case:
    return Case(name=name, point=point, does={"case": "nothing", "edits": list(edits)}, expect=expect, **more)


def _edit(do: str, *path: str | int, **value: Any) -> dict[str, Any]:
    return {"do": do, "path": list(path), **value}


def _whole_state(**changes: Any) -> dict[str, Any]:
    return {"state": {**STATE, "history": MESSAGES, **changes}}


def _every_point() -> Iterator[Case]:
    """What is the same everywhere: nothing, throwing, logging, failing, storing."""
    for point in POINTS:
        yield Case(name=f"{point}: nothing", point=point, does={"case": "nothing"}, expect=NOTHING)
        yield _echo(f"{point}: its own name", point, "point", gives=point)
        thrown = {"name": "TypeError", "message": f"boom at {point}"}
        yield Case(
            name=f"{point}: throws",
            point=point,
            does={"case": "throw", "value": thrown},
            expect=Fails(codes=("threw",), **thrown),
        )
        yield Case(
            name=f"{point}: logs",
            point=point,
            does={"case": "nothing", "log": list(LINES)},
            expect={"log": list(LINES)},
        )
        yield Case(
            name=f"{point}: logs, then traps",
            point=point,
            does={"case": "trap", "log": list(LINES)},
            expect=Fails(codes=("trap",), log=LINES),
            not_host=NO_SANDBOX,
        )
        yield Case(
            name=f"{point}: stores",
            point=point,
            does={"case": "nothing", "storage": {"n": 1}},
            expect={"stored": {"n": 1}},
            storage=True,
            not_host=NO_STORAGE,
        )
        yield _echo(f"{point}: a field that is not there", point, "subagent", gives="absent", not_host=NO_NEEDS)
        yield _echo(
            f"{point}: inside a sub-agent",
            point,
            "subagent",
            "depth",
            gives=2,
            own={"subagent": {"agentId": "s", "agentName": "sub", "depth": 2, "parent": "lead"}},
        )


def _failures() -> Iterator[Case]:
    for point in ("pre_tool_call", "on_error"):
        for name, code in (("spin", "fuel"), ("hoard", "memory")):
            yield Case(
                name=f"{point}: logs, then {name}s",
                point=point,
                does={"case": name, "log": ["before"]},
                expect=Fails(codes=(code,), log=("before",)),
                not_host=NO_SANDBOX,
            )
    for name, message in (
        ("Error", ""),
        ("RangeError", "a 😀 e\u0301 line\nand another"),
        ("Error", "long " * 200),
        ("Error", 'tab\tquote"backslash\\'),
    ):
        thrown = {"name": name, "message": message}
        yield Case(
            name=f"a thrown {name} {message[:8]!r}",
            point="pre_tool_call",
            does={"case": "throw", "value": thrown, "log": ["before"]},
            expect=Fails(codes=("threw",), log=("before",), **thrown),
        )
    yield Case(
        name="nothing else of a thrown error's outcome counts",
        point="pre_tool_call",
        does={
            "case": "throw",
            "value": {"name": "Error", "message": "no"},
            "storage": 2,
            "edits": [_edit("set", "metadata", "a", value=1)],
        },
        expect=Fails(codes=("threw",), name="Error", message="no"),
        storage=True,
        stored=1,
        not_host=NO_STORAGE,
    )


def _decisions() -> Iterator[Case]:
    """Present null against absent, empty against nothing (P4-P6, P9)."""
    pre, post = TOOL
    for reason in ("", "no", "nein, ü 😀 e\u0301", "nul \0 inside", "x" * 70_000):
        yield _returns(f"deny {reason[:12]!r}", pre, {"deny": reason}, {"deny": reason})
    for value in (None, "", 0, False, True, [], {}, -1.5, "text", {"a": None}, [None]):
        for point in TOOL:
            yield _returns(f"{point}: result {value!r}", point, {"result": value}, {"result": value})
    yield _returns("an empty outcome changes nothing", pre, {}, NOTHING)
    yield _returns("an empty outcome changes nothing after a tool", post, {}, NOTHING)
    for args in ({}, {"path": None}, {"new": 1}, {"😀": {"a": [1]}}):
        yield _returns(f"input {args!r}", pre, {"input": args}, {"args": args})
    spread = Case(name="input of what was there and more", point=pre, does={"case": "spread", "value": {"limit": 5}},
                  expect={"args": {**ARGS, "limit": 5}})  # fmt: skip
    yield spread
    yield Case(
        name="input takes the place of what it spreads",
        point=pre,
        does={"case": "spread", "value": {"path": "b.txt"}},
        expect={"args": {**ARGS, "path": "b.txt"}},
    )
    call = {**CALL, "args": {"path": "b.txt"}}
    yield _returns("before_tool: other args", "before_tool", call, {"replace": call})
    yield _returns("before_tool: no args", "before_tool", {**CALL, "args": {}}, {"replace": {**CALL, "args": {}}})
    for text in ("", "text", "ü 😀 e\u0301 \0"):
        for point in ("before_prompt", "after_tool", "after_response", "on_error"):
            yield _returns(f"{point}: replaced by {text!r}", point, text, {"replace": text})
    for output in ({"output": "ok", "isError": False}, {"output": None}, {"output": {"a": [1]}, "isError": True}):
        yield _returns(f"after_tool: {output!r}", "after_tool", output, {"replace": output})
    for value in (None, 0, False, [], {}, {"replace": 1}, {"deny": "no"}):
        yield _returns(f"on_error: the output {value!r}", "on_error", value, {"replace": value})


def _refused() -> Iterator[Case]:
    """An outcome that breaks a rule is a failure of the hook, never an allow (P8, P12, C2-C4)."""
    wrong: dict[str, list[object]] = {
        "pre_tool_call": [
            {"deny": None}, {"deny": 1}, {"deny": True}, {"deny": ["no"]}, {"input": None}, {"input": []},
            {"input": "x"}, {"deny": "", "result": None}, {"deny": "no", "input": {}}, {"result": None, "input": {}},
            {"replace": {}}, {"Deny": "no"}, {"decision": "deny"}, {"deny": "no", "reason": "x"}, {"meta": {}},
            {"__proto__": {"deny": "no"}},
            {"hookSpecificOutput": {"deny": "no"}}, {"": 1}, "deny", 7, True, ["deny"], [],
        ],
        "post_tool_call": [{"deny": "no"}, {"input": {}}, {"replace": ""}, {"output": 1}, "text"],
        "pre_generate": [{"deny": "no"}, {"result": None}, {"input": {}}, {"replace": ""}, "text", {"messages": []}],
        "post_generate": [{"deny": "no"}, {"result": None}, {"input": {}}, {"replace": ""}, False],
        "before_prompt": [None, 0, False, ["a"], {"replace": "a"}, {}],
        "before_tool": [None, "read", {}, {**CALL, "id": "c2"}, {**CALL, "name": "write"}, {**CALL, "args": []},
                        {**CALL, "type": "function"}, {"id": "c1", "name": "read"}, {**CALL, "args": None}],
        "after_tool": [None, 1, [], {}, {"isError": True}, {"output": "", "isError": 1}, {"output": "", "name": "x"}],
        "after_response": [None, 0, {}, ["hello"]],
    }  # fmt: skip
    for point, values in wrong.items():
        for value in values:
            yield _returns(f"{point}: {value!r} is no outcome", point, value, INVALID)


def _round_trips() -> Iterator[Case]:
    """Values go in and come out as they were: of the context, and of the config."""
    for name, value in (*PLAIN, *TEXTS, *WHOLE, *FLOATS, *KEYS, *LISTS):
        args = {"value": value}
        yield _echo(f"echo {name}", "pre_tool_call", "args", "value", gives=value, own={"args": args})
        yield _returns(f"return {name}", "post_tool_call", {"result": value}, {"result": value})
    for name, value in (TEXTS[1], WHOLE[-1], KEYS[0], LISTS[-1]):
        for point in (*GENERATE, *AGENT_CLASS):
            own = {"agentName": value} if isinstance(value, str) else {"metadata": {**METADATA, "v": value}}
            path = ["agentName"] if isinstance(value, str) else ["metadata", "v"]
            gives = _echoed(point, value)
            if point in GENERATE and not isinstance(value, str):
                gives = {"metadata": {**METADATA, "v": value, "echo": value}}
            does = {"case": "echo", "path": path}
            yield Case(name=f"{point}: echo {name}", point=point, does=does, own=own, expect=gives)
    own_fields: dict[str, tuple[list[str | int], object]] = {
        "pre_tool_call": (["args"], ARGS),
        "post_tool_call": (["result", "result"], "text"),
        "pre_generate": (["request", "stop", 1], "b"),
        "post_generate": (["result", "usage"], {"tokens": 3}),
        "before_prompt": (["prompt"], "be kind"),
        "before_tool": (["call", "args", "more", "deep", 0], {"n": 1}),
        "after_tool": (["result", "isError"], True),
        "after_response": (["response"], "hello"),
        "on_error": (["error", "message"], "bad"),
    }
    for point, (path, value) in own_fields.items():
        yield _echo(f"{point}: its own field", point, *path, gives=value)
    for point in AGENT_CLASS:
        yield _echo(f"{point}: the caller's data", point, "data", gives={"canDeploy": False})
        yield _echo(f"{point}: the history", point, "state", "history", 1, "content", gives="hi")
    yield _echo("null that is there", "pre_tool_call", "args", "path", gives=None, own={"args": {"path": None}})
    yield _echo("a key that is not there", "pre_tool_call", "args", "nothing", gives="absent")
    yield _echo("an index past the end", "pre_tool_call", "args", "lines", 2, gives="absent")


def _edges() -> Iterator[Case]:
    """On both sides of each limit."""
    pre = "pre_tool_call"
    # The outcome's own map is the first container; the limit is 64.
    yield _returns("an outcome nested 64 deep", pre, {"result": nested(63)}, {"result": nested(63)})
    yield _returns("an outcome nested 65 deep", pre, {"result": nested(64)}, INVALID, not_host=NO_WIRE)
    yield _echo("echo of a value nested 63 deep", pre, "args", "v", gives=nested(63), own={"args": {"v": nested(63)}})
    # Outcome, patch and operation stand round a patch's value.
    deep = _edit("set", "metadata", "deep", value=nested(61))
    yield _edits("a patch's value nested 61 deep", pre, deep, expect={"metadata": {**METADATA, "deep": nested(61)}})
    deep = _edit("set", "metadata", "deep", value=nested(62))
    yield _edits("a patch's value nested 62 deep", pre, deep, expect=INVALID, not_host=NO_WIRE)
    # Context and args stand round it; the limit is 72.
    own = {"args": {"v": nested(70)}}
    yield Case(name="a context nested 72 deep", point=pre, does={"case": "nothing"}, own=own, expect=NOTHING)
    own = {"args": {"v": nested(71)}}
    too_deep = Fails(codes=("context_invalid",))
    yield Case(
        name="a context nested 73 deep", point=pre, does={"case": "nothing"}, own=own, expect=too_deep, not_host=NO_WIRE
    )
    # The map, its key and the list itself count; the limit is 20,000.
    zeros = [0] * 19_997
    yield _returns("an outcome of 20,000 items", pre, {"result": zeros}, {"result": zeros})
    yield _returns("an outcome of 20,001 items", pre, {"result": [*zeros, 0]}, INVALID, not_host=NO_WIRE)
    # A map's head, the key `result` and a long text's head are 13 bytes in every encoding.
    text = "x" * (100_000 - 13)
    yield _returns("an outcome of output_bytes", pre, {"result": text}, {"result": text}, output_bytes=100_000)
    yield _returns(
        "an outcome of output_bytes and one", pre, {"result": text + "x"}, Fails(codes=("output",)),
        output_bytes=100_000, not_host=NO_WIRE,
    )  # fmt: skip
    long = [{"role": "user", "content": f"{n} " + "x" * 1_000} for n in range(1_000)]
    megabyte = "ü" * 500_000
    yield _echo("a megabyte of messages", pre, "messages", 999, "role", gives="user", own={"messages": long})
    yield Case(
        name="a megabyte passed over", point=pre, does={"case": "nothing"}, own={"messages": long}, expect=NOTHING
    )
    yield _echo("a megabyte of one text", pre, "args", "v", gives=megabyte, own={"args": {"v": megabyte}})
    push = _edit("append", "messages", value=USER)
    yield _edits("a message behind a megabyte", pre, push, own={"messages": long}, expect={"appended": [USER]})
    grown = [*long, USER]
    yield _edits("an edit of a megabyte", "pre_generate", push, own={"messages": long}, expect={"messages": grown})
    set_small = _edit("set", "args", "n", value=1)
    wide = {"args": {"v": megabyte, "n": 0}}
    yield _edits("an argument beside a megabyte", pre, set_small, own=wide, expect={"args": {"v": megabyte, "n": 1}})


def _patches() -> Iterator[Case]:
    """Ordinary mutation of what a point lets a hook change (P2, C7)."""
    pre = "pre_tool_call"
    for name, edits, args in (
        ("a new key", [_edit("set", "args", "limit", value=5)], {**ARGS, "limit": 5}),
        ("a key's value", [_edit("set", "args", "path", value="b")], {**ARGS, "path": "b"}),
        ("null for a value", [_edit("set", "args", "path", value=None)], {**ARGS, "path": None}),
        ("a key gone", [_edit("remove", "args", "path")], {"lines": [1, 2], "more": ARGS["more"]}),
        ("an item's value", [_edit("set", "args", "lines", 0, value="a")], {**ARGS, "lines": ["a", 2]}),
        ("an item more", [_edit("append", "args", "lines", value=3)], {**ARGS, "lines": [1, 2, 3]}),
        ("an item before", [_edit("insert", "args", "lines", 0, value=0)], {**ARGS, "lines": [0, 1, 2]}),
        ("an item between", [_edit("insert", "args", "lines", 1, value=0)], {**ARGS, "lines": [1, 0, 2]}),
        ("an item gone", [_edit("remove", "args", "lines", 0)], {**ARGS, "lines": [2]}),
        ("deep down", [_edit("set", "args", "more", "deep", 0, "n", value=[])],
         {**ARGS, "more": {"deep": [{"n": []}]}}),
        ("another type", [_edit("set", "args", "lines", value={"a": 1})], {**ARGS, "lines": {"a": 1}}),
        ("all of it", [_edit("set", "args", value={"b": 1})], {"b": 1}),
        ("emptied", [_edit("set", "args", value={})], {}),
        ("odd keys", [_edit("set", "args", key, value=1) for key in ("a/b", "~", "~1", "", "é", "0", "__proto__")],
         {**ARGS, "a/b": 1, "~": 1, "~1": 1, "": 1, "é": 1, "0": 1, "__proto__": 1}),
        ("several in their order", [_edit("set", "args", "a", value={}), _edit("set", "args", "a", "b", value=[]),
                                    _edit("append", "args", "a", "b", value=1), _edit("remove", "args", "path")],
         {"lines": [1, 2], "more": ARGS["more"], "a": {"b": [1]}}),
    ):  # fmt: skip
        yield _edits(f"args: {name}", pre, *edits, expect={"args": args})
    for point in PIPELINE:
        yield _edits(
            f"{point}: metadata",
            point,
            _edit("set", "metadata", "😀", value={"a": [1]}),
            _edit("append", "metadata", "list", value=None),
            _edit("remove", "metadata", "seeded"),
            expect={"metadata": {"list": ["a", None], "😀": {"a": [1]}}},
        )
        yield _edits(f"{point}: metadata, whole", point, _edit("set", "metadata", value={}), expect={"metadata": {}})
    for point in TOOL:
        two = [_edit("append", "messages", value=USER), _edit("append", "messages", value={**USER, "name": "ada"})]
        yield _edits(f"{point}: messages", point, *two, expect={"appended": [USER, {**USER, "name": "ada"}]})
        wrong = _edit("set", "messages", 1, "content", value="other")
        yield _edits(f"{point}: a message rewritten", point, wrong, expect=INVALID, not_host=TRUSTED)
        wrong = _edit("remove", "messages", 1)
        yield _edits(f"{point}: a message gone", point, wrong, expect=INVALID)
        wrong = _edit("append", "messages", value={"role": "nobody", "content": ""})
        yield _edits(f"{point}: no message", point, wrong, expect=INVALID)
    yield from _conversations()
    yield from _requests()
    yield from _states()
    both = {"edits": [_edit("set", "args", "path", value="b"), _edit("set", "metadata", "a", value=1)]}
    seen = {"metadata": {**METADATA, "a": 1}}
    yield _returns("a patch, then input", pre, {"input": {"c": 1}}, {**seen, "args": {"c": 1}}, also=both)
    edit = {"edits": [_edit("set", "metadata", "a", value=1)]}
    yield _returns("a patch beside a deny", pre, {"deny": ""}, {**seen, "deny": ""}, also=edit)
    yield _returns("a patch beside a result", "post_tool_call", {"result": None}, {**seen, "result": None}, also=edit)
    edit = {"edits": [_edit("set", "metadata", "a", value=1)]}
    unseen = "a field that the hook was not given"
    yield Case(name=f"{unseen} cannot be changed", point=pre, does={"case": "nothing", **edit}, needs=("args",),
               expect=INVALID, not_host=NO_NEEDS)  # fmt: skip


def _conversations() -> Iterator[Case]:
    system, user, assistant = MESSAGES
    for point in GENERATE:
        for name, edits, messages in (
            ("one more", [_edit("append", "messages", value=USER)], [*MESSAGES, USER]),
            ("one between", [_edit("insert", "messages", 1, value=USER)], [system, USER, user, assistant]),
            ("one gone", [_edit("remove", "messages", 1)], [system, assistant]),
            ("a text", [_edit("set", "messages", 1, "content", value="")],
             [system, {**user, "content": ""}, assistant]),
            ("a part", [_edit("set", "messages", 2, "content", 0, "text", value="b")],
             [system, user, {**assistant, "content": [{"type": "text", "text": "b"}]}]),
            ("metadata", [_edit("remove", "messages", 2, "metadata", "at")],
             [system, user, {**assistant, "metadata": {}}]),
            ("all", [_edit("set", "messages", value=[system, USER])], [system, USER]),
        ):  # fmt: skip
            yield _edits(f"{point}: messages, {name}", point, *edits, expect={"messages": messages})
        for name, edit in (
            ("no role", _edit("append", "messages", value={"content": ""})),
            ("a call without a result", _edit("append", "messages", value={"role": "assistant", "toolCalls": [CALL]})),
        ):
            yield _edits(f"{point}: messages, {name}", point, edit, expect=INVALID)
        added = _edit("append", "messages", value=SYSTEM)
        yield _edits(f"{point}: a system message", point, added, expect=INVALID, not_host=TRUSTED)
        yield _edits(
            f"{point}: a system message that was granted", point, added,
            expect={"messages": [*MESSAGES, SYSTEM]}, grants_system_messages=True,
        )  # fmt: skip


def _requests() -> Iterator[Case]:
    point = "pre_generate"
    for name, edits, request in (
        ("temperature", [_edit("set", "request", "temperature", value=0)], {**REQUEST, "temperature": 0}),
        ("a new field", [_edit("set", "request", "topP", value=0.25)], {**REQUEST, "topP": 0.25}),
        ("one gone", [_edit("remove", "request", "temperature")],
         {key: value for key, value in REQUEST.items() if key != "temperature"}),
        ("a stop more", [_edit("append", "request", "stop", value="c")], {**REQUEST, "stop": ["a", "b", "c"]}),
        ("a stop gone", [_edit("remove", "request", "stop", 0)], {**REQUEST, "stop": ["b"]}),
        ("a header", [_edit("set", "request", "headers", "x-b", value="c")],
         {**REQUEST, "headers": {"x-a": "b", "x-b": "c"}}),
        ("whole", [_edit("set", "request", value={"model": "m", "maxTokens": 9})], {"model": "m", "maxTokens": 9}),
    ):  # fmt: skip
        yield _edits(f"request: {name}", point, *edits, expect={"request": request})
    for name, edit in (
        ("the model", _edit("set", "request", "model", value="other")),
        ("null", _edit("set", "request", "temperature", value=None)),
        ("an unknown field", _edit("set", "request", "tools", value=[])),
    ):
        yield _edits(f"request: {name} cannot be set", point, edit, expect=INVALID, not_host=TRUSTED)


def _states() -> Iterator[Case]:
    for point in AGENT_CLASS:
        yield _edits(
            f"{point}: state",
            point,
            _edit("set", "state", "n", value=2),
            _edit("append", "state", "list", value={"😀": None}),
            _edit("remove", "state", "map", "a/b"),
            _edit("set", "state", "map", "~1/", value=3),
            expect=_whole_state(n=2, list=["a", {"😀": None}], map={"~": 2, "~1/": 3}),
        )
        for name, edits, state in (
            ("set", [{"do": "state.set", "key": "n", "value": None}], {"n": None}),
            ("append", [{"do": "state.append", "key": "list", "value": "b"}], {"list": ["a", "b"]}),
            ("append to none", [{"do": "state.append", "key": "new", "value": n} for n in (1, 2)], {"new": [1, 2]}),
            ("kept from the context", [{"do": "keep", "key": "approved", "value": False}], {"approved": False}),
        ):  # fmt: skip
            yield _edits(f"{point}: state, {name}", point, *edits, expect=_whole_state(**state))
        more = [*MESSAGES, USER]
        yield _edits(
            f"{point}: history",
            point,
            _edit("append", "state", "history", value=USER),
            expect=_whole_state(history=more),
        )
        last = {"do": "state.set", "key": "history", "value": MESSAGES[:2]}
        yield _edits(f"{point}: history, set", point, last, expect=_whole_state(history=MESSAGES[:2]))
        gone = _edit("remove", "state", "history")
        yield _edits(f"{point}: no history", point, gone, expect=INVALID, not_host="its `state` removes no key")
        yield Case(name=f"{point}: notes", point=point, does={"case": "nothing", "meta": NOTED}, expect={"meta": NOTED})
    yield _returns(
        "a patch and notes beside a value", "after_response", "", {**_whole_state(n=2), "replace": "", "meta": NOTED},
        also={"meta": NOTED, "edits": [_edit("set", "state", "n", value=2)]},
    )  # fmt: skip


def _streams() -> Iterator[Case]:
    events = [{"type": "compaction.start"}, {"type": "compaction.done", "removed": 3, "what": {"😀": None}}]
    for point in GENERATE:
        emit = {"case": "nothing", "emit": events}
        streaming = {"streaming": True}
        yield Case(name=f"{point}: events", point=point, does=emit, own=streaming, expect={"events": events})
        yield Case(name=f"{point}: no stream, no events", point=point, does=emit, expect=NOTHING)
        forged = {"case": "nothing", "emit": [{"type": "tool.done"}]}
        yield Case(name=f"{point}: another event", point=point, does=forged, own=streaming, expect=INVALID)


def _storage() -> Iterator[Case]:
    pre = "pre_tool_call"
    guest: dict[str, Any] = {"storage": True, "not_host": NO_STORAGE}
    yield _echo("storage: none yet", pre, "storage", gives=None, **guest)
    for name, value in (*PLAIN[1:], TEXTS[1], WHOLE[-1], KEYS[0]):
        yield _echo(f"storage: {name} read", pre, "storage", gives=value, stored=value, **guest)
        wrote = {"case": "nothing", "storage": value}
        yield Case(name=f"storage: {name} written", point=pre, does=wrote, expect={"stored": value}, **guest)
    empty = {"case": "nothing", "storage": None}
    yield Case(name="storage: emptied", point=pre, does=empty, stored=1, expect={"stored": None}, **guest)
    yield Case(name="storage: kept", point=pre, does={"case": "nothing"}, stored=1, expect=NOTHING, **guest)
    count = {"case": "count"}
    for stored, after in ((None, 1), (41, 42), (2**52, 2**52 + 1)):
        counted = {"stored": after}
        yield Case(
            name=f"storage: counted from {stored}", point=pre, does=count, stored=stored, expect=counted, **guest
        )
    for conflicts in (1, 2):
        yield Case(
            name=f"storage: {conflicts} conflicts", point=pre, does=count, stored=1, conflicts=conflicts,
            expect={"stored": 101}, **guest,
        )  # fmt: skip
    yield Case(
        name="storage: 3 conflicts", point=pre, does=count, stored=1, conflicts=3,
        expect=Fails(codes=("storage_conflict",)), **guest,
    )  # fmt: skip
    beside = {"deny": "no"}
    yield _returns("storage: beside a deny", pre, beside, {**beside, "stored": 2}, also={"storage": 2}, **guest)
    # 64 KiB with the head of the text.
    text = "x" * (64 * 1024 - 3)
    fits = {"case": "nothing", "storage": text}
    yield Case(name="storage: 64 KiB", point=pre, does=fits, expect={"stored": text}, **guest)
    yield Case(name="storage: over 64 KiB", point=pre, does={**fits, "storage": text + "x"}, expect=INVALID, **guest)
    yield Case(name="storage: not asked for", point=pre, does=fits, expect=INVALID, not_host=NO_STORAGE)


def _needs() -> Iterator[Case]:
    pre = "pre_tool_call"
    yield _echo("needs: what it names", pre, "toolName", gives="read", needs=("toolName",), not_host=NO_NEEDS)
    yield _echo("needs: what it does not", pre, "args", gives="absent", needs=("toolName",), not_host=NO_NEEDS)
    yield _echo("needs: nothing", pre, "point", gives=pre, needs=(), not_host=NO_NEEDS)
    asked = ("*", "now", "seed")
    for field, value in (("now", 1_700_000_000_123), ("seed", 2**53 - 1)):
        yield _echo(f"needs: {field}", pre, field, gives=value, needs=asked)
        yield _echo(f"needs: {field} only when named", pre, field, gives="absent", needs=("*",), not_host=NO_NEEDS)


CASES: Final = (
    *_every_point(),
    *_failures(),
    *_decisions(),
    *_refused(),
    *_round_trips(),
    *_edges(),
    *_patches(),
    *_streams(),
    *_storage(),
    *_needs(),
)
