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
    Mutation(
        "P3",
        "agent/batch.py",
        "        for entry in self._entries:\n            await self._gate(entry)\n        return",
        "        for entry in reversed(self._entries):\n            await self._gate(entry)\n        return",
    ),
    Mutation(
        "P3",
        "agent/execution.py",
        "    if len(jobs) == 1:\n        await jobs[0]()\n        return",
        "    for job in jobs:\n        await job()\n    if True:\n        return",
    ),
    Mutation(
        "P3",
        "tool_call.py",
        '        if gate.runs:\n            decision = yield _Chain(hooks, "pre_tool_call"',
        '        if True:\n            decision = yield _Chain(hooks, "pre_tool_call"',
    ),
    Mutation(
        "P3",
        "agent/verdicts.py",
        "for guardrail in (*agent.guardrails, *tool.guardrails):",
        "for guardrail in (*tool.guardrails, *agent.guardrails):",
    ),
    Mutation(
        "P4",
        "agent/batch.py",
        'await self._verdicts.tell(entry, gate.args, "deny", "hook", hook=hook, reason=reason)',
        "pass",
    ),
    Mutation(
        "P4",
        "agent/batch.py",
        "gate.decision.denied_by is not None:",
        "gate.decision.denied_by is not None and gate.decision.reason:",
    ),
    Mutation("P5", "agent/batch.py", 'cast("str | None", settled.metadata.get("replacedByHook"))', "None"),
    Mutation("P6", "agent/batch.py", "show_final_args(turn.run.history, gate)", "pass"),
    Mutation("P7", "chain.py", "for hook in hooks:\n        draft", "for hook in reversed(hooks):\n        draft"),
    Mutation(
        "P9",
        "merge.py",
        '_MADE_BY_TOOL_OR_HOOK: Final = frozenset({"tool", "hook"})',
        '_MADE_BY_TOOL_OR_HOOK: Final = frozenset({"tool", "hook", "denied"})',
    ),
    Mutation(
        "P10",
        "agent/batch.py",
        "            if not entry.settled:\n                await self._settle(entry)",
        "            if not entry.settled and entry.gate and entry.gate.runs:\n"
        "                await self._settle(entry)",
    ),
    Mutation(
        "P11",
        "agent/turn.py",
        "            self.cut_short()\n            await self.watch.emit",
        "            await self.watch.emit",
    ),
    Mutation(
        "P11",
        "agent/turn.py",
        "            self.cut_short()  # a cancellation: no hook hears of it (C6)",
        "            pass",
    ),
    Mutation(
        "P11",
        "agent/result.py",
        "for failure in decision.failures)",
        'for failure in decision.failures if failure.policy == "deny")',
    ),
    Mutation("P12", "agent/turn.py", "return [call for call in calls if call.id in ids]", "return list(calls)"),
    Mutation("P12", "agent/turn.py", "left = _left_by_hooks(history, before)", "left = message"),
    Mutation("P12", "agent/batch.py", "place = _after_call(history, self._entries[0].call.id)", "place = len(history)"),
    Mutation("P12", "agent/turn.py", 'await self._emitted(await self._point("pre_generate", own))', "pass"),
    Mutation("P13", "merge.py", '{**event, "hook": hook}', '{"hook": hook, **event}'),
    Mutation(
        "P13",
        "agent/turn.py",
        '"streaming": self.watch.streaming}\n        await self._emitted(await self._point("pre_generate"',
        '"streaming": True}\n        await self._emitted(await self._point("pre_generate"',
    ),
    Mutation("P13", "agent/turn.py", "for event in decision.events:", "for event in ():"),
    Mutation("P14", "agent/arrangement.py", "hooks.append(self._compaction)", "hooks.insert(0, self._compaction)"),
    Mutation("P14", "agent/arrangement.py", ' | {COMPACTION_HOOK: "compaction"}', ""),
    Mutation(
        "P15",
        "agent/verdicts.py",
        "rule = agent.permissions.judge(call.name, args)",
        'rule = agent.permissions.judge(call.name, cast("dict[str, object]", call.args))',
    ),
    Mutation("P15", "agent/batch.py", "entry.approved_args = gate.args", "entry.approved_args = entry.call.args"),
    Mutation("P16", "agent/verdicts.py", "if not same(args, entry.approved_args):", "if False:"),
    Mutation("P16", "agent/verdicts.py", "if not same(args, entry.approved_args):", "if args != entry.approved_args:"),
    Mutation(
        "P16",
        "agent/batch.py",
        "moment=entry.moment,\n        )\n        entry.gate",
        "moment=None,\n        )\n        entry.gate",
    ),
    Mutation(
        "P16",
        "agent/batch.py",
        "            resumed=entry.answer is not None,\n            moment",
        "            resumed=False,\n            moment",
    ),
    Mutation("P16", "agent/approvals.py", "if not hmac.compare_digest(mac, self._mac(raw)):", "if False:"),
    Mutation(
        "P16",
        "agent/approvals.py",
        "            del self._open[approval_id]\n            return True",
        "            return True",
    ),
    Mutation("P16", "agent/agent.py", 'if contents["agent"] != self.name:', "if False:"),
    Mutation("P16", "agent/entry.py", 'entry.message = kept.get("message")', "entry.message = None"),
    Mutation("P16", "agent/batch.py", "entry.added.clear()", "pass"),
    Mutation("P16", "agent/turn.py", 'self._prompt = kept["prompt"]', "pass"),
    Mutation("P16", "agent/agent.py", "await self.approvals.claim(token)", "pass"),
    Mutation("P17", "agent/execution.py", "lead=turn.hooks.inherited(hooks),", "lead=(),"),
    Mutation("P17", "agent/arrangement.py", "and hook.points & _PIPELINE", ""),
    Mutation(
        "P17",
        "agent/arrangement.py",
        "return Snapshot(hooks, lead=self._lead)",
        "return Snapshot([*hooks, *self._lead])",
    ),
    Mutation("P17", "agent/arrangement.py", "not any(_same(hook, lead) for lead in self._lead)", "True"),
    Mutation("P17", "agent/execution.py", 'path=f"{turn.path}{entry.call.id}/"', "path=turn.path"),
    Mutation("P17", "agent/turn.py", "if depth > most:", "if False:"),
    Mutation("P17", "host_call.py", "if id(hook.implementation) in _running.get():", "if False:"),
    Mutation("P17", "agent/execution.py", "turn.run.for_sub_agent() if kept is None", "turn.run if kept is None"),
    Mutation(
        "P19",
        "agent/watch.py",
        '    except Exception:\n        _log.exception("the listener %r failed; the run goes on", listener)',
        "    except Exception:\n        raise",
    ),
    Mutation(
        "P19",
        "agent/batch.py",
        'args = cast("dict[str, object]", copied(cast("Gate", entry.gate).args))',
        'args = cast("dict[str, object]", cast("Gate", entry.gate).args)',
    ),
    Mutation(
        "P19",
        "agent/batch.py",
        "content, error = copied(settled.content), settled.result.error",
        "content, error = settled.content, settled.result.error",
    ),
    Mutation(
        "P19",
        "agent/turn.py",
        'await self._emitted(await self._point("post_generate", own))',
        'if not self.watch.streaming:\n            await self._emitted(await self._point("post_generate", own))',
    ),
]
