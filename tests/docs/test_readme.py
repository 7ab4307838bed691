"""What the README shows is run, and what it says in tables is compared with the code."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hookcell
import hookcell_sandbox
from hookcell import POINTS, HookcellError, HookCrashed
from hookcell.agent import AgentError, Event, create_agent
from hookcell.cli import errors as cli_errors
from hookcell.points import COMMON_FIELDS
from hookcell_sandbox import EngineSettings, Limits

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)


def blocks() -> list[tuple[str, str, str]]:
    """Mark, language and text of each fenced block, in order."""
    return [(found["mark"] or "", found["language"], found["text"]) for found in BLOCK.finditer(README)]


def table(name: str) -> list[list[str]]:
    """The cells of the marked table's rows, the head left out."""
    rows = README.partition(f"<!-- table: {name} -->\n")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder in which every file was written and every block was run in order, and what they printed."""
    folder = tmp_path_factory.mktemp("readme")
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": paths, "PYTHONWARNINGS": "error"}
    printed: list[str] = []
    for mark, language, text in blocks():
        if mark.startswith("file: "):
            (folder / mark.removeprefix("file: ")).write_text(text, "utf-8")
        elif mark == "run":
            command = ["bash", "-euc", text] if language == "sh" else [sys.executable, "-c", text]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            printed.append(done.stdout)
    return folder, printed


def test_the_first_hook_is_built_and_does_what_the_readme_says(bench: tuple[Path, list[str]]) -> None:
    _, printed = bench
    (output,) = (text for mark, _, text in blocks() if mark == "output of the run")
    assert output in printed[0]


def test_the_project_in_the_readme_passes_its_cases(bench: tuple[Path, list[str]]) -> None:
    _, printed = bench
    assert printed[1].splitlines()[-1] == "2 passed"


def test_the_agent_in_the_readme_has_its_call_denied_by_the_guest(bench: tuple[Path, list[str]]) -> None:
    _, printed = bench
    text, content, trace = printed[2].splitlines()
    assert (text, content) == ("I may not use the shell.", "The shell is off here; use the file tools.")
    assert trace.startswith("[('no-shell', 'deny', ")


def test_an_agent_with_a_guest_takes_under_25_lines() -> None:
    agent = next(text for _, language, text in blocks() if language == "python")
    assert "GuestHook" in agent
    assert len(agent.strip().splitlines()) < 25


def test_the_approval_in_the_readme_shows_and_runs_what_the_hook_made(bench: tuple[Path, list[str]]) -> None:
    _, printed = bench
    assert printed[3].splitlines() == ["refund {'amount': 100}", "refunded 100 - Done."]


def test_the_bare_loop_in_the_readme_denies_by_the_same_guest(bench: tuple[Path, list[str]]) -> None:
    _, printed = bench
    error, log, end = printed[4].splitlines()
    assert "kind='denied'" in error
    assert "hook='no-shell'" in error
    assert log == "('rm -rf build',)"
    assert end == "I may not. 4"


def test_every_block_is_run_or_marked_or_one_of_the_two_commands() -> None:
    unmarked = [text.strip() for mark, _, text in blocks() if not mark]
    assert len(unmarked) == 2
    assert all(text.startswith("python3 -m venv .venv && .venv/bin/pip install -q ") for text in unmarked)
    assert all("\n" not in text for text in unmarked)


def test_ci_runs_both_commands_to_the_letter() -> None:
    """They need the network, so no test runs them."""
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    for mark, _, text in blocks():
        if not mark:
            assert text.strip() in script


def test_the_table_of_points_is_the_codes() -> None:
    rows = table("points")
    assert [row[0] for row in rows] == [f"`{name}`" for name in POINTS]
    for (_, fields, outcome), point in zip(rows, POINTS.values(), strict=True):
        assert re.findall(r"`(\w+)`", fields) == list(point.own_fields)
        keys, _, roots = outcome.partition("`patch` on")
        assert set(re.findall(r"`(\w+)`", keys)) | {"patch", "storage", "error"} == point.keys
        assert set(re.findall(r"`(\w+)`", roots)) == point.patch_roots
    for field in COMMON_FIELDS:
        assert f"`{field}`" in README


def test_the_table_of_limits_is_the_codes() -> None:
    defaults = {field.name: field.default for field in dataclasses.fields(Limits)}
    assert {row[0].strip("`"): int(row[1].replace(",", "")) for row in table("limits")} == defaults


def test_the_table_of_settings_is_the_codes() -> None:
    defaults = {field.name: field.default for field in dataclasses.fields(EngineSettings)}
    assert {row[0].strip("`"): int(row[1].replace(",", "")) for row in table("settings")} == defaults


def error_rows(error: type[HookcellError], depth: int = 0) -> list[tuple[int, str, str]]:
    """Depth, name and code of each public error, a parent before its heirs."""
    rows = [(depth, error.__name__, error.code)]
    for heir in error.__subclasses__():
        if heir.__name__ in {*hookcell.__all__, *hookcell_sandbox.__all__}:
            rows += error_rows(heir, depth + 1)
    return rows


def under(rows: list[tuple[int, str, str]]) -> set[tuple[str, ...]]:
    """Each error with those above it and its code."""
    found, above = set[tuple[str, ...]](), list[str]()
    for depth, name, code in rows:
        above[depth:] = [name]
        found.add((*above, code))
    return found


def test_the_table_of_errors_is_the_tree() -> None:
    drawn = [(row[0].count("·"), row[0].strip("·` "), row[1].strip("`")) for row in table("errors")]
    # An instance of HookCrashed has its cause's code.
    drawn = [(depth, name, HookCrashed.code if code == "the cause's" else code) for depth, name, code in drawn]
    assert len(drawn) == len(under(drawn))
    assert under(drawn) == under(error_rows(HookcellError))


def test_the_table_of_the_agents_errors_is_the_tree() -> None:
    drawn = [(row[0].count("·"), row[0].strip("·` "), row[1].strip("`")) for row in table("agent errors")]
    tree = [(1, error.__name__, error.code) for error in AgentError.__subclasses__()]
    assert drawn == [(0, AgentError.__name__, AgentError.code), *tree]


def test_the_table_of_events_is_the_codes() -> None:
    drawn = {row[0].strip("`"): row[1].strip("`") for row in table("events")}
    assert drawn == {event.__name__: event.type for event in Event.__subclasses__()}


def test_the_table_of_arguments_names_all_of_create_agents() -> None:
    named = [name for row in table("create_agent") for name in re.findall(r"`(\w+)`", row[0])]
    parameters = inspect.signature(create_agent).parameters
    assert sorted(named) == sorted(parameters)
    steps, depth = parameters["max_steps"].default, parameters["max_depth"].default
    assert f"{steps} model calls a turn; {depth} agents inside one another" in README


def test_the_exit_codes_are_the_codes() -> None:
    codes = {value for name, value in vars(cli_errors).items() if name.startswith("EXIT_")}
    sentence = README.partition("Exit codes: ")[2].partition(".\n")[0]
    assert {int(number) for number in re.findall(r"\d+", sentence)} == codes | {0}


def test_every_link_leads_to_a_file() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target
