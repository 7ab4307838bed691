"""Python functions in place of guests: a context in, an outcome out, msgpack between, as over the real door."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgpack

from hookcell import POINTS, GuestHook, HostHook, Outcome
from hookcell_sandbox.guest_text import EMPTY_LOG, GuestLog
from hookcell_sandbox.limits import Limits
from hookcell_sandbox.program import Completion, Program

Answer = Callable[[dict[str, Any]], object]
"""Gives an outcome as a map, raw bytes, None for nothing, or an exception to raise in the sandbox's name."""


@dataclass(kw_only=True)
class FakeCall:
    entry: str
    context: dict[str, Any]
    payload: bytes
    limits: Limits


@dataclass
class FakeSandbox:
    """Implements `GuestSandbox`; remembers each call."""

    limits: Limits = field(default_factory=Limits)
    fuel: int = 100
    log: GuestLog = EMPTY_LOG
    calls: list[FakeCall] = field(default_factory=list)

    def program(self, answers: Mapping[str, Answer], manifest: Mapping[str, object] | None = None) -> Program:
        return Program(
            digest="ab" * 32,
            entry_points=frozenset(answers),
            manifest=None if manifest is None else json.dumps(manifest).encode(),
            report=cast("Any", None),
            compiled=dict(answers),
        )

    def guest(
        self,
        name: str,
        manifest: Mapping[str, object] | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        **answers: Answer,
    ) -> GuestHook:
        return GuestHook.from_program(self.program(answers, manifest), sandbox=self, name=name, **(options or {}))

    def check_limits(self, limits: Limits) -> None:
        """Any will do."""

    def load(self, wasm: bytes, policy: object) -> Program:
        raise NotImplementedError

    async def load_async(self, wasm: bytes, policy: object) -> Program:
        raise NotImplementedError

    async def run(self, program: Program, entry: str, payload: bytes, limits: Limits) -> Completion:
        return self.run_sync(program, entry, payload, limits)

    def run_sync(self, program: Program, entry: str, payload: bytes, limits: Limits) -> Completion:
        context = msgpack.unpackb(payload)
        self.calls.append(FakeCall(entry=entry, context=context, payload=payload, limits=limits))
        answer = cast("dict[str, Answer]", program.compiled)[entry](context)
        if isinstance(answer, BaseException):
            raise answer
        output = answer if isinstance(answer, bytes) or answer is None else msgpack.packb(answer)
        return Completion(output=output, log=self.log, fuel_used=self.fuel)


def host(name: str, **methods: Callable[..., Any]) -> Any:
    """A host hook with these methods."""
    return SimpleNamespace(name=name, **methods)


def either(
    kind: str, sandbox: FakeSandbox, name: str, *, on_failure: str = "raise", **answers: Answer
) -> HostHook | GuestHook:
    """The same answers as a guest's or as a host hook's, for rules that both follow.

    A host hook is called with its context as a dict too, and what an answer gives as a map is its outcome.
    """
    if kind == "guest":
        return sandbox.guest(name, options={"on_failure": on_failure}, **answers)

    def method(answer: Answer) -> Callable[..., Any]:
        def call(*arguments: Any) -> object:
            ctx = next(each for each in arguments if type(each).__name__ == "HookContext")
            outcome = answer(dict(ctx._context))
            if isinstance(outcome, BaseException):
                raise outcome
            # A map from an agent-class method is a value (C2), so an outcome of theirs goes as one.
            agent_class = POINTS[ctx.point].family == "agent_class"
            return Outcome(**cast("dict[str, Any]", outcome)) if agent_class and outcome is not None else outcome

        return call

    methods = {point: method(answer) for point, answer in answers.items()}
    return HostHook.of(host(name, **methods), on_failure=cast("Any", on_failure))
