"""A guest among an agent's hooks: a stranger's WebAssembly in the sandbox, with a config of yours and hard limits."""

import asyncio
from importlib.resources import files

from pydantic import BaseModel

from hookcell import GuestHook
from hookcell.agent import create_agent, define_tool, mock_model
from hookcell_sandbox import Limits, Sandbox

GUARD = files("hookcell").joinpath("demo/hooks/guard.wasm").read_bytes()
CONFIG = {"limits": [{"tool": "refund", "argument": "amount", "max": 100, "reason": "Over 100 asks a colleague."}]}


class Refund(BaseModel):
    amount: int


def pay(args: Refund) -> str:
    return f"refunded {args.amount}"


refund = define_tool("refund", "Refund an order", input=Refund, execute=pay)
calls = [{"name": "refund", "args": {"amount": amount}} for amount in (42, 420)]

with Sandbox() as sandbox:
    guard = GuestHook.load(GUARD, sandbox=sandbox, config=CONFIG, limits=Limits(deadline_ms=100), on_failure="deny")
    agent = create_agent(provider=mock_model([{"toolCalls": calls}, "Done."]), tools=[refund], hooks=[guard])
    result = asyncio.run(agent.send("I was charged twice"))

for message in result.messages[2:]:
    print(message["content"])
for entry in result.trace:
    print(entry.kind, entry.hook, entry.point, entry.outcome)

# Prints:
#   refunded 42
#   Over 100 asks a colleague.
#   Done.
#   guest guard pre_tool_call nothing
#   guest guard pre_tool_call deny
