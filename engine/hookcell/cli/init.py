"""``hookcell init``: a folder with a hook that builds, and two cases that pass."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hookcell.wire_types import declarations
from hookcell_sandbox.guest_text import escape

from .errors import Misused

if TYPE_CHECKING:
    from .terminal import Terminal

__all__ = ["TEMPLATES", "init"]

TEMPLATES: Final = ("ts", "c")
"""Languages, the default first."""

# It stands in a file's name, in C's preprocessor and in a string of TypeScript.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def init(folder: Path, language: str, terminal: Terminal, *, as_json: bool = False) -> int:
    """Write a project; the exit code.

    Args:
        folder: Where; its last part is the hook's name. It is made, or empty.
        language: One of `TEMPLATES`.
        terminal: Where to print.
        as_json: Print one JSON object.

    Raises:
        Misused: The name does not do, or the folder has something in it or cannot be made.
    """
    name = folder.absolute().name
    shown = escape(str(folder))
    if not _NAME.fullmatch(name):
        hint = "give 1 to 64 letters, digits, '.', '_' and '-', a letter or a digit first"
        raise Misused("the name does not do", code="name", place=shown, hint=hint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            hint = "give another name, or empty it"
            raise Misused("there is something in this folder", code="not_empty", place=shown, hint=hint)
        written: list[str] = []
        for path, text in _project(name, language):
            target = folder / path
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, "utf-8")
            written.append(path)
    except OSError as error:
        hint = "give a folder that can be made and written to"
        raise Misused(f"it cannot be written: {error.strerror}", code="usage", place=shown, hint=hint) from error
    if as_json:
        record = {"folder": str(folder), "name": name, "language": language, "files": written}
        terminal.print(json.dumps(record, indent=2))
        return 0
    terminal.print(f"{terminal.paint(shown, 'bold')}: {', '.join(written)}")
    terminal.print(f"next: hookcell test {shown}")
    return 0


def _project(name: str, language: str) -> Iterator[tuple[str, str]]:
    """Path and text of each file."""
    for path, file in _files(files("hookcell.cli") / "templates" / language, ""):
        # A file of that name would count for the repository that ships it.
        yield path.replace("gitignore", ".gitignore"), file.read_text("utf-8").replace("__NAME__", name)
    if language == "ts":
        yield "hookcell.d.ts", declarations()


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _files(each, f"{prefix}{each.name}/")
        else:
            yield f"{prefix}{each.name}", each
