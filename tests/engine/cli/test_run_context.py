"""``hookcell run HOOK --context FILE``: one call, and everything that comes of it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hookcell.cli.terminal import Terminal
from hookcell.cli.usage import Used, usage_lines

from .authors import c_source
from .small_guests import DEFAULTS, GUARD, REDACT, answering, endless, trapping, wasm

if TYPE_CHECKING:
    from .conftest import Cli

CALL = {"point": "pre_tool_call", "toolName": "find", "args": {"q": "x"}}
HOSTILE = "\x1b[2J\u202eevil\nforged line"


def _hook(tmp_path: Path, raw: bytes, name: str = "hook") -> Path:
    path = tmp_path / f"{name}.wasm"
    path.write_bytes(raw)
    return path


def _context(tmp_path: Path, document: object = CALL) -> Path:
    path = tmp_path / "context.json"
    path.write_text(json.dumps(document))
    return path


def test_a_source_is_built_and_called_once(cli: Cli, tmp_path: Path) -> None:
    context = _context(tmp_path, {"toolName": "shell", "args": {"command": "rm"}})
    ran = cli("run", c_source(tmp_path), "--context", context)
    assert (ran.code, ran.err) == (0, "")
    for said in ("no-shell at pre_tool_call: deny", 'deny: "The shell is off here."', "Log\n  rm\n", "fuel", "5 MiB"):
        assert said in ran.out
    assert "memory  bounded, not measured" in ran.out


def test_what_a_patch_changed_is_shown_before_and_after(cli: Cli, tmp_path: Path) -> None:
    patch = [
        {"op": "replace", "path": "/args/q", "value": "y"},
        {"op": "add", "path": "/messages/-", "value": {"role": "user", "content": "careful"}},
        {"op": "add", "path": "/metadata/seen", "value": True},
    ]
    hook = _hook(tmp_path, answering({"pre_tool_call": {"patch": patch}}))
    ran = cli("run", hook, "--context", _context(tmp_path))
    assert '  /args/q\n    - "x"\n    + "y"\n' in ran.out
    assert '  /messages/0\n    + {"role": "user", "content": "careful"}\n' in ran.out
    changes = cli("run", hook, "--context", _context(tmp_path), "--json").json["changes"]
    assert sorted(each["path"] for each in changes) == ["/args/q", "/messages/0", "/metadata/seen"]
    assert {"path": "/args/q", "before": "x", "after": "y"} in changes


@pytest.mark.parametrize(
    ("point", "fields", "outcome", "path"),
    [
        ("pre_tool_call", {"toolName": "f", "args": {}}, {"input": {"a": 1}}, "/args/a"),
        ("post_tool_call", {"toolName": "f", "args": {}, "result": {"result": 1}}, {"result": None}, "/result/result"),
        ("before_prompt", {"prompt": "p"}, {"replace": ""}, "/prompt"),
        (
            "before_tool",
            {"call": {"id": "c", "name": "f", "args": {}}},
            {"replace": {"id": "c", "name": "f", "args": {"a": 1}}},
            "/call/args/a",
        ),
        (
            "after_tool",
            {"result": {"name": "f", "args": {}, "output": "o", "isError": True}},
            {"replace": "better"},
            "/result/output",
        ),
        ("after_response", {"response": "r"}, {"replace": "s"}, "/response"),
        (
            "pre_generate",
            {"request": {"temperature": 1.0}},
            {"patch": [{"op": "replace", "path": "/request/temperature", "value": 0.5}]},
            "/request/temperature",
        ),
        (
            "post_generate",
            {"request": {}, "result": {}},
            {"patch": [{"op": "add", "path": "/metadata/k", "value": b"\x00"}]},
            "/metadata/k",
        ),
    ],
)
def test_each_point_shows_what_its_outcome_changed(
    cli: Cli, tmp_path: Path, point: str, fields: dict[str, Any], outcome: dict[str, Any], path: str
) -> None:
    hook = _hook(tmp_path, answering({point: outcome}))
    ran = cli("run", hook, "--context", _context(tmp_path, fields), "--json")
    assert ran.code == 0, ran.err
    assert [each["path"] for each in ran.json["changes"]] == [path]


def test_the_storage_is_given_and_what_was_stored_is_shown(cli: Cli, tmp_path: Path) -> None:
    """SEMANTICS G3."""
    hook = _hook(tmp_path, answering({"pre_tool_call": {"storage": 2}}, {"abi": 1, "storage": "run"}))
    ran = cli("run", hook, "--context", _context(tmp_path, {**CALL, "storage": 1}), "--json")
    assert ran.json["changes"] == [{"path": "/storage", "before": 1, "after": 2}]
    without = _hook(tmp_path, answering({"pre_tool_call": {}}), "without")
    refused = cli("run", without, "--context", _context(tmp_path, {**CALL, "storage": 1}))
    assert refused.code == 2
    assert "has no storage" in refused.err


def test_a_config_comes_from_the_file_or_the_command_line(cli: Cli, tmp_path: Path) -> None:
    deny, allow = {"deny": [{"tool": "find", "reason": "r"}]}, {"allow": ["find"]}
    context = _context(tmp_path, {**CALL, "config": deny})
    assert cli("run", GUARD, "--context", context, "--json").json["outcome"] == {"deny": "r"}
    config = tmp_path / "guard.json"
    config.write_text(json.dumps(allow))
    for given in (json.dumps(allow), config, f"guard={config}"):
        assert cli("run", GUARD, "--context", context, "--config", given, "--json").json["outcome"] == {}
    refused = cli("run", GUARD, "--context", context, "--config", '{"deny": [{}]}', "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "config_invalid")


def test_a_test_case_is_a_context_too(cli: Cli, tmp_path: Path) -> None:
    case = {"context": CALL, "config": {"deny": [{"tool": "find"}]}, "expect": {"outcome": {}}}
    assert cli("run", GUARD, "--context", _context(tmp_path, case), "--json").json["decision"] == "denied"


def test_now_and_seed_are_the_files_or_the_same_every_day(cli: Cli, tmp_path: Path) -> None:
    """SEMANTICS G1."""
    hook = _hook(tmp_path, answering({"pre_tool_call": {}}, {"abi": 1, "needs": ["now", "seed"]}))
    given = cli("run", hook, "--context", _context(tmp_path, {**CALL, "now": 5, "seed": 6}), "--json").json
    assert (given["now"], given["seed"]) == (5, 6)
    twice = [cli("run", hook, "--context", _context(tmp_path), "--json").json["now"] for _ in range(2)]
    assert twice[0] == twice[1]


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (trapping(), "trap"),
        (answering({"pre_tool_call": {"deny": 1}}), "outcome_invalid"),
        (
            answering({"pre_tool_call": {"error": {"name": "E", "message": "m", "stack": "at f (hook.ts:1:2)"}}}),
            "threw",
        ),
        (answering({"pre_tool_call": {"patch": [{"op": "remove", "path": "/args/none"}]}}), "outcome_invalid"),
    ],
)
def test_a_failure_has_its_code_and_a_next_step(cli: Cli, tmp_path: Path, raw: bytes, code: str) -> None:
    hook, context = _hook(tmp_path, raw), _context(tmp_path)
    ran = cli("run", hook, "--context", context)
    assert ran.code == 1
    assert "hook at pre_tool_call: failed" in ran.out
    assert f"[{code}]" in ran.out
    assert "  next: " in ran.out
    assert ("hook.ts:1:2" in ran.out) == (code == "threw")
    assert cli("run", hook, "--context", context, "--json").json["error"]["code"] == code


def test_arguments_that_do_not_fit_the_tools_schema_fail_the_call(cli: Cli, tmp_path: Path) -> None:
    """SEMANTICS P6."""
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    hook = _hook(tmp_path, answering({"pre_tool_call": {"input": {"q": 1}}}))
    ran = cli("run", hook, "--context", _context(tmp_path, {**CALL, "toolSchema": schema}), "--json")
    assert (ran.code, ran.json["error"]["code"], ran.json["changes"]) == (1, "validation", [])


def _burning(iterations: int) -> bytes:
    """A hook that goes round a loop so often and returns nothing."""
    return wasm(
        f"""(func (export "pre_tool_call") (param i32 i32) (result i64) (local i32)
        (local.set 2 (i32.const {iterations}))
        (loop (br_if 0 (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
        (i64.const 0))"""
    )


def test_a_call_over_the_limits_of_production_ends_and_says_by_how_much(cli: Cli, tmp_path: Path) -> None:
    hook, context = _hook(tmp_path, _burning(50_000)), _context(tmp_path)
    ran = cli("run", hook, "--context", context, "--fuel", "50000")
    assert ran.code == 1
    assert "refused" in ran.out
    assert "production would refuse this call: fuel" in ran.out
    used = cli("run", hook, "--context", context, "--fuel", "50000", "--json").json["usage"]["fuel"]
    assert used["value"] > used["limit"] == 100_000
    assert cli("run", hook, "--context", context).code == 0


@pytest.mark.parametrize("over", [False, True])
def test_the_row_of_a_limit_is_red_only_where_production_would_refuse(over: bool) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal(Tty(), Tty(), {"COLUMNS": "80"})
    used = [Used(name="fuel", value=10 + over, limit=10), Used(name="logBytes", value=1, limit=10, unit="B")]
    _, fuel, log, _ = usage_lines(used, terminal)
    assert fuel.startswith("  \x1b[31m") == fuel.endswith("refused\x1b[0m") == over
    assert "\x1b" not in log


def test_an_endless_hook_ends_at_ten_times_the_limits(cli: Cli, tmp_path: Path) -> None:
    ran = cli("run", _hook(tmp_path, endless()), "--context", _context(tmp_path), "--fuel", "100000", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "fuel")
    assert ran.json["usage"]["fuel"]["refused"]


def test_hostile_text_is_escaped_wherever_it_shows(cli: Cli, tmp_path: Path) -> None:
    outcome = {"deny": HOSTILE, "patch": [{"op": "add", "path": f"/metadata/{HOSTILE}", "value": HOSTILE}]}
    hook = _hook(tmp_path, answering({"pre_tool_call": outcome}))
    ran = cli("run", hook, "--context", _context(tmp_path, {**CALL, "args": {HOSTILE: HOSTILE}}))
    assert all(line.isprintable() for line in ran.out.splitlines())
    assert "\nforged line" not in ran.out
    machine = cli("run", hook, "--context", _context(tmp_path), "--json")
    assert machine.out.isascii()
    assert machine.json["outcome"]["deny"] == HOSTILE


# --- the file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "no JSON object"),
        ({"toolName": "f", "args": {}, "point": "pre_tool"}, "'pre_tool' is no hook point"),
        ({"toolName": "f", "args": {}, "point": "on_error"}, "does not implement on_error"),
        ({"args": {}}, "lacks 'toolName'"),
        ({"toolName": "f", "args": []}, "/args"),
        ({"toolName": 1, "args": {}}, "/toolName"),
        ({"toolName": "f", "args": {}, "messages": [{"role": "nobody"}]}, "/messages/0/role"),
        ({"toolName": "f", "args": {}, "arg": {}}, "no such field"),
        ({"toolName": "f", "args": {"x": "\ud800"}}, "cannot cross"),
        ({"toolName": "f", "args": {"x": 2**70}}, "cannot cross"),
        ({"toolName": "f", "args": {}, "now": "today"}, "/now"),
        ({"toolName": "f", "args": {}, "toolSchema": {"type": "nonsense"}}, "/toolSchema"),
        ({"context": {"toolName": "f", "args": {}}, "expects": {}}, "a case has no 'expects'"),
        ({"context": []}, "/context"),
        ({"context": {"toolName": "f", "args": {}}, "fuel": -1}, "/fuel"),
    ],
)
def test_a_context_that_no_agent_could_give_is_refused_with_its_place(
    cli: Cli, tmp_path: Path, document: object, why: str
) -> None:
    ran = cli("run", GUARD, "--context", _context(tmp_path, document), "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "case_invalid")
    assert why in ran.err
    assert "  next: " in ran.err


def test_a_hook_of_several_points_needs_one_named(cli: Cli, tmp_path: Path) -> None:
    hook = _hook(tmp_path, answering({"pre_tool_call": {}, "before_prompt": {}}))
    context = _context(tmp_path, {"prompt": "p"})
    assert "names no point" in cli("run", hook, "--context", context).err
    assert cli("run", hook, "--context", context, "--point", "before_prompt").code == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--on", "runs.jsonl"), "not allowed with"),
        (("--show", "1"), "--show goes with --on"),
        (("--tools", "x"), "--tools goes with --on"),
        (("--on-failure", "skip"), "--on-failure goes with --on"),
        (("--exit-code",), "--exit-code goes with --on"),
        ((str(REDACT),), "calls one hook"),
        (("--config", "none.json"), "cannot be opened"),
    ],
)
def test_what_does_not_go_with_a_context_is_refused(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    ran = cli("run", DEFAULTS, *arguments, "--context", _context(tmp_path))
    assert ran.code == 2
    assert why in ran.err


def test_a_context_or_runs_must_be_given_and_a_point_goes_with_the_first(cli: Cli) -> None:
    assert "one of the arguments --on --context is required" in cli("run", GUARD).err
    assert "--point goes with --context" in cli("run", GUARD, "--on", "x", "--point", "on_error").err
