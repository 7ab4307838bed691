"""Watch every tool call. A hook that returns nothing changes nothing."""

import asyncio
from typing import Any

from pydantic import BaseModel

from hookcell import HookContext
from hookcell.agent import create_agent, define_tool, mock_model


class Audit:
    name = "audit"

    def pre_tool_call(self, ctx: HookContext) -> None:
        print("calling", ctx.tool_name, ctx.args)

    def post_tool_call(self, ctx: HookContext, result: dict[str, Any]) -> None:
        print("finished", ctx.tool_name, result.get("error", "ok"))


class Lookup(BaseModel):
    query: str


def find(args: Lookup) -> str:
    return f"result for {args.query}"


lookup = define_tool("lookup", "Look something up", input=Lookup, execute=find)
model = mock_model([{"toolCalls": [{"name": "lookup", "args": {"query": "hooks"}}]}, "Done."])
agent = create_agent(prompt="You answer questions.", provider=model, tools=[lookup], hooks=[Audit()])

print(asyncio.run(agent.send("Look up hooks")).text)

# Prints:
#   calling lookup {'query': 'hooks'}
#   finished lookup ok
#   Done.
