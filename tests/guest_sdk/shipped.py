"""The shipped hooks, compiled once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

from .bare_guest import BareGuest

DEMO = Path(__file__).parents[2] / "engine/hookcell/demo"
NAMES = ["defaults", "guard", "redact"]
WASM = {name: DEMO / "hooks" / f"{name}.wasm" for name in NAMES}
GUESTS = {name: BareGuest(path) for name, path in WASM.items()}


def entry_of(name: str) -> str:
    """The one point that a shipped hook implements."""
    return "post_tool_call" if name == "redact" else "pre_tool_call"
