"""A run that goes on in another process: ``python elsewhere.py FOLDER`` resumes the token on its standard input."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hookcell.agent import Agent, Approvals, MockModel, ask, create_agent, define_tool, mock_model

__all__ = ["KEY", "FileApprovals", "agent_of"]

KEY = b"the key that all processes share"


class FileApprovals:
    """A store that several processes share: one file for each open pending state. A toy; use a database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, approval_id: str, digest: str, /) -> None:
        (self._folder / approval_id).write_text(digest)

    def claim(self, approval_id: str, digest: str, /) -> bool:
        path = self._folder / approval_id
        try:
            if path.read_text() != digest:
                return False
            path.rename(path.with_suffix(".used"))  # the first one moves it, for all processes
        except FileNotFoundError:
            return False
        return True


def agent_of(folder: Path) -> tuple[Agent, MockModel, list[Any]]:
    """An agent with a hook that rewrites and a tool that a rule asks about; its model, and what its tool was given."""
    executed: list[Any] = []
    model = mock_model([{"toolCalls": [{"id": "c1", "name": "read", "args": {"path": "a"}}]}, "done"])

    def pre_tool_call(ctx: Any) -> dict[str, object]:
        return {"input": {"path": f"{ctx.args['path']} {ctx.seed}"}}

    def execute(args: Any) -> str:
        executed.append(args)
        return "text"

    agent = create_agent(
        provider=model,
        tools=[define_tool("read", input={"type": "object"}, execute=execute)],
        hooks=[SimpleNamespace(name="h", pre_tool_call=pre_tool_call)],
        permissions=[ask("read")],
        approvals=Approvals(key=KEY, store=FileApprovals(folder)),
    )
    return agent, model, executed


async def _main(folder: Path, token: str) -> None:
    agent, model, executed = agent_of(folder)
    model.calls.append(None)  # type: ignore[arg-type]  # the first was made in the other process
    result = await agent.resume(token, {"c1": "approve"})
    json.dump({"output": result.output, "messages": result.messages, "executed": executed}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), sys.stdin.read()))
