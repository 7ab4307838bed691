"""Which function carries out which command of those who write hooks. Each is imported when it is called for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .terminal import Terminal

__all__ = ["author_command"]


def author_command(asked: argparse.Namespace, terminal: Terminal) -> int | None:
    """Carry out the command that ``asked`` names; the exit code, or None when it is none of these."""
    if asked.command == "build":
        from .build import build

        return build(asked.source, asked.out, terminal, as_json=asked.json)
    if asked.command == "check":
        from .check import check

        return check(asked.hook, terminal, as_json=asked.json)
    if asked.command == "test":
        from .author_test import author_test

        return author_test(asked.path, terminal, update=asked.update, as_json=asked.json)
    if asked.command == "bench":
        from .bench import bench

        return bench(asked.hook, asked.context, terminal, point=asked.point, as_json=asked.json)
    if asked.command == "init":
        from .init import init

        return init(asked.name, asked.lang, terminal, as_json=asked.json)
    return None
