"""Hooks that do what a test says, as a host hook and as a guest, and remember what they saw.

One script serves both: a map from a point, or ``"<point>/<tool>"``, to the outcome as it stands on the wire. A guest
returns it from the sandbox byte for byte (`scripted.c`); a host hook does the same *the host way*: a patch edits
``ctx`` in place, ``replace`` is the value it returns, ``meta`` and ``events`` go through ``ctx``, an error is raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgpack

from hookcell import ABSENT, POINTS, GuestHook, HookContext, HostHook, Replace
from hookcell.values import copied
from hookcell_sandbox import AdmissionPolicy, Completion, GuestError, GuestLog, Limits, Program, Sandbox

if TYPE_CHECKING:
    from .modules import Modules

__all__ = ["LIMITS", "RecordingSandbox", "Script", "ScriptedGuest", "ScriptedHost", "scripted"]

Script = Mapping[str, Any]
Seen = list[tuple[str, dict[str, Any]]]

LIMITS: Final = Limits(log_bytes=2 * 1024 * 1024, deadline_ms=10_000)
"""Room for the echo of `scripted.c` in its log, and for a slow machine."""

# What only a guest can do.
_OF_GUESTS: Final = frozenset({"!trap", "!spin", "!hoard", "!raw", "!garbage", "storage"})
_OF_AGENT_CLASS_HOSTS: Final = frozenset({"replace", "patch", "meta", "error", "!throw"})


def scripted(
    modules: Modules,
    kind: str,
    name: str,
    script: Script | None,
    *,
    on_failure: str = "raise",
    edits_system_messages: bool | None = None,
    **of_guests: Any,
) -> ScriptedHost | ScriptedGuest:
    """A hook for a registry. In tests it is the fixture of the same name, which holds the first argument.

    Args:
        modules: Variants of the scripted guest.
        kind: ``"host"`` or ``"guest"``.
        name: The hook's name.
        script: Point, or ``"<point>/<tool>"``, to outcome; None as an outcome returns nothing. The hook implements the
            points that stand here and no others.
        on_failure: Its failure policy.
        edits_system_messages: The host's grant (P2); default: as for any hook of its kind.
        of_guests: What a host hook does not have, see `_guest`.

    Raises:
        TypeError: A host hook cannot do what the script says; test it with a guest alone.
    """
    if kind == "guest":
        grant = {} if edits_system_messages is None else {"edits_system_messages": edits_system_messages}
        return _guest(modules, name, script, on_failure=on_failure, **grant, **of_guests)
    if of_guests:
        raise TypeError(f"a host hook has no {', '.join(of_guests)}")
    hook = ScriptedHost.of(_Actor(name, script or {}), on_failure=on_failure)  # type: ignore[arg-type]  # one of three
    return hook if edits_system_messages is None else replace(hook, edits_system_messages=edits_system_messages)


class _Remembers:
    """What both kinds have beside the engine's own hook."""

    __slots__ = ()
    seen: Seen

    def saw(self, field: str) -> list[Any]:
        """The field's value in each call, in order; `ABSENT` where the hook was not given it."""
        return [context.get(field, ABSENT) for _, context in self.seen]

    @property
    def called_at(self) -> list[str]:
        """The point of each call, in order."""
        return [point for point, _ in self.seen]


# Guests.


class ScriptedGuest(GuestHook, _Remembers):
    """A guest hook that says what crossed to it."""

    __slots__ = ()

    @property
    def seen(self) -> Seen:  # type: ignore[override]  # read only
        """Each call's point and its context but for ``config``, as the guest itself echoed them."""
        return [
            (context["point"], {key: value for key, value in context.items() if key not in ("point", "config")})
            for context in self.crossed
        ]

    @property
    def crossed(self) -> list[dict[str, Any]]:
        """Each call's whole context."""
        assert isinstance(self.sandbox, RecordingSandbox)
        return self.sandbox.crossed


def _guest(
    modules: Modules,
    name: str,
    script: Script | None,
    *,
    points: tuple[str, ...] | None = None,
    needs: list[str] | None = None,
    storage: str | None = None,
    schema: object = None,
    more: Mapping[str, object] | None = None,
    limits: Limits = LIMITS,
    **options: Any,
) -> ScriptedGuest:
    """A guest hook.

    Args:
        modules: As in `scripted`.
        name: Likewise.
        script: Its config (G2); None gives it none.
        points: What it implements, where the script does not say.
        needs: As in the manifest (G4).
        storage: Likewise (G3).
        schema: The manifest's ``config``, a JSON Schema (G2).
        more: Further keys of the manifest.
        limits: Of each call.
        options: As `GuestHook.load`.
    """
    manifest = {"abi": 1, "needs": needs, "storage": storage, "config": schema, **(more or {})}
    program = modules.program(
        points or {key.partition("/")[0] for key in script or {}},
        {key: value for key, value in manifest.items() if value is not None},
    )
    sandbox = RecordingSandbox(modules.sandbox)
    return ScriptedGuest.from_program(program, sandbox=sandbox, name=name, config=script, limits=limits, **options)


class RecordingSandbox:
    """The real sandbox, and what the scripted guest said in each call that it saw."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.crossed: list[dict[str, Any]] = []

    @property
    def limits(self) -> Limits:
        return self._sandbox.limits

    def check_limits(self, limits: Limits) -> None:
        self._sandbox.check_limits(limits)

    def load(self, wasm: bytes, policy: AdmissionPolicy) -> Program:
        return self._sandbox.load(wasm, policy)

    async def load_async(self, wasm: bytes, policy: AdmissionPolicy) -> Program:
        return await self._sandbox.load_async(wasm, policy)

    async def run(self, program: Program, entry: str, payload: bytes, limits: Limits) -> Completion:
        try:
            completion = await self._sandbox.run(program, entry, payload, limits)
        except GuestError as error:
            self._keep(error.log, failed=True)
            raise
        self._keep(completion.log)
        return completion

    def run_sync(self, program: Program, entry: str, payload: bytes, limits: Limits) -> Completion:
        try:
            completion = self._sandbox.run_sync(program, entry, payload, limits)
        except GuestError as error:
            self._keep(error.log, failed=True)
            raise
        self._keep(completion.log)
        return completion

    def _keep(self, log: GuestLog, *, failed: bool = False) -> None:
        """Decode the echo. A guest that failed before it began, as in ``hook_alloc``, saw nothing."""
        if failed and not log:
            return
        echo = re.fullmatch(rb"saw ([0-9a-f]*)\n", log.raw)
        if log.cut or echo is None:
            raise AssertionError(f"the scripted guest's log is no whole echo: {log.raw[:80]!r}, cut: {log.cut}")
        self.crossed.append(msgpack.unpackb(bytes.fromhex(echo[1].decode())))


# Host hooks.


class ScriptedHost(HostHook, _Remembers):
    """A host hook that remembers all that it could read of its context."""

    __slots__ = ()

    @property
    def seen(self) -> Seen:  # type: ignore[override]  # read only
        """Each call's point and its context by the wire's names; ``now`` and ``seed`` are left alone, unasked for."""
        return self.implementation.seen  # type: ignore[attr-defined]  # an _Actor


class _Actor:
    """The object behind a scripted host hook: the points of its script are its methods."""

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self.seen: Seen = []
        for key, outcome in script.items():
            point = key.partition("/")[0]
            _check_possible(point, outcome)
            setattr(self, point, self._method(point, script))

    def _method(self, point: str, script: Script) -> Callable[..., object]:
        def method(*arguments: Any) -> object:
            ctx: HookContext = arguments[-1 if POINTS[point].family == "agent_class" else 0]
            context = _visible(ctx)
            self.seen.append((ctx.point, context))
            return _play(ctx, copied(script.get(f"{point}/{_tool_of(context)}", script.get(point))))

        return method


def _check_possible(point: str, outcome: Any) -> None:
    if not isinstance(outcome, Mapping):
        possible = outcome is None or POINTS[point].family == "pipeline"
    elif POINTS[point].family == "agent_class":
        possible = outcome.keys() <= _OF_AGENT_CLASS_HOSTS
    else:
        possible = _OF_GUESTS.isdisjoint(outcome)
    if not possible:
        raise TypeError(f"a host hook cannot give {outcome!r} at {point}; test it with a guest alone")


def _visible(ctx: HookContext) -> dict[str, Any]:
    """Every ordinary field that is there. A host hook is told None where a guest is told nothing."""
    fields = {wire: getattr(ctx, _attribute(wire)) for wire in POINTS[ctx.point].fields}
    if "state" in fields:
        fields["state"] = {key: fields["state"][key] for key in fields["state"]}
    return {wire: copied(value) for wire, value in fields.items() if value is not None or wire == "data"}


def _tool_of(context: Mapping[str, Any]) -> object:
    named = context.get("call") or context.get("result") or {}
    return context.get("toolName", named.get("name"))


def _play(ctx: HookContext, outcome: Any) -> object:
    """What the script says, the host way."""
    if not isinstance(outcome, dict):
        return outcome
    agent_class = POINTS[ctx.point].family == "agent_class"
    for operation in outcome.pop("patch", []):
        _edit(ctx, operation)
    if agent_class and "meta" in outcome:
        ctx.meta(outcome.pop("meta"))
    if ctx.emit is not None:
        for event in outcome.pop("events", []):
            ctx.emit(event)
    if thrown := outcome.get("error") or outcome.get("!throw"):
        raise type(thrown["name"], (Exception,), {})(thrown["message"])
    if not agent_class:
        return outcome
    if "replace" not in outcome:
        return None
    return Replace(None) if outcome["replace"] is None else outcome["replace"]


def _edit(ctx: HookContext, operation: Mapping[str, Any]) -> None:
    """One ``add``, ``remove`` or ``replace`` as plain Python on the live context."""
    op, value = operation["op"], operation.get("value")
    field, *inner = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:])
    if not inner:
        setattr(ctx, _attribute(field), value)
        return
    where = getattr(ctx, _attribute(field))
    for part in inner[:-1]:
        where = where[int(part) if isinstance(where, list) else part]
    last = inner[-1]
    if op == "remove":
        del where[int(last) if isinstance(where, list) else last]
    elif isinstance(where, list) and op == "add":
        where.insert(len(where) if last == "-" else int(last), value)
    else:
        where[int(last) if isinstance(where, list) else last] = value


def _attribute(wire: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", wire).lower()
