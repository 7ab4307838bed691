"""The hooks of a command line: modules loaded into one sandbox, each with its config, policy and limits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hookcell.budget import ChainLimits
from hookcell.errors import ConfigInvalid
from hookcell.hook import FailurePolicy, GuestHook, GuestSandbox, admission_policy, check_name
from hookcell.manifest import parse_manifest
from hookcell_sandbox.errors import Finding, ModuleRejected, SandboxError
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import Limits, ModuleLimits

from .errors import CommandFailed, Misused
from .json_files import parse_json, read_json
from .sources import hook_file

if TYPE_CHECKING:
    from hookcell_sandbox import ArtifactCache, Sandbox

    from .terminal import Terminal

__all__ = ["Asked", "config_option", "load_guest", "load_guests", "rejection", "sandbox_for"]

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
    wasm = hook_file(path).wasm

    def config_of(name: str | None) -> object:
        # The manifest's name goes first, for that is what the hook is called.
        return unused.pop(name if name is not None and name in unused else path.stem, None)

    return load_guest(
        wasm, path, sandbox=sandbox, config_of=config_of, limits=asked.limits, on_failure=asked.on_failure
    )


def load_guest(
    wasm: bytes,
    path: Path,
    *,
    sandbox: GuestSandbox,
    config_of: Callable[[str | None], object],
    limits: Limits,
    on_failure: FailurePolicy = "raise",
) -> GuestHook:
    """One hook.

    Args:
        wasm: Its module.
        path: The file that the user named.
        sandbox: Where it will run.
        config_of: Gives its config, or None, for the manifest's name.
        limits: Of each call.
        on_failure: Its policy (P11).

    Raises:
        CommandFailed: The module or its config is refused, with every finding.
        Misused: The policy or the limits do not fit.
    """
    shown = escape(str(path))
    try:
        # Whoever allows a call more memory allows a module to start with it.
        memory_bytes = max(ModuleLimits().memory_bytes, limits.memory_bytes)
        program = sandbox.load(wasm, admission_policy(ModuleLimits(memory_bytes=memory_bytes)))
        name = parse_manifest(program.manifest).name
        _check_name(name or path.stem, shown)
        return GuestHook.from_program(
            program,
            sandbox=sandbox,
            fallback_name=path.stem,
            config=config_of(name),
            limits=limits,
            on_failure=on_failure,
        )
    except ModuleRejected as error:
        raise rejection(error.findings, shown) from error
    except ConfigInvalid as error:
        hint = f"`hookcell inspect {shown}` shows its schema with --json"
        raise CommandFailed(str(error), code=error.code, place=shown, hint=hint) from error
    except SandboxError as error:
        raise CommandFailed(str(error), code=error.code, place=shown) from error
    except ValueError as error:
        raise Misused(str(error), place=shown) from error


def _check_name(name: str, shown: str) -> None:
    try:
        check_name(name)
    except ValueError as error:
        raise CommandFailed(f"{shown}: {error}") from error


def rejection(findings: Sequence[Finding], shown: str) -> CommandFailed:
    """The refusal of a module: every finding on a line of its own."""
    count = len(findings)
    lines = [f"not admitted, for {count} reason{'s' if count != 1 else ''}"]
    lines += [f"  {finding}" for finding in findings[:_FINDING_LINES]]
    if count > _FINDING_LINES:
        lines.append(f"  and {count - _FINDING_LINES} more")
    return CommandFailed("\n".join(lines), code=ModuleRejected.code, place=shown)
