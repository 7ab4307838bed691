"""Builds what the TypeScript SDK ships: the JavaScript engine, and the type stripper's own files.

``python -m hookcell_guest.build_runtime`` rebuilds both in a checkout, ``--check`` does so elsewhere and fails where a
byte differs.

The engine is QuickJS-NG, out of the source package ``quickjs-ng`` of PyPI, behind the C files in
``guest_sdk/languages/typescript/runtime``, and as it stands once it has started. The stripper is sucrase, out of the
npm registry. Both are pinned by hash and kept in a cache. The same sources give the same bytes on every machine: no
paths, no dates, no debug information, one pinned compiler.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from hookcell_sandbox import SandboxError

from .build_c import BuildFailed
from .sections import RewriteFailed
from .snapshot import snapshot

__all__ = ["build_engine", "main", "stripper_files"]

_LANGUAGES: Final = Path(__file__).resolve().parent.parent / "languages"

_QUICKJS: Final = "quickjs-ng==0.17.0.2"
_QUICKJS_ARCHIVE: Final = "quickjs_ng-0.17.0.2.tar.gz"
_QUICKJS_SHA256: Final = "43d2e48272208721a7aaea8e3f02d4b9318f12ef20cc4f5421b59d9a470706ef"
_QUICKJS_FOLDER: Final = "quickjs_ng-0.17.0.2/upstream-quickjs/"
_QUICKJS_SOURCES: Final = ("quickjs.c", "libregexp.c", "libunicode.c", "dtoa.c")

_SUCRASE: Final = "sucrase@3.35.1"
_SUCRASE_ARCHIVE: Final = "sucrase-3.35.1.tgz"
_SUCRASE_SHA256: Final = "fa555afbe97fb4f4866084a8838cb66ff520aa1adcd211269b2708afda4bc9bf"
_SUCRASE_FOLDER: Final = "package/dist/esm/"
_SUCRASE_LICENCE: Final = "package/LICENSE"

_TARGET: Final = (
    # The C library of WASI, whose calls to a host runtime/wasi_deny.c answers: nothing is imported.
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    # What the ABI admits and this compiler uses; nothing else can slip in with a newer compiler's default.
    "-mcpu=mvp+bulk_memory+multivalue+mutable_globals+nontrapping_fptoint+sign_ext",
)
_LANGUAGE: Final = ("-std=gnu23", "-D_GNU_SOURCE", "-DNDEBUG", "-fno-sanitize=undefined", "-O2", "-g0")
_OUR_WARNINGS: Final = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function")
_LINK: Final = (
    "-Wl,--export=hook_log",
    "-Wl,--export=hookcell_source",
    # Of the host's 1 MiB of stack this is the part in linear memory; runtime/hookjs.c says how much JavaScript may use.
    "-Wl,-z,stack-size=262144",
    "-Wl,--strip-debug",
)


def build_engine(out: Path) -> None:
    """Build the engine.

    Args:
        out: The module to write; its folder exists.

    Raises:
        BuildFailed: A tool is missing, a download is not what was pinned, or the compiler refuses a source.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise BuildFailed("ziglang is not installed: pip install ziglang==0.17.1")
    archive = _download(
        _QUICKJS_ARCHIVE,
        _QUICKJS_SHA256,
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "quickjs-ng", _QUICKJS],
    )
    runtime = _LANGUAGES / "typescript/runtime"
    with tempfile.TemporaryDirectory(prefix="hookcell-build-") as scratch:
        quickjs = Path(scratch) / "quickjs"
        _unpack(archive, _QUICKJS_FOLDER, quickjs)
        headers = [f"-I{quickjs}", f"-I{_LANGUAGES / 'c'}", f"-I{runtime}"]
        sources: list[str] = []
        for source, flags in [
            *((runtime / name, _OUR_WARNINGS) for name in ("hookjs.c", "wasi_deny.c")),
            *((quickjs / name, ("-w",)) for name in _QUICKJS_SOURCES),
        ]:
            made = Path(scratch) / f"{source.stem}.o"
            _compile([*_LANGUAGE, *flags, *headers, "-c", str(source), "-o", str(made)], scratch)
            sources.append(str(made))
        linked = Path(scratch) / "engine.wasm"
        _compile([*_LINK, *sources, "-o", str(linked)], scratch)
        try:
            out.write_bytes(snapshot(linked.read_bytes(), "hookcell_start"))
        except (RewriteFailed, SandboxError) as error:
            raise BuildFailed(f"the engine does not start: {error}") from error


def stripper_files() -> dict[str, bytes]:
    """Path → content of every file of sucrase that our driver needs, as it was published, and its licence.

    Raises:
        BuildFailed: npm is missing, or the download is not what was pinned.
    """
    archive = _download(_SUCRASE_ARCHIVE, _SUCRASE_SHA256, ["npm", "pack", "--silent", _SUCRASE])
    with tarfile.open(archive) as tar:
        published = {member.name: member for member in tar.getmembers() if member.isfile()}

        def content(name: str) -> bytes:
            file = tar.extractfile(published[name])
            return b"" if file is None else file.read()  # None of what is no file, and those were left out

        driver = (_LANGUAGES / "typescript/stripper/strip.js").read_text("utf-8")
        wanted = [path.removeprefix("./sucrase/") for path in _imports(driver) if path.startswith("./sucrase/")]
        found: dict[str, bytes] = {"LICENSE": content(_SUCRASE_LICENCE)}
        while wanted:
            path = _published_path(wanted.pop(), published)
            if path not in found:
                found[path] = content(_SUCRASE_FOLDER + path)
                folder = posixpath.dirname(path)
                wanted += [posixpath.normpath(posixpath.join(folder, each)) for each in _imports(found[path].decode())]
    return dict(sorted(found.items()))


def _imports(source: str) -> Iterator[str]:
    """The relative paths that a published file imports: its statements have the one form that its compiler writes."""
    for found in re.finditer(r"^(?:import|export)\b[^;'\"]*?[\"'](\.[^\"']+)[\"']", source, re.MULTILINE):
        yield found[1]


def _published_path(path: str, published: Mapping[str, object]) -> str:
    for candidate in (f"{path}.js", f"{path}/index.js", path):
        if _SUCRASE_FOLDER + candidate in published:
            return candidate
    raise BuildFailed(f"{_SUCRASE_ARCHIVE} has no {path}")


def _download(name: str, sha256: str, command: Sequence[str]) -> Path:
    """A pinned archive in the cache, fetched by its registry's own client when it is not there yet."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    kept = Path(root) / "hookcell" / "sources" / name
    if not kept.is_file() or _sha256(kept) != sha256:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=kept.parent) as scratch:
            _run(command, cwd=scratch, what=f"fetching {name}")
            fetched = Path(scratch) / name
            if not fetched.is_file() or _sha256(fetched) != sha256:
                raise BuildFailed(f"{name} is not the file that was pinned (sha256 {sha256})")
            fetched.replace(kept)
    return kept


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _unpack(archive: Path, folder: str, into: Path) -> None:
    into.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            file = tar.extractfile(member) if member.isfile() and member.name.startswith(folder) else None
            if file is not None:
                (into / Path(member.name).name).write_bytes(file.read())


def _compile(arguments: Sequence[str], scratch: str) -> None:
    # The compiler's per-project cache would otherwise appear in whatever folder the caller stands in. Its C library is
    # built once into ZIG_GLOBAL_CACHE_DIR, or its default: a minute the first time.
    environment = {"ZIG_LOCAL_CACHE_DIR": scratch, **os.environ}
    command = [sys.executable, "-m", "ziglang", "cc", *_TARGET, *arguments]
    _run(command, cwd=scratch, what="the compiler", environment=environment)


def _run(command: Sequence[str], *, cwd: str, what: str, environment: Mapping[str, str] | None = None) -> None:
    try:
        run = subprocess.run(  # noqa: S603 an argument list of our own, no shell
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise BuildFailed(f"{what}: {command[0]} is not installed") from error
    if run.returncode != 0:
        raise BuildFailed(f"{what} failed\n{run.stderr.strip()}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code: 0, or 1 with a reason on standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m hookcell_guest.build_runtime", description="Build the JavaScript engine and the type stripper."
    )
    parser.add_argument("--check", action="store_true", help="rebuild them elsewhere and compare the bytes")
    chosen = parser.parse_args(arguments)
    try:
        if not (_LANGUAGES / "typescript/runtime/hookjs.c").is_file():
            raise BuildFailed("the engine's sources are not here: this runs in a checkout of the project")
        if chosen.check:
            _check()
        else:
            build_engine(_LANGUAGES / "typescript/runtime/engine.wasm")
            for path, content in stripper_files().items():
                file = _LANGUAGES / "typescript/stripper/sucrase" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
    except BuildFailed as failure:
        print(failure, file=sys.stderr)  # noqa: T201 a command's own output
        return 1
    return 0


def _check() -> None:
    with tempfile.TemporaryDirectory(prefix="hookcell-check-") as scratch:
        rebuilt = Path(scratch) / "engine.wasm"
        build_engine(rebuilt)
        different = (
            [] if _same(_LANGUAGES / "typescript/runtime/engine.wasm", rebuilt.read_bytes()) else ["engine.wasm"]
        )
    folder = _LANGUAGES / "typescript/stripper/sucrase"
    published = stripper_files()
    different += [path for path, content in published.items() if not _same(folder / path, content)]
    here = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    different += sorted(here - published.keys())
    if different:
        raise BuildFailed(
            f"not what their sources build: {', '.join(different)}; run python -m hookcell_guest.build_runtime"
        )


def _same(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


if __name__ == "__main__":
    raise SystemExit(main())
