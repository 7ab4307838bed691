"""Shorten a tool's output. A string swaps the text alone: an error stays marked as one."""

import asyncio
from typing import Any

from pydantic import BaseModel

from hookcell import HookContext
from hookcell.agent import Event, ToolDone, ToolFailed, create_agent, define_tool, mock_model


class Brief:
    def after_tool(self, result: dict[str, Any], _ctx: HookContext) -> str | None:
        output = result["output"]
        return f"{output[:20]}… [{len(output) - 20} more]" if len(output) > 20 else None


class Read(BaseModel):
    path: str


def read(args: Read) -> str:
    if args.path == "missing":
        raise FileNotFoundError("there is no file of that name")
    return "once upon a time " * 100


def show(event: Event) -> None:
    if isinstance(event, ToolDone | ToolFailed):
        print(event.type, event.content)


calls = [{"name": "read", "args": {"path": path}} for path in ("story", "missing")]
model = mock_model([{"toolCalls": calls}, "I read what there is."])
tool = define_tool("read", "Read a file", input=Read, execute=read)
agent = create_agent(provider=model, tools=[tool], agent_class=Brief, on_event=show)

asyncio.run(agent.send("Read both"))

# Prints:
#   tool.done once upon a time onc… [1680 more]
#   tool.error FileNotFoundError: t… [28 more]
