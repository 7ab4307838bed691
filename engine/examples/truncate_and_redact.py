"""Redact and truncate a result before the model sees it. The tool ran unchanged; nothing keeps what it gave."""

import asyncio
import re
from typing import Any

from pydantic import BaseModel

from hookcell import HookContext
from hookcell.agent import create_agent, define_tool, mock_model


class Redact:
    name = "redact"

    def post_tool_call(self, _ctx: HookContext, result: dict[str, Any]) -> dict[str, str] | None:
        if not isinstance(result["result"], str):
            return None
        masked = re.sub(r"[\w.]+@[\w.]+", "[email]", result["result"])
        return {"result": masked[:40]}


class ReadLog(BaseModel):
    pass


def read(_args: ReadLog) -> str:
    return "user=ada email=ada@example.com " + "x" * 5000


read_log = define_tool("read_log", "Read the log", input=ReadLog, execute=read)
model = mock_model([{"toolCalls": [{"name": "read_log"}]}, "Read it."])
agent = create_agent(prompt="You read logs.", provider=model, tools=[read_log], hooks=[Redact()])

asyncio.run(agent.send("Read the log"))
print(model.calls[1].messages[-1]["content"])

# Prints:
#   user=ada email=[email] xxxxxxxxxxxxxxxxx
