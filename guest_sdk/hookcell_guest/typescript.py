"""Builds hooks written in TypeScript or JavaScript; needs no Node and no compiler.

``python -m hookcell_guest.typescript hook.ts -o hook.wasm`` builds one.

A hook is the engine in ``guest_sdk/languages/typescript/runtime`` with the author's files in its slot, and by default
as it stands once it has run them. The files are a stranger's: types are stripped by sucrase in that same engine, and
the modules run once to learn what they are, both in the sandbox. Nothing of the machine ends up inside.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import msgpack  # type: ignore[import-untyped]  # no stubs exist

from hookcell_sandbox import (
    AdmissionPolicy,
    ArtifactCache,
    EngineSettings,
    Limits,
    Program,
    Sandbox,
    SandboxError,
    admit,
    escape,
)

from .build_c import BuildFailed
from .sections import RewriteFailed, exports_of, globals_of, read_sections
from .snapshot import take_snapshot
from .wasm import add_data, remove_exports, set_custom

__all__ = ["SDK", "BuildFailed", "BuildReport", "build", "main"]

SDK: Final = "typescript/0.1"

_pack: Final = cast("Callable[[object], bytes]", cast("Any", msgpack).packb)
_unpack: Final = cast("Callable[[bytes], object]", cast("Any", msgpack).unpackb)

_PACKAGE: Final = Path(__file__).resolve().parent
_MIB: Final = 1024 * 1024

# What the files of one hook may take together, in the slot: HOOKJS_SOURCE_BYTES of runtime/modules.h, less its length.
_SOURCE_BYTES: Final = _MIB - 4
_FILES: Final = 500

_SCRIPTS: Final = (".ts", ".js")
# Where an import may lead, in this order; `hookjs_resolve` of runtime/modules.h is the same list.
_ENDINGS: Final = ("", ".ts", ".js", ".json", "/index.ts", "/index.js")

# The engine's exports that are for the builder alone. `hookcell_setup` is gone once the snapshot was taken.
_SLOT: Final = "hookcell_source"
_SETUP: Final = "hookcell_setup"
_POINTS: Final = (
    *("pre_tool_call", "post_tool_call", "pre_generate", "post_generate"),
    *("before_prompt", "before_tool", "after_tool", "after_response", "on_error"),
)

# Stripping starts the engine on 430 KB of sucrase and parses a file twice: about 250M of fuel and 20 MiB at most.
_STRIP_LIMITS: Final = Limits(
    fuel=20_000_000_000, deadline_ms=30_000, memory_bytes=128 * _MIB, input_bytes=2 * _MIB, output_bytes=4 * _MIB
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What was built.

    Attributes:
        out: The module.
        size: Its bytes.
        points: The hook points it implements.
        manifest: What its manifest section says.
        files: The author's files in it, relative to the entry's folder, the entry first.
        snapshot: Whether it is as it stood once its modules had run.
    """

    out: Path
    size: int
    points: tuple[str, ...]
    manifest: Mapping[str, object] = field(repr=False)
    files: tuple[str, ...]
    snapshot: bool


def build(entry: Path, out: Path, *, snapshot: bool = True) -> BuildReport:
    """Build one hook. Blocks for seconds.

    Args:
        entry: A ``.ts`` or ``.js`` file whose default export is the hook. What it imports by relative path is built in,
            as far as it lies in the entry's folder.
        out: The module to write; its folder exists.
        snapshot: False leaves the modules to run at each call.

    Raises:
        BuildFailed: A file cannot be read, parsed or run, or the hook is none. The text begins with the file, line and
            column where that is known.
    """
    files = _collect(entry)
    slot = _pack([[path, text] for path, text in files.items()])
    if len(slot) > _SOURCE_BYTES:
        raise BuildFailed(f"{entry}: the hook's files take {len(slot):_} bytes (limit {_SOURCE_BYTES:_})")
    try:
        wasm = _with_files(slot)
        ready = take_snapshot(wasm, _SETUP, cache=_artifacts())
        description = _description(ready.memory, ready.result or 0)
        points = _points(description, entry)
        manifest = _manifest(description, entry)
        unused = [point for point in _POINTS if point not in points]
        wasm = ready.wasm if snapshot else remove_exports(wasm, [_SETUP])
        wasm = remove_exports(wasm, [*unused, *_builders_exports(wasm)])
        wasm = set_custom(wasm, "hookcell", json.dumps(manifest, ensure_ascii=False, separators=(",", ":")).encode())
        admit(wasm, AdmissionPolicy(entry_points=frozenset(points)))
    except (RewriteFailed, SandboxError) as error:
        raise BuildFailed(f"{entry}: {error}") from error
    out.write_bytes(wasm)
    return BuildReport(out=out, size=len(wasm), points=points, manifest=manifest, files=tuple(files), snapshot=snapshot)


# --- the author's files -----------------------------------------------------------------------------------------------


def _collect(entry: Path) -> dict[str, str]:
    """Path → JavaScript or JSON of the entry and everything it imports, the entry first."""
    if not entry.is_file():
        raise BuildFailed(f"{entry} is not a file")
    if entry.suffix not in _SCRIPTS:
        raise BuildFailed(f"{entry}: a hook is a {' or '.join(_SCRIPTS)} file")
    folder = entry.resolve().parent
    found: dict[str, str] = {}
    wanted = [entry.name]
    with _Stripper() as stripper:
        while wanted:
            path = wanted.pop()
            if path in found:
                continue
            if len(found) == _FILES:
                raise BuildFailed(f"{entry}: the hook has more than {_FILES} files")
            text = _read(folder, path)
            if path.endswith(".json"):
                found[path] = _checked_json(path, text)
                continue
            found[path], imports = stripper.strip(path, text)
            wanted += [target for each in imports if (target := _target(folder, path, each)) is not None]
    return found


def _read(folder: Path, path: str) -> str:
    file = folder / path
    if not file.resolve().is_relative_to(folder):
        raise BuildFailed(f"{path}: it leads out of the hook's folder")
    try:
        raw = file.read_bytes()
        if len(raw) > _SOURCE_BYTES:
            raise BuildFailed(f"{path} has {len(raw):_} bytes (limit {_SOURCE_BYTES:_} for all files)")
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise BuildFailed(f"{path}: it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BuildFailed(f"{path}: it is not UTF-8 (byte {error.start:_})") from error


def _checked_json(path: str, text: str) -> str:
    try:
        json.loads(text)
    except RecursionError as error:
        raise BuildFailed(f"{path}: it nests too deep") from error
    except json.JSONDecodeError as error:
        raise BuildFailed(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise BuildFailed(f"{path}: {error}") from error
    return text


@dataclass(frozen=True, slots=True)
class _Import:
    specifier: str
    line: int
    column: int


def _target(folder: Path, path: str, wanted: _Import) -> str | None:
    """The file that an import leads to; None for the SDK's own module."""
    specifier, place = wanted.specifier, f"{path}:{wanted.line}:{wanted.column}"
    named = f"cannot import '{escape(specifier)}'"
    if specifier == "hookcell":
        return None
    if not specifier.startswith(("./", "../")):
        raise BuildFailed(f"{place}: {named}: a hook has its own files ('./x') and 'hookcell', nothing else")
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), specifier))
    if joined == ".." or joined.startswith("../"):
        raise BuildFailed(f"{place}: {named}: it leaves the hook's folder")
    for candidate in _candidates(joined):
        if candidate.endswith((*_SCRIPTS, ".json")) and _is_file(folder / candidate):
            return candidate
    raise BuildFailed(f"{place}: {named}: there is no such .ts, .js or .json file")


def _candidates(path: str) -> Iterator[str]:
    for ending in _ENDINGS:
        yield path + ending
    if path.endswith(".js"):  # TypeScript's own way to import x.ts
        yield path[:-3] + ".ts"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


class _Stripper:
    """Strips types and lists imports, in the sandbox; a context manager."""

    def __init__(self) -> None:
        settings = EngineSettings(slots=1, memory_bytes=_STRIP_LIMITS.memory_bytes)
        self._sandbox = Sandbox(settings=settings, limits=_STRIP_LIMITS, cache=_artifacts())
        self._program: Program | None = None

    def __enter__(self) -> _Stripper:
        return self

    def __exit__(self, *_: object) -> None:
        self._sandbox.close()

    def strip(self, path: str, text: str) -> tuple[str, list[_Import]]:
        """The file as JavaScript, every line where it was, and what it imports.

        Raises:
            BuildFailed: It cannot be parsed.
        """
        if self._program is None:
            policy = AdmissionPolicy(entry_points=frozenset({"before_prompt"}))
            self._program = self._sandbox.load(_with_files(_stripper_slot()), policy)
        config = {"path": path, "typescript": path.endswith(".ts")}
        payload = _pack({"point": "before_prompt", "prompt": text, "config": config})
        try:
            answer = self._sandbox.run_sync(self._program, "before_prompt", payload).output
        except SandboxError as error:
            raise BuildFailed(f"{path}: it could not be parsed: {error}") from error
        return _stripped(path, answer)


def _stripped(path: str, answer: bytes | None) -> tuple[str, list[_Import]]:
    """What the stripper gave: bytes of a guest that read a stranger's file, so believed in nothing but their shape."""
    outcome = _map(_unpacked(answer or b""))
    if error := _map(outcome.get("error")):
        raise BuildFailed(escape(str(error.get("message")), characters=2_000))
    text, imports = outcome.get("replace"), _map(outcome.get("meta")).get("imports")
    if not isinstance(text, str) or not isinstance(imports, list):
        raise BuildFailed(f"{path}: the stripper gave no JavaScript")
    found: list[_Import] = []
    for each in map(_map, cast("list[object]", imports)):
        specifier, line, column = (each.get(key) for key in ("from", "line", "column"))
        if not (isinstance(specifier, str) and isinstance(line, int) and isinstance(column, int)):
            raise BuildFailed(f"{path}: the stripper gave no list of imports")
        found.append(_Import(specifier, line, column))
    return text, found


@cache
def _stripper_slot() -> bytes:
    folder = _shipped() / "stripper"
    files = [folder / "strip.js", *sorted((folder / "sucrase").rglob("*.js"))]
    return _pack([[file.relative_to(folder).as_posix(), file.read_text("utf-8")] for file in files])


def _artifacts() -> ArtifactCache | None:
    """Compiling the engine takes seconds, so it is kept where that can be done."""
    try:
        return ArtifactCache()
    except SandboxError:
        return None


# --- the module -------------------------------------------------------------------------------------------------------


def _with_files(slot: bytes) -> bytes:
    """The engine with these files in its slot."""
    engine = _engine()
    return add_data(engine, _slot_address(engine), struct.pack("<I", len(slot)) + slot)


@cache
def _engine() -> bytes:
    return (_shipped() / "runtime/engine.wasm").read_bytes()


def _slot_address(engine: bytes) -> int:
    sections = read_sections(engine)
    index = next(export.index for export in exports_of(sections) if export.name == _SLOT.encode())
    initial = globals_of(sections)[index].initial
    # i32.const, a signed LEB128 that is positive, end
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(initial[1:-1]))


def _builders_exports(wasm: bytes) -> list[str]:
    names = {export.name.decode() for export in exports_of(read_sections(wasm))}
    return sorted(name for name in names if name.startswith("hookcell_"))


def _shipped() -> Path:
    """The folder of the engine: inside the installed package, or beside it in a checkout."""
    for folder in (_PACKAGE / "languages/typescript", _PACKAGE.parent / "languages/typescript"):
        if (folder / "runtime/engine.wasm").is_file():
            return folder
    raise BuildFailed("the JavaScript engine is missing from this installation: reinstall hookcell")


# --- what the hook says of itself -------------------------------------------------------------------------------------


def _description(memory: bytes, packed: int) -> dict[str, object]:
    """The map that the setup returned. Raises `BuildFailed` with the author's error where it holds one."""
    address, length = packed >> 32, packed & 0xFFFF_FFFF
    if length > _MIB:
        raise BuildFailed(f"the hook describes itself in {length:_} bytes (limit {_MIB:_})")
    description = _map(_unpacked(memory[address : address + length]))
    if error := _map(description.get("error")):
        name, message, stack = (
            escape(str(error.get(key, "")), characters=4_000) for key in ("name", "message", "stack")
        )
        place = re.search(r"[^\s(]+:\d+:\d+", stack)
        raise BuildFailed(f"{place[0] if place else 'the hook'}: {name}: {message}")
    return description


def _points(description: Mapping[str, object], entry: Path) -> tuple[str, ...]:
    points = description.get("points")
    named = [point for point in _POINTS if isinstance(points, list) and point in points]
    if not named:
        raise BuildFailed(f"{entry}: the hook names no point")
    return tuple(named)


def _manifest(description: Mapping[str, object], entry: Path) -> dict[str, object]:
    said = {key: value for key, value in description.items() if key != "points"}
    for key in ("name", "version", "description", "storage"):
        if not isinstance(said.get(key, ""), str):
            raise BuildFailed(f"{entry}: the hook's {key} is no string")
    if not isinstance(said.get("needs", []), list):
        raise BuildFailed(f"{entry}: the hook's needs is no list of context fields")
    if not isinstance(said.get("config", {}), dict):
        raise BuildFailed(f"{entry}: the hook's config is no JSON Schema")
    manifest: dict[str, object] = {"abi": 1, **said, "sdk": SDK}
    try:
        json.dumps(manifest)
    except TypeError as error:  # bytes
        raise BuildFailed(f"{entry}: what the hook says of itself is no JSON: {error}") from error
    return manifest


def _unpacked(raw: bytes) -> object:
    try:
        return _unpack(raw)
    except ValueError:  # which msgpack's own errors are too
        return None


def _map(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


# --- the command ------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code: 0, or 1 with a reason on standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m hookcell_guest.typescript", description="Build a hook written in TypeScript or JavaScript."
    )
    parser.add_argument("entry", type=Path, help="the file whose default export is the hook")
    parser.add_argument("-o", "--out", type=Path, help="the module to write (default: ENTRY with .wasm)")
    parser.add_argument("--no-snapshot", action="store_true", help="run the modules at each call, not at build time")
    chosen = parser.parse_args(arguments)
    try:
        report = build(chosen.entry, chosen.out or chosen.entry.with_suffix(".wasm"), snapshot=not chosen.no_snapshot)
    except BuildFailed as failure:
        print(failure, file=sys.stderr)  # noqa: T201 a command's own output
        return 1
    print(f"{report.out}: {report.size:_} bytes, {', '.join(report.points)}")  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
