"""Deny a tool by its name: it does not run, and the model reads the reason."""

import asyncio

from pydantic import BaseModel

from hookcell import HookContext
from hookcell.agent import create_agent, define_tool, mock_model


class NoShell:
    name = "no-shell"

    def pre_tool_call(self, ctx: HookContext) -> dict[str, str] | None:
        return {"deny": "The shell is disabled here"} if ctx.tool_name == "shell" else None


class Shell(BaseModel):
    command: str


def run(args: Shell) -> str:
    return f"ran {args.command}"


shell = define_tool("shell", "Run a shell command", input=Shell, execute=run)
model = mock_model([{"toolCalls": [{"name": "shell", "args": {"command": "ls"}}]}, "I could not run it."])
agent = create_agent(prompt="You help.", provider=model, tools=[shell], hooks=[NoShell()])

result = asyncio.run(agent.send("List the files"))
print("the model read:", model.calls[1].messages[-1]["content"])
print("and said:", result.text)

# Prints:
#   the model read: The shell is disabled here
#   and said: I could not run it.
