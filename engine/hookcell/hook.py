"""A guest hook: a sandboxed program with its config, its limits and its failure policy.

All per-hook work happens here, once: which points it implements, which fields cross at each, its config's bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypedDict, Unpack

from hookcell_sandbox.errors import ModuleRejected
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import Limits, ModuleLimits

from .codec import Encoded, Uncrossable, encode_value
from .errors import ConfigInvalid
from .manifest import Manifest, ManifestInvalid, fields_for, manifest_findings, parse_manifest
from .points import ON_REQUEST_FIELDS, POINTS
from .schemas import SchemaInvalid, SchemaMismatch, compile_schema

if TYPE_CHECKING:
    from hookcell_sandbox.admission import AdmissionPolicy
    from hookcell_sandbox.program import Completion, Program

    from .storage import StorageScope

__all__ = [
    "Crossing",
    "FailurePolicy",
    "GuestHook",
    "GuestOptions",
    "GuestSandbox",
    "admission_policy",
    "check_name",
    "check_policy",
]

FailurePolicy = Literal["raise", "deny", "skip"]
"""What a hook's failure does (P11): reject the run, refuse the tool call, or carry on, recorded loudly."""

_POLICIES: Final = frozenset({"raise", "deny", "skip"})
_NAME_CHARACTERS: Final = 128


class GuestSandbox(Protocol):
    """What a guest hook needs of `hookcell_sandbox.Sandbox`; a test's fake is a few lines."""

    @property
    def limits(self) -> Limits:
        """Of a call that names none."""
        ...

    def load(self, wasm: bytes, policy: AdmissionPolicy, /) -> Program:
        """Admit and compile; blocking. Raises `ModuleRejected`."""
        ...

    async def load_async(self, wasm: bytes, policy: AdmissionPolicy, /) -> Program:
        """The same off the event loop."""
        ...

    def check_limits(self, limits: Limits, /) -> None:
        """Raise ``ValueError`` when no call could run under them."""
        ...

    async def run(self, program: Program, entry: str, payload: bytes, limits: Limits, /) -> Completion:
        """One isolated call. Raises `SandboxError`."""
        ...

    def run_sync(self, program: Program, entry: str, payload: bytes, limits: Limits, /) -> Completion:
        """The same for a plain thread."""
        ...


def admission_policy(limits: ModuleLimits | None = None) -> AdmissionPolicy:
    """What a module must be to become a hook: entry points named as in `POINTS`, a manifest that reads well."""
    from hookcell_sandbox.admission import AdmissionPolicy

    return AdmissionPolicy(
        entry_points=frozenset(POINTS), limits=limits or ModuleLimits(), check_manifest=manifest_findings
    )


class GuestOptions(TypedDict, total=False):
    """What the host decides about a guest hook.

    Attributes:
        name: Its name; owner of its storage.
        config: JSON, checked against the manifest's schema and its defaults filled in; fixed from here on (G2).
        limits: Of each call; default: the sandbox's.
        on_failure: See `FailurePolicy`; default ``raise``.
        edits_system_messages: Grant it to touch system messages at generate points (P2).
        request_fields: Grant it more fields of the model request than `request_view.REQUEST_FIELDS`.
    """

    name: str | None
    config: object
    limits: Limits | None
    on_failure: FailurePolicy
    edits_system_messages: bool
    request_fields: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What crosses to a guest at one point, worked out once (G4).

    Attributes:
        fields: Context fields to encode.
        received: The same as a set, for patches.
        wants_moment: Whether ``now`` or ``seed`` are among them (G1).
    """

    fields: tuple[str, ...]
    received: frozenset[str]
    wants_moment: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GuestHook:
    """An untrusted hook: a program, and what the host decided about it. Immutable; one may stand in many registries.

    Attributes:
        name: Its name; owner of its storage.
        program: The compiled module; runs only in ``sandbox``.
        sandbox: Where it runs.
        manifest: What the module says of itself. It has no say in the failure policy (P11).
        extra: Encoded ``config``, if there is one (G2).
        crossings: What crosses at each point it implements.
        limits: Of each call.
        on_failure: Its failure policy.
        edits_system_messages: The host's grant to touch system messages at generate points (P2).
        request_fields: The host's grant of more fields of the model request than `request_view.REQUEST_FIELDS`.
    """

    name: str
    program: Program
    sandbox: GuestSandbox = field(repr=False)
    manifest: Manifest = field(repr=False)
    extra: Mapping[str, object] = field(repr=False)
    crossings: Mapping[str, Crossing] = field(repr=False)
    limits: Limits = field(repr=False)
    on_failure: FailurePolicy = "raise"
    edits_system_messages: bool = False
    request_fields: frozenset[str] = frozenset()

    @classmethod
    def load(cls, wasm: bytes | Path, *, sandbox: GuestSandbox, **options: Unpack[GuestOptions]) -> Self:
        """Admit and compile a module and make it a hook. Blocking; see `load_async`.

        Args:
            wasm: The module, or where it is.
            sandbox: Where it will run.
            options: See `GuestOptions`. The name's default is the manifest's, else the file's, else the digest's first
                twelve digits.

        Raises:
            ModuleRejected: The module is refused, with every finding. It is never skipped.
            ConfigInvalid: The config does not fit.
            ValueError: The name does not do, the policy does not fit its points (P11), or the limits are more than the
                sandbox holds.
        """
        data, stem = _read(wasm)
        program = sandbox.load(data, admission_policy())
        return cls.from_program(program, sandbox=sandbox, fallback_name=stem, **options)

    @classmethod
    async def load_async(cls, wasm: bytes | Path, *, sandbox: GuestSandbox, **options: Unpack[GuestOptions]) -> Self:
        """As `load`, with admission and compilation off the event loop."""
        data, stem = _read(wasm)
        program = await sandbox.load_async(data, admission_policy())
        return cls.from_program(program, sandbox=sandbox, fallback_name=stem, **options)

    @classmethod
    def from_program(
        cls,
        program: Program,
        *,
        sandbox: GuestSandbox,
        name: str | None = None,
        fallback_name: str | None = None,
        config: object = None,
        limits: Limits | None = None,
        on_failure: FailurePolicy = "raise",
        edits_system_messages: bool = False,
        request_fields: frozenset[str] = frozenset(),
    ) -> Self:
        """A hook of a program that ``sandbox`` loaded already. Arguments and errors as in `load`."""
        try:
            manifest = parse_manifest(program.manifest)
        except ManifestInvalid as error:
            raise ModuleRejected(error.findings, digest=program.digest) from error
        name = check_name(name or manifest.name or fallback_name or program.digest[:12])
        crossings = {point: _crossing(manifest, point) for point in POINTS if point in program.entry_points}
        check_policy(name, on_failure, crossings)
        limits = limits or sandbox.limits
        sandbox.check_limits(limits)
        return cls(
            name=name,
            program=program,
            sandbox=sandbox,
            manifest=manifest,
            extra=_config(name, manifest, config),
            crossings=crossings,
            limits=limits,
            on_failure=on_failure,
            edits_system_messages=edits_system_messages,
            request_fields=request_fields,
        )

    @property
    def points(self) -> frozenset[str]:
        """The points it implements: which of their names the module exports."""
        return frozenset(self.crossings)

    @property
    def digest(self) -> str:
        """sha256 of its module, hex."""
        return self.program.digest

    @property
    def storage_scope(self) -> StorageScope | None:
        """The scope of its storage, as the manifest asks; None if it has none (G3)."""
        return self.manifest.storage

    def with_policy(self, on_failure: FailurePolicy) -> Self:
        """The same hook under another failure policy. Raises ``ValueError`` as `load` does."""
        check_policy(self.name, on_failure, self.crossings)
        return replace(self, on_failure=on_failure)


def check_name(name: object) -> str:
    """A hook's name: 1 to 128 printable characters, since it stands in errors, events and storage keys.

    No space at either end: with one, a guest's name would read as another hook's.
    """
    if not isinstance(name, str):
        raise TypeError(f"a hook's name is text, not {type(name).__name__}")
    if not 1 <= len(name) <= _NAME_CHARACTERS or escape(name) != name or name.strip() != name:
        raise ValueError(
            f"hook name '{escape(name)}' does not do; give 1 to {_NAME_CHARACTERS} printable characters, "
            "no space at either end"
        )
    return name


def check_policy(name: str, policy: str, points: Mapping[str, object]) -> None:
    """Refuse a policy that is none, and ``deny`` for a hook with a point that has no tool call to refuse (P11)."""
    if policy not in _POLICIES:
        raise ValueError(f"failure policy {policy!r} of hook {name!r}; use 'raise', 'deny' or 'skip'")
    elsewhere = sorted(point for point in points if not POINTS[point].tool_point)
    if policy == "deny" and elsewhere:
        raise ValueError(
            f"failure policy 'deny' of hook {name!r}: {', '.join(elsewhere)} has no tool call to refuse; "
            "use 'raise' or 'skip', or register its tool points as a hook of their own"
        )


def _crossing(manifest: Manifest, point: str) -> Crossing:
    fields = tuple(fields_for(manifest, POINTS[point]))
    received = frozenset(fields)
    return Crossing(fields=fields, received=received, wants_moment=not received.isdisjoint(ON_REQUEST_FIELDS))


def _config(name: str, manifest: Manifest, config: object) -> Mapping[str, object]:
    """The encoded config, validated and with its schema's defaults filled in.

    Nothing crosses when the host gave none and no default fills one in, so that a hook can tell it from an empty one.
    """
    given = config is not None
    if manifest.config is not None:
        try:
            config = compile_schema(manifest.config, hostile=True).validate({} if config is None else config)
        except SchemaMismatch as error:
            raise ConfigInvalid(hook=name, path=error.path, reason=error.reason) from error
        except SchemaInvalid as error:
            raise ConfigInvalid(hook=name, path="", reason=f"its schema is not acceptable: {error}") from error
    if not given and not config:
        return {}
    try:
        return {"config": Encoded(encode_value(config))}
    except Uncrossable as error:
        raise ConfigInvalid(hook=name, path=error.path, reason=f"is a {error.type}, which cannot cross") from error


def _read(wasm: bytes | Path) -> tuple[bytes, str | None]:
    """The module's bytes and its file's stem. One byte over the limit is enough for admission to refuse it."""
    if isinstance(wasm, bytes):
        return wasm, None
    with wasm.open("rb") as file:
        return file.read(ModuleLimits().module_bytes + 1), wasm.stem
