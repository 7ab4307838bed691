"""The example hooks in TypeScript: their cases pass, and what a call costs is what their README says."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from hookcell.cli import main
from hookcell_guest.typescript import build

TYPESCRIPT: Final = Path(__file__).parents[2] / "guest_sdk/languages/typescript"
EXAMPLES: Final = TYPESCRIPT / "examples"
TOLERANCE: Final = 0.10
"""Of the pins: another release of the runtime may count a little differently, a hook twice as dear is a fault."""


class Pin(NamedTuple):
    """What one call of an example uses."""

    case: str
    fuel: int
    size: int
    """Bytes of the module."""


PINS: Final = {
    "audit": Pin("calling", 354_800, 1_446_812),
    "guard": Pin("over_the_limit", 185_414, 1_453_113),
    "defaults": Pin("fills", 121_254, 1_446_203),
    "redact": Pin("masks", 270_133, 1_447_727),
    "date": Pin("tells", 194_288, 1_446_442),
}


LOGGED: Final = {
    "calling": ["calling { toolName: 'search', args: { query: 'hooks' } }"],
    "failed": ["failed { toolName: 'search', origin: 'denied', error: 'Not here.' }"],
    "finished": ["finished { toolName: 'search', origin: 'tool', result: \"one\\nfinished { toolName: 'forged' }\" }"],
    "waiting": ["waiting { toolName: 'search' }"],
}


class Ran(NamedTuple):
    """A built example and what its cases came to."""

    size: int
    code: int
    cases: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of compiled code of the module's own, which all the examples share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", params=list(PINS))
def example(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def ran(example: str, cache_home: None, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The example, built once, and its cases, run once by the command line."""
    folder = tmp_path_factory.mktemp(example)
    report = build(EXAMPLES / example / "hook.ts", folder / "hook.wasm")
    shutil.copytree(EXAMPLES / example / "tests", folder / "tests")
    with redirect_stdout(StringIO()) as printed:
        code = main(["test", str(report.out), "--json"])
    cases = json.loads(printed.getvalue())["cases"]
    return Ran(report.size, code, {Path(each["file"]).stem: each for each in cases})


def test_every_example_is_tried() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("*/hook.ts")} == set(PINS)


def test_its_cases_pass(example: str, ran: Ran) -> None:
    failed = {name: each for name, each in ran.cases.items() if each["status"] != "passed"}
    assert (ran.code, failed) == (0, {})
    assert set(ran.cases) == {path.stem for path in (EXAMPLES / example / "tests").glob("*.json")}


def test_each_call_is_one_line_of_the_log_of_audit(example: str, ran: Ran) -> None:
    """Also where a result holds a line that looks like one of the log."""
    if example == "audit":
        assert {name: each["log"] for name, each in ran.cases.items()} == LOGGED
    else:
        assert not any(each["log"] for each in ran.cases.values())


def test_a_call_costs_what_is_pinned(example: str, ran: Ran) -> None:
    pin = PINS[example]
    assert ran.cases[pin.case]["fuel"] == pytest.approx(pin.fuel, rel=TOLERANCE)
    assert ran.size == pytest.approx(pin.size, rel=TOLERANCE)


def test_the_readme_says_what_is_pinned() -> None:
    row = re.compile(r"^\| \[(\w+)\]\(examples/\1/hook\.ts\) \|.*\| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)
    text = (TYPESCRIPT / "README.md").read_text("utf-8")
    said = {name: (fuel, size) for name, fuel, size in row.findall(text)}
    assert said == {name: (f"{pin.fuel:,}", f"{pin.size:,}") for name, pin in PINS.items()}
