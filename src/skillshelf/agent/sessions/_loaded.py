"""The skill texts in a conversation."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from skillshelf.slash import read_message

LOAD = "load_skill_instructions"
# What a person who invokes a skill says to a model without tools: agent/routing.py makes the block.
_ROUTED = re.compile(r'Apply Skill "([^\n]+)"\n\n<skill name="[^"\n]*">\n.*?\n</skill>(?:\n|$)', re.S)


@dataclass(frozen=True, slots=True)
class LoadedText:
    """A skill's instructions, or a page of a reference, as the model got them."""

    name: str
    """Of the skill."""
    reference: str
    """Empty for the instructions."""
    text: str
    offset: int = 0

    def __str__(self) -> str:
        page = f" from offset {self.offset}" if self.offset else ""
        return f"{self.name}: {self.reference}{page}" if self.reference else self.name


def loaded_skills(messages: Sequence[ModelMessage]) -> list[LoadedText]:
    """The latest text of each, the one that came in last at the end."""
    found: dict[tuple[str, str, int], LoadedText] = {}
    for loaded in _loads(messages):
        key = loaded.name, loaded.reference, loaded.offset
        found.pop(key, None)
        found[key] = loaded
    return list(found.values())


def _loads(messages: Sequence[ModelMessage]) -> Iterator[LoadedText]:
    calls: dict[str, ToolCallPart] = {}
    for message in messages:
        if not isinstance(message, ModelRequest):
            calls.update({part.tool_call_id: part for part in message.parts if isinstance(part, ToolCallPart)})
            continue
        for part in message.parts:
            loaded = _loaded(part, calls)
            if loaded:
                yield loaded


def _loaded(part: ModelRequestPart, calls: dict[str, ToolCallPart]) -> LoadedText | None:
    if isinstance(part, ToolReturnPart) and part.tool_name == LOAD and part.outcome == "success":
        call = calls.get(part.tool_call_id)
        return _of_call(call.args_as_dict(), part.model_response_str()) if call else None
    if isinstance(part, UserPromptPart):
        text = prompt_text(part)
        applied, routed = read_message(text), _ROUTED.match(text)
        name = applied.name if applied else routed[1] if routed else ""
        return LoadedText(name, "", text) if name else None
    return None


def _of_call(arguments: dict[str, Any], text: str) -> LoadedText | None:
    name, reference, offset = arguments.get("skill_name"), arguments.get("reference"), arguments.get("offset")
    if not isinstance(name, str):
        return None
    return LoadedText(
        name, reference if isinstance(reference, str) else "", text, offset if isinstance(offset, int) else 0
    )


def prompt_text(part: UserPromptPart) -> str:
    """The words of a message; pictures and files are named by their kind."""
    if isinstance(part.content, str):
        return part.content
    return "\n".join(
        item if isinstance(item, str) else item.content if isinstance(item, TextContent) else f"[{item.kind}]"
        for item in part.content
        if not isinstance(item, CachePoint)
    )
