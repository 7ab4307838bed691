"""A loop that is not ours: the same hooks, by the same rules, in a few lines of your own."""

import asyncio
from typing import Any

from hookcell import (
    History,
    HookContext,
    HookRegistry,
    RunFacts,
    ToolCall,
    ToolPipeline,
    ToolResult,
    add_results,
    assistant_message,
    run_point,
    show_final_args,
    tool_schema,
)

QUERY = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 50}}}
SCHEMAS = {"search": tool_schema(QUERY), "shell": tool_schema({"type": "object"})}


async def loop(hooks: HookRegistry, history: History) -> str:
    run = RunFacts(messages=history)
    pipeline = ToolPipeline(hooks=hooks, run=run)
    while True:
        request: dict[str, object] = {"temperature": 1}
        await run_point(hooks, "pre_generate", run.context({"request": request}), run=run)
        text, calls = your_model(history, request)
        history.append(assistant_message(text, calls))
        if not calls:
            return text
        gates = [await pipeline.before_execution(call, schema=SCHEMAS[call.name]) for call in calls]
        for gate in gates:
            show_final_args(history, gate)
        results = [ToolResult(result=your_tool(gate.call.name, gate.args)) if gate.runs else None for gate in gates]
        settled = [await pipeline.after_execution(*each) for each in zip(gates, results, strict=True)]
        add_results(history, settled)


def your_model(history: History, request: dict[str, object]) -> tuple[str, list[ToolCall]]:
    print("the model is asked at temperature", request["temperature"])
    if history[-1]["role"] == "tool":
        return "Five hits, and no shell.", []
    return "", [ToolCall(id="1", name="search", args={"query": "hooks"}), ToolCall(id="2", name="shell", args={})]


def your_tool(name: str, args: object) -> str:
    return f"{name} ran with {args}"


class House:
    """Any hook will do, a guest too."""

    name = "house"

    def pre_generate(self, ctx: HookContext) -> None:
        ctx.request["temperature"] = 0

    def pre_tool_call(self, ctx: HookContext) -> dict[str, Any]:
        return {"deny": "No shell here."} if ctx.tool_name == "shell" else {"input": {**ctx.args, "limit": 5}}


conversation = History([{"role": "user", "content": "Search for hooks"}])
print(asyncio.run(loop(HookRegistry([House()]), conversation)))
for message in conversation:
    print(message["role"], message["content"] or "(calls tools)")

# Prints:
#   the model is asked at temperature 0
#   the model is asked at temperature 0
#   Five hits, and no shell.
#   user Search for hooks
#   assistant (calls tools)
#   tool search ran with {'query': 'hooks', 'limit': 5}
#   tool No shell here.
#   assistant Five hits, and no shell.
