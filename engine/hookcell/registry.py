"""An ordered collection of hooks (SEMANTICS P18), and what a running call sees of it."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, Protocol

from .hook import FailurePolicy, GuestHook
from .host_hook import AgentHook, HostHook
from .points import POINTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["HookRegistry", "HookSource", "Registered", "Snapshot"]

_log: Final = logging.getLogger(__name__)

Registered = HostHook | GuestHook


class HookSource(Protocol):
    """What has hooks: a registry, one snapshot of it, or the host's own arrangement of several."""

    def snapshot(self) -> Snapshot:
        """The hooks as they are now."""
        ...


class Snapshot:
    """The hooks of a registry at one moment, in order. Immutable: a running call keeps what it started with (P18).

    Args:
        own: The registry's own hooks.
        lead: The lead agent's hooks, which come first (P17).
    """

    __slots__ = ("_at", "hooks")

    def __init__(self, own: Iterable[Registered] = (), *, lead: Iterable[Registered] = ()) -> None:
        own, lead = tuple(own), tuple(lead)
        self.hooks: Final = lead + own
        # Agent-class hooks belong to their class alone: a lead's are not called for its sub-agents (P17).
        self._at: Final = {
            point: tuple(
                hook
                for hook in (self.hooks if row.family == "pipeline" else own)
                if point in (hook.methods if isinstance(hook, HostHook) else hook.crossings)
            )
            for point, row in POINTS.items()
        }

    def at(self, point: str) -> tuple[Registered, ...]:
        """The hooks that implement the point, in order (P7)."""
        return self._at[point]

    def snapshot(self) -> Snapshot:
        """Itself."""
        return self


class HookRegistry:
    """Hooks by name, in the order of their registration.

    Safe from several threads: every change makes a new table, and whoever holds a snapshot keeps the old one.
    """

    def __init__(self, hooks: Iterable[AgentHook | GuestHook] = ()) -> None:
        self._lead: tuple[Registered, ...] = ()
        self._lead_names: frozenset[str] = frozenset()
        self._own: dict[str, Registered] = {}
        self._snapshot: Snapshot | None = None
        self._lock = threading.RLock()
        self.register_many(hooks)

    @classmethod
    def inherit(cls, lead: HookSource) -> HookRegistry:
        """A sub-agent's registry: the lead's hooks as they are now, first and fixed, then its own (P17)."""
        hooks = lead.snapshot().hooks
        pipeline = {name for name, row in POINTS.items() if row.family == "pipeline"}
        registry = cls()
        registry._lead = tuple(hook for hook in hooks if hook.points & pipeline)
        registry._lead_names = frozenset(hook.name for hook in registry._lead)
        return registry

    def register(self, hook: AgentHook | GuestHook | HostHook, *, on_failure: FailurePolicy | None = None) -> None:
        """Add a hook at the end; one of the same name is replaced in its place, with a warning in the log (P18).

        Args:
            hook: A host hook or a guest hook.
            on_failure: Its failure policy; default ``raise`` for a host hook, what it was loaded with for a guest.

        Raises:
            ValueError: A guest would replace a host hook, a sub-agent's hook one of the lead's (P17), the policy does
                not fit the hook's points (P11), or the name does not do.
            TypeError: The object is no hook.
        """
        registered = _registered(hook, on_failure)
        name = registered.name
        with self._lock:
            if name in self._lead_names:
                raise ValueError(f"hook {name!r} is one of the lead agent's, which a sub-agent cannot replace")
            present = self._own.get(name)
            if isinstance(registered, GuestHook) and isinstance(present, HostHook):
                raise ValueError(f"guest hook {name!r} would replace a host hook; give it another name")
            if present is not None:
                _log.warning("hook %r replaces the one registered before under that name", name)
            self._own = {**self._own, name: registered}
            self._snapshot = None

    def register_many(self, hooks: Iterable[AgentHook | GuestHook | HostHook]) -> None:
        """Register each in order. One that is refused raises; those before it stay."""
        for hook in hooks:
            self.register(hook)

    def get(self, name: str) -> AgentHook | GuestHook | None:
        """The hook as it was registered, or None."""
        for hook in self.snapshot().hooks:
            if hook.name == name:
                return hook.implementation if isinstance(hook, HostHook) else hook
        return None

    def has(self, name: str) -> bool:
        """Whether a hook of that name is registered or inherited."""
        return name in self._own or name in self._lead_names

    def list(self) -> Sequence[AgentHook | GuestHook]:
        """The hooks as they were registered, in order."""
        return [hook.implementation if isinstance(hook, HostHook) else hook for hook in self.snapshot().hooks]

    def unregister(self, name: str) -> bool:
        """Remove a hook; whether there was one. The lead's stay (P17)."""
        with self._lock:
            if name not in self._own:
                return False
            self._own = {key: hook for key, hook in self._own.items() if key != name}
            self._snapshot = None
            return True

    def clear(self) -> None:
        """Remove all hooks but the lead's (P17)."""
        with self._lock:
            self._own = {}
            self._snapshot = None

    @property
    def size(self) -> int:
        """How many hooks there are, the lead's included."""
        return len(self._own) + len(self._lead_names)

    def __len__(self) -> int:
        return self.size

    def snapshot(self) -> Snapshot:
        """The hooks as they are now (P18)."""
        snapshot = self._snapshot
        if snapshot is None:
            with self._lock:
                snapshot = self._snapshot = Snapshot(self._own.values(), lead=self._lead)
        return snapshot


def _registered(hook: AgentHook | GuestHook | HostHook, on_failure: FailurePolicy | None) -> Registered:
    if isinstance(hook, GuestHook):
        return hook if on_failure is None or on_failure == hook.on_failure else hook.with_policy(on_failure)
    if isinstance(hook, HostHook):
        return hook if on_failure is None else hook.with_policy(on_failure)
    if not hasattr(hook, "name"):
        raise TypeError(f"a {type(hook).__name__} is no hook: it has no name")
    return HostHook.of(hook, on_failure=on_failure or "raise")
