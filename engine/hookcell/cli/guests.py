"""The hooks of a command line: modules loaded into one sandbox, each with its config, policy and limits."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hookcell.budget import ChainLimits
from hookcell.errors import ConfigInvalid
from hookcell.hook import FailurePolicy, GuestHook, admission_policy, check_name
from hookcell.manifest import parse_manifest
from hookcell_sandbox.errors import ModuleRejected, SandboxError
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import Limits, ModuleLimits

from .errors import CommandFailed, Misused
from .json_files import parse_json, read_json
from .recorded_runs import opened

if TYPE_CHECKING:
    from hookcell_sandbox import ArtifactCache, Sandbox

    from .terminal import Terminal

__all__ = ["Asked", "config_option", "load_guests", "module_bytes", "rejection", "sandbox_for"]

_FINDING_LINES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks of the hooks.

    Attributes:
        modules: Their files, in the order they run.
        configs: By manifest name or file stem.
        on_failure: The policy of all (P11).
        limits: Of each call.
    """

    modules: Sequence[Path]
    configs: Mapping[str, object] = field(default_factory=dict[str, object])
    on_failure: FailurePolicy = "skip"
    limits: Limits = field(default_factory=Limits)


def config_option(text: str) -> tuple[str, object]:
    """``NAME=FILE`` or ``NAME=JSON`` as a name and a document. JSON is what begins with ``{``.

    Raises:
        Misused: It has no name, or the document cannot be read.
    """
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise Misused(f"--config {escape(text)}: give NAME=FILE or NAME='{{…}}'")
    if value.lstrip().startswith("{"):
        return name, parse_json(value, f"--config {escape(name)}")
    return name, read_json(Path(value))


@contextmanager
def sandbox_for(limits: Limits, terminal: Terminal) -> Generator[Sandbox]:
    """A sandbox whose slots fit the limits, with the user's cache of compiled code where that can be had.

    Raises:
        Misused: No sandbox can have such limits.
        CommandFailed: There is no sandbox to be had here.
    """
    from hookcell_sandbox import EngineSettings, Sandbox

    settings = EngineSettings()
    try:
        if limits.memory_bytes > settings.memory_bytes:
            # One guest runs at a time here, so a few large slots do.
            settings = replace(settings, memory_bytes=limits.memory_bytes, slots=4)
        sandbox = Sandbox(settings=settings, limits=limits, cache=_cache(terminal))
    except (ValueError, TypeError) as error:
        raise Misused(str(error)) from error
    except SandboxError as error:
        raise CommandFailed(str(error)) from error
    with sandbox:
        yield sandbox


def _cache(terminal: Terminal) -> ArtifactCache | None:
    from hookcell_sandbox import ArtifactCache

    try:
        return ArtifactCache()
    except SandboxError as error:
        terminal.note(f"hookcell: compiled code is not kept for next time: {error}", "yellow")
        return None


def load_guests(asked: Asked, sandbox: Sandbox) -> list[GuestHook]:
    """The hooks, in order.

    Raises:
        CommandFailed: A module or its config is refused, with every finding.
        Misused: A file cannot be read, two hooks have one name, a config names none of them, or the policy does not
            fit.
    """
    hooks: list[GuestHook] = []
    most = ChainLimits().hooks_per_point
    if len(asked.modules) > most:
        raise Misused(f"{len(asked.modules):,} hooks, of which a point may have {most:,}; run them in parts")
    unused = dict(asked.configs)
    for path in asked.modules:
        hook = _load(path, asked, sandbox, unused)
        if any(hook.name == other.name for other in hooks):
            raise Misused(
                f"{escape(str(path))}: a second hook called '{hook.name}'; a name stands for one hook, so give it "
                "another in its manifest or run the two apart"
            )
        hooks.append(hook)
    if unused:
        known = ", ".join(f"'{hook.name}'" for hook in hooks)
        named = ", ".join(f"'{escape(name)}'" for name in unused)
        raise Misused(f"--config for {named}: no such hook; there is {known}")
    return hooks


def _load(path: Path, asked: Asked, sandbox: Sandbox, unused: dict[str, object]) -> GuestHook:
    wasm = module_bytes(path)
    shown = escape(str(path))
    try:
        # Whoever allows a call more memory allows a module to start with it.
        memory_bytes = max(ModuleLimits().memory_bytes, asked.limits.memory_bytes)
        program = sandbox.load(wasm, admission_policy(ModuleLimits(memory_bytes=memory_bytes)))
        name = parse_manifest(program.manifest).name
        _check_name(name or path.stem, shown)
        # The manifest's name goes first, for that is what the hook is called.
        key = name if name is not None and name in unused else path.stem
        config = unused.pop(key, None)
        return GuestHook.from_program(
            program,
            sandbox=sandbox,
            fallback_name=path.stem,
            config=config,
            limits=asked.limits,
            on_failure=asked.on_failure,
        )
    except ModuleRejected as error:
        raise CommandFailed(rejection(error, shown)) from error
    except ConfigInvalid as error:
        raise CommandFailed(f"{shown}: {error}; see `hookcell inspect {shown}` for its schema") from error
    except SandboxError as error:
        raise CommandFailed(f"{shown}: {error}") from error
    except ValueError as error:
        raise Misused(f"{shown}: {error}") from error


def _check_name(name: str, shown: str) -> None:
    try:
        check_name(name)
    except ValueError as error:
        raise CommandFailed(f"{shown}: {error}") from error


def module_bytes(path: Path) -> bytes:
    """A module's bytes, and no more of them than it takes to see that they are too many."""
    with opened(path) as file:
        return file.read(ModuleLimits().module_bytes + 1)


def rejection(error: ModuleRejected, shown: str) -> str:
    """Every finding on a line of its own."""
    count = len(error.findings)
    lines = [f"{shown}: not admitted, for {count} reason{'s' if count != 1 else ''}"]
    lines += [f"  {finding}" for finding in error.findings[:_FINDING_LINES]]
    if count > _FINDING_LINES:
        lines.append(f"  and {count - _FINDING_LINES} more")
    return "\n".join(lines)
