"""The rooms and their doors, by a walk over the imports."""

from __future__ import annotations

import ast
import importlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "hookcell_sandbox": ROOT / "sandbox" / "hookcell_sandbox",
    "hookcell": ROOT / "engine" / "hookcell",
    "hookcell_guest": ROOT / "guest_sdk" / "hookcell_guest",
}
FILES = [path for package in PACKAGES.values() for path in sorted(package.rglob("*.py"))]
# Package → what it may not import, anywhere.
CLOSED = {
    "hookcell_sandbox": {"hookcell", "hookcell_guest", "msgpack", "pydantic", "jsonschema_rs"},
    "hookcell": {"wasmtime"},
    "hookcell_guest": {"hookcell", "wasmtime"},
}
AGREED = {
    "pyproject.toml",
    "README.md",
    "engine",
    "sandbox",
    "guest_sdk",
    "tests",
    "fixtures",
    "LICENSE",
    "CHANGELOG.md",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(tree: ast.AST, *, run_time: bool = False) -> Iterator[str]:
    """Top-level names of imported packages; with ``run_time`` only what is imported when the code runs."""
    for node in ast.iter_child_nodes(tree):
        if run_time and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
        else:
            yield from imports(node, run_time=run_time)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_door_is_forced(package: str) -> None:
    forced = {
        (name_of(path), module)
        for path in sorted(PACKAGES[package].rglob("*.py"))
        for module in imports(ast.parse(path.read_text("utf-8")))
        if module in CLOSED[package]
    }
    assert not forced


def test_one_file_of_the_sandbox_touches_ctypes() -> None:
    touching = {
        path.name
        for path in sorted(PACKAGES["hookcell_sandbox"].rglob("*.py"))
        if {"ctypes", "_ctypes"} & set(imports(ast.parse(path.read_text("utf-8")), run_time=True))
    }
    assert touching == {"native.py"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_each_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


@pytest.mark.parametrize("package", ["hookcell", "hookcell_sandbox"])
def test_the_public_surface_is_sorted_without_repetition_and_there(package: str) -> None:
    module = importlib.import_module(package)
    names: list[str] = module.__all__
    # Constants, then classes, then functions: the order that the linter keeps.
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert len(names) == len(set(names))
    for name in names:
        assert getattr(module, name) is not None


def test_the_top_level_holds_what_was_agreed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    entries = {line.partition("/")[0] for line in listed.splitlines()}
    assert {entry for entry in entries if not entry.startswith(".")} <= AGREED
