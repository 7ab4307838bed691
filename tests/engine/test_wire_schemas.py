"""guest_sdk/schema: generated, and of one mind with the engine's own checks on outcomes, contexts and manifests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import jsonschema_rs
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell import (
    POINTS,
    GuestHook,
    HookRegistry,
    InMemoryStorage,
    Point,
    RunFacts,
    ToolCall,
    ToolPipeline,
    tool_schema,
)
from hookcell.agent import create_agent, define_tool, mock_model
from hookcell.codec import CONTEXT_DEPTH
from hookcell.malformed import Malformed
from hookcell.manifest import NAME_CHARACTERS, NEEDS, manifest_findings
from hookcell.outcomes import EVENTS, PATCH_OPERATIONS, read_outcome
from hookcell.wire_schemas import documents, main

from .fake_sandbox import FakeSandbox

SCHEMAS = Path(__file__).parents[2] / "guest_sdk/schema"
FILES = {path.name: json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")}
VALID = {name: jsonschema_rs.validator_for(schema).is_valid for name, schema in FILES.items()}

CALL = {"id": "1", "name": "a", "args": {}}
THROWN = {"name": "E", "message": "m"}
EVENT = {"type": "compaction.start"}


def test_the_files_are_what_the_table_of_points_makes() -> None:
    assert documents() == FILES, "run python -m hookcell.wire_schemas"
    assert main(["--check"]) == 0


def test_a_stale_file_fails_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    changed = {**documents(), "manifest.json": {}}
    monkeypatch.setattr("hookcell.wire_schemas.documents", lambda: changed)
    assert main(["--check"]) == 1
    assert "stale: manifest.json; run python -m hookcell.wire_schemas" in capsys.readouterr().err


@pytest.mark.parametrize("name", FILES)
def test_each_schema_is_one_and_stands_alone(name: str) -> None:
    jsonschema_rs.meta.validate(FILES[name])
    assert set(re.findall(r'"\$ref": "([^#]*)#', json.dumps(FILES[name]))) <= {""}


# Outcomes.


def accepted(value: object, point: Point) -> bool:
    """Whether the engine takes the outcome, as far as it can be told without the context."""
    try:
        outcome = read_outcome(msgpack.packb(value), point, streaming=True)
    except Malformed:
        return False
    return all(_path_is_the_points(str(operation["path"]), point) for operation in outcome.patch)


def _path_is_the_points(path: str, point: Point) -> bool:
    """`patch.apply_patch` refuses the others."""
    tokens = path.split("/")[1:]
    escaped = re.search("~(?![01])", path) is None
    return path.startswith("/") and tokens[0] in point.patch_roots and escaped and len(tokens) <= CONTEXT_DEPTH


def same_verdict(value: object, point: Point) -> bool:
    verdict = accepted(value, point)
    assert VALID[f"{point.name}.outcome.json"](value) is verdict, (point.name, value, verdict)
    return verdict


SCALARS = [None, True, 0, -1.5, "", "text", [], ["a"], {}, {"a": None}]
OPERATIONS = [
    {"op": op, "path": path, **value}
    for op in ("add", "remove", "replace", "move", "test", "", None, 1)
    for path in ("/args/a", "/messages/-", "/request/stop", "/state/x", "/metadata", "/args", "", "args", "/other", 1)
    for value in ({}, {"value": None})
]
PATHS = [
    "/args/~",
    "/args/~0~1",
    "/args//",
    "/args/\n",
    "/argsx",
    "/args\n",
    "/args" + "/a" * (CONTEXT_DEPTH - 1),
    "/args" + "/a" * CONTEXT_DEPTH,
]
OUTCOMES: list[object] = [
    *SCALARS,
    *({key: value} for key in ("deny", "result", "input", "replace", "patch", "storage", "events", "meta", "error", "x")
      for value in SCALARS),
    {"deny": "", "result": None},
    {"deny": "", "input": {}},
    {"result": 1, "input": {}},
    {"replace": "", "error": THROWN},
    {"deny": "", "error": THROWN},
    {"deny": "", "why": 1},
    {"deny": "", "storage": None, "patch": []},
    {"replace": "", "storage": 1, "patch": [], "meta": {}},
    {"error": THROWN, "patch": "anything", "storage": 1},
    {"error": THROWN, "meta": 7, "events": 1},
    {"error": THROWN, "x": 7},
    *({"error": error} for error in (
        THROWN, THROWN | {"stack": ""}, THROWN | {"stack": None}, THROWN | {"stack": 1}, {"name": "E"},
        {"message": ""}, THROWN | {"name": 1}, THROWN | {"message": None}, THROWN | {"cause": 1},
    )),
    *({"replace": value} for value in (
        CALL, CALL | {"args": []}, CALL | {"id": 1}, CALL | {"name": None}, CALL | {"type": ""},
        {"id": "1", "name": "a"}, {"output": None}, {"output": 1, "isError": True}, {"output": 1, "isError": None},
        {"isError": True}, {"output": "", "name": ""},
    )),
    *({"events": events} for events in (
        [EVENT], [EVENT | {"removed": 1, "hook": "x"}], [{"type": "tool.done"}], [{}], ["compaction.start"],
        [{"type": 1}], [EVENT] * EVENTS, [EVENT] * (EVENTS + 1),
    )),
    *({"patch": [operation]} for operation in (*OPERATIONS, OPERATIONS[0] | {"from": 2}, {}, "add")),
    *({"patch": [{"op": "remove", "path": path}]} for path in PATHS),
    {"patch": [OPERATIONS[1]] * PATCH_OPERATIONS},
    {"patch": [OPERATIONS[1]] * (PATCH_OPERATIONS + 1)},
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_a_schema_takes_the_outcomes_that_the_engine_takes(point: str) -> None:
    """SEMANTICS P2, P4-P6, P8, P12, P13, C2-C4."""
    verdicts = [same_verdict(value, POINTS[point]) for value in OUTCOMES]
    assert min(verdicts.count(True), verdicts.count(False)) >= 20


JSON = st.recursive(
    st.sampled_from([None, True, 1, "", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)
_AT_RANDOM: Mapping[str, st.SearchStrategy[object]] = {
    "deny": st.text(max_size=3) | JSON,
    "result": JSON,
    "input": JSON,
    "replace": st.sampled_from(["", CALL, {"output": 1}]) | JSON,
    "patch": st.lists(st.sampled_from(OPERATIONS) | JSON, max_size=3),
    "storage": JSON,
    "events": st.lists(st.just(EVENT) | JSON, max_size=2),
    "meta": JSON,
    "error": st.just(THROWN) | JSON,
    "other": JSON,
}


@st.composite
def outcomes(draw: Callable[..., Any]) -> dict[str, object]:
    keys = draw(st.lists(st.sampled_from(sorted(_AT_RANDOM)), max_size=3, unique=True))
    return {key: draw(_AT_RANDOM[key]) for key in keys}


@settings(deadline=None)
@given(value=outcomes(), point=st.sampled_from(sorted(POINTS)))
def test_a_schema_and_the_engine_agree_on_any_outcome(value: dict[str, object], point: str) -> None:
    same_verdict(value, POINTS[point])


# Contexts.


@pytest.fixture(scope="module")
def crossed() -> dict[str, list[dict[str, Any]]]:
    """What really crossed to guests, by point: a pipeline's calls, and two turns of the reference loop."""
    sandbox = FakeSandbox()
    watching = {point: lambda _: None for point in POINTS}
    guests = [
        sandbox.guest("plain", options={"config": {"a": 1}}, **watching),
        sandbox.guest("narrow", {"needs": ["*", "now", "seed"], "storage": "run"}, **watching),
        sandbox.guest("nothing", {"needs": []}, **watching),
    ]
    _tool_calls(guests)
    anyio.run(_turns, guests)
    contexts: dict[str, list[dict[str, Any]]] = {point: [] for point in POINTS}
    for call in sandbox.calls:
        contexts[call.entry].append(call.context)
    return contexts


def _tool_calls(guests: list[GuestHook]) -> None:
    """Every origin that needs no loop: a tool's result and its error, a mismatch, arguments that are no map."""
    schema = tool_schema({"type": "object", "properties": {"n": {"type": "integer"}}})
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}], "name": "ada", "metadata": {"at": 1}},
        {"role": "assistant", "toolCalls": [{"id": "0", "name": "read", "args": {}}]},
        {"role": "tool", "toolCallId": "0", "content": ""},
    ]
    facts = RunFacts(
        messages=messages,
        subagent={"agentId": "a", "agentName": "b", "depth": 1, "parent": None},
        state={"history": messages, "n": 1},
    )
    pipeline = ToolPipeline(hooks=HookRegistry(guests), run=facts, storage=InMemoryStorage())

    def fails(_: object) -> object:
        raise ValueError("down")

    async def calls() -> None:
        for args, tool in (({"n": 1}, len), ({}, fails), ({"n": "x"}, len), ("no map", len)):
            await pipeline.call(ToolCall(id="1", name="read", args=args), tool, schema=schema)

    anyio.run(calls)


async def _turns(guests: list[GuestHook]) -> None:
    """All nine points, streamed or not, a denied call among them."""
    tools = [
        define_tool("read", input={"type": "object"}, execute=len),
        define_tool("write", input={"type": "object"}, execute=len, needs_approval=True),
    ]
    request: dict[str, Any] = {"model": "m", "temperature": 0.5, "stop": ["a"], "headers": {"x-a": "b"}}
    calls = [{"toolCalls": [{"name": "read", "args": {}}]}, {"toolCalls": [{"name": "write", "args": {}}]}]
    for streamed in (False, True):
        turns: list[Any] = [calls[0], "done", calls[1], ValueError("down")]
        agent = create_agent(
            provider=mock_model(turns), tools=tools, hooks=guests, request=request, storage=InMemoryStorage()
        )
        if streamed:
            [event async for event in agent.stream("hi")]
        else:
            await agent.send("hi")
        await agent.send("write")
        with pytest.raises(ValueError, match="down"):
            await agent.send("again")


@pytest.mark.parametrize("point", POINTS)
def test_what_crosses_to_guests_is_valid(point: str, crossed: dict[str, list[dict[str, Any]]]) -> None:
    contexts = crossed[point]
    assert contexts
    validator = jsonschema_rs.validator_for(FILES[f"{point}.context.json"])
    for context in contexts:
        validator.validate(context)
    fields = set(FILES[f"{point}.context.json"]["properties"])
    assert set().union(*contexts) <= fields


def test_a_context_names_its_point_and_may_hold_more_than_is_known() -> None:
    """ABI, "Context": a guest must pass over what it does not know."""
    valid = VALID["before_tool.context.json"]
    assert valid({"point": "before_tool"})
    assert valid({"point": "before_tool", "call": {**CALL, "new": 1}, "newer": 2})
    assert not valid({"point": "after_tool"})
    assert not valid({})
    assert not valid({"point": "before_tool", "call": {"id": "1"}})


# The manifest.


def manifests() -> Iterator[dict[str, object]]:
    for key in ("abi", "name", "version", "needs", "storage", "config", "sdk", "other"):
        for value in (*SCALARS, 1, 2, "run", "session", "hook", ["*", "now"], ["config"], ["args", 1]):
            yield {key: value}
    for length in (NAME_CHARACTERS, NAME_CHARACTERS + 1):
        yield from ({key: "😀" * length} for key in ("name", "version", "sdk"))
    yield from ({"needs": ["args"] * length} for length in (NEEDS, NEEDS + 1))


@pytest.mark.parametrize("manifest", list(manifests()), ids=lambda each: json.dumps(each)[:40])
def test_the_manifests_schema_and_the_engine_agree(manifest: dict[str, object]) -> None:
    verdict = not manifest_findings(json.dumps(manifest).encode())
    assert VALID["manifest.json"](manifest) is verdict
