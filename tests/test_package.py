"""The wheel carries what users need and nothing else, and works where it is unpacked."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_three_packages_their_data_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "hookcell",
        "hookcell_guest",
        "hookcell_sandbox",
    }
    for package in ("hookcell", "hookcell_guest", "hookcell_sandbox"):
        assert f"{package}/py.typed" in names
    for name in (
        "run.jsonl",
        "tools.json",
        "hooks.json",
        "hooks/guard.wasm",
        "hooks/defaults.wasm",
        "hooks/redact.wasm",
    ):
        assert f"hookcell/demo/{name}" in names
    for name in ("hookcell.h", "hookcell/value.h", "examples/guard.c", "README.md"):
        assert f"hookcell_guest/languages/c/{name}" in names
    for name in ("c/hook.c", "ts/hook.ts", "ts/tests/denies.json", "ts/gitignore"):
        assert f"hookcell/cli/templates/{name}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_alone_runs_the_demo_and_builds_a_hook(wheel: Path, tmp_path: Path) -> None:
    """Unpacked in front of everything else on the path, so that the checkout is not what answers."""
    pytest.importorskip("ziglang", reason="ziglang is not installed")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    for package in ("hookcell", "hookcell_guest", "hookcell_sandbox"):
        assert run("-c", f"import {package}; print({package}.__file__)").startswith(str(site))
    assert "denied by guard" in run("-m", "hookcell.cli", "demo")
    source = site / "hookcell_guest" / "languages" / "c" / "examples" / "guard.c"
    run("-m", "hookcell_guest.build_c", str(source), "-o", "guard.wasm")
    assert (tmp_path / "guard.wasm").read_bytes() == (site / "hookcell" / "demo" / "hooks" / "guard.wasm").read_bytes()
