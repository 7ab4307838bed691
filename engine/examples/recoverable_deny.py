"""Deny in a middleware: it sees the arguments that will really run, and the model reads the refusal and tries again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import BaseModel

from hookcell.agent import App, ToolOutput, ToolRun, create_agent, define_tool, mock_model

PROJECT = Path.cwd().resolve()


async def inside_the_project(call: ToolRun, proceed: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
    if not PROJECT.joinpath(str(call.args["path"])).resolve().is_relative_to(PROJECT):
        return ToolOutput(content="Only files of the project may be read.", is_error=True)
    return await proceed()


class Read(BaseModel):
    path: str


def contents(args: Read) -> str:
    return f"contents of {args.path}"


read = define_tool("read", "Read a file", input=Read, execute=contents)
model = mock_model(
    [
        {"toolCalls": [{"name": "read", "args": {"path": "/etc/hosts"}}]},
        {"toolCalls": [{"name": "read", "args": {"path": "hosts.txt"}}]},
        "Here it is.",
    ]
)
app = App().use(tool=inside_the_project)  # of every agent that is given this app
agent = create_agent(provider=model, tools=[read], app=app)

for message in asyncio.run(agent.send("Show me the hosts")).messages:
    if message["role"] != "user":
        print(message["role"], message["content"] or "(calls tools)")

# Prints:
#   assistant (calls tools)
#   tool Only files of the project may be read.
#   assistant (calls tools)
#   tool contents of hosts.txt
#   assistant Here it is.
