"""A host hook: trusted Python in the same registry and under the same rules as guests (SEMANTICS P1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Protocol, Self

from .hook import FailurePolicy, check_name, check_policy
from .points import POINTS

__all__ = ["AgentHook", "HostHook", "Replace"]


class AgentHook(Protocol):
    """A host hook: any object with a name and some of the nine methods, plain or ``async`` (P1).

    ``pre_tool_call(ctx)``, ``post_tool_call(ctx, result)``, ``pre_generate(ctx)``, ``post_generate(ctx, result)``
    return nothing, a mapping of outcome keys (``{"deny": "no"}``) or an `Outcome`. ``before_prompt(prompt, ctx)``,
    ``before_tool(call, ctx)``, ``after_tool(result, ctx)``, ``after_response(response, ctx)``, ``on_error(error, ctx)``
    return nothing or the value that replaces (C2); `Replace` where that value is ``None``. ``ctx`` is a `HookContext`.
    """

    @property
    def name(self) -> str:
        """Unique within a registry."""
        ...


@dataclass(frozen=True, slots=True)
class Replace:
    """An agent-class method's value where plain ``None`` would mean "keep" (C2)."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHook:
    """A trusted hook in the host's own Python, as it stands in a registry.

    Attributes:
        name: Its name.
        implementation: The object that was registered.
        methods: Its bound method for each point it implements.
        on_failure: Its failure policy.
        edits_system_messages: Whether it may add, edit or remove system messages at generate points (P2). A host hook
            is the host's own code, and injecting a system message is what many are for.
    """

    name: str
    implementation: AgentHook
    methods: Mapping[str, Callable[..., Any]]
    on_failure: FailurePolicy = "raise"
    edits_system_messages: bool = True

    @classmethod
    def of(cls, hook: AgentHook, *, on_failure: FailurePolicy = "raise") -> Self:
        """Take an object's methods as they are now.

        Raises:
            TypeError: A method is not callable, or it would never be called: it has the JavaScript SDK's spelling, or
                nearly a point's name.
            ValueError: The name or the policy does not do.
        """
        methods: dict[str, Callable[..., Any]] = {}
        for point in POINTS:
            method = getattr(hook, point, None)
            if callable(method):
                methods[point] = method
            elif method is not None:
                raise TypeError(f"{point} of hook {hook.name!r} is {type(method).__name__}, not callable")
            if callable(getattr(hook, _camel(point), None)):
                raise TypeError(f"hook {hook.name!r} has {_camel(point)}, which is never called here; name it {point}")
        for name in (each for each in dir(hook) if not each.startswith("_")):
            # A misspelt guard would be registered, and never asked.
            meant = get_close_matches(name, POINTS, n=1, cutoff=0.85)
            if meant and name not in POINTS and callable(getattr(hook, name, None)):
                raise TypeError(f"hook {hook.name!r} has {name}, which is never called; is {meant[0]} meant?")
        check_policy(hook.name, on_failure, methods)
        return cls(name=check_name(hook.name), implementation=hook, methods=methods, on_failure=on_failure)

    @property
    def points(self) -> frozenset[str]:
        """The points it implements."""
        return frozenset(self.methods)

    def with_policy(self, on_failure: FailurePolicy) -> Self:
        """The same hook under another failure policy. Raises ``ValueError`` as `of` does."""
        check_policy(self.name, on_failure, self.methods)
        return replace(self, on_failure=on_failure)


def _camel(point: str) -> str:
    first, *rest = point.split("_")
    return first + "".join(word.capitalize() for word in rest)
