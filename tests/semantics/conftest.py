"""One sandbox and one build of the scripted guest for all rules, and every rule for both kinds of hook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from hookcell_sandbox import Sandbox

from .modules import Modules, build_scripted
from .scripting import ScriptedGuest, ScriptedHost
from .scripting import scripted as scripted_hook


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Modules]:
    """The scripted guest, built and loaded into one sandbox."""
    wasm = build_scripted(tmp_path_factory.mktemp("scripted"))
    with Sandbox() as sandbox:
        yield Modules(sandbox, wasm)


@pytest.fixture
def scripted(modules: Modules) -> Callable[..., ScriptedHost | ScriptedGuest]:
    """Makes hooks: see `scripting.scripted`."""
    return partial(scripted_hook, modules)


@pytest.fixture(params=["host", "guest"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of the hook under test: a test that takes this runs as both."""
    return request.param


@pytest.fixture(params=["class", "host", "guest"])
def form(request: pytest.FixtureRequest) -> str:
    """The form of the hook under test."""
    return request.param


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The event loop."""
    return request.param
