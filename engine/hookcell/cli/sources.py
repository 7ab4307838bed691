"""A hook that the command line names: a module, or a source that is built first.

The builder is imported when a source is met, and only then.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import ModuleLimits

from .errors import CommandFailed, Misused
from .recorded_runs import opened

__all__ = ["LANGUAGES", "HookFile", "built", "hook_file", "module_bytes"]

LANGUAGES: Final = {".ts": "TypeScript", ".js": "JavaScript", ".c": "C"}
"""What a source's suffix says it is written in."""

_PLACE: Final = re.compile(r"([^\s:][^:\n]*):(\d+):(\d+): (?:(?:fatal )?error: )?")
_LINES: Final = 60
_LINE_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFile:
    """A hook's module and where it comes from.

    Attributes:
        path: The file that was named.
        wasm: Its module; perhaps cut one byte over the limit, which is enough for admission to refuse it.
        language: What it was built from; None when it was a module already.
    """

    path: Path
    wasm: bytes
    language: str | None = None


def hook_file(path: Path) -> HookFile:
    """The hook in a file.

    Raises:
        Misused: The file cannot be read.
        CommandFailed: It is a source that cannot be built.
    """
    language = LANGUAGES.get(path.suffix)
    if language is None:
        return HookFile(path=path, wasm=module_bytes(path))
    return HookFile(path=path, wasm=built(path), language=language)


def module_bytes(path: Path) -> bytes:
    """A module's bytes, and no more of them than it takes to see that they are too many."""
    with opened(path) as file:
        return file.read(ModuleLimits().module_bytes + 1)


def built(source: Path) -> bytes:
    """The module that a source builds. Takes seconds; nothing is left behind but the compiler's own cache.

    Raises:
        Misused: There is no such file, or its suffix names no language.
        CommandFailed: Its code is ``toolchain_missing`` or ``build_failed``.
    """
    if source.suffix not in LANGUAGES:
        known = ", ".join(f"{suffix} ({name})" for suffix, name in LANGUAGES.items())
        raise Misused(
            f"'{escape(source.suffix)}' is no source of a hook",
            code="unknown_language",
            place=escape(str(source)),
            hint=f"write it in {known}; a .wasm needs no build",
        )
    opened(source).close()
    from hookcell_guest.build_c import BuildFailed

    with tempfile.TemporaryDirectory(prefix="hookcell-") as scratch:
        out = Path(scratch) / "hook.wasm"
        try:
            if source.suffix == ".c":
                from hookcell_guest import build_c

                build_c.build(source, out)
            else:
                from hookcell_guest import typescript

                typescript.build(source, out)
        except BuildFailed as error:
            raise _refused(source, str(error)) from error
        return out.read_bytes()


def _refused(source: Path, said: str) -> CommandFailed:
    """The builder's error, which quotes the author's file and the compiler, with its place and a next step."""
    if source.suffix == ".c" and find_spec("ziglang") is None:
        reason, _, install = said.partition(": ")
        return CommandFailed(
            f"a hook in C needs a compiler, and {escape(reason)}",
            code="toolchain_missing",
            place=escape(str(source)),
            hint=f"{escape(install)}, which brings one",
        )
    found = _PLACE.search(said)
    if found is None:
        place, message = str(source), said.removeprefix(f"{source}: ")
    else:
        place, message = f"{_from_here(source, found[1])}:{found[2]}:{found[3]}", said[found.end() :]
    return CommandFailed(
        _printable(message), code="build_failed", place=escape(place), hint="change the source there and build it again"
    )


def _from_here(source: Path, named: str) -> str:
    """The file that the builder names, from where the user stands: builders name files from the source's folder."""
    if Path(named) == source.absolute():
        return str(source)
    beside = source.parent / named
    return str(beside) if beside.is_file() else named


def _printable(text: str) -> str:
    lines = text.strip().split("\n")
    shown = [escape(line.replace("\t", "    "), characters=_LINE_CHARACTERS) for line in lines[:_LINES]]
    if len(lines) > _LINES:
        shown.append(f"… and {len(lines) - _LINES} more lines")
    return "\n".join(shown)
