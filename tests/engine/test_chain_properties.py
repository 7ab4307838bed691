"""Whatever a guest returns, only the declared errors come out of the chain, and a failed hook changes nothing."""

from __future__ import annotations

import copy
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell import POINTS, History, HookFailure, HookRegistry, RunFacts, run_point_sync, tool_schema
from hookcell_sandbox.guest_text import escape

from .fake_sandbox import FakeSandbox

SCHEMA = tool_schema({"type": "object", "properties": {"n": {"type": "integer"}}})

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
roots = ["args", "messages", "metadata", "request", "state", "toolName", ""]
paths = st.builds(
    lambda root, rest: "/" + "/".join([root, *rest]),
    st.sampled_from(roots),
    st.lists(st.sampled_from(["-", "0", "1", "n", "role", "content", "deep", "history", "~1"]), max_size=3),
)
messages = st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "tool", "robot"]), "content": values})
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace"]), "path": paths}, optional={"value": values | messages}
)
calls = st.fixed_dictionaries({"id": st.just("1"), "name": st.just("run"), "args": values})
outcomes = st.fixed_dictionaries(
    {},
    optional={
        "deny": st.text(max_size=3) | values,
        "result": values,
        "input": values,
        "replace": values | calls,
        "patch": st.lists(operations, max_size=3) | values,
        "meta": values,
        "events": values,
        "error": st.just({"name": "E", "message": "m"}) | values,
        "bogus": values,
    },
)


def _context() -> dict[str, object]:
    history = History([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])
    facts = RunFacts(messages=history, metadata={"deep": {"n": [1]}})
    own = {
        "args": {"n": 1},
        "call": {"id": "1", "name": "run", "args": {"n": 1}},
        "request": {"model": "m"},
        "state": {"history": history, "deep": {"n": 1}},
    }
    return facts.context(own)


def _result(point: str) -> object:
    return {"name": "run", "args": {}, "output": "", "isError": False} if point == "after_tool" else {"result": 1}


@pytest.mark.parametrize("policy", ["raise", "skip"])
@pytest.mark.parametrize("point", sorted(POINTS))
@settings(max_examples=60, deadline=None)
@given(raw=outcomes.map(msgpack.packb) | values.map(msgpack.packb) | st.binary(max_size=30))
def test_only_declared_errors_come_out_and_a_failed_hook_changes_nothing(point: str, policy: str, raw: bytes) -> None:
    """SEMANTICS P2, P8, P11."""
    guest = FakeSandbox().guest("g", options={"on_failure": policy}, **{point: lambda _: raw})
    context: dict[str, Any] = _context() | {"result": _result(point)}
    before = copy.deepcopy(context)
    validate = SCHEMA.validate if point in ("pre_tool_call", "before_tool") else None
    failed, text = False, ""
    try:
        decision = run_point_sync(HookRegistry([guest]), point, context, validate_args=validate)
        failed = bool(decision.failures) or decision.kind == "validation"
        assert decision.kind != "proceed" or not decision.failures or policy == "skip"
    except HookFailure as failure:
        failed, text = True, str(failure)
    if text:
        assert policy == "raise"
        assert escape(text, characters=len(text)) == text
        assert len(text) < 2_500
    if failed:
        assert context == before
    # What stands now still crosses to the next guest, and what was kept of the conversation is what it holds.
    history = context["messages"]
    assert history is context["state"]["history"]
    assert history.encoded() == History(list(history)).encoded()
    run_point_sync(HookRegistry([FakeSandbox().guest("next", **{point: lambda _: None})]), point, context)
