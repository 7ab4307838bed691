"""``hookcell demo``: the shipped hooks over a small recorded run, without arguments or a network."""

from __future__ import annotations

import json
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .demo_agent import demo_agent
from .guests import Asked
from .run import Run, run
from .tool_schemas import tool_schemas

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from .terminal import Terminal

__all__ = ["DEMO_HOOKS", "demo"]

DEMO_HOOKS: Final = ("guard", "defaults", "redact")
"""In the order they run: what is denied needs no defaults."""

_EXAMPLES: Final = 3

_INTRODUCTION: Final = """\
A bookshop's support agent was recorded. Three hooks that nobody has to trust
now look at each of its tool calls, each in a sandbox of its own:
  guard     denies calls by tool and by the size of an argument
  defaults  fills in arguments that the model left out
  redact    masks e-mail addresses, cards and phones in what tools return
"""

_LIVE: Final = "The same hooks in a live agent, whose model is scripted:"

_NEXT: Final = """\
Next:
  hookcell inspect {guard}
  hookcell run HOOK.wasm --on RUNS.jsonl      your hook over your own runs
  hookcell run --help"""


def demo(terminal: Terminal) -> int:
    """Run the demo; the exit code."""
    root = files("hookcell").joinpath("demo")
    with ExitStack() as stack:

        def local(resource: Traversable) -> Path:
            return stack.enter_context(as_file(resource))

        hooks = [local(root.joinpath("hooks", f"{name}.wasm")) for name in DEMO_HOOKS]
        configs = json.loads(root.joinpath("hooks.json").read_text("utf-8"))
        for line in _INTRODUCTION.splitlines():
            terminal.print(line)
        terminal.print()
        asked = Asked(modules=hooks, configs=configs)
        tools = local(root.joinpath("tools.json"))
        code = run(Run(asked=asked, source=local(root.joinpath("run.jsonl")), tools=tools, show=_EXAMPLES), terminal)
        terminal.print()
        terminal.print(_LIVE)
        demo_agent(asked, tool_schemas(tools), terminal)
        terminal.print()
        for line in _NEXT.format(guard=_short(hooks[0])).splitlines():
            terminal.print(line)
    return code


def _short(path: Path) -> str:
    """The path from here where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
