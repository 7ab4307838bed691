"""The table of rules and their tests at the end of engine/SEMANTICS.md: read from the tests' names, nothing imported.

``python tests/semantics/table.py`` writes it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["SEMANTICS", "claims_by_rule", "rules_in", "with_table"]

_HERE: Final = Path(__file__).resolve().parent
SEMANTICS: Final = _HERE.parents[1] / "engine/SEMANTICS.md"

_RULE: Final = re.compile(r"^- \*\*([PCG]\d+)\*\*", re.MULTILINE)
_NAME: Final = re.compile(r"test_((?:[PCG]\d+_)+)(\w+)")
_TABLE: Final = re.compile(r"(?<=<!-- table: tests -->\n).*?(?=<!-- end of the table -->)", re.DOTALL)


def rules_in(text: str) -> list[str]:
    """The numbers of all rules, in their order in the document."""
    return _RULE.findall(text)


def claims_by_rule() -> dict[str, dict[str, list[str]]]:
    """Rule → test file → the claims that its tests are named by."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(_HERE.glob("test_*.py")):
        for name in _test_names(path):
            if match := _NAME.fullmatch(name):
                for rule in match[1].split("_")[:-1]:
                    found.setdefault(rule, {}).setdefault(path.name, []).append(match[2].replace("_", " "))
    return found


def with_table(text: str) -> str:
    """The document with the table as the tests have it now.

    Raises:
        ValueError: The document has no place for it.
    """
    tests = claims_by_rule()
    rows = [f"| {rule} | {_cell(tests.get(rule, {}))} |\n" for rule in rules_in(text)]
    written, places = _TABLE.subn(lambda _: "".join(["\n| rule | held by |\n|---|---|\n", *rows, "\n"]), text)
    if places != 1:
        raise ValueError(f"the document has {places} places for the table, not one")
    return written


def _cell(tests: dict[str, list[str]]) -> str:
    return "; ".join(f"[{_title(file)}](../tests/semantics/{file}): {' · '.join(tests[file])}" for file in tests) or "–"


def _title(file: str) -> str:
    return file.removeprefix("test_").removesuffix(".py").replace("_", " ")


def _test_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


if __name__ == "__main__":
    SEMANTICS.write_text(with_table(SEMANTICS.read_text("utf-8")), "utf-8")
