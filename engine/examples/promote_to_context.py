"""Promote an output from speech to context: the plan leaves the conversation and becomes the next agent's memory."""

import asyncio

from hookcell import HookContext
from hookcell.agent import RunState, create_agent, mock_model


class Planner:
    def after_response(self, plan: str, ctx: HookContext) -> None:
        ctx.state.set("history", ctx.state.history[:-1])
        ctx.state.append("memory", f"Plan to follow:\n{plan}")


class Worker:
    def before_prompt(self, prompt: str, ctx: HookContext) -> str:
        return "\n\n".join([prompt, *ctx.state.get("memory", [])])


model = mock_model(["All steps are done."])
planner = create_agent(name="planner", provider=mock_model(["1. Read.\n2. Write."]), agent_class=Planner)
worker = create_agent(name="worker", prompt="You work.", provider=model, agent_class=Worker)


async def main() -> None:
    run = RunState()
    await planner.send("We need a summary.", state=run)
    await worker.send("Go on.", state=run)
    for message in model.calls[0].messages:
        print(message["role"], repr(message["content"]))


asyncio.run(main())

# Prints:
#   system 'You work.\n\nPlan to follow:\n1. Read.\n2. Write.'
#   user 'We need a summary.'
#   user 'Go on.'
