"""For each rule, one way to switch it off in the code: its tests must then fail (`test_mutations.py`)."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["MUTATIONS", "Mutation"]


class Mutation(NamedTuple):
    """A rule, a file under ``engine/hookcell``, a piece that stands there once, and what to put in its place."""

    rule: str
    file: str
    old: str
    new: str


MUTATIONS: Final[list[Mutation]] = [
    Mutation("C1", "agent/arrangement.py", "hooks.insert(0, self._agent_class)", "hooks.append(self._agent_class)"),
    Mutation("C1", "merge.py", "return True  # on_error: the first value wins (C1)", "return False"),
    Mutation("C2", "host_call.py", "elif returned is None:", "elif not returned:"),
    Mutation(
        "C2", "merge.py", "if outcome.replace is not ABSENT:", "if outcome.replace is not ABSENT and outcome.replace:"
    ),
    Mutation("C3", "proposal.py", 'for key in ("id", "name"):', 'for key in ("id",):'),
    Mutation(
        "C3",
        "proposal.py",
        '"args": _validated(state, hook, replacement["args"], proposal)',
        '"args": replacement["args"]',
    ),
    Mutation("C4", "merge.py", 'else {"output": value})', 'else {"output": value, "isError": False})'),
    Mutation("C4", "tool_call.py", 'if settled.origin == "tool" and self.run.state', "if self.run.state"),
    Mutation("C5", "agent/turn.py", "return await self._answer(text)", "return Ended(output=text)"),
    Mutation(
        "C5",
        "agent/turn.py",
        "calls, text = await self._generate()",
        "calls, text = await self._generate()\n            await self._answer(text)",
    ),
    Mutation("C6", "agent/turn.py", "_caused_by(second, error)", "pass"),
    Mutation(
        "C6",
        "agent/turn.py",
        "except Exception as error:\n            self.cut_short()",
        "except BaseException as error:\n            self.cut_short()",
    ),
    Mutation("C7", "agent/agent_class.py", "each.keep(state, values[id(each)])", "pass"),
    Mutation(
        "C7",
        "agent/run_state.py",
        '{**fields, "history": self.history}',
        '{**fields, "history": list(self.history)}',
    ),
    Mutation("C7", "agent/turn.py", "self.meta.update(decision.meta)", "pass"),
    Mutation("C7", "context.py", 'HookState(self._hand("state")).set(name, value)', "pass"),
    Mutation(
        "C8", "agent/turn.py", "self.facts if agent.own_run is None else replace(self.facts, state=None)", "self.facts"
    ),
    Mutation("C8", "agent/own_run.py", "can_wait=False", "can_wait=True"),
    Mutation("C9", "agent/middleware.py", "in reversed(self._tool)", "in self._tool"),
    Mutation(
        "C9",
        "agent/execution.py",
        "        args=args,\n        agent_name",
        '        args=cast("dict[str, object]", entry.call.args),\n        agent_name',
    ),
    Mutation(
        "C10",
        "agent/verdicts.py",
        "rule = agent.permissions.judge(call.name, args)",
        "for early in agent.guardrails:\n            await call_host_code(early, call, args)\n"
        "        rule = agent.permissions.judge(call.name, args)",
    ),
]
