"""Agent-class hooks written as a class (SEMANTICS C1, C7, C8): its methods, and typed slices of the run's state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, overload

from pydantic import TypeAdapter

from hookcell.host_hook import HostHook
from hookcell.points import POINTS

if TYPE_CHECKING:
    from hookcell.context import HookContext
    from hookcell.state import HookState

__all__ = ["StateSlice", "agent_class_hook", "own_run", "slices_of", "state_slice"]

_Slice = TypeVar("_Slice")

# Each slice's value while a hook or a step of its class runs, by the slice's identity.
_values: ContextVar[dict[int, Any] | None] = ContextVar("hookcell_state_slices", default=None)


class StateSlice(Generic[_Slice]):
    """A typed part of the run's state, injected into an agent class (C7). Made by `state_slice`."""

    def __init__(self, model: type[_Slice], key: str | None) -> None:
        name = model.__name__
        self.key: Final = key or name[:1].lower() + name[1:]
        self._adapter: Final = TypeAdapter(model)

    @overload
    def __get__(self, instance: None, owner: type) -> StateSlice[_Slice]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Slice: ...
    def __get__(self, instance: object, owner: type) -> StateSlice[_Slice] | _Slice:
        if instance is None:
            return self
        values = _values.get()
        if values is None or id(self) not in values:
            raise AttributeError(f"the state slice {self.key!r} is there only while a hook of {owner.__name__} runs")
        return values[id(self)]

    def __set__(self, instance: object, value: _Slice) -> None:
        values = _values.get()
        if values is None or id(self) not in values:
            raise AttributeError(f"the state slice {self.key!r} can be set only while a hook of its class runs")
        values[id(self)] = value

    def load(self, state: HookState) -> _Slice:
        """The slice as the run's state has it; its defaults where the state has none yet.

        Raises:
            pydantic.ValidationError: What the state holds does not fit.
        """
        return self._adapter.validate_python(state.get(self.key, {}))

    def keep(self, state: HookState, value: _Slice) -> None:
        """Put it back, as JSON values."""
        state.set(self.key, self._adapter.dump_python(value, mode="json"))


def state_slice(model: type[_Slice], *, key: str | None = None) -> StateSlice[_Slice]:
    """Declare a typed slice of the run's state as a class attribute.

    ``s = state_slice(ReviewState)`` in an agent class: while one of its hooks runs, ``self.s`` is a ``ReviewState`` of
    that run, and what the hook does to it is kept in the run's state. Runs at the same time have their own.

    Args:
        model: A pydantic model or a dataclass whose fields all have defaults.
        key: Where in the state it stands; default: the model's name with a small first letter.
    """
    return StateSlice(model, key)


def slices_of(agent_class: object) -> tuple[StateSlice[Any], ...]:
    """The slices that an agent class declares, inherited ones included."""
    found = {name: each for owner in reversed(type(agent_class).__mro__) for name, each in vars(owner).items()}
    return tuple(cast("StateSlice[Any]", each) for each in found.values() if isinstance(each, StateSlice))


def agent_class_hook(agent_class: object, name: str) -> HostHook | None:
    """The methods that an agent class has for the agent-class points, as a hook; None if it has none.

    Raises:
        TypeError: As `HostHook.of`; or it has a method of a pipeline point, which belongs among the ``hooks``.
    """
    methods = HostHook.of(_Named(agent_class, name)).methods
    if elsewhere := [point for point in methods if POINTS[point].family != "agent_class"]:
        raise TypeError(f"agent class of {name!r} has {', '.join(elsewhere)}, a pipeline hook's; give it in hooks=")
    slices = slices_of(agent_class)
    if slices:
        methods = {point: _with_slices(method, slices) for point, method in methods.items()}
    return HostHook(name=name, implementation=cast("Any", agent_class), methods=methods) if methods else None


def own_run(agent_class: object) -> Callable[..., Any] | None:
    """The class's own ``run(input, ctx)``, if it has one (C8)."""
    method = getattr(agent_class, "run", None)
    return method if callable(method) else None


@contextmanager
def injected(slices: tuple[StateSlice[Any], ...], state: HookState) -> Generator[None]:
    """Have the slices' values at hand, and keep them when the code inside is through. What it threw keeps nothing."""
    values = {**(_values.get() or {}), **{id(each): each.load(state) for each in slices}}
    token = _values.set(values)
    try:
        yield
    finally:
        _values.reset(token)
    for each in slices:
        each.keep(state, values[id(each)])


def _with_slices(method: Callable[..., Any], slices: tuple[StateSlice[Any], ...]) -> Callable[..., Any]:
    @wraps(method)
    async def call(*arguments: Any) -> Any:
        ctx = cast("HookContext", arguments[-1])
        with injected(slices, ctx.state):
            value = method(*arguments)
            return (await value) if inspect.isawaitable(value) else value

    return call


class _Named:
    """An agent class under the agent's name: the class itself needs none."""

    def __init__(self, agent_class: object, name: str) -> None:
        self.name = name
        self._agent_class = agent_class

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._agent_class, attribute)

    def __dir__(self) -> list[str]:
        return dir(self._agent_class)
