"""Have a human approve a call: the run pauses, can be kept as text meanwhile, and goes on with what was approved."""

import asyncio
from typing import Any

from pydantic import BaseModel

from hookcell import HookContext
from hookcell.agent import Deny, ask, create_agent, define_tool, mock_model


class Cap:
    name = "cap"

    def pre_tool_call(self, ctx: HookContext) -> dict[str, Any]:
        return {"input": {**ctx.args, "amount": min(ctx.args["amount"], 100)}}


class Refund(BaseModel):
    order: str
    amount: int


def pay(args: Refund) -> str:
    return f"refunded {args.amount} of {args.order}"


refund = define_tool("refund", "Refund an order", input=Refund, execute=pay)
calls = [{"id": order, "name": "refund", "args": {"order": order, "amount": 420}} for order in ("PL-1", "PL-2")]
model = mock_model([{"toolCalls": calls}, "One of the two."])
agent = create_agent(provider=model, tools=[refund], hooks=[Cap()], permissions=[ask("refund", reason="money")])


async def main() -> None:
    result = await agent.send("I was charged twice for both orders")
    if result.pending is not None:
        for call in result.pending.calls:
            print("asked:", call.tool, call.args, call.reason)  # as hooks left it, and as it will run
        kept = result.pending.token  # text, good in any process whose Approvals have the same key and store
        result = await agent.resume(kept, {"PL-1": "approve", "PL-2": Deny(reason="PL-2 was never paid")})
    for message in result.messages[2:]:
        print(message["role"], message["content"])


asyncio.run(main())

# Prints:
#   asked: refund {'order': 'PL-1', 'amount': 100} money
#   asked: refund {'order': 'PL-2', 'amount': 100} money
#   tool refunded 100 of PL-1
#   tool PL-2 was never paid
#   assistant One of the two.
