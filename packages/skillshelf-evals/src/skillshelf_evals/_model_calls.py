"""The calls of a model: everything that goes in, as plain values that are the same in every run.

Recordings and the response cache find an answer by them. Left out are the values that differ from run to run and that
no model sees: times, ids, and the folders that a trial happened to have.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import InstructionPart, ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_jsonable_python

from skillshelf.text import truncate
from skillshelf_evals._placeholders import SCRATCH, WORKSPACE, find_folder, hide_folders_in, map_texts
from skillshelf_evals._text import MAX_QUOTED, find_first_difference

# Agents love `ls -l`. Its links, owners, sizes and times are those of the machine and the minute.
_LS_LINE = re.compile(r"^([-dlbcps][-rwxsStT]{9})[.+@]? +\d+ +\S+ +\S+ +\d+ +\S+ +\d+ +[\d:]+ ", re.M)
_IGNORED_PART_FIELDS = frozenset({"timestamp", "id", "provider_name", "provider_details", "metadata", "signature"})
# How long to wait and who is asking make no difference to the answer. Headers may hold a key.
_IGNORED_SETTINGS = frozenset({"extra_headers", "timeout", "request_timeout"})

CallRecord = dict[str, Any]
"""A call as JSON values: its model, system prompt, tools, settings, output and messages."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """Everything that goes into one call of a model."""

    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters

    @property
    def system(self) -> str:
        """The system prompt."""
        if self.parameters.instruction_parts:
            return InstructionPart.join(self.parameters.instruction_parts) or ""
        instructions = [message.instructions for message in self.messages if isinstance(message, ModelRequest)]
        return (instructions[-1] if instructions else None) or ""


class WatchedModel(WrapperModel):
    """A model that passes everything on, and lets a subclass see each call and each response."""

    def before_call(self, call: ModelCall) -> None:
        """A call begins."""

    async def after_call(self, call: ModelCall, response: ModelResponse) -> None:
        """A call is over. The response may be incomplete."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        call = ModelCall(list(messages), model_settings, model_request_parameters)
        self.before_call(call)
        response = await super().request(messages, model_settings, model_request_parameters)
        await self.after_call(call, response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        call = ModelCall(list(messages), model_settings, model_request_parameters)
        self.before_call(call)
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as stream:
            yield stream
        await self.after_call(call, stream.get())


def record_call(model: str, call: ModelCall) -> CallRecord:
    """Return a call as JSON values that are the same in every run."""
    tools = [_tool_as_json(tool) for tool in call.parameters.function_tools]
    messages = ModelMessagesTypeAdapter.dump_python(call.messages, mode="json")
    parts = {
        "model": model,
        "system": call.system,
        "tools": sorted(tools, key=lambda tool: str(tool["name"])),
        "settings": public_settings(call.settings),
        "output": [call.parameters.output_mode, *map(_tool_as_json, call.parameters.output_tools)],
        "messages": _record_messages(messages),
    }
    plain = to_jsonable_python(parts, fallback=str)
    return {name: hide_folders_in(part) for name, part in plain.items()}


def public_settings(settings: ModelSettings | None) -> dict[str, Any]:
    """Return the settings of a model that may be written to a file."""
    return {name: value for name, value in (settings or {}).items() if name not in _IGNORED_SETTINGS}


def cache_key(record: CallRecord) -> str:
    """Return a digest that is the same for the same call in every run."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]


def restore_response(stored: Any, call: ModelCall) -> ModelResponse:
    """Return a stored response, given as JSON values, as the response to this call.

    Its placeholders become the folders of the trial that makes the call.
    """

    def restore(text: str) -> str:
        if WORKSPACE in text:
            text = text.replace(WORKSPACE, find_folder(call.system, WORKSPACE))
        if SCRATCH in text:  # no prompt names the scratch folder: the model knows it from a command
            messages = ModelMessagesTypeAdapter.dump_json(call.messages).decode("utf-8", "replace")
            text = text.replace(SCRATCH, find_folder(messages, SCRATCH))
        return text

    [response] = ModelMessagesTypeAdapter.validate_json(json.dumps([map_texts(restore, stored)]))
    assert isinstance(response, ModelResponse)
    return response


def _tool_as_json(tool: ToolDefinition) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}


def _record_messages(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    call_numbers: dict[str, int] = {}
    return [
        {"kind": message["kind"], "parts": [_record_part(part, call_numbers) for part in message["parts"]]}
        for message in messages
    ]


def _record_part(part: Mapping[str, Any], call_numbers: dict[str, int]) -> dict[str, Any]:
    record = {name: value for name, value in part.items() if value is not None and name not in _IGNORED_PART_FIELDS}
    if "tool_call_id" in record:  # it ties a result to its call, and providers choose it at random
        record["tool_call_id"] = call_numbers.setdefault(str(record["tool_call_id"]), len(call_numbers) + 1)
    if part["part_kind"] == "tool-return" and isinstance(record.get("content"), str):
        record["content"] = _LS_LINE.sub(r"\1 ", record["content"])
    if isinstance(record.get("args"), str):
        with suppress(ValueError):  # the model did not write JSON
            record["args"] = json.loads(record["args"])
    return record


def describe_differences(now: CallRecord, then: CallRecord) -> list[str]:
    """Describe in which parts a call differs from a recorded one."""
    found = []
    for part in ("model", "system", "tools", "settings", "output"):
        ours = now[part]
        theirs = then[part]
        if ours == theirs:
            continue
        if part == "system":
            found.append(f"the system prompt: {_describe_lines(ours, theirs)}")
        elif part == "tools":
            found.append(f"the tools: {', '.join(_names_of_changed_tools(ours, theirs))}")
        else:
            shown = truncate(str(ours), MAX_QUOTED)
            found.append(f"the {part}: {shown}, recorded with {truncate(str(theirs), MAX_QUOTED)}")

    our_messages = now["messages"]
    their_messages = then["messages"]
    index = count_equal_messages(now, then)
    if index < len(our_messages) and index < len(their_messages):
        lines = _describe_lines(_message_text(our_messages[index]), _message_text(their_messages[index]))
        found.append(f"message {index + 1}: {lines}")
    elif len(our_messages) != len(their_messages):
        found.append(f"there are {len(our_messages)} messages, and the recorded call had {len(their_messages)}")

    return found


def count_equal_messages(now: CallRecord, then: CallRecord) -> int:
    """Return how many messages are the same, counted from the first."""
    count = 0
    for ours, theirs in zip(now["messages"], then["messages"], strict=False):
        if ours != theirs:
            break
        count += 1
    return count


def _names_of_changed_tools(now: list[dict[str, Any]], then: list[dict[str, Any]]) -> list[str]:
    ours = {tool["name"]: tool for tool in now}
    theirs = {tool["name"]: tool for tool in then}
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


def _describe_lines(now: str, then: str) -> str:
    difference = find_first_difference(now, then)
    if difference is None:  # values differ whose texts are the same
        return "line 1"
    ours = "nothing" if difference.ours is None else repr(truncate(difference.ours, MAX_QUOTED))
    theirs = "nothing" if difference.theirs is None else repr(truncate(difference.theirs, MAX_QUOTED))
    return f"line {difference.number} is {ours}, recorded with {theirs}"


def _message_text(message: Mapping[str, Any]) -> str:
    """Return a message for readers: one line for each part, and texts as they are."""
    lines = []
    for part in message["parts"]:
        content = part.get("content", part.get("args", ""))
        if not isinstance(content, str):
            content = json.dumps(content, ensure_ascii=False, sort_keys=True)
        lines.append(f"{part['part_kind']} {part.get('tool_name', '')} {content}".replace("  ", " "))
    return "\n".join(lines)
