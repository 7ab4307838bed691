"""A test that cannot fail is worse than none: each rule is switched off once, and its tests have to notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .mutations import MUTATIONS, Mutation
from .table import SEMANTICS, rules_in
from .test_table import WITHOUT

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

ONE_EACH = pytest.mark.parametrize("mutation", MUTATIONS, ids=[f"{m.rule}-{n}" for n, m in enumerate(MUTATIONS)])


def test_every_rule_with_a_test_is_switched_off_once() -> None:
    rules = set(rules_in(SEMANTICS.read_text("utf-8")))
    assert {mutation.rule for mutation in MUTATIONS} == rules - WITHOUT


def test_no_mutation_stands_twice() -> None:
    assert len(set(MUTATIONS)) == len(MUTATIONS)


@ONE_EACH
def test_the_piece_to_replace_stands_once_in_the_code(mutation: Mutation) -> None:
    text = (ROOT / "engine" / "hookcell" / mutation.file).read_text("utf-8")
    assert text.count(mutation.old) == 1
    assert mutation.new != mutation.old


@pytest.mark.slow
@ONE_EACH
def test_a_rule_that_is_switched_off_turns_its_tests_red(mutation: Mutation, tmp_path: Path) -> None:
    copy = tmp_path / "engine" / "hookcell"
    shutil.copytree(ROOT / "engine" / "hookcell", copy)
    path = copy / mutation.file
    path.write_text(path.read_text("utf-8").replace(mutation.old, mutation.new), "utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(HERE), "-k", f"_{mutation.rule}_"],
        # Before the installed package on the path.
        env={**os.environ, "PYTHONPATH": str(copy.parent)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Error while loading" not in ran.stderr
    assert ran.returncode == 1, ran.stdout[-2000:]
    assert " failed" in ran.stdout
