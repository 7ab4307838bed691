"""The JavaScript engine: what an author may write, what crosses, what is refused, how a hostile hook is contained."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell import HookThrew, InMemoryStorage, OutcomeInvalid, RunFacts, admission_policy, run_point_sync
from hookcell.patch import apply_patch
from hookcell_guest.typescript import _engine
from hookcell_sandbox import FuelExhausted, GuestTrap, Limits, MemoryExceeded, Sandbox, inspect

from .javascript import ROOMY, JavaScript


@pytest.fixture(scope="module")
def js() -> Iterator[JavaScript]:
    with Sandbox(limits=ROOMY) as sandbox:
        yield JavaScript(sandbox)


def values(*, whole: st.SearchStrategy[int] | None = None, depth: int = 20) -> st.SearchStrategy[object]:
    whole = st.integers(-(2**63), 2**64 - 1) if whole is None else whole
    leaves = st.none() | st.booleans() | whole | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
    return st.recursive(
        leaves | st.binary(max_size=8),
        lambda child: st.lists(child, max_size=5) | st.dictionaries(st.text(max_size=4), child, max_size=5),
        max_leaves=depth,
    )


# --- the module -------------------------------------------------------------------------------------------------------


def test_the_engine_is_admitted_and_imports_nothing() -> None:
    """ABI: the small feature set, no imports, no start section."""
    report = inspect(_engine(), admission_policy())
    assert report.findings == ()
    assert report.imports == ()
    assert report.log_global
    assert report.features <= {"bulk_memory", "mutable_globals", "sign_extension", "saturating_float_to_int"}


def test_an_engine_without_files_says_so(js: JavaScript) -> None:
    output = js.sandbox.run_sync(js.engine, "pre_tool_call", msgpack.packb({}), ROOMY).output
    assert output is not None
    assert "source slot is empty" in msgpack.unpackb(output)["error"]["message"]


# --- pipeline points --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("", None),
        ("return undefined", None),
        ("return null", None),
        ("return {}", None),
        ("return { deny: undefined }", None),
        ("return { deny: '' }", {"deny": ""}),
        ("return { result: null }", {"result": None}),
        ("return { input: { ...ctx.args, b: 2 } }", {"input": {"a": 1, "b": 2}}),
        ("return Promise.resolve({ deny: 'later' })", {"deny": "later"}),
        ("return { then(done) { done({ deny: 'a thenable' }) } }", {"deny": "a thenable"}),
    ],
)
def test_a_returned_value_is_the_outcome(js: JavaScript, body: str, outcome: object) -> None:
    """SEMANTICS P2, P4-P6: null is a value, only an absent key keeps."""
    assert js.body(body, args={"a": 1}) == outcome


@pytest.mark.parametrize(
    ("body", "patch"),
    [
        ("ctx.args.b = 2", [{"op": "add", "path": "/args/b", "value": 2}]),
        ("ctx.args.a = [1]", [{"op": "replace", "path": "/args/a", "value": [1]}]),
        ("delete ctx.args.a", [{"op": "remove", "path": "/args/a"}]),
        ("ctx.args.a = undefined", [{"op": "remove", "path": "/args/a"}]),
        ("ctx.args = { c: 3 }", [{"op": "remove", "path": "/args/a"}, {"op": "add", "path": "/args/c", "value": 3}]),
        ("ctx.args['x/y~z'] = 1", [{"op": "add", "path": "/args/x~1y~0z", "value": 1}]),
        (
            "ctx.messages.push({ role: 'user', content: 'x' })",
            [{"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "x"}}],
        ),
        ("ctx.metadata.l.shift()", [{"op": "remove", "path": "/metadata/l/0"}]),
        ("ctx.metadata.l.splice(1, 0, 9)", [{"op": "add", "path": "/metadata/l/1", "value": 9}]),
        ("ctx.metadata.l[1] = 9", [{"op": "replace", "path": "/metadata/l/1", "value": 9}]),
        ("ctx.metadata.l.length = 1", [{"op": "remove", "path": "/metadata/l/1"}] * 2),
        ("ctx.metadata.deep.er.x = true", [{"op": "replace", "path": "/metadata/deep/er/x", "value": True}]),
        ("ctx.args.a = 1; ctx.metadata = { ...ctx.metadata }; ctx.messages = [...ctx.messages]", None),
        ("ctx.metadata.f = 1", None),
    ],
)
def test_a_mutation_becomes_the_smallest_patch(js: JavaScript, body: str, patch: object) -> None:
    """SEMANTICS P2."""
    metadata = {"l": [1, 2, 3], "deep": {"er": {"x": False}}, "f": 1.0}
    outcome = js.body(body, args={"a": 1}, messages=[{"role": "user", "content": "hi"}], metadata=metadata)
    assert outcome == (None if patch is None else {"patch": patch})


def test_more_changes_than_a_patch_may_hold_replace_the_field(js: JavaScript) -> None:
    """ABI: at most 1,000 operations."""
    for count, operations in ((1_000, 1_000), (1_001, 1)):
        outcome = js.body(
            "for (const key of Object.keys(ctx.args)) ctx.args[key]++", args={f"k{n}": n for n in range(count)}
        )
        assert len(outcome["patch"]) == operations
    assert outcome["patch"][0]["path"] == "/args"


def test_a_patch_turns_what_was_into_what_is(js: JavaScript) -> None:
    @settings(max_examples=60, deadline=None)
    @given(
        st.dictionaries(st.text(max_size=3), values(depth=8), max_size=4),
        st.dictionaries(st.text(max_size=3), values(depth=8), max_size=4),
    )
    def holds(was: dict[str, object], now: dict[str, object]) -> None:
        outcome = js.body("ctx.metadata = ctx.config", metadata=was, config=now) or {"patch": []}
        context = {"metadata": was}
        changed = apply_patch(
            context, outcome["patch"], roots=frozenset({"metadata"}), received=frozenset({"metadata"})
        )
        assert {**context, **changed}["metadata"] == now

    holds()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("ctx.toolName = 'x'", "'toolName' is read-only"),
        ("ctx.note = 1", "object is not extensible"),
        ("delete ctx.args", "ctx.args was removed"),
        ("ctx.args = undefined", "ctx.args was removed"),
        ("ctx.storage = 1", "the hook has no storage: declare"),
        ("ctx.emit({})", "not a function"),
        ("ctx.args.b = 1; return { patch: [] }", "not both"),
    ],
)
def test_a_change_that_could_not_count_is_an_error(js: JavaScript, body: str, said: str) -> None:
    """Nothing is dropped in silence."""
    assert said in js.body(body, toolName="t", args={})["error"]["message"]


def test_events_are_emitted_in_streamed_runs_alone(js: JavaScript) -> None:
    """SEMANTICS P13; an event counts as it was when it was emitted."""
    body = "const e = { type: 'compaction.start' }; ctx.emit?.(e); e.type = 'changed'"
    assert js.body(body, "pre_generate", streaming=True) == {"events": [{"type": "compaction.start"}]}
    assert js.body(body, "pre_generate", streaming=False) is None
    assert "event/f: a function" in js.body("ctx.emit({ f() {} })", "pre_generate", streaming=True)["error"]["message"]


def test_the_host_judges_what_an_outcome_may_hold(js: JavaScript) -> None:
    """SEMANTICS P8: an invalid outcome, and not an error of the hook's own."""
    for body in ("return { deny: 'a', result: 1 }", "return { foo: 1 }", "return 'text'", "return { deny: 5 }"):
        hooks = js.registry(f"export default {{ preToolCall() {{ {body} }} }}")
        with pytest.raises(OutcomeInvalid):
            run_point_sync(hooks, "pre_tool_call", {"args": {}})


def test_storage_is_kept_by_assignment_and_by_mutation(js: JavaScript) -> None:
    """SEMANTICS G3."""
    source = """export default { preToolCall(ctx) {
        if (ctx.args.look) return { deny: JSON.stringify(ctx.storage) };
        if (ctx.storage === null) ctx.storage = { calls: 1 };
        else if (ctx.args.empty) ctx.storage = null;
        else ctx.storage.calls++;
    } }"""
    hooks = js.registry(source, {"storage": "run", "needs": ["args"]})
    storage, run = InMemoryStorage(), RunFacts()
    said: list[object] = []
    for args in ({}, {}, {"look": 1}, {"empty": 1}, {"look": 1}):
        decision = run_point_sync(hooks, "pre_tool_call", run.context({"args": args}), run=run, storage=storage)
        said.append(decision.reason)
    assert [each for each in said if each is not None] == ['{"calls":2}', "null"]


# --- agent-class points -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("", None),
        ("return ''", {"replace": ""}),
        ("return null", {"replace": None}),
        ("return prompt + '!'", {"replace": "hi!"}),
        ("ctx.meta({ a: 1 }); ctx.meta({ b: 2 })", {"meta": {"a": 1, "b": 2}}),
        ("ctx.approved = true", {"patch": [{"op": "add", "path": "/state/approved", "value": True}]}),
        ("ctx.state.set('k', 1)", {"patch": [{"op": "add", "path": "/state/k", "value": 1}]}),
        ("ctx.state.append('new', 1)", {"patch": [{"op": "add", "path": "/state/new", "value": [1]}]}),
        ("ctx.state.append('list', 2)", {"patch": [{"op": "add", "path": "/state/list/-", "value": 2}]}),
        ("return String(ctx.round)", {"replace": "3"}),
        ("return String(ctx.state.history === ctx.messages)", {"replace": "true"}),
        ("ctx.messages.pop()", {"patch": [{"op": "remove", "path": "/state/history/0"}]}),
        ("ctx.state.set('history', [])", {"patch": [{"op": "remove", "path": "/state/history/0"}]}),
    ],
)
def test_agent_class_points_replace_note_and_keep_state(js: JavaScript, body: str, outcome: object) -> None:
    """SEMANTICS C2, C7."""
    messages = [{"role": "user", "content": "hi"}]
    state = {"history": messages, "round": 3, "list": [1]}
    assert js.body(body, "before_prompt", prompt="hi", messages=messages, state=state) == outcome


def test_what_is_stored_on_a_context_without_state_is_an_error(js: JavaScript) -> None:
    assert 'add "state" to needs' in js.body("ctx.approved = 1", "after_response", response="x")["error"]["message"]


def test_each_method_gets_what_the_seed_says(js: JavaScript) -> None:
    assert js.body("return call.args.a", "before_tool", call={"id": "1", "name": "n", "args": {"a": 7}}) == {
        "replace": 7
    }
    assert js.body("return result.output", "after_tool", result={"output": "o"}) == {"replace": "o"}
    assert js.body("return { result: result.result }", "post_tool_call", result={"result": 5}) == {"result": 5}
    error = {"name": "HookThrew", "message": "no", "hook": "h"}
    body = "return [error instanceof Error, error.name, error.message, error.hook, String(error)]"
    assert js.body(body, "on_error", error=error) == {"replace": [True, "HookThrew", "no", "h", "HookThrew: no"]}


# --- what crosses -----------------------------------------------------------------------------------------------------


def test_every_value_of_the_abi_passes_through_unchanged(js: JavaScript) -> None:
    """ABI, "Context": 64-bit integers, floats, byte strings, any text."""

    @settings(max_examples=100, deadline=None)
    @given(values())
    def holds(value: object) -> None:
        assert js.body("return { result: ctx.args.v }", args={"v": value}) == {"result": value}
        assert js.body("ctx.args.w = 1; delete ctx.args.w", args={"v": value}) is None

    holds()


@pytest.mark.parametrize(
    ("expression", "crossed"),
    [
        ("2 ** 53", 2**53),
        ("2n ** 63n", 2**63),
        ("-(2n ** 63n)", -(2**63)),
        ("5n", 5),
        ("-0", 0),
        ("1e300", 1e300),
        ("new Uint8Array([1, 2])", b"\x01\x02"),
        ("{ a: undefined, b: 1, [Symbol('s')]: 2 }", {"b": 1}),
        ("Object.create(null)", {}),
        ("new (class Point { x = 1; get y() { return 2 } })", {"x": 1}),
        ("JSON.parse('{\"__proto__\": 1}')", {"__proto__": 1}),
        ("'\\0é中😀e\u0301'", "\0é中😀e\u0301"),
    ],
)
def test_what_javascript_has_more_of_maps_as_documented(js: JavaScript, expression: str, crossed: object) -> None:
    assert js.body(f"return {{ result: {expression} }}") == {"result": crossed}


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("() => 1", "outcome/result: a function cannot cross"),
        ("{ items: [0, 1, 2, () => 1] }", "outcome/result/items/3: a function cannot cross"),
        ("Symbol('s')", "outcome/result: a symbol cannot cross"),
        ("[1, undefined]", "outcome/result/1: undefined in a list cannot cross: use null"),
        ("[1, , 2]", "outcome/result/1: undefined in a list cannot cross: use null"),
        ("new Array(2 ** 32 - 1)", "outcome/result/0: undefined in a list cannot cross: use null"),
        ("new Map", "outcome/result: a Map cannot cross"),
        ("new Set", "outcome/result: a Set cannot cross"),
        ("new Date(0)", "outcome/result: a Date cannot cross"),
        ("/x/", "outcome/result: a RegExp cannot cross"),
        ("new Error('x')", "outcome/result: an Error cannot cross"),
        ("new Number(3)", "outcome/result: a Number cannot cross"),
        ("Promise.resolve(1)", "outcome/result: a Promise cannot cross: await it"),
        ("new Float64Array(1)", "outcome/result: a Float64Array cannot cross"),
        ("new ArrayBuffer(1)", "outcome/result: an ArrayBuffer cannot cross"),
        ("new Proxy({}, {})", "outcome/result: a Proxy cannot cross"),
        ("new Proxy([], {})", "outcome/result: a Proxy cannot cross"),
        ("(() => { const a = []; a[0] = a; return a })()", "outcome/result/0: a value inside itself cannot cross"),
        ("'a\\ud800'", "outcome/result: a string with half a surrogate pair cannot cross: use toWellFormed()"),
        ("{ ['\\udc00']: 1 }", "half a surrogate pair cannot cross"),
        ("NaN", "outcome/result: NaN cannot cross"),
        ("-Infinity", "outcome/result: Infinity cannot cross"),
        ("2n ** 64n", "outcome/result: a whole number over 64 bits cannot cross"),
        ("-(2n ** 63n) - 1n", "outcome/result: a whole number over 64 bits cannot cross"),
        ("{ toJSON() { return 1 } }", "outcome/result/toJSON: a function cannot cross"),
        ("{ get x() { throw new RangeError('from a getter') } }", "from a getter"),
        ("(() => { let a = {}; for (let i = 0; i < 50000; i++) a = { a }; return a })()", "nests too deep to cross"),
    ],
)
def test_what_cannot_cross_is_an_error_that_says_where(js: JavaScript, expression: str, said: str) -> None:
    assert said in js.body(f"return {{ result: {expression} }}")["error"]["message"]


def test_a_property_is_read_once(js: JavaScript) -> None:
    body = (
        "let n = 0; return { result: { get a() { n++; delete this.b; return n }, b: 1, c: { toString() {} }.x ?? 3 } }"
    )
    assert js.body(body) == {"result": {"a": 1, "c": 3}}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc0",
        b"\x90",
        b"\x81\x01\x01",
        b"\x81\xa1a",
        b"\x80\x00",
        b"\xdf\xff\xff\xff\xff\xa1a\x01",
        b"\x81\xa1a\xd4\x01\x00",
        b"\x81\xa1a" + b"\x91" * 72 + b"\xc0",
    ],
)
def test_a_malformed_context_is_an_error_and_not_a_trap(js: JavaScript, raw: bytes) -> None:
    output = js.complete_raw("export default { preToolCall() {} }", "pre_tool_call", raw).output
    assert output is not None
    assert msgpack.unpackb(output)["error"]["name"] == "ContextMalformed"


def test_any_bytes_at_all_never_trap(js: JavaScript) -> None:
    @settings(max_examples=100, deadline=None)
    @given(st.binary(max_size=100) | st.binary(max_size=100).map(lambda raw: b"\x81\xa4args" + raw))
    def never_trap(raw: bytes) -> None:
        js.complete_raw("export default { preToolCall(ctx) { ctx.args } }", "pre_tool_call", raw)

    never_trap()


def test_a_context_may_nest_72_deep(js: JavaScript) -> None:
    """ABI, "Context"."""
    value: object = 1
    for _ in range(70):
        value = [value]
    assert js.body("return { deny: JSON.stringify(ctx.args) }", args={"v": value})["deny"].count("[") == 70


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_error_has_the_authors_file_line_and_column(js: JavaScript) -> None:
    files = {
        "hook.js": "import { check } from './lib/check';\n"
        "export default {\n  preToolCall(ctx) {\n    check(ctx);\n  },\n};",
        "lib/check.js": "export const check = (ctx) => {\n  ctx.args.missing.deeper;\n};",
    }
    error = js.error(files, args={})
    assert error["name"] == "TypeError"
    assert error["stack"].splitlines() == ["at check (lib/check.js:2:3)", "at preToolCall (hook.js:4:11)"]


def test_a_syntax_error_has_its_place(js: JavaScript) -> None:
    error = js.error("export default {\n  preToolCall() { if }\n};")
    assert (error["name"], error["stack"]) == ("SyntaxError", "at hook.js:2:22")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("export default { pre_tool_call() {} }", "pre_tool_call: the method is spelled preToolCall"),
        ("export default { PreToolCall() {} }", "PreToolCall: the method is spelled preToolCall"),
        ("export default class { before_prompt() {} }", "before_prompt: the method is spelled beforePrompt"),
        ("export default {}", "the hook has no method at any point"),
        ("export default { preToolCall: 1 }", "preToolCall is a number, not a method"),
        ("export default 5", "the default export is a number"),
        ("export default null", "the default export is null"),
        ("export default () => {}", "the default export is a function"),
        ("export const hook = {}", "the module has no default export"),
        ("await new Promise(() => {}); export default {}", "the module waits for a promise that never settles"),
        ("throw new Error('at the top')", "at the top"),
        ("import fs from 'fs'; export default {}", 'cannot import "fs"'),
        ("import x from '../x'; export default {}", "it leaves the hook's folder"),
        ("import x from './none'; export default {}", "no such file was built in"),
        ("export default { preToolCall: () => import('os') }", 'cannot import "os"'),
        (
            "export default { preToolCall: () => new Promise(() => {}) }",
            "preToolCall waits for a promise that never settles",
        ),
        ("export default { preToolCall() { Promise.reject(new Error('lost')) } }", "lost"),
        ("export default { preToolCall() { throw 'text' } }", "text"),
        ("export default { preToolCall() { throw { code: 5 } } }", "{ code: 5 }"),
        ("export default { preToolCall() { throw null } }", "null"),
        ("export default { async preToolCall() { await null; throw new Error('later') } }", "later"),
        (
            "class E extends Error { get message() { throw 1 } } export default { preToolCall() { throw new E() } }",
            "",
        ),
    ],
)
def test_what_is_wrong_is_said(js: JavaScript, source: str, said: str) -> None:
    assert said in js.error(source)["message"]


def test_a_rejection_that_is_handled_later_is_none(js: JavaScript) -> None:
    body = (
        "const p = Promise.reject(new Error('x')); return Promise.resolve().then(() => p.catch(() => ({ deny: 'ok' })))"
    )
    assert js.body(body) == {"deny": "ok"}


def test_a_long_message_and_stack_say_that_they_were_cut(js: JavaScript) -> None:
    """SEMANTICS G6."""
    error = js.error("export default { preToolCall() { throw new Error('x\\ud800'.repeat(10000)) } }")
    assert error["message"].endswith("… [cut, of 20000 characters]")
    assert len(error["message"]) < 5_000


def test_a_thrown_error_fails_the_hook(js: JavaScript) -> None:
    """SEMANTICS P11."""
    hooks = js.registry("export default { preToolCall() { throw new RangeError('no') } }")
    with pytest.raises(HookThrew, match="threw RangeError: no"):
        run_point_sync(hooks, "pre_tool_call", {"args": {}})


# --- what an author expects to find -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "logged"),
    [
        ("console.log('a', 1, null, undefined, true, 2n)", "a 1 null undefined true 2n"),
        ("console.log({ a: 'x', b: [1, { c: 'it\\'s' }] })", "{ a: 'x', b: [ 1, { c: \"it's\" } ] }"),
        ("console.log([], {}, new Map([['k', 1]]), new Set([1]))", "[] {} Map(1) { 'k' => 1 } Set(1) { 1 }"),
        ("console.log('%s is %d, %j %% %i', 'x', 1.5, { a: 1 }, 7.9, 'rest')", 'x is 1.5, {"a":1} % 7 rest'),
        ("const a = {}; a.a = a; console.log(a)", "{ a: [Circular] }"),
        (
            "console.log({ get g() { throw 1 }, f() {}, k: class K {} })",
            "{ g: [Getter], f: [Function f], k: [class K] }",
        ),
        (
            "console.log(new (class Box { x = 1 }), new Date(0), /r/g, Symbol('s'))",
            "Box { x: 1 } 1970-01-01T00:00:00.000Z /r/g Symbol(s)",
        ),
        ("console.log([-0, NaN, new Uint8Array([1, 2])])", "[ -0, NaN, Uint8Array(2) [ 1, 2 ] ]"),
        (
            "console.warn('w'); console.error('e'); console.debug('d'); console.info('i')",
            "warn: w\nerror: e\ndebug: d\ni",
        ),
        ("console.log('one\\nwarn: two')", "one\n  warn: two"),
        (
            "console.log(new Array(101).fill(0).join === undefined, [...new Array(102).keys()].slice(0).length)",
            "false 102",
        ),
    ],
)
def test_console_writes_lines_much_as_node_does(js: JavaScript, statement: str, logged: str) -> None:
    """Further lines are indented, so that text of the context cannot pass for an entry."""
    assert js.log(statement) == logged + "\n"


def test_a_full_log_says_so(js: JavaScript) -> None:
    """SEMANTICS G6."""
    log = js.log("for (let i = 0; i < 100; i++) console.log('x'.repeat(1000))")
    assert log.endswith("\n[log full]\n")
    assert 65_000 < len(log) <= 65_532


def test_the_time_is_the_contexts(js: JavaScript) -> None:
    """SEMANTICS G1."""
    body = """const made = [new Date(0).getTime(), Date.UTC(2020, 1), typeof Date(), new Date() instanceof Date];
        return { result: [Date.now(), new Date().toISOString(), ...made, new Date(2020, 0).getTimezoneOffset()] }"""
    outcome = js.body(body, now=1_700_000_000_000)
    assert outcome["result"] == [1_700_000_000_000, "2023-11-14T22:13:20.000Z", 0, 1580515200000, "string", True, 0]
    for expression in ("Date.now()", "new Date()", "Date()", "new (class extends Date {})"):
        assert 'add "now" to the hook\'s needs' in js.body(expression)["error"]["message"]
    error = js.error("const start = Date.now(); export default { preToolCall() {} }")
    assert "while the module loads" in error["message"]


def test_chance_is_the_contexts_seed(js: JavaScript) -> None:
    """SEMANTICS G1: the same numbers on every replay."""
    body = "return { result: [Math.random(), Math.random(), Math.random()] }"
    first, again, other = (js.body(body, seed=seed)["result"] for seed in (7, 7, 2**63))
    assert first == again != other
    assert all(0 <= number < 1 for number in first + other)
    assert len({*first, *other}) == 6
    assert 'add "seed" to the hook\'s needs' in js.body("Math.random()")["error"]["message"]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("fetch('x')", "fetch: a hook has no network"),
        ("setTimeout(() => {}, 1)", "setTimeout: a hook has no timers"),
        ("setInterval(() => {}, 1)", "setInterval: a hook has no timers"),
        ("require('fs')", "require: a hook has its own files"),
        ("process.env.HOME", "process.env: a hook has no process"),
        ("WebAssembly.compile()", "WebAssembly.compile: a hook is WebAssembly already"),
        ("performance.now()", "performance.now: a hook has no clock"),
        ("crypto.randomUUID()", "crypto.randomUUID: a hook has no source of randomness"),
    ],
)
def test_what_a_hook_has_not_says_why(js: JavaScript, statement: str, said: str) -> None:
    error = js.body(statement)["error"]
    assert said in error["message"]
    assert "hook.js:1:" in error["stack"]


def test_text_is_encoded_and_decoded(js: JavaScript) -> None:
    assert js.body("return { result: new TextEncoder().encode('é😀\\ud800') }")["result"] == "é😀\ufffd".encode()
    assert (
        js.body("return { result: new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0xc3, 0xa9, 0xff])) }")[
            "result"
        ]
        == "é\ufffd"
    )
    fatal = "new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xed, 0xa0, 0x80]))"
    assert "not UTF-8" in js.body(fatal)["error"]["message"]
    assert "only utf-8" in js.body("new TextDecoder('utf-16le')")["error"]["message"]


def test_structured_clone_copies_and_refuses(js: JavaScript) -> None:
    body = """const a = { d: new Date(5), m: new Map([['k', { s: new Set([1]) }]]), b: new Uint8Array([1]) };
        a.e = new TypeError('t');
        a.self = a;
        const c = structuredClone(a);
        const inner = [c.d.getTime(), c.m.get('k').s.has(1), c.b !== a.b && c.b[0], c.e instanceof TypeError];
        return { result: [c !== a, c.self === c, ...inner] }"""
    assert js.body(body)["result"] == [True, True, 5, True, 1, True]
    assert js.body("structuredClone({ f() {} })")["error"]["name"] == "DataCloneError"


def test_regular_expressions_know_unicode(js: JavaScript) -> None:
    assert js.body(r"return { result: 'Größe 中文 x1'.match(/\p{L}+/gu) }")["result"] == ["Größe", "中文", "x"]


def test_files_import_each_other_and_json(js: JavaScript) -> None:
    files = {
        "hook.js": "import { defineHook } from 'hookcell';\n"
        "import { a } from './lib';\nimport data from './data.json';\n"
        "const load = async () => (await import('./lib/b.js')).b;\n"
        "export default defineHook({ async preToolCall() { return { result: [a, data, await load()] } } });",
        "lib/index.js": "export { b as a } from './b';",
        "lib/b.ts": "export const b = 'b';",
        "data.json": json.dumps({"k": [1, None], "__proto__": 2}),
    }
    assert js.run(files)["result"] == ["b", {"k": [1, None], "__proto__": 2}, "b"]


def test_a_class_is_made_once_and_keeps_its_this(js: JavaScript) -> None:
    source = "export default class Guard { reason = 'no'; preToolCall() { return { deny: this.reason } } }"
    assert js.run(source) == {"deny": "no"}


# --- containment ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("for (;;);", FuelExhausted),
        ("return new Promise(function again() { Promise.resolve().then(again) })", FuelExhausted),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b')", FuelExhausted),
        ("const all = []; for (;;) all.push('x'.repeat(100000) + all.length)", MemoryExceeded),
        ("for (const all = [];;) all.push({})", MemoryExceeded),
        ("return { result: 'x'.repeat(15e6) }", MemoryExceeded),
        # These recurse in C, on a stack that JavaScript's own bound does not see.
        ("JSON.parse('['.repeat(100000))", GuestTrap),
        ("let a = {}; for (let i = 0; i < 5000; i++) a = { a }; JSON.stringify(a)", GuestTrap),
        ("eval('('.repeat(100000))", GuestTrap),
    ],
)
def test_a_hostile_hook_ends_in_a_failure_of_its_own(js: JavaScript, body: str, error: type[Exception]) -> None:
    source = f"export default {{ preToolCall() {{ {body} }} }}"
    with pytest.raises(error) as failed:
        js.complete(source, "pre_tool_call", {})
    assert type(failed.value) is error


@pytest.mark.parametrize(
    "recursion",
    [
        "function f(n) { return f(n + 1) + 1 } f(0)",
        "const f = (n) => [n].map(f); f(0)",
        "const a = { get x() { return this.x } }; a.x",
        "class A { constructor() { new A } } new A",
        "const f = () => 'x'.replace(/x/, f); f()",
        "const f = (a, b) => [2, 1].sort(f); f()",
        "const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.x",
        "const f = () => JSON.stringify({ toJSON: f }); f()",
        "function f() { f.apply(null, []) } f()",
        "const f = () => eval('f()'); f()",
        "const f = () => Reflect.construct(f2, []); function f2() { f() } f()",
        "const f = async () => { await f() }; f()",
        "function* g() { yield* g() } [...g()]",
        "const t = { toString() { return `${t}` } }; `${t}`",
    ],
)
def test_ordinary_recursion_is_a_range_error_that_can_be_caught(js: JavaScript, recursion: str) -> None:
    outcome = js.body(f"try {{ {recursion} }} catch (e) {{ return {{ deny: e.name }} }}")
    assert outcome in ({"deny": "RangeError"}, {"deny": "InternalError"}) or outcome["error"]["name"] == "RangeError"


def test_nothing_stays_from_one_call_to_the_next(js: JavaScript) -> None:
    source = """let calls = 0;
        export default { preToolCall() {
            const seen = [calls++, Object.prototype.polluted];
            Object.prototype.polluted = 'x'; Array.prototype.push = null; JSON.stringify = null;
            return { result: seen.map((each) => each ?? null) };
        } }"""
    for _ in range(2):
        assert js.run(source) == {"result": [0, None]}


def test_a_hook_that_breaks_the_built_ins_breaks_itself_alone(js: JavaScript) -> None:
    body = """const { ownKeys } = Reflect, everything = Object.prototype;
        for (const key of ownKeys(globalThis)) if (key !== 'undefined') try { globalThis[key] = undefined } catch {}
        for (const key of ownKeys(everything)) try { everything[key] = undefined } catch {}
        ctx.args.b = 1;
        return { deny: 'still' };"""
    outcome = js.body(body, args={})
    assert outcome == {"deny": "still", "patch": [{"op": "add", "path": "/args/b", "value": 1}]}


def test_a_log_reaches_the_host_before_a_trap(js: JavaScript) -> None:
    """SEMANTICS G5."""
    source = "export default { preToolCall() { console.log('before'); for (;;); } }"
    with pytest.raises(FuelExhausted) as failed:
        js.complete(source, "pre_tool_call", {}, Limits(fuel=10_000_000, deadline_ms=60_000))
    assert failed.value.log.raw == b"before\n"
