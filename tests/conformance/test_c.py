"""Guests in C pass the table, in the real sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hookcell_guest.build_c import build
from hookcell_sandbox import Sandbox

from .cases import CASES
from .running import Guests, check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .case import Case


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    pytest.importorskip("ziglang", reason="pip install ziglang==0.17.1")
    out = tmp_path_factory.mktemp("conformance") / "c.wasm"
    build(Path(__file__).with_name("conformance.c"), out)
    with Sandbox() as sandbox:
        yield Guests(sandbox, out.read_bytes())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name[:60])
def test_a_guest_in_c_conforms(case: Case, c: Guests) -> None:
    check(case, c)
