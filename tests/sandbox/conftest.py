"""A sandbox for the whole run, and fixture modules assembled once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import wasmtime

from hookcell_sandbox import AdmissionPolicy, Program, Sandbox

MODULES = Path(__file__).parents[2] / "fixtures" / "modules"
_NOT_ENTRIES = {"hook_alloc", "_initialize"}


@cache
def assemble(name: str) -> bytes:
    return bytes(wasmtime.wat2wasm((MODULES / f"{name}.wat").read_text("utf-8")))


def policy_for(text: str) -> AdmissionPolicy:
    """Every exported function but the ABI's own is an entry point."""
    names = set(re.findall(r'\(func [^(]*\(export "([^"]+)"\)', text))
    return AdmissionPolicy(entry_points=frozenset(names - _NOT_ENTRIES))


def load_into(sandbox: Sandbox, name: str) -> Program:
    return sandbox.load(assemble(name), policy_for((MODULES / f"{name}.wat").read_text("utf-8")))


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


@pytest.fixture(scope="session")
def load(sandbox: Sandbox) -> Callable[[str], Program]:
    """Load ``fixtures/modules/<name>.wat`` into the shared sandbox."""
    return cache(lambda name: load_into(sandbox, name))


@pytest.fixture(scope="session")
def load_into_sandbox() -> Callable[[Sandbox, str], Program]:
    """Load ``fixtures/modules/<name>.wat`` into a sandbox of the test's own."""
    return load_into


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param
