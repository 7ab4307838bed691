"""Two agents share one run: the reviewer records its decision in a typed slice of the state, and a loop goes by it."""

import asyncio

from pydantic import BaseModel

from hookcell import HookContext
from hookcell.agent import RunState, create_agent, mock_model, state_slice


class Review(BaseModel):
    rounds: int = 0
    approved: bool = False


class Reviewer:
    review = state_slice(Review)

    def after_response(self, response: str, _ctx: HookContext) -> None:
        self.review.rounds += 1
        self.review.approved = "APPROVED" in response  # nothing is returned: the response stays


writer = create_agent(name="writer", provider=mock_model(["A draft.", "A better draft."]))
reviewer = create_agent(name="reviewer", provider=mock_model(["Too short.", "APPROVED"]), agent_class=Reviewer)


async def main() -> None:
    run = RunState()
    review = Review()
    while not review.approved:
        await writer.send("Write, or mend what the review says.", state=run)
        await reviewer.send("Review it.", state=run)
        review = Reviewer.review.load(run.state)
        print(review)
    print([message["content"] for message in run.history if message["role"] == "assistant"])


asyncio.run(main())

# Prints:
#   rounds=1 approved=False
#   rounds=2 approved=True
#   ['A draft.', 'Too short.', 'A better draft.', 'APPROVED']
