"""The command line of ``hookcell``."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import Final

from hookcell_sandbox.limits import MIB, Limits

from .author_arguments import add_author_commands

__all__ = ["parser"]

_DEFAULTS: Final = Limits()

_EXAMPLES: Final = """\
examples:
  hookcell demo
  hookcell init my-hook && hookcell test my-hook
  hookcell build hook.ts && hookcell check hook.wasm
  hookcell run hook.ts --context tests/denies.json
  hookcell inspect redact.wasm
  hookcell run redact.wasm --on runs.jsonl.gz
  hookcell run guard.wasm redact.wasm --on runs.jsonl --config guard=guard.json --show 3

exit codes:
  0    done            2    the command line cannot be carried out
  1    refused         130  interrupted
"""

_RUN: Final = """\
With --context, call one hook once and show everything that comes of it: logs, outcome,
what changed, and what it used of the limits. FILE is a JSON object: the context's fields,
"point", and perhaps "config" and "storage"; or a test case. Limits are those of production;
the call may go over them, up to ten times, and what they would refuse is red.

With --on, drive recorded runs through hooks, as if each call were happening now, and say what
that comes to. RUNS holds one run a line: {"runId": …, "messages": [OpenAI chat history]}.

Each assistant message is a model call (pre_generate, post_generate), each of its tool
calls goes through pre_tool_call, and each tool message through post_tool_call. Tools are
not run again: their recorded results are used, also where a hook rewrote the arguments.
"""

_RUN_EPILOG: Final = """\
examples:
  hookcell run guard.wasm --context call.json --config guard.json
  hookcell run redact.wasm --on runs.jsonl.gz --show 3
  hookcell run guard.wasm --on runs.jsonl --tools tools.json --config guard=guard.json
  hookcell run guard.wasm --on runs.jsonl --config guard='{"deny": [{"tool": "delete_*"}]}'
  hookcell run guard.wasm --on runs.jsonl --ndjson | jq -c 'select(.kind == "denied")'

exit codes:
  0    the call went well, or every line was replayed, whatever the hooks decided
  1    a module, a config, a line of RUNS or the call was refused, or the call failed
  2    the command line cannot be carried out
  3    with --exit-code: a hook denied a call, failed, or gave arguments that do not fit
  130  interrupted
"""

_INSPECT: Final = """\
Say what a module can do, what it can never do, and how large it is against the limits.
Nothing of it is compiled or run. Exit code 1 when it would be refused, with every reason.
"""


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; the command's name is in ``command``."""
    top = argparse.ArgumentParser(
        prog="hookcell",
        description="Run untrusted hooks of LLM agents in a WebAssembly sandbox.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"hookcell {version('hookcell')}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _fill_run(
        commands.add_parser(
            "run",
            help="call a hook once, or drive recorded agent runs through hooks",
            description=_RUN,
            epilog=_RUN_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    )
    _fill_inspect(
        commands.add_parser(
            "inspect",
            help="say what a module can do and can never do",
            description=_INSPECT,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    )
    add_author_commands(commands.add_parser)
    commands.add_parser("demo", help="see three hooks at work, without arguments or a network", allow_abbrev=False)
    return top


def _fill_run(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "hooks", nargs="+", type=Path, metavar="HOOK", help="modules, or sources to build, in the order they run"
    )
    given = run.add_mutually_exclusive_group(required=True)
    given.add_argument("--on", type=Path, metavar="RUNS", help="recorded runs: JSON lines, plain or gzipped")
    given.add_argument("--context", type=Path, metavar="FILE", help="one call's context, for one hook")
    run.add_argument("--point", metavar="POINT", help="the hook point, with --context; the file may name it")
    run.add_argument("--tools", type=Path, metavar="FILE", help="schemas of the tools: OpenAI's list, or a map")
    run.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=FILE|JSON",
        help="config of one hook, by its manifest's name or its file's; may be given again; NAME= may be left out "
        "with --context",
    )
    run.add_argument(
        "--on-failure",
        choices=["skip", "deny", "raise"],
        help="what a hook's failure does: skip it and go on (default, so that one failure does not hide the rest), "
        "refuse that tool call, or end that run, which is what an agent does unless told otherwise",
    )
    limits = run.add_argument_group("limits of each call")
    limits.add_argument(
        "--fuel",
        type=int,
        metavar="N",
        help=f"instructions, about (default {_DEFAULTS.fuel:,}); each KiB of context adds {_DEFAULTS.fuel_per_kib:,}",
    )
    limits.add_argument(
        "--deadline", type=int, metavar="MS", help=f"wall clock in milliseconds (default {_DEFAULTS.deadline_ms:,})"
    )
    limits.add_argument(
        "--memory", type=int, metavar="MIB", help=f"memory in MiB (default {_DEFAULTS.memory_bytes // MIB})"
    )
    output = run.add_argument_group("output")
    output.add_argument("--show", type=int, default=0, metavar="N", help="show N examples, before and after")
    form = output.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--ndjson", action="store_true", help="print one JSON object a decision, then the summary")
    output.add_argument("--exit-code", action="store_true", help="exit 3 when a hook denied a call or failed")


def _fill_inspect(inspect: argparse.ArgumentParser) -> None:
    inspect.add_argument("hook", type=Path, metavar="HOOK.wasm")
    inspect.add_argument("--json", action="store_true", help="print one JSON object")
