"""What a model was asked, as plain values that are the same in every run: the key of a recording.

Left out is what tells one run from another and no model sees: times, ids, and where the workspace happened to be.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import InstructionPart, ModelMessage, ModelMessagesTypeAdapter, ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_jsonable_python

from skillshelf.evals._place import HERE, SCRATCH, everywhere, scratch_in, without_place, workspace_in
from skillshelf.evals.check import clip

# `ls -l`, which agents love: links, owner, size of a folder and time are those of the machine and the minute.
_LS = re.compile(r"^([-dlbcps][-rwxsStT]{9})[.+@]? +\d+ +\S+ +\S+ +\d+ +\S+ +\d+ +[\d:]+ ", re.M)
_LEFT_OUT = frozenset({"timestamp", "id", "provider_name", "provider_details", "metadata", "signature"})
# How long to wait, and who is asking: not what is asked. Headers may hold a key.
_NOT_ASKED = frozenset({"extra_headers", "timeout", "request_timeout"})
_PARTS = ("model", "system", "tools", "settings", "output", "messages")
Asked = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """What goes into one call of a model."""

    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters

    @property
    def system(self) -> str:
        if self.parameters.instruction_parts:
            return InstructionPart.join(self.parameters.instruction_parts) or ""
        told = [message.instructions for message in self.messages if isinstance(message, ModelRequest)]
        return (told[-1] if told else None) or ""


def asked(model: str, sent: Sent) -> Asked:
    """A call by its parts: model, system, tools, settings, output and messages."""
    parts = {
        "model": model,
        "system": sent.system,
        "tools": sorted(map(_tool, sent.parameters.function_tools), key=lambda tool: str(tool["name"])),
        "settings": public(sent.settings),
        "output": [sent.parameters.output_mode, *map(_tool, sent.parameters.output_tools)],
        "messages": list(_messages(ModelMessagesTypeAdapter.dump_python(sent.messages, mode="json"))),
    }
    plain: Asked = everywhere(without_place, to_jsonable_python(parts, fallback=str))
    return plain


def public(settings: ModelSettings | None) -> dict[str, Any]:
    """What of a model's settings may be written to a file."""
    return {name: value for name, value in (settings or {}).items() if name not in _NOT_ASKED}


def key(call: Asked) -> str:
    return hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()[:32]


def put_back(answer: Any, sent: Sent) -> Any:
    """An answer that was given elsewhere, as JSON, at home where this call is made."""

    def change(text: str) -> str:
        if HERE in text:
            text = text.replace(HERE, workspace_in(sent.system))
        if SCRATCH in text:  # no prompt names it: a command has told the model
            told = ModelMessagesTypeAdapter.dump_json(sent.messages).decode("utf-8", "replace")
            text = text.replace(SCRATCH, scratch_in(told))
        return text

    return everywhere(change, answer)


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}


def _messages(plain: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    calls: dict[str, int] = {}
    for message in plain:
        yield {"kind": message["kind"], "parts": [_part(part, calls) for part in message["parts"]]}


def _part(part: Mapping[str, Any], calls: dict[str, int]) -> dict[str, Any]:
    kept = {name: value for name, value in part.items() if value is not None and name not in _LEFT_OUT}
    if "tool_call_id" in kept:  # which call a result belongs to; a provider names them at random
        kept["tool_call_id"] = calls.setdefault(str(kept["tool_call_id"]), len(calls) + 1)
    if part["part_kind"] == "tool-return" and isinstance(kept.get("content"), str):
        kept["content"] = _LS.sub(r"\1 ", kept["content"])
    if isinstance(kept.get("args"), str):
        with suppress(ValueError):  # a model that wrote no JSON: as it is
            kept["args"] = json.loads(kept["args"])
    return kept


def differences(now: Asked, then: Asked) -> list[str]:
    """What of a call differs from a recorded one, in words."""
    said = [_difference(part, now[part], then[part]) for part in _PARTS[:-1] if now[part] != then[part]]
    ours, theirs = now["messages"], then["messages"]
    at = common(now, then)
    if at < len(ours) and at < len(theirs):
        said.append(f"message {at + 1}: {_lines(_text(ours[at]), _text(theirs[at]))}")
    elif len(ours) != len(theirs):
        said.append(f"there are {len(ours)} messages, and the recorded call had {len(theirs)}")
    return said


def common(now: Asked, then: Asked) -> int:
    """How many messages from the first are the same."""
    pairs = zip(now["messages"], then["messages"], strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(map(_size, (now, then))))


def _size(call: Asked) -> int:
    return len(call["messages"])


def _difference(part: str, now: Any, then: Any) -> str:
    if part == "system":
        return f"the system prompt: {_lines(now, then)}"
    if part == "tools":
        ours, theirs = ({tool["name"]: tool for tool in tools} for tools in (now, then))
        names = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        return f"the tools: {', '.join(names)}"
    return f"the {part}: {clip(str(now))}, recorded with {clip(str(then))}"


def _lines(now: str, then: str) -> str:
    """The first line that differs."""
    ours, theirs = now.split("\n"), then.split("\n")
    pairs = zip(ours, theirs, strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(ours), len(theirs)))
    shown = [repr(clip(lines[at])) if at < len(lines) else "nothing" for lines in (ours, theirs)]
    return f"line {at + 1} is {shown[0]}, recorded with {shown[1]}"


def _text(message: Mapping[str, Any]) -> str:
    """A message for people: one line for each part, and texts as they are."""
    parts = []
    for part in message["parts"]:
        said = part.get("content", part.get("args", ""))
        words = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, sort_keys=True)
        parts.append(f"{part['part_kind']} {part.get('tool_name', '')} {words}".replace("  ", " "))
    return "\n".join(parts)
