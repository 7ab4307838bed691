"""The command line run in place, with a cache of compiled code of its own for the whole session."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hookcell.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as ndjson."""
        return [json.loads(line) for line in self.out.splitlines()]

    def row(self, hook: str) -> dict[str, str]:
        """A hook's row of the table, by column."""
        lines = self.out.splitlines()
        at = next(index for index, line in enumerate(lines) if line.startswith("hook "))
        heads = [*lines[at].split()[:-4], "fuel", "fuel_p99", "us", "us_p99"]
        found = next(line for line in lines[at + 1 :] if line.split()[:1] == [hook])
        return dict(zip(heads, found.split(), strict=True))


Cli = Callable[..., Ran]


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own cache is left alone, and output is as wide here as anywhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run ``hookcell`` with arguments; argparse's own exits are exit codes too."""

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        try:
            code = main([str(each) for each in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run
