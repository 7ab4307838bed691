"""Small hooks as their authors write them."""

from __future__ import annotations

from pathlib import Path

import pytest

NO_SHELL = """\
#include "hookcell.h"

HOOK_MANIFEST({"abi": 1, "name": "no-shell", "version": "1.0.0", "needs": ["toolName", "args"]})

HOOK_POINT(pre_tool_call, context) {
  hook_text tool = hook_as_text(hook_get(context, "toolName"));
  if (!hook_same(tool, hook_c("shell"))) return hook_nothing();
  hook_log_text(hook_as_text(hook_get(hook_get(context, "args"), "command")));
  hook_log_line();
  return hook_deny("The shell is off here.");
}
"""


def c_source(folder: Path, text: str = NO_SHELL, name: str = "no_shell.c") -> Path:
    """A source in C; the test is left out where there is no compiler."""
    pytest.importorskip("ziglang", reason="ziglang is not installed")
    path = folder / name
    path.write_text(text, "utf-8")
    return path
