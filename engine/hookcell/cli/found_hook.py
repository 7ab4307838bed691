"""Which hook a folder holds."""

from __future__ import annotations

from pathlib import Path

from hookcell_sandbox.guest_text import escape

from .errors import Misused
from .sources import LANGUAGES

__all__ = ["found_hook"]


def found_hook(path: Path) -> Path:
    """The hook's file: ``path`` itself, or of a folder ``hook.ts``, ``hook.js``, ``hook.c``, else its only source, else
    its only module.

    Raises:
        Misused: The folder has none, or several of which none is called ``hook``.
    """
    if not path.is_dir():
        return path
    for suffix in LANGUAGES:
        if (named := path / f"hook{suffix}").is_file():
            return named
    files = sorted(each for each in path.iterdir() if each.is_file())
    sources = [each for each in files if each.suffix in LANGUAGES and not each.name.endswith(".d.ts")]
    candidates = sources or [each for each in files if each.suffix == ".wasm"]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        hint = "name a hook's source or module, or begin one with `hookcell init my-hook`"
        raise Misused("there is no hook here", code="no_hook", place=escape(str(path)), hint=hint)
    named = ", ".join(escape(each.name) for each in candidates[:10])
    raise Misused(
        f"there are {len(candidates)} files that could be the hook: {named}",
        code="several_hooks",
        place=escape(str(path)),
        hint="name the one that is meant",
    )
