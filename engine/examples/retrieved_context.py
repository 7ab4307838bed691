"""Replace the prompt, for one turn, by the prompt and what was found about the question."""

import asyncio

from hookcell import HookContext
from hookcell.agent import create_agent, mock_model

NOTES = ["Hooks run in the order they were registered.", "A deny needs no reason.", "Guests have no clock."]


class Librarian:
    def before_prompt(self, prompt: str, ctx: HookContext) -> str | None:
        question = ctx.state.history[-1]["content"].lower()
        hits = [note for note in NOTES if any(word in note.lower() for word in question.split())]
        return "\n".join([prompt, "## Related", *hits]) if hits else None  # None keeps the original


model = mock_model(["None at all.", "Hello!"])
agent = create_agent(prompt="You answer questions.", provider=model, agent_class=Librarian)

asyncio.run(agent.send("Which clock do guests see?"))
asyncio.run(agent.send("Hi!"))
for call in model.calls:
    print(repr(call.messages[0]["content"]))

# Prints:
#   'You answer questions.\n## Related\nGuests have no clock.'
#   'You answer questions.'
