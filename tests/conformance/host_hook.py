"""The conformance hook as a host hook: what README.md says, in Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hookcell import HookContext, HostHook, Replace
from hookcell.points import POINTS, Point
from hookcell.values import copied

if TYPE_CHECKING:
    from .case import Case

__all__ = ["Host"]


class Host:
    """Host hooks under the table."""

    stacks = False
    logs = False
    throws_early = False

    def hook(self, case: Case) -> HostHook:
        return HostHook.of(_Conforms(case.does))


class _Conforms:
    name = "conforms"

    def __init__(self, config: Mapping[str, Any]) -> None:
        for name, point in POINTS.items():
            setattr(self, name, _method(point, config))


def _method(point: Point, config: Mapping[str, Any]) -> Callable[..., object]:
    def agent_class(subject: object, ctx: HookContext) -> object:
        return _act(point, ctx, {point.own_fields[0]: subject}, copied(config))

    def pipeline(ctx: HookContext, *subject: object) -> object:
        return _act(point, ctx, dict(zip(("result",), subject, strict=False)), copied(config))

    return agent_class if point.family == "agent_class" else pipeline


def _act(point: Point, ctx: HookContext, subject: Mapping[str, object], config: Any) -> object:
    for edit in config.get("edits", ()):
        _edit(ctx, edit)
    if ctx.emit is not None:
        for event in config.get("emit", ()):
            ctx.emit(event)
    if "meta" in config:
        ctx.meta(config["meta"])
    case, value = config["case"], config.get("value")
    if case == "nothing":
        return None
    if case == "return":
        return Replace(None) if value is None and point.family == "agent_class" else value
    if case == "spread":
        return {"input": {**ctx.args, **value}}
    if case == "echo":
        return _echo(point, ctx, _look(ctx, subject, config["path"]))
    if case == "throw":
        raise type(value["name"], (Exception,), {})(value["message"])
    raise type("UnknownCase", (Exception,), {})(case)


def _echo(point: Point, ctx: HookContext, value: object) -> object:
    if point.tool_point and point.family == "pipeline":
        return {"result": value}
    if point.family == "pipeline":
        ctx.metadata["echo"] = value
    else:
        ctx.state.echo = value
    return None


def _look(ctx: HookContext, subject: Mapping[str, object], path: list[Any]) -> object:
    name, *rest = path
    value = subject[name] if name in subject else getattr(ctx, _attribute(name))
    for token in rest:
        there = len(value) > token if isinstance(value, list) else token in value
        if not there:
            return "absent"
        value = value[token]
    return value


def _edit(ctx: HookContext, edit: Mapping[str, Any]) -> None:
    do, value = edit["do"], edit.get("value")
    if do == "state.set":
        ctx.state.set(edit["key"], value)
    elif do == "state.append":
        ctx.state.append(edit["key"], value)
    elif do == "keep":
        setattr(ctx, edit["key"], value)
    else:
        _edit_path(ctx, do, edit["path"], value)


def _edit_path(ctx: HookContext, do: str, path: list[Any], value: object) -> None:
    name, *rest = path
    if do == "set" and not rest:
        setattr(ctx, _attribute(name), value)
        return
    where: Any = getattr(ctx, _attribute(name))
    if do == "append":
        for token in rest:
            where = where[token]
        where.append(value)
        return
    for token in rest[:-1]:
        where = where[token]
    if do == "set":
        where[rest[-1]] = value
    elif do == "insert":
        where.insert(rest[-1], value)
    else:
        del where[rest[-1]]


def _attribute(wire: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", wire).lower()
