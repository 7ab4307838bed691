"""Add a default argument. What a hook puts in is validated against the tool's schema again."""

import asyncio
from typing import Any

from pydantic import BaseModel

from hookcell import HookContext
from hookcell.agent import create_agent, define_tool, mock_model


class DefaultLimit:
    name = "default-limit"

    def pre_tool_call(self, ctx: HookContext) -> dict[str, Any] | None:
        if ctx.tool_name == "search" and ctx.args["limit"] is None:
            return {"input": {**ctx.args, "limit": 5}}
        return None


class Search(BaseModel):
    query: str
    limit: int | None = None


def find(args: Search) -> str:
    return f"{args.limit} hits"


search = define_tool("search", "Search the docs", input=Search, execute=find)
model = mock_model([{"toolCalls": [{"name": "search", "args": {"query": "hooks"}}]}, "Found it."])
agent = create_agent(prompt="You search.", provider=model, tools=[search], hooks=[DefaultLimit()])

result = asyncio.run(agent.send("Search for hooks"))
for message in result.messages:
    print(message["role"], message["content"] or message.get("toolCalls"))

# Prints:
#   user Search for hooks
#   assistant [{'id': 'call_1_1', 'name': 'search', 'args': {'query': 'hooks', 'limit': 5}}]
#   tool 5 hits
#   assistant Found it.
