"""``hookcell run``: real guests over small recorded runs."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .small_guests import (
    DEFAULTS,
    DEMO,
    GUARD,
    REDACT,
    answer,
    answering,
    asked,
    call,
    endless,
    one_call,
    record,
    trapping,
    user,
    wasm,
    written,
)

if TYPE_CHECKING:
    from .conftest import Cli

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202etxt.exe\r\nforged line"
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object", "required": ["q"]}}}]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs: one find with an address in its result, one delete."""
    return written(
        tmp_path / "runs.jsonl",
        record(one_call(arguments='{"q": 1}', result="mail ada@example.com"), "r1"),
        record(one_call(name="delete_all"), "r2"),
    )


def _module(tmp_path: Path, name: str, raw: bytes) -> Path:
    path = tmp_path / f"{name}.wasm"
    path.write_bytes(raw)
    return path


@pytest.fixture
def no_deletes(tmp_path: Path) -> str:
    """A config under which guard denies what deletes."""
    path = tmp_path / "guard.json"
    path.write_text('{"deny": [{"tool": "delete_*"}]}')
    return f"--config=guard={path}"


def _printable(text: str) -> bool:
    return all(line.isprintable() for line in text.splitlines()) and "\u202e" not in text


# --- the table ----------------------------------------------------------------------------------------------------


def test_the_table_counts_what_each_hook_did(cli: Cli, runs: Path, no_deletes: str) -> None:
    ran = cli("run", GUARD, REDACT, "--on", runs, no_deletes)
    assert ran.code == 0
    assert "2 runs, 8 messages, 4 model calls" in ran.out
    assert "2 tool calls (unvalidated" in ran.out
    guard, redact, total = (ran.row(name) for name in ("guard", "redact", "total"))
    assert (guard["calls"], guard["denied"], guard["replaced"], guard["failed"]) == ("2", "1", "0", "0")
    assert (redact["calls"], redact["denied"], redact["replaced"], redact["failed"]) == ("2", "0", "1", "0")
    assert (total["calls"], total["denied"], total["replaced"]) == ("4", "1", "1")
    assert all(0 < int(guard[name].replace(",", "")) < 10_000 for name in ("fuel", "fuel_p99"))


def test_the_table_fits_eighty_columns_and_its_lines_are_aligned(cli: Cli, runs: Path) -> None:
    ran = cli("run", GUARD, DEFAULTS, REDACT, "--on", runs)
    lines = ran.out.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("hook "))
    rows = lines[at : at + 5]
    assert lines[at - 1].split() == ["fuel", "µs"]
    assert len({len(row) for row in rows}) == 1
    assert max(len(line) for line in lines) <= 80


def test_one_hook_has_no_total(cli: Cli, runs: Path) -> None:
    assert "total" not in cli("run", GUARD, "--on", runs).out


def test_a_run_that_is_gzipped_comes_to_the_same(cli: Cli, runs: Path, tmp_path: Path) -> None:
    packed = tmp_path / "runs.jsonl.gz"
    packed.write_bytes(gzip.compress(runs.read_bytes()))
    plain, zipped = (cli("run", GUARD, "--on", path, "--json").json for path in (runs, packed))
    for each in (plain, zipped):
        for volatile in ("source", "seconds"):
            del each[volatile]
        each["toolCalls"].pop("us")
        for figures in (*each["hooks"], each["total"]):
            figures.pop("us")
    assert plain == zipped


def test_schemas_validate_and_the_table_says_for_how_many(cli: Cli, runs: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    ran = cli("run", GUARD, "--on", runs, "--tools", tools)
    assert "1 unvalidated, having no schema: delete_all" in ran.out
    as_map = tmp_path / "map.json"
    as_map.write_text(json.dumps({"find": {"type": "object"}, "delete_all": {"type": "object"}}))
    assert "2 tool calls (validated)" in cli("run", GUARD, "--on", runs, "--tools", as_map).out


def test_arguments_that_do_not_fit_are_counted_and_no_hook_sees_the_call(cli: Cli, tmp_path: Path) -> None:
    """SEMANTICS P3."""
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps({"tools": TOOLS}))
    runs = written(tmp_path / "runs.jsonl", record(one_call(arguments="{}")), record(one_call(arguments="oops")))
    ran = cli("run", GUARD, "--on", runs, "--tools", tools)
    assert ran.row("guard")["calls"] == "0"
    assert ran.row("guard")["fuel"] == "-"
    assert "2 tool calls have arguments that do not fit" in ran.out


def test_what_a_replay_leaves_out_is_said(cli: Cli, tmp_path: Path) -> None:
    hook = _module(tmp_path, "early", answering({"before_prompt": {}, "pre_generate": {}}))
    messages = [{**user(), "audio": {"id": 1}}, asked(call("c1"))]
    ran = cli("run", hook, "--on", written(tmp_path / "runs.jsonl", record(messages)))
    assert "early was not called at before_prompt" in ran.out
    assert "1 tool call has no recorded result" in ran.out
    assert "user.audio (1)" in ran.out
    assert ran.row("early")["calls"] == "1"


def test_an_empty_file_holds_no_runs_and_is_no_error(cli: Cli, tmp_path: Path) -> None:
    ran = cli("run", GUARD, "--on", written(tmp_path / "runs.jsonl"))
    assert ran.code == 0
    assert "holds no runs" in " ".join(ran.out.split())


# --- failures -----------------------------------------------------------------------------------------------------


def test_a_failing_hook_does_not_end_the_replay_and_its_first_failure_is_told(
    cli: Cli, runs: Path, tmp_path: Path, no_deletes: str
) -> None:
    """SEMANTICS P11: the replay's default is ``skip``, recorded loudly."""
    ran = cli("run", _module(tmp_path, "bad", trapping()), GUARD, "--on", runs, no_deletes)
    assert ran.code == 0
    assert ran.row("bad")["failed"] == "2"
    assert ran.row("guard")["denied"] == "1"
    assert "bad failed 2 times with 'trap' (skipped)" in ran.out
    assert "first in r1, message 1: hook 'bad' at pre_tool_call: module" in " ".join(ran.out.split())
    assert max(len(line) for line in ran.out.splitlines()) <= 80
    assert ran.err == ""


@pytest.mark.parametrize(
    ("policy", "point", "replaced", "rejected"), [("deny", "post_tool_call", 0, 0), ("raise", "post_tool_call", 0, 2)]
)
def test_the_policy_of_a_failure_can_be_chosen(
    cli: Cli, runs: Path, tmp_path: Path, policy: str, point: str, replaced: int, rejected: int
) -> None:
    bad = _module(tmp_path, "bad", trapping(point))
    ran = cli("run", bad, REDACT, "--on", runs, "--on-failure", policy, "--json")
    assert ran.code == 0
    assert ran.json["runs"]["rejected"] == rejected
    assert ran.json["hooks"][1]["replaced"] == replaced
    assert ran.json["hooks"][0]["failures"] == {"trap": 2}


def test_deny_is_refused_for_a_hook_that_has_no_call_to_deny(cli: Cli, runs: Path, tmp_path: Path) -> None:
    hook = _module(tmp_path, "early", answering({"pre_generate": {}}))
    ran = cli("run", hook, "--on", runs, "--on-failure", "deny")
    assert ran.code == 2
    assert "has no tool call to refuse" in ran.err


@pytest.mark.parametrize(("options", "code"), [(("--fuel", "1000"), "fuel"), (("--deadline", "1"), "deadline")])
def test_a_hook_without_end_fails_by_the_limit_it_met(
    cli: Cli, runs: Path, tmp_path: Path, options: tuple[str, str], code: str
) -> None:
    ran = cli("run", _module(tmp_path, "endless", endless()), "--on", runs, "--json", *options)
    assert set(ran.json["hooks"][0]["failures"]) == {code}


def test_a_module_may_start_with_the_memory_that_is_allowed_and_no_more(cli: Cli, runs: Path, tmp_path: Path) -> None:
    large = wasm('(func (export "pre_tool_call") (param i32 i32) (result i64) (i64.const 0))')
    raw = large.replace(b"\x05\x03\x01\x00\x04", b"\x05\x04\x01\x00\x80\x04")  # 512 pages, 32 MiB
    assert raw != large
    hook = _module(tmp_path, "large", raw)
    assert cli("run", hook, "--on", runs, "--memory", "32").code == 0
    refused = cli("run", hook, "--on", runs, "--memory", "31")
    assert refused.code == 1
    assert "memory_too_large" in refused.err


def test_a_value_that_cannot_cross_is_the_records_fault(cli: Cli, runs: Path, tmp_path: Path) -> None:
    bad = record(one_call(arguments='{"q": "\\ud800"}'), "bad")
    ran = cli("run", GUARD, "--on", written(tmp_path / "bad.jsonl", bad, record(one_call())), "--json")
    assert ran.code == 1
    assert "line 1: message 1:" in ran.err
    assert "context/args/q is a" in ran.err
    assert ran.json["hooks"][0]["failed"] == 0
    assert ran.json["runs"] == {"replayed": 2, "rejected": 0, "refused": 1}


# --- bad lines ----------------------------------------------------------------------------------------------------


def test_bad_lines_are_told_counted_and_made_the_exit_code_and_the_rest_is_replayed(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    good, stray = json.dumps(record(one_call())), json.dumps(record([answer("c9")]))
    path.write_text(f"{good}\n{good}\n{{oops\n{stray}\n{good}\n")
    ran = cli("run", GUARD, "--on", path)
    assert ran.code == 1
    assert "line 3: no JSON at column 2" in ran.err
    assert "line 4: /messages/0: a tool message without a call" in ran.err
    assert "3 runs," in ran.out
    assert "could not be replayed whole" in " ".join(ran.out.split())


def test_many_bad_lines_are_counted_and_not_all_told(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("x\n" * 30)
    ran = cli("run", GUARD, "--on", path, "--json")
    assert len(ran.err.splitlines()) == 11
    assert ran.json["runs"]["refused"] == len(ran.json["refusals"]) == 30


def test_garbage_that_begins_like_gzip_is_one_refused_line(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl.gz"
    path.write_bytes(b"\x1f\x8b garbage")
    ran = cli("run", GUARD, "--on", path)
    assert ran.code == 1
    assert "line 1: the file cannot be read any further" in ran.err


# --- bad modules and command lines --------------------------------------------------------------------------------


def test_a_refused_module_is_told_with_every_finding(cli: Cli, runs: Path, tmp_path: Path) -> None:
    path = _module(tmp_path, "none", wasm("").replace(b"hook_alloc", b"hook_alloK"))
    ran = cli("run", GUARD, path, "--on", runs)
    assert ran.code == 1
    assert "not admitted, for 2 reasons" in ran.err
    assert "[no_entry_point]" in ran.err
    assert "[missing_hook_alloc]" in ran.err
    assert ran.out == ""


def test_text_instead_of_a_module_is_refused_as_such(cli: Cli, runs: Path, tmp_path: Path) -> None:
    ran = cli("run", _module(tmp_path, "text", b"(module)"), "--on", runs)
    assert ran.code == 1
    assert "[text]" in ran.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--config", "guard"), "give NAME=FILE"),
        (("--config", "=x"), "give NAME=FILE"),
        (("--config", "guard={"), "is no JSON at line 1"),
        (("--config", "guard=missing.json"), "cannot be opened"),
        (("--config", "guard={}", "--config", "guard={}"), "given twice"),
        (("--config", "gaurd={}"), "no such hook; there is 'guard'"),
        (("--tools", "missing.json"), "cannot be opened"),
        (("--show", "-1"), "give 0 or more"),
        (("--fuel", "-1"), "fuel is -1"),
        (("--memory", "4097"), "memory_bytes"),
        (("--json", "--ndjson"), "not allowed with"),
        (("--on-failure", "panic"), "invalid choice"),
        (("--frobnicate",), "unrecognized"),
    ],
)
def test_a_command_line_that_cannot_be_carried_out_says_why(
    cli: Cli, runs: Path, arguments: tuple[str, ...], why: str
) -> None:
    ran = cli("run", GUARD, "--on", runs, *arguments)
    assert ran.code == 2
    assert why in ran.err
    assert ran.out == ""


def test_a_missing_file_is_named(cli: Cli, runs: Path, tmp_path: Path) -> None:
    for arguments in ((tmp_path / "none.wasm", "--on", runs), (GUARD, "--on", tmp_path / "none.wasm")):
        ran = cli("run", *arguments)
        assert ran.code == 2
        assert "none.wasm cannot be opened: No such file" in ran.err
    assert "is a directory" in cli("run", GUARD, "--on", tmp_path).err


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ("12", "holds no tools"),
        ("[{}]", "item 0 is no tool"),
        ('[{"name": "f"}, {"name": "f"}]', "two tools called 'f'"),
        ('{"f": {"type": "nonsense"}}', "schema of tool 'f' is none"),
        ("{", "is no JSON at line 1"),
    ],
)
def test_a_file_of_tools_that_holds_none_says_why(cli: Cli, runs: Path, tmp_path: Path, tools: str, why: str) -> None:
    path = tmp_path / "tools.json"
    path.write_text(tools)
    ran = cli("run", GUARD, "--on", runs, "--tools", path)
    assert ran.code == 2
    assert why in ran.err


def test_a_config_reaches_its_hook_by_manifest_name_or_file_name(cli: Cli, runs: Path, tmp_path: Path) -> None:
    config = tmp_path / "guard.json"
    config.write_text('{"allow": ["nothing"]}')
    other = tmp_path / "other.wasm"
    other.write_bytes(GUARD.read_bytes())
    for hook, given in ((GUARD, f"guard={config}"), (other, f"guard={config}"), (other, 'other={"allow": []}')):
        assert cli("run", hook, "--on", runs, "--config", given, "--json").json["total"]["denied"] == 2


def test_a_hook_that_takes_a_config_and_had_none_is_told_of(cli: Cli, runs: Path, no_deletes: str) -> None:
    said = "guard takes a config and had none: --config guard=FILE"
    assert said in cli("run", GUARD, "--on", runs).out
    assert said not in cli("run", GUARD, "--on", runs, no_deletes).out
    assert cli("run", GUARD, REDACT, "--on", runs, "--json", no_deletes).json["withoutConfig"] == ["redact"]


def test_a_config_that_does_not_fit_is_refused_with_its_place(cli: Cli, runs: Path) -> None:
    """SEMANTICS G2."""
    ran = cli("run", GUARD, "--on", runs, "--config", 'guard={"deny": [{}]}')
    assert ran.code == 1
    assert "config invalid at /deny/0" in ran.err
    assert "hookcell inspect" in ran.err


def test_two_hooks_of_one_name_are_refused(cli: Cli, runs: Path) -> None:
    ran = cli("run", GUARD, GUARD, "--on", runs)
    assert ran.code == 2
    assert "a second hook called 'guard'" in ran.err


def test_a_point_may_have_as_many_hooks_as_the_limit_and_no_more(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """SEMANTICS G8."""
    from hookcell import ChainLimits

    most = ChainLimits().hooks_per_point
    hooks = [_module(tmp_path, f"h{index}", answering({"pre_tool_call": {}})) for index in range(most + 1)]
    assert cli("run", *hooks[:most], "--on", runs, "--json").json["total"]["calls"] == 2 * most
    assert cli("run", *hooks, "--on", runs).code == 2


# --- exit codes ---------------------------------------------------------------------------------------------------


def test_a_decision_becomes_the_exit_code_only_when_asked(
    cli: Cli, runs: Path, tmp_path: Path, no_deletes: str
) -> None:
    bad = _module(tmp_path, "bad", trapping())
    for arguments, code in (((GUARD, no_deletes), 3), ((bad,), 3), ((REDACT,), 0)):
        assert cli("run", *arguments, "--on", runs).code == 0
        assert cli("run", *arguments, "--on", runs, "--exit-code").code == code


# --- for machines -------------------------------------------------------------------------------------------------


def test_the_json_object_has_these_keys_and_nothing_else_goes_out(cli: Cli, runs: Path) -> None:
    ran = cli("run", GUARD, REDACT, "--on", runs, "--json", "--show", "1")
    assert ran.err == ""
    assert sorted(ran.json) == [
        "examples",
        "hooks",
        "messages",
        "modelCalls",
        "refusals",
        "runs",
        "seconds",
        "source",
        "toolCalls",
        "total",
        "unreached",
        "unread",
        "withoutConfig",
    ]
    figures = ["calls", "changed", "denied", "failed", "failures", "fuel", "mismatched", "replaced", "rewritten", "us"]
    assert sorted(ran.json["total"]) == figures
    assert sorted(ran.json["hooks"][0]) == sorted([*figures, "name", "digest", "points", "onFailure"])
    assert sorted(ran.json["toolCalls"]) == ["misfits", "seen", "unanswered", "unvalidated", "us", "withoutSchema"]
    assert set(ran.json["total"]["fuel"]) == {"p50", "p99"}
    assert re.fullmatch("[0-9a-f]{64}", ran.json["hooks"][0]["digest"])


def test_each_decision_is_a_line_and_the_summary_the_last(
    cli: Cli, runs: Path, tmp_path: Path, no_deletes: str
) -> None:
    ran = cli("run", GUARD, _module(tmp_path, "bad", trapping()), "--on", runs, "--ndjson", no_deletes)
    *decisions, summary = ran.lines
    assert summary["type"] == "summary"
    assert {each["type"] for each in decisions} == {"decision"}
    before = [each for each in decisions if each["point"] == "pre_tool_call"]
    assert [(each["runId"], each["toolName"], each["kind"], each["hook"]) for each in before] == [
        ("r1", "find", "proceed", None),
        ("r2", "delete_all", "denied", "guard"),
    ]
    assert [(each["hook"], each["code"]) for each in before[0]["failures"]] == [("bad", "trap")]
    assert [entry["hook"] for entry in before[0]["trace"]] == ["guard", "bad"]
    assert sum(len(each["trace"]) for each in decisions) == summary["total"]["calls"]


# --- examples and hostile text ------------------------------------------------------------------------------------


def test_examples_show_before_and_after_the_rare_beside_the_usual(cli: Cli, tmp_path: Path, no_deletes: str) -> None:
    runs = written(
        tmp_path / "runs.jsonl",
        *(record(one_call(result="mail ada@example.com"), f"r{index}") for index in range(9)),
        record(one_call(name="delete_all", arguments='{"all": true}'), "last"),
    )
    ran = cli("run", GUARD, REDACT, "--on", runs, "--show", "2", no_deletes)
    assert ran.out.count("replaced by redact at post_tool_call") == 1
    assert "  before  mail ada@example.com\n  after   mail [email]\n" in ran.out
    assert "denied by guard at pre_tool_call (last, message 1, delete_all)" in ran.out
    assert '  before  {"all": true}\n  after   tool delete_all is not allowed' in ran.out


def test_a_long_value_is_cut_to_where_it_differs(cli: Cli, tmp_path: Path) -> None:
    runs = written(tmp_path / "runs.jsonl", record(one_call(result="x " * 500 + "ada@example.com" + " y" * 500)))
    ran = cli("run", REDACT, "--on", runs, "--show", "1")
    before, after = (line for line in ran.out.splitlines() if line.startswith(("  before", "  after")))
    assert "ada@example.com" in before
    assert "[email]" in after
    assert max(len(before), len(after)) <= 80


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_as_many_examples_as_asked_for_and_there_are(cli: Cli, runs: Path, count: int, no_deletes: str) -> None:
    ran = cli("run", GUARD, REDACT, "--on", runs, "--show", count, "--json", no_deletes)
    assert len(ran.json["examples"]) == min(count, 2)


def _hostile(tmp_path: Path) -> tuple[Path, Path]:
    hook = _module(
        tmp_path,
        "hostile",
        answering(
            {"pre_tool_call": {"deny": HOSTILE}, "pre_generate": {"error": {"name": HOSTILE, "message": HOSTILE}}}
        ),
    )
    messages = one_call(name=HOSTILE, arguments=json.dumps({HOSTILE: HOSTILE}), result=HOSTILE)
    messages[0][HOSTILE] = 1
    return hook, written(tmp_path / "runs.jsonl", record(messages, HOSTILE))


def test_hostile_text_of_guests_and_records_is_escaped_wherever_it_shows(cli: Cli, tmp_path: Path) -> None:
    hook, runs = _hostile(tmp_path)
    tools = tmp_path / "tools.json"
    tools.write_text("[]")
    ran = cli("run", hook, "--on", runs, "--show", "9", "--tools", tools)
    assert "denied by hostile" in ran.out
    assert "hostile failed 2 times with 'threw'" in ran.out
    assert _printable(ran.out)
    assert "\nforged line" not in ran.out


@pytest.mark.parametrize("option", ["--json", "--ndjson"])
def test_what_machines_get_is_ascii_and_still_the_text_itself(cli: Cli, tmp_path: Path, option: str) -> None:
    hook, runs = _hostile(tmp_path)
    ran = cli("run", hook, "--on", runs, "--show", "9", option)
    assert ran.out.isascii()
    assert _printable(ran.out)
    summary: dict[str, Any] = ran.lines[-1] if option == "--ndjson" else ran.json
    assert HOSTILE in [each["after"] for each in summary["examples"]]


def test_a_hostile_name_is_refused_and_escaped(cli: Cli, runs: Path, tmp_path: Path) -> None:
    hook = _module(tmp_path, "named", answering({"pre_tool_call": {}}, {"abi": 1, "name": HOSTILE[:90]}))
    ran = cli("run", hook, "--on", runs)
    assert ran.code == 1
    assert _printable(ran.err)


def test_a_wide_name_keeps_the_columns_aligned(cli: Cli, runs: Path, tmp_path: Path) -> None:
    from hookcell.cli.terminal import columns_of

    wide = _module(tmp_path, "wide", answering({"pre_tool_call": {}}, {"abi": 1, "name": "日本の" * 20}))
    ran = cli("run", wide, GUARD, "--on", runs)
    lines = ran.out.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("hook "))
    assert len({columns_of(line) for line in lines[at : at + 4]}) == 1
    assert columns_of(lines[at]) <= 80


# --- the cache ----------------------------------------------------------------------------------------------------


def test_a_cache_that_others_could_write_to_is_said_and_done_without(
    cli: Cli, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "hookcell" / "artifacts"
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ran = cli("run", GUARD, "--on", runs)
    assert ran.code == 0
    assert "compiled code is not kept for next time" in ran.err
    assert "mode 0755" in ran.err
    assert list(directory.iterdir()) == []


def test_the_demo_data_through_its_own_files_is_what_the_demo_says(cli: Cli) -> None:
    configs = json.loads((DEMO / "hooks.json").read_text())
    given = [f"--config={name}={json.dumps(config)}" for name, config in configs.items()]
    ran = cli(
        "run", GUARD, DEFAULTS, REDACT, "--on", DEMO / "run.jsonl", "--tools", DEMO / "tools.json", *given, "--json"
    )
    total = ran.json["total"]
    assert (total["denied"], total["rewritten"], total["replaced"], total["failed"]) == (2, 2, 4, 0)
