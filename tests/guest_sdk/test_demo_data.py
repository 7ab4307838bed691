"""The demo's agent runs, tool schemas and configs fit one another and the shipped hooks."""

from __future__ import annotations

import json

import jsonschema_rs

from hookcell_sandbox.admission import AdmissionPolicy, inspect

from .shipped import DEMO, GUESTS, NAMES, WASM, entry_of


def test_the_demo_data_names_only_tools_with_a_schema_and_configs_that_fit() -> None:

    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in _json("tools.json")}
    configs = _json("hooks.json")
    assert sorted(configs) == NAMES
    for name, config in configs.items():
        report = inspect(WASM[name].read_bytes(), AdmissionPolicy(entry_points=frozenset({entry_of(name)})))
        manifest = json.loads(report.manifest)
        jsonschema_rs.validate(manifest["config"], config)
    for line in (DEMO / "run.jsonl").read_text().splitlines():
        run = json.loads(line)
        asked = {}
        for message in run["messages"]:
            for call in message.get("tool_calls", ()):
                asked[call["id"]] = call["function"]["name"]
                jsonschema_rs.validate(tools[call["function"]["name"]], json.loads(call["function"]["arguments"]))
            if message["role"] == "tool":
                assert asked[message["tool_call_id"]] == message["name"]


def test_each_shipped_hook_has_something_to_do_in_the_demo() -> None:
    configs = _json("hooks.json")
    did: dict[str, int] = {"deny": 0, "input": 0, "result": 0, "nothing": 0}
    for line in (DEMO / "run.jsonl").read_text().splitlines():
        for message in json.loads(line)["messages"]:
            outcomes = []
            for call in message.get("tool_calls", ()):
                function = call["function"]
                context = {"toolName": function["name"], "args": json.loads(function["arguments"])}
                outcomes += [
                    GUESTS[name].call("pre_tool_call", **context, config=configs[name]).outcome
                    for name in ("guard", "defaults")
                ]
            if message["role"] == "tool":
                settled = {"result": message["content"]}
                outcomes.append(
                    GUESTS["redact"].call("post_tool_call", result=settled, config=configs["redact"]).outcome
                )
            for outcome in outcomes:
                did[next(iter(outcome)) if outcome else "nothing"] += 1
    assert did == {"deny": 2, "input": 2, "result": 4, "nothing": 31}


def _json(name: str) -> object:
    return json.loads((DEMO / name).read_text())
