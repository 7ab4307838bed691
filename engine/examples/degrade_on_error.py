"""Turn a crash into a degraded answer, with a note of what failed on the result."""

import asyncio

from hookcell import HookContext
from hookcell.agent import create_agent, mock_model


class Careful:
    def on_error(self, error: dict[str, str], ctx: HookContext) -> str:
        ctx.meta({"failed": error["name"]})
        return "I could not complete that step."


agent = create_agent(provider=mock_model([TimeoutError("the model did not answer")]), agent_class=Careful)

result = asyncio.run(agent.send("Hello"))
print(result.text, result.meta)
print(repr(result.error))

# Prints:
#   I could not complete that step. {'failed': 'TimeoutError'}
#   TimeoutError('the model did not answer')
