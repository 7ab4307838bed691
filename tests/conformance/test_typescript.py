"""Guests in TypeScript pass the table, with a snapshot and without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from hookcell_guest.typescript import build
from hookcell_sandbox import Limits, Sandbox

from .cases import CASES
from .running import Guests, check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .case import Case

LIMITS: Final = Limits(fuel=145_000_000, deadline_ms=10_000)
"""A megabyte costs 80 fuel a byte as ASCII and 190 as other text; the default gives 50, a base and no more."""


@pytest.fixture(scope="module", params=[True, False], ids=["snapshot", "no snapshot"])
def typescript(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    out = tmp_path_factory.mktemp("conformance") / "typescript.wasm"
    build(Path(__file__).with_name("conformance.ts"), out, snapshot=request.param)
    with Sandbox() as sandbox:
        yield Guests(sandbox, out.read_bytes(), limits=LIMITS, stacks=True, throws_early=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name[:60])
def test_a_guest_in_typescript_conforms(case: Case, typescript: Guests) -> None:
    check(case, typescript)
