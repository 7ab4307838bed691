"""Patches: RFC 6902 on a context, confined and whole or not at all (SEMANTICS P2, G4)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell.codec import CONTEXT_DEPTH, OUTCOME_DEPTH, History, Malformed, encode_context
from hookcell.outcomes import check_outcome
from hookcell.patch import apply_patch, written_paths
from hookcell.points import POINTS

CASES = Path(__file__).parents[2] / "fixtures" / "rfc6902"
ROOTS = frozenset({"args", "messages", "metadata"})


def context() -> dict[str, Any]:
    return {
        "point": "pre_tool_call",
        "args": {"command": "ls", "list": [1, 2], "a/b": {"~": 1}},
        "messages": History([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]),
        "metadata": {},
        "toolName": "bash",
    }


def patched(*operations: dict[str, Any], of: dict[str, Any] | None = None, received: frozenset[str] = ROOTS) -> Any:
    return apply_patch(of or context(), operations, roots=ROOTS, received=received)


def add(path: str, value: Any = 0) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any = 0) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


def test_only_the_fields_that_change_come_back() -> None:
    assert patched() == {}
    assert patched(add("/args/x"), remove("/args/list/0"), add("/metadata/m", {})) == {
        "args": {"command": "ls", "list": [2], "a/b": {"~": 1}, "x": 0},
        "metadata": {"m": {}},
    }


def test_escapes_are_read_in_the_right_order() -> None:
    """RFC 6901, section 4: ``~01`` is ``~1``, not a slash."""
    assert patched(replace("/args/a~1b/~0", 2))["args"]["a/b"] == {"~": 2}
    assert patched(add("/metadata/~01", 2))["metadata"] == {"~1": 2}


def test_a_whole_field_is_replaced_if_it_keeps_its_type() -> None:
    assert patched(replace("/args", {"a": 1}), add("/args/b", 2)) == {"args": {"a": 1, "b": 2}}
    messages = patched(add("/messages", [{"role": "user"}]))["messages"]
    assert messages == [{"role": "user"}]
    assert type(messages) is History


@pytest.mark.parametrize(
    "operation",
    [
        remove("/args"),
        remove("/messages"),
        replace("/args", []),
        replace("/args", None),
        replace("/messages", {}),
        replace("/messages", None),
        add("/metadata", "x"),
    ],
)
def test_a_field_neither_goes_nor_changes_its_type(operation: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match=r"removed|must stay"):
        patched(operation)


@pytest.mark.parametrize(
    "path", ["/toolName", "/point", "/storage/x", "/config/a", "/Args/x", "/", "//args", "/args~1x"]
)
def test_a_path_outside_the_points_fields_is_refused(path: str) -> None:
    """SEMANTICS P2."""
    with pytest.raises(Malformed, match="may not write there") as caught:
        patched(add(path))
    assert caught.value.path == "/patch/0"
    assert caught.value.hint == "it may write to /args, /messages, /metadata"


def test_a_field_the_hook_did_not_receive_cannot_be_written() -> None:
    """SEMANTICS P2, G4."""
    with pytest.raises(Malformed, match="did not receive"):
        patched(add("/messages/-", {}), received=frozenset({"args"}))


def test_a_field_the_context_has_not_cannot_be_made() -> None:
    with pytest.raises(Malformed, match="no such field"):
        patched(add("/metadata", {}), of={"args": {}})


@pytest.mark.parametrize("path", ["", "args", "args/x", "#/args", "/args/~", "/args/~2", "/args/a~"])
def test_what_is_no_json_pointer_is_refused(path: str) -> None:
    with pytest.raises(Malformed):
        patched(add(path))


@pytest.mark.parametrize(
    "token", ["01", "00", "+1", "-1", "1.0", "1e0", " 1", "", "one", "\u0661", "99999999999", "9" * 5_000]
)
def test_what_is_no_index_is_refused(token: str) -> None:
    """RFC 6901, section 4; the long one would be too long a number for Python."""
    for operation in (add, replace):
        with pytest.raises(Malformed) as caught:
            patched(operation(f"/args/list/{token}"))
        assert len(str(caught.value)) < 800


def test_an_index_reaches_the_end_and_not_past_it() -> None:
    assert patched(add("/args/list/2"))["args"]["list"] == [1, 2, 0]
    assert patched(add("/args/list/-"))["args"]["list"] == [1, 2, 0]
    assert patched(replace("/args/list/1"))["args"]["list"] == [1, 0]
    for operation in (
        add("/args/list/3"),
        replace("/args/list/2"),
        remove("/args/list/2"),
        replace("/args/list/-"),
        remove("/args/list/-"),
    ):
        with pytest.raises(Malformed):
            patched(operation)


@pytest.mark.parametrize("path", ["/args/none", "/args/none/x", "/args/command/0", "/args/command/x", "/args/list/0/x"])
def test_a_target_that_is_not_there_is_refused(path: str) -> None:
    for operation in (replace(path), remove(path)):
        with pytest.raises(Malformed):
            patched(operation)


def test_the_context_is_never_touched_and_a_failing_patch_gives_nothing() -> None:
    """SEMANTICS P2: whole or not at all."""
    given_context, before = context(), context()
    operations = [
        add("/args/list/0"),
        remove("/messages/0"),
        replace("/messages/0/content", "z"),
        add("/metadata/a", {}),
    ]
    assert set(patched(*operations, of=given_context)) == {"args", "messages", "metadata"}
    assert given_context == before
    with pytest.raises(Malformed) as caught:
        patched(*operations, remove("/args/none"), of=given_context)
    assert caught.value.path == "/patch/4"
    assert given_context == before


def test_a_later_operation_does_not_write_into_an_earlier_ones_value() -> None:
    """The outcome's patch is kept as it was returned."""
    value = {"inner": {}}
    operations = [add("/args/x", value), add("/args/x/inner/y", 1)]
    assert patched(*operations)["args"]["x"] == {"inner": {"y": 1}}
    assert value == {"inner": {}}


def test_the_messages_a_patch_leaves_alone_are_shared_and_keep_their_bytes() -> None:
    given_context = context()
    history = given_context["messages"]
    history.encoded()
    edited = patched(replace("/messages/1/content", "z"), add("/messages/-", {"role": "user"}), of=given_context)[
        "messages"
    ]
    assert edited[0] is history[0]
    assert edited._parts[0] is history._parts[0]
    assert edited._parts[1:] == [None, None]
    assert history[1]["content"] == "b"


def test_the_depth_of_the_context_is_met_and_not_passed() -> None:
    def value(depth: int) -> Any:
        made: Any = []
        for _ in range(depth - 1):
            made = [made]
        return made

    assert patched(add("/args/x", value(OUTCOME_DEPTH - 2)))
    with pytest.raises(Malformed, match="more than 64 deep"):
        patched(add("/args/x", value(OUTCOME_DEPTH - 1)))
    with pytest.raises(Malformed, match="levels down"):
        patched(add("/args" + "/x" * CONTEXT_DEPTH))


def _wrapped(value: Any, times: int) -> Any:
    for _ in range(times):
        value = {"a": value}
    return value


def test_what_patches_make_together_still_crosses_where_the_host_puts_it() -> None:
    """Args end up in a message's calls, below context, state, history, message and toolCalls: five deeper (P6, C7).

    Else a guest under the policy ``skip`` could make the next one's context uncrossable, which rejects the run.
    """
    down = "/args/x" + "/a" * 40

    def args(depth: int) -> Any:
        return patched(add("/args/x", _wrapped({}, 40)), add(f"{down}/b", _wrapped({}, depth - 43)))["args"]

    deepest = args(OUTCOME_DEPTH - 1)
    with pytest.raises(Malformed, match="more than 64 deep"):
        args(OUTCOME_DEPTH)
    history = History([{"role": "assistant", "toolCalls": [{"id": "1", "name": "run", "args": deepest}]}])
    assert encode_context({"point": "p", "state": {"history": history}}, ("state",))


def test_what_the_host_nested_deeper_can_still_be_redacted() -> None:
    deep = {"point": "p", "args": _wrapped("secret", 70)}
    changed = patched(replace("/args" + "/a" * 70, "***"), of=deep)
    assert changed["args"] == _wrapped("***", 70)


def test_errors_about_hostile_paths_are_short_and_printable() -> None:
    with pytest.raises(Malformed) as caught:
        patched(add("/args/\x1b[2J\u202e" + "x" * 100_000 + "/y"))
    assert len(str(caught.value)) < 800
    assert str(caught.value).isprintable()


def test_written_paths_are_in_order_once_and_escaped() -> None:
    assert written_paths([add("/args/b"), add("/args/a"), remove("/args/b"), add("/args/\n")]) == (
        "/args/b",
        "/args/a",
        "/args/\\x0a",
    )


# The RFC's published cases: a document stands as one field of the state


def published() -> list[Any]:
    cases: list[Any] = []
    for name in ("spec_tests", "tests"):
        for number, case in enumerate(json.loads((CASES / f"{name}.json").read_text())):
            if "patch" in case and {op.get("op", "add") for op in case["patch"]} <= {"add", "remove", "replace"}:
                cases.append(pytest.param(case, id=f"{name}-{number}"))
    return cases


def test_the_published_cases_are_there() -> None:
    assert len(published()) == 64


@pytest.mark.parametrize("case", published())
def test_a_published_case_comes_out_as_published(case: dict[str, Any]) -> None:
    under = {"state": {"doc": case["doc"]}}
    moved = [
        op | ({"path": f"/state/doc{op['path']}"} if isinstance(op.get("path"), str) else {}) for op in case["patch"]
    ]

    def run() -> Any:
        outcome = check_outcome({"patch": moved}, POINTS["before_tool"])
        changed = apply_patch(under, outcome.patch, roots=frozenset({"state"}), received=frozenset({"state"}))
        return (under | changed)["state"]["doc"]

    relative = any(isinstance(op.get("path"), str) and op["path"] and op["path"][0] != "/" for op in case["patch"])
    if "error" in case:
        with pytest.raises(Malformed):
            run()
    elif "expected" in case and not relative:
        assert run() == case["expected"]
    else:
        run()


# Against a naive patcher on a deep copy

TOKENS = st.sampled_from(["a", "b", "0", "1", "2", "-", "01", "~0", "~1", ""])
LEAVES = st.integers(0, 3) | st.none()
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0", "~", "/", ""]), inner, max_size=3)
    ),
    max_leaves=10,
)
OPERATIONS = st.builds(
    lambda op, root, tokens, value: {"op": op, "path": "/".join([root, *tokens]), "value": value},
    st.sampled_from(["add", "remove", "replace"]),
    st.sampled_from(["/args", "/messages"]),
    st.lists(TOKENS, min_size=1, max_size=4),
    DOCUMENTS,
)


def naive(whole: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902 by the letter, on a deep copy; None for an error."""
    whole = copy.deepcopy(whole)
    for operation in operations:
        *parents, last = [t.replace("~1", "/").replace("~0", "~") for t in operation["path"].split("/")[1:]]
        target = whole
        try:
            for token in parents:
                target = target[token] if isinstance(target, dict) else target[index(target, token, 1)]
            value = copy.deepcopy(operation["value"])
            if isinstance(target, dict):
                if operation["op"] != "add" and last not in target:
                    return None
                if operation["op"] == "remove":
                    del target[last]
                else:
                    target[last] = value
            elif operation["op"] == "add":
                target.insert(len(target) if last == "-" else index(target, last, 0), value)
            elif operation["op"] == "remove":
                del target[index(target, last, 1)]
            else:
                target[index(target, last, 1)] = value
        except (KeyError, TypeError, IndexError, AttributeError):
            return None
    return whole


def index(target: Any, token: str, short: int) -> int:
    if not isinstance(target, list) or token not in ("0", "1", "2") or int(token) > len(target) - short:
        raise IndexError
    return int(token)


@settings(deadline=None)
@given(
    args=st.dictionaries(st.sampled_from(["a", "b", "0"]), DOCUMENTS, max_size=3),
    messages=st.lists(DOCUMENTS, max_size=3),
    operations=st.lists(OPERATIONS, max_size=5),
)
def test_a_patch_does_what_a_naive_patcher_does_on_a_deep_copy(args: Any, messages: Any, operations: list[Any]) -> None:
    whole = {"args": args, "messages": History(messages), "metadata": {}}
    before, given_operations = copy.deepcopy(whole), copy.deepcopy(operations)
    expected = naive({"args": args, "messages": messages, "metadata": {}}, operations)
    try:
        found = whole | apply_patch(whole, operations, roots=ROOTS, received=ROOTS)
    except Malformed:
        found = None
    assert found == expected
    assert whole == before
    assert operations == given_operations
    if found:
        assert len(found["messages"]._parts) == len(found["messages"])
