"""A JSON document that the user names on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from hookcell_sandbox.guest_text import escape

from .errors import Misused
from .recorded_runs import opened

__all__ = ["parse_json", "read_json"]

_BYTES: Final = 16 * 1024 * 1024
"""More than any config or list of tools has; a mistaken path to something large ends here."""


def read_json(path: Path) -> object:
    """The document in a file.

    Raises:
        Misused: It is not there, too large, or no JSON.
    """
    with opened(path) as file:
        raw = file.read(_BYTES + 1)
    if len(raw) > _BYTES:
        raise Misused(f"{escape(str(path))} is over {_BYTES:_} bytes; is it the right file?")
    return parse_json(raw, escape(str(path)))


def parse_json(raw: bytes | str, shown: str) -> object:
    """The document in a text; ``shown`` names it in errors, escaped.

    Raises:
        Misused: It is no JSON.
    """
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        raise Misused(f"{shown} is no JSON at line {error.lineno:_}, column {error.colno:_}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise Misused(f"{shown} is no JSON: {escape(str(error))}") from error
