"""``hookcell test``: the cases beside a hook, what differs in those that fail, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .authors import NO_SHELL, c_source
from .small_guests import GUARD, answering, endless, trapping

if TYPE_CHECKING:
    from .conftest import Cli

CALL = {"toolName": "shell", "args": {"command": "rm"}}
DENIED = {"outcome": {"deny": "The shell is off here."}}
HOSTILE = "\x1b[2J\u202eevil\nforged line"


def _case(folder: Path, name: str, **document: Any) -> Path:
    (folder / "tests").mkdir(exist_ok=True)
    path = folder / "tests" / f"{name}.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def _module(folder: Path, raw: bytes) -> Path:
    path = folder / "hook.wasm"
    path.write_bytes(raw)
    return path


def test_the_cases_beside_a_source_are_run(cli: Cli, tmp_path: Path) -> None:
    source = c_source(tmp_path)
    _case(tmp_path, "denies", context=CALL, expect=DENIED)
    _case(tmp_path, "passes", context={**CALL, "toolName": "find"}, expect={"outcome": {}})
    for path in (source, tmp_path):
        ran = cli("test", path)
        assert (ran.code, ran.err) == (0, "")
        assert "2 passed" in ran.out
    assert sorted(each.name for each in tmp_path.iterdir()) == ["no_shell.c", "tests"]


def test_the_folder_is_the_current_one_by_default(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _module(tmp_path, answering({"pre_tool_call": {}}))
    _case(tmp_path, "nothing", context=CALL, expect={"outcome": {}})
    monkeypatch.chdir(tmp_path)
    assert cli("test").code == 0


def test_a_failing_case_shows_what_differs_the_log_and_the_next_step(cli: Cli, tmp_path: Path) -> None:
    source = c_source(tmp_path)
    _case(tmp_path, "denies", context=CALL, expect={"outcome": {"deny": "no", "input": {}}})
    ran = cli("test", source)
    assert ran.code == 1
    assert '  /outcome/deny\n    - "no"\n    + "The shell is off here."\n' in ran.out
    assert "  /outcome/input\n    - {}\n" in ran.out
    assert "  log: rm\n" in ran.out
    assert "1 failed" in ran.out
    assert "next: change the hook, or `hookcell test --update" in ran.out


def test_the_json_has_every_case_with_what_came_out(cli: Cli, tmp_path: Path) -> None:
    source = c_source(tmp_path)
    path = _case(tmp_path, "a", context=CALL, expect={"outcome": {}})
    _case(tmp_path, "b", context=CALL, expect=DENIED)
    ran = cli("test", source, "--json")
    assert (ran.code, ran.json["ok"], ran.json["failed"], ran.json["passed"]) == (1, False, 1, 1)
    first = ran.json["cases"][0]
    assert (first["file"], first["status"], first["got"]) == (str(path), "failed", DENIED)
    assert first["changes"] == [{"path": "/outcome/deny", "after": "The shell is off here."}]
    assert first["fuel"] > 0
    assert first["log"] == ["rm"]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (trapping(), "trap"),
        (endless(), "fuel"),
        (answering({"pre_tool_call": {"error": {"name": "E", "message": "m"}}}), "threw"),
        (answering({"pre_tool_call": {"deny": "a", "input": {}}}), "outcome_invalid"),
    ],
)
def test_a_case_may_expect_an_error_by_its_code(cli: Cli, tmp_path: Path, raw: bytes, code: str) -> None:
    hook = _module(tmp_path, raw)
    _case(tmp_path, "fails", context=CALL, expect={"error": {"code": code}})
    assert cli("test", hook).code == 0
    _case(tmp_path, "fails", context=CALL, expect={"outcome": {}})
    ran = cli("test", hook)
    assert ran.code == 1
    assert f'  /error\n    + {{"code": "{code}"}}' in ran.out


def test_a_case_may_expect_that_a_config_is_refused(cli: Cli, tmp_path: Path) -> None:
    """SEMANTICS G2."""
    hook = _module(tmp_path, GUARD.read_bytes())
    refused = {"error": {"code": "config_invalid"}}
    _case(tmp_path, "refused", context=CALL, config={"deny": [{}]}, expect=refused)
    _case(tmp_path, "denied", context=CALL, config={"allow": []}, expect={"outcome": {}})
    ran = cli("test", hook, "--json")
    assert [each["status"] for each in ran.json["cases"]] == ["failed", "passed"]


@pytest.mark.parametrize("more", [0, -1])
def test_the_fuel_of_a_case_is_a_ceiling(cli: Cli, tmp_path: Path, more: int) -> None:
    hook = _module(tmp_path, answering({"pre_tool_call": {}}))
    _case(tmp_path, "cheap", context=CALL, expect={"outcome": {}})
    used = cli("test", hook, "--json").json["cases"][0]["fuel"]
    _case(tmp_path, "cheap", context=CALL, expect={"outcome": {}}, fuel=used + more)
    ran = cli("test", hook)
    assert ran.code == (0 if more == 0 else 1)
    assert (f"where the case allows {used + more:,}" in ran.out) == (more < 0)


def test_an_update_writes_what_came_out_and_keeps_the_rest(cli: Cli, tmp_path: Path) -> None:
    source = c_source(tmp_path)
    wrong = _case(tmp_path, "a", description="größer", context=CALL, expect={"outcome": {}}, fuel=10**6)
    absent = _case(tmp_path, "b", context={**CALL, "toolName": "find"})
    right = _case(tmp_path, "c", context=CALL, expect=DENIED)
    before = right.read_bytes()
    assert "it expects nothing" in cli("test", source).out
    ran = cli("test", source, "--update")
    assert ran.code == 0
    assert "1 passed, 2 updated" in ran.out
    assert json.loads(wrong.read_text("utf-8")) == {
        "description": "größer",
        "context": CALL,
        "expect": DENIED,
        "fuel": 10**6,
    }
    assert "größer" in wrong.read_text("utf-8")
    assert json.loads(absent.read_text("utf-8"))["expect"] == {"outcome": {}}
    assert right.read_bytes() == before
    assert "3 passed" in cli("test", source).out


def test_bytes_in_an_outcome_can_be_recorded_and_compared(cli: Cli, tmp_path: Path) -> None:
    hook = _module(tmp_path, answering({"pre_tool_call": {"result": b"\x00\xff"}}))
    path = _case(tmp_path, "bytes", context=CALL)
    assert cli("test", hook, "--update").code == 0
    assert json.loads(path.read_text())["expect"] == {"outcome": {"result": {"$bytes": "AP8="}}}
    assert cli("test", hook).code == 0


@pytest.mark.parametrize("got", [1.0, True, None, "1"])
def test_what_only_looks_the_same_differs(cli: Cli, tmp_path: Path, got: object) -> None:
    hook = _module(tmp_path, answering({"pre_tool_call": {"result": got}}))
    _case(tmp_path, "one", context=CALL, expect={"outcome": {"result": 1}})
    assert cli("test", hook).code == 1


def test_of_two_lists_only_what_differs_is_shown(cli: Cli, tmp_path: Path) -> None:
    hook = _module(tmp_path, answering({"pre_tool_call": {"result": [1, 2, 9, 3]}}))
    _case(tmp_path, "list", context=CALL, expect={"outcome": {"result": [1, 2, 3]}})
    changes = cli("test", hook, "--json").json["cases"][0]["changes"]
    assert changes == [{"path": "/outcome/result/2", "after": 9}]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no JSON at line 1"),
        ("[]", "it is no case"),
        ('{"toolName": "f", "args": {}}', "it is no case"),
        ('{"context": {"toolName": "f", "args": {}}, "expect": {}}', "expects neither"),
        ('{"context": {"toolName": "f", "args": {}}, "expect": {"outcome": 1}}', "expects neither"),
        ('{"context": {"toolName": "f", "args": {}}, "expect": {"error": {"code": "x", "name": "y"}}}', "neither"),
        ('{"context": {"toolName": "f"}, "expect": {"outcome": {}}}', "lacks 'args'"),
    ],
)
def test_a_file_that_is_no_case_fails_alone_and_stays_as_it_is(cli: Cli, tmp_path: Path, text: str, why: str) -> None:
    hook = _module(tmp_path, answering({"pre_tool_call": {}}))
    _case(tmp_path, "good", context=CALL, expect={"outcome": {}})
    bad = tmp_path / "tests" / "bad.json"
    bad.write_text(text)
    ran = cli("test", hook, "--update")
    assert ran.code == 1
    assert " ".join(why.split()) in " ".join(ran.out.split())
    assert "1 passed, 1 failed" in ran.out
    assert bad.read_text() == text


def test_hostile_text_is_escaped_wherever_it_shows(cli: Cli, tmp_path: Path) -> None:
    hook = _module(tmp_path, answering({"pre_tool_call": {"error": {"name": HOSTILE, "message": HOSTILE}}}))
    _case(tmp_path, "hostile", context=CALL, expect={"outcome": {"deny": HOSTILE}})
    ran = cli("test", hook)
    assert all(line.isprintable() for line in ran.out.splitlines())
    assert "\nforged line" not in ran.out


def test_a_hook_of_a_folder_is_found_by_name_or_for_being_the_only_one(cli: Cli, tmp_path: Path) -> None:
    assert "[no_hook]" in cli("test", tmp_path).err
    (tmp_path / "a.wasm").write_bytes(answering({"pre_tool_call": {}}))
    ran = cli("test", tmp_path, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "no_cases")
    assert "tests/NAME.json" in ran.err
    (tmp_path / "b.wasm").write_bytes(b"")
    assert "2 files that could be the hook: a.wasm, b.wasm" in cli("test", tmp_path).err


def test_a_hook_that_cannot_be_built_or_loaded_runs_no_case(cli: Cli, tmp_path: Path) -> None:
    source = c_source(tmp_path, NO_SHELL + "}")
    _case(tmp_path, "denies", context=CALL, expect=DENIED)
    ran = cli("test", source, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "build_failed")
    assert "[module_rejected]" in cli("test", _module(tmp_path, b"")).err
