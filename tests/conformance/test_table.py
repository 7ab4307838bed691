"""The table covers what it claims to, and its README tells every behaviour in it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema_rs
import pytest

from hookcell.points import POINTS
from hookcell.wire_schemas import context_schema

from .cases import CASES
from .contexts import context_of

if TYPE_CHECKING:
    from .case import Case

README = Path(__file__).with_name("README.md").read_text("utf-8")


def keys_of(case: Case) -> set[str]:
    """The outcome keys that the hook's answer has."""
    does, value = case.does, case.does.get("value")
    keys = {"edits": "patch", "emit": "events", "meta": "meta", "storage": "storage"}
    found = {key for name, key in keys.items() if name in does}
    if does["case"] == "return":
        agent_class = POINTS[case.point].family == "agent_class"
        found |= {"replace"} if agent_class else set(value) if isinstance(value, dict) else set()
    own = {"throw": "error", "count": "storage", "spread": "input"}
    return found | ({own[does["case"]]} if does["case"] in own else set())


def test_no_two_cases_have_one_name() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


@pytest.mark.parametrize("point", POINTS)
def test_each_key_of_each_point_is_used_and_every_other_refused(point: str) -> None:
    """SEMANTICS P8."""
    held = [case for case in CASES if case.point == point and isinstance(case.expect, dict)]
    assert set().union(*map(keys_of, held)) | {"error"} == POINTS[point].keys
    failed = [case for case in CASES if case.point == point and not isinstance(case.expect, dict)]
    assert "error" in set().union(*map(keys_of, failed))
    if point != "on_error":  # any value is an output there
        deciding = {"deny", "result", "input", "replace"} - POINTS[point].keys
        refused = set().union(*map(keys_of, failed))
        assert POINTS[point].family == "agent_class" or deciding <= refused


def test_every_field_that_a_hook_may_write_to_is_written_to() -> None:
    """SEMANTICS P2, C7."""
    written = {
        (case.point, edit["path"][0])
        for case in CASES
        if isinstance(case.expect, dict)
        for edit in case.does.get("edits", ())
        if "path" in edit
    }
    assert written == {(name, root) for name, point in POINTS.items() for root in point.patch_roots}


def test_the_readme_tells_every_behaviour() -> None:
    cases = {case.does["case"] for case in CASES}
    edits = {edit["do"] for case in CASES for edit in case.does.get("edits", ())}
    told = set(re.findall(r"^   \| `([a-z.]+)` \|", README, re.MULTILINE))
    assert told == cases | edits | {"do", "case"}
    steps = set(re.findall(r"^\d\. `(\w+)`", README, re.MULTILINE))
    assert {key for case in CASES for key in case.does} - {"value", "path"} == steps


@pytest.mark.parametrize("point", POINTS)
def test_the_usual_contexts_are_valid(point: str) -> None:
    jsonschema_rs.validator_for(context_schema(POINTS[point])).validate({"point": point, **context_of(point, {})})
