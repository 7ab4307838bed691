"""Rewrite a call into a dry run, and cancel the whole run by a throw. It is this agent's behaviour, not a control."""

import asyncio
from typing import Any

from pydantic import BaseModel

from hookcell import HookContext, HookThrew
from hookcell.agent import create_agent, define_tool, mock_model


class Deployer:
    def before_tool(self, call: dict[str, Any], ctx: HookContext) -> dict[str, Any]:
        if call["name"] == "deploy" and not ctx.data["can_deploy"]:
            raise PermissionError("this run may not deploy")
        return {**call, "args": {**call["args"], "dry_run": True}}


class Deploy(BaseModel):
    service: str
    dry_run: bool = False


def deploy(args: Deploy) -> str:
    return f"deployed {args.service}, dry run: {args.dry_run}"


async def turn(**data: bool) -> None:
    model = mock_model([{"toolCalls": [{"name": "deploy", "args": {"service": "web"}}]}, "Looks fine."])
    tool = define_tool("deploy", "Deploy a service", input=Deploy, execute=deploy)
    agent = create_agent(provider=model, tools=[tool], agent_class=Deployer)
    try:
        await agent.send("Deploy", data=data)
        print(model.calls[1].messages[-1]["content"])
    except HookThrew as error:
        print(f"{error.name} at {error.point}: {error.message}")


asyncio.run(turn(can_deploy=True))
asyncio.run(turn(can_deploy=False))

# Prints:
#   deployed web, dry run: True
#   PermissionError at before_tool: this run may not deploy
