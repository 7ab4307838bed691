"""Each example runs as it stands and prints what it says at its end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "engine" / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))


def promised(text: str) -> str:
    """What stands in the comment at the file's end."""
    lines = text.partition("\n# Prints:\n")[2].splitlines()
    assert lines, "the example does not say what it prints"
    return "".join(f"{line.removeprefix('#').removeprefix('   ')}\n" for line in lines)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(path: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == promised(path.read_text("utf-8"))


def test_the_list_of_examples_has_a_line_for_each() -> None:
    listed = re.findall(r"^- \[([\w.]+)\]\(\1\): \S", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == [path.name for path in FILES]
