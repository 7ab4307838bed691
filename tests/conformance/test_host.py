"""Host hooks pass the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .cases import CASES
from .host_hook import Host
from .running import check

if TYPE_CHECKING:
    from .case import Case


@pytest.mark.parametrize("case", [case for case in CASES if not case.not_host], ids=lambda case: case.name[:60])
def test_a_host_hook_conforms(case: Case) -> None:
    check(case, Host())
