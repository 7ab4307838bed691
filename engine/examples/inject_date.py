"""Inject the date and set the temperature before each model call, by changing messages and request in place."""

import asyncio
from datetime import UTC, datetime

from hookcell import HookContext
from hookcell.agent import create_agent, mock_model


class AddDate:
    name = "add-date"

    def pre_generate(self, ctx: HookContext) -> None:
        today = datetime.fromtimestamp(ctx.now / 1000, UTC).date()  # recorded with the call, as a guest's is
        ctx.messages.append({"role": "system", "content": f"Today is {today}."})
        ctx.request["temperature"] = 0


model = mock_model(["Noted."])
agent = create_agent(prompt="You help.", provider=model, hooks=[AddDate()])

asyncio.run(agent.send("Hello"))
sent = model.calls[0]
print([message["role"] for message in sent.messages], sent.options)
print(str(sent.messages[-1]["content"])[:9] + "…")

# Prints:
#   ['system', 'user', 'system'] {'temperature': 0}
#   Today is …
