"""Builds hooks written in C with the clang of the PyPI package ``ziglang``.

``python -m hookcell_guest.build_c SOURCE -o OUT`` builds one.

The same source gives the same bytes on every machine: no paths, no dates, no debug information, one pinned compiler.
``--all`` rebuilds the hooks that hookcell ships, ``--check`` does so elsewhere and fails where the bytes differ.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["BuildFailed", "build", "main", "shipped_hooks"]

_PACKAGE = Path(__file__).resolve().parent

_TARGET = (
    # No WASI and no C library: a call to either is a link error here, not an import that the sandbox refuses later.
    "--target=wasm32-freestanding",
    # What the ABI admits and this compiler uses; nothing else can slip in with a newer compiler's default.
    "-mcpu=mvp+bulk_memory+multivalue+mutable_globals+nontrapping_fptoint+sign_ext",
)
_LANGUAGE = ("-std=c17", "-ffreestanding", "-fno-sanitize=undefined")
# A hook that needs nothing of its context is no mistake.
_WARNINGS = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror")
_SIZE = ("-Oz", "-g0")
_LINK = (
    "-nostdlib",
    "-Wl,--no-entry",
    "-Wl,--export=hook_log",
    # The sandbox clears what a call touched, so a small stack is a fast hook; it lies below the data and overflows
    # into a trap.
    "-Wl,-z,stack-size=65536",
    # Not --strip-all, which would take the manifest too.
    "-Wl,--strip-debug",
)


class BuildFailed(Exception):
    """The hook could not be built, or the rebuilt bytes differ. The text says which and what to do."""


def build(source: Path, out: Path) -> None:
    """Compile one C file into one hook.

    Args:
        source: A C file that includes ``hookcell.h``; the folder of that header is on the include path.
        out: The module to write; its folder exists.

    Raises:
        BuildFailed: The compiler is missing or refuses the source; its own words are in the text.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise BuildFailed("ziglang is not installed: pip install ziglang==0.17.1")
    if not source.is_file():
        raise BuildFailed(f"{source} is not a file")
    command = [sys.executable, "-m", "ziglang", "cc", *_TARGET, *_LANGUAGE, *_WARNINGS, *_SIZE, *_LINK]
    command += [f"-I{_headers()}", "-o", str(out.absolute()), str(source.absolute())]
    with tempfile.TemporaryDirectory(prefix="hookcell-build-") as scratch:
        # The compiler's per-project cache would otherwise appear in whatever folder the caller stands in.
        environment = {"ZIG_LOCAL_CACHE_DIR": scratch, **os.environ}
        run = subprocess.run(  # noqa: S603 an argument list of our own, no shell
            command, env=environment, capture_output=True, text=True, check=False
        )
    if run.returncode != 0:
        raise BuildFailed(f"{source}: the compiler refused it\n{run.stderr.strip()}")
    out.chmod(0o644)  # the linker makes programs


def shipped_hooks() -> dict[Path, Path]:
    """Source → module of every C hook in a checkout; empty where only the package is installed."""
    root = _PACKAGE.parent.parent
    sources = sorted((root / "guest_sdk/languages/c/examples").glob("*.c"))
    return {source: root / "engine/hookcell/demo/hooks" / f"{source.stem}.wasm" for source in sources}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code: 0, or 1 with a reason on standard error."""
    parser = argparse.ArgumentParser(prog="python -m hookcell_guest.build_c", description="Build a hook written in C.")
    parser.add_argument("source", nargs="?", type=Path, help="the C file")
    parser.add_argument("-o", "--out", type=Path, help="the module to write (default: SOURCE with .wasm)")
    parser.add_argument("--all", action="store_true", help="rebuild the hooks that hookcell ships")
    parser.add_argument("--check", action="store_true", help="rebuild them elsewhere and compare the bytes")
    chosen = parser.parse_args(arguments)
    if (chosen.source is not None) + chosen.all + chosen.check != 1:
        parser.error("give one of SOURCE, --all, --check")
    try:
        if chosen.check:
            _check()
        elif chosen.all:
            for source, out in shipped_hooks().items():
                build(source, out)
        else:
            build(chosen.source, chosen.out or chosen.source.with_suffix(".wasm"))
    except BuildFailed as failure:
        print(failure, file=sys.stderr)  # noqa: T201 a command's own output
        return 1
    return 0


def _check() -> None:
    hooks = shipped_hooks()
    if not hooks:
        raise BuildFailed("no shipped hooks here: --check runs in a checkout of the project")
    with tempfile.TemporaryDirectory(prefix="hookcell-check-") as scratch:
        different: list[str] = []
        for source, shipped in hooks.items():
            rebuilt = Path(scratch) / shipped.name
            build(source, rebuilt)
            if not shipped.is_file() or shipped.read_bytes() != rebuilt.read_bytes():
                different.append(shipped.name)
    if different:
        raise BuildFailed(
            f"not what their sources build: {', '.join(different)}; run python -m hookcell_guest.build_c --all"
        )


def _headers() -> Path:
    """The folder of ``hookcell.h``: inside the installed package, or beside it in a checkout."""
    for folder in (_PACKAGE / "languages/c", _PACKAGE.parent / "languages/c"):
        if (folder / "hookcell.h").is_file():
            return folder
    raise BuildFailed("hookcell.h is missing from this installation: reinstall hookcell")


if __name__ == "__main__":
    raise SystemExit(main())
