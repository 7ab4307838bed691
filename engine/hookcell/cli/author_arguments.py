"""The command line of those who write hooks: ``build``, ``check``, ``test``, ``bench``, ``init``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["add_author_commands"]

_HOOK_HELP: Final = "a module, or a source in TypeScript, JavaScript or C, which is built first"

_BUILD: Final = """\
Build a hook from TypeScript or JavaScript (needs nothing else) or from C (needs the
package ziglang), and say how large it is and what it asks for. A source is a stranger's:
it is parsed and started in the sandbox. The same source gives the same bytes everywhere.
"""

_CHECK: Final = """\
Say everything that would keep a host from loading this hook, each with a next step. The
module is read and compiled as on a host; none of it is run. A source is built first,
which starts a hook in TypeScript once, in the sandbox.
"""

_TEST: Final = """\
Run the cases in tests/*.json beside a hook, under the limits of production, and show what
differs. A case is {"context": {…}, "expect": {"outcome": {…}}}; it may have "point",
"config", "storage", "fuel" (the most that the call may use) and "description", and
"expect" may be {"error": {"code": "…"}}. A hook that returned nothing has the outcome {}.
"""

_BENCH: Final = """\
Say what an isolated call takes: medians in microseconds and fuel, beside those of the
smallest guest there is, measured in the same run. Fuel is the same on every machine;
of the time, compare the ratio.
"""

_INIT: Final = """\
Write a folder with a hook that builds and two cases that pass. In TypeScript, which needs
nothing else, or in C, which needs the package ziglang.
"""


def add_author_commands(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add each command by a parser's own function for that."""

    def command(name: str, summary: str, description: str) -> argparse.ArgumentParser:
        parser = add_parser(
            name,
            help=summary,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser

    for fill in (_init, _build, _check, _test, _bench):
        fill(command)


_Command = Callable[[str, str, str], argparse.ArgumentParser]


def _build(command: _Command) -> None:
    build = command("build", "build a hook from its source", _BUILD)
    build.add_argument("source", type=Path, metavar="HOOK.ts|HOOK.c")
    build.add_argument("-o", "--out", type=Path, metavar="OUT.wasm", help="default: the source's name with .wasm")


def _check(command: _Command) -> None:
    check = command("check", "say what would keep a host from loading a hook", _CHECK)
    check.add_argument("hook", type=Path, metavar="HOOK", help=_HOOK_HELP)


def _test(command: _Command) -> None:
    test = command("test", "run the cases beside a hook", _TEST)
    test.add_argument(
        "path", type=Path, nargs="?", default=Path(), metavar="PATH", help="a hook or its folder (default: this one)"
    )
    test.add_argument("--update", action="store_true", help="write what came out into the cases that expect other")


def _bench(command: _Command) -> None:
    bench = command("bench", "say what a call takes, in time and fuel", _BENCH)
    bench.add_argument("hook", type=Path, metavar="HOOK", help=_HOOK_HELP)
    bench.add_argument("--context", type=Path, metavar="FILE", required=True, help="a context or a test case")
    bench.add_argument("--point", metavar="POINT", help="the hook point; the file may name it")


def _init(command: _Command) -> None:
    init = command("init", "begin a hook, with a test", _INIT)
    init.add_argument("--lang", choices=["ts", "c"], default="ts", help="its language (default: ts)")
    init.add_argument("name", type=Path, metavar="NAME", help="the folder, and the hook's name")
