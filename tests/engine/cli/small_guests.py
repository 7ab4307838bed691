"""Guests that return the same outcome whatever they are asked, assembled from a few lines, and runs to drive them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import wasmtime

DEMO = Path(__file__).parents[3] / "engine/hookcell/demo"
GUARD, DEFAULTS, REDACT = (DEMO / "hooks" / f"{name}.wasm" for name in ("guard", "defaults", "redact"))

_OUTCOME_AT = 1024


def wasm(body: str, manifest: Mapping[str, object] | None = None) -> bytes:
    """A module with a memory, an allocator and ``body``."""
    text = f"""(module (memory (export "memory") 4)
      (func (export "hook_alloc") (param i32) (result i32) (i32.const 65536)) {body})"""
    return bytes(wasmtime.wat2wasm(text)) + (b"" if manifest is None else _section(json.dumps(manifest).encode()))


def answering(outcomes: Mapping[str, object], manifest: Mapping[str, object] | None = None) -> bytes:
    """A hook that returns ``outcomes[point]`` at each of its points."""
    body, at = "", _OUTCOME_AT
    for point, outcome in outcomes.items():
        raw = msgpack.packb(outcome)
        data = "".join(f"\\{byte:02x}" for byte in raw)
        body += f"""(data (i32.const {at}) "{data}")
          (func (export "{point}") (param i32 i32) (result i64) (i64.const {at << 32 | len(raw)}))"""
        at += len(raw)
    return wasm(body, manifest)


def trapping(point: str = "pre_tool_call") -> bytes:
    """A hook that traps."""
    return wasm(f'(func (export "{point}") (param i32 i32) (result i64) unreachable)')


def endless(point: str = "pre_tool_call") -> bytes:
    """A hook that never ends."""
    return wasm(f'(func (export "{point}") (param i32 i32) (result i64) (loop (br 0)) unreachable)')


def call(call_id: str, name: str = "find", arguments: object = "{}") -> dict[str, Any]:
    """A tool call in OpenAI's dialect."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asked(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    """An assistant message in OpenAI's dialect."""
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


def answer(call_id: str, content: object = "ok") -> dict[str, Any]:
    """A tool message in OpenAI's dialect."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def user(content: str = "hi") -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": content}


def one_call(call_id: str = "c1", name: str = "find", arguments: object = "{}", result: object = "ok") -> list[Any]:
    """A conversation with one tool call."""
    return [user(), asked(call(call_id, name, arguments)), answer(call_id, result), asked(content="done")]


def record(messages: list[Any], run_id: str | None = "r1", **more: object) -> dict[str, Any]:
    """A record of recorded runs."""
    return {**({} if run_id is None else {"runId": run_id}), "messages": messages, **more}


def written(path: Path, *records: object) -> Path:
    """The records as lines of a file."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return path


def _section(manifest: bytes) -> bytes:
    name = b"hookcell"
    body = bytes([len(name)]) + name + manifest
    return b"\x00" + _leb(len(body)) + body


def _leb(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
