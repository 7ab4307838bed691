"""For each rule, one way to switch it off in the code: its tests must then fail (`test_mutations.py`)."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["MUTATIONS", "Mutation"]


class Mutation(NamedTuple):
    """A rule, a file under ``engine/hookcell``, a piece that stands there once, and what to put in its place."""

    rule: str
    file: str
    old: str
    new: str


MUTATIONS: Final[list[Mutation]] = []
