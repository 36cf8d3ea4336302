"""The messages of a conversation: what is saved of them, what can be sent again, and the skill texts in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import (
    CachePoint,
    InstructionBaselinePart,
    InstructionDeltaPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    repair_messages,
)

from skillshelf.shelf import LOAD_TOOL
from skillshelf.slash import SKILL_PREFIX, read_message

# Each can hold the listing of the skills, which belongs to the workspace as it is today, not to the conversation.
_PROMPT_PARTS = SystemPromptPart, InstructionBaselinePart, InstructionDeltaPart
_GAP = "[Part of the saved conversation could not be read back here.]"
# Marks a note that the application added to a message of the user.
_NOTE = "skillshelf.note"
# Names what a text is that the user attached to a message.
_ATTACHMENT = "skillshelf.attachment"
# Names the skill whose text is in a message of the user. Sessions of earlier versions have it.
_INVOKED_SKILL = "invoked_skill"


def strip_system_prompt(message: ModelMessage) -> ModelMessage:
    """Return the message without the system prompt; the same object if there is none in it."""
    if not isinstance(message, ModelRequest):
        return message
    # A request stays even if nothing is left in it: the answer that follows needs a request before it.
    parts = [part for part in message.parts if not isinstance(part, _PROMPT_PARTS)]
    if message.instructions is None and len(parts) == len(message.parts):
        return message
    return replace(message, parts=parts, instructions=None)


def make_prompt(
    text: str, note: str = "", attachments: Sequence[UserContent] = (), at: datetime | None = None
) -> ModelRequest:
    """Return a message that the user sent at this time, by default now.

    `note` is from the application: the model gets it after the user's words, and `prompt_text` leaves it out.
    `attachments` are the content of files and commands, with their names by `mark_attachment`.
    """
    content: str | list[UserContent] = text
    if note or attachments:
        content = [text, *attachments]
    if note:
        content = [*content, TextContent(note, metadata=_NOTE)]
    sent = at or datetime.now(UTC)
    return ModelRequest(parts=[UserPromptPart(content, timestamp=sent)], timestamp=sent)


def mark_attachment(name: str, text: str) -> TextContent:
    """Return a text that the user attached to a message. `prompt_text` gives its name alone."""
    return TextContent(text, metadata={_ATTACHMENT: name})


def prompt_content(request: ModelRequest) -> str | Sequence[UserContent]:
    """Return what a message of `make_prompt` says, in the form that a run takes."""
    (part,) = request.parts
    assert isinstance(part, UserPromptPart)
    return part.content


def make_gap(at: datetime) -> ModelRequest:
    """Return a message that stands for lost ones, so that the model knows, and requests and answers take turns."""
    return ModelRequest(parts=[UserPromptPart(_GAP, timestamp=at)], timestamp=at)


def make_sendable(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages as a provider accepts them: a call without a result gets one that says it was interrupted."""
    repaired = repair_messages(messages)
    last = repaired[-1] if repaired else None
    if isinstance(last, ModelResponse) and last.state == "suspended":
        # Its job died with the process; pydantic-ai would take no new prompt before it is answered.
        repaired[-1] = replace(last, state="interrupted")
    return repaired


@dataclass(frozen=True, slots=True)
class LoadedText:
    """A skill's instructions, or a page of a reference, as the model got them."""

    name: str
    """The skill's name."""
    reference: str
    """Empty for the instructions."""
    text: str
    offset: int = 0

    def __str__(self) -> str:
        if not self.reference:
            return self.name
        page = f" from offset {self.offset}" if self.offset else ""
        return f"{self.name}: {self.reference}{page}"


def loaded_skills(messages: Sequence[ModelMessage]) -> list[LoadedText]:
    """Return the skill texts in a conversation: the latest version of each, in the order in which they came in."""
    latest: dict[tuple[str, str, int], LoadedText] = {}
    for loaded in _find_loads(messages):
        key = loaded.name, loaded.reference, loaded.offset
        latest.pop(key, None)
        latest[key] = loaded
    return list(latest.values())


def prompt_text(part: UserPromptPart) -> str:
    """Return the user's words in a message. Attached files are named, and others named by their kind."""
    return "\n".join(filter(None, [_find_words(part), *_name_attachments(part)]))


def _find_words(part: UserPromptPart) -> str:
    """Return what the user wrote, without anything that came with it."""
    if isinstance(part.content, str):
        return part.content
    texts: list[str] = []
    for item in part.content:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, TextContent) and item.metadata != _NOTE and not _find_attached_name(item):
            texts.append(item.content)
    return "\n".join(texts)


def _name_attachments(part: UserPromptPart) -> list[str]:
    if isinstance(part.content, str):
        return []
    names: list[str] = []
    is_named = False
    for item in part.content:
        if isinstance(item, TextContent):
            name = _find_attached_name(item)
            is_named = bool(name)
            if name:
                names.append(f"[attached {name}]")
        elif not isinstance(item, str | CachePoint):
            if not is_named:  # the name of our own images comes before them
                names.append(f"[{item.kind}]")
            is_named = False
    return names


def _find_attached_name(item: TextContent) -> str:
    if not isinstance(item.metadata, dict):
        return ""
    return str(item.metadata.get(_ATTACHMENT, ""))


def typed_text(request: ModelRequest) -> str:
    """Return a message as the user typed it: `/skills:NAME ARGUMENTS` for one that brings a skill."""
    prompts = [part for part in request.parts if isinstance(part, UserPromptPart)]
    lines = [show_invocation(_find_words(part)) for part in prompts]
    invoked_skill = (request.metadata or {}).get(_INVOKED_SKILL, "")
    if invoked_skill:
        lines = [f"/{SKILL_PREFIX}{invoked_skill}"]
    for part in prompts:
        lines += _name_attachments(part)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message of the user in a transcript."""

    position: int
    """Its index in the transcript."""
    text: str
    """The message as the user typed it, without what was attached."""
    sent: datetime


def list_sent(transcript: Sequence[ModelMessage]) -> list[SentMessage]:
    """Return the user's messages that began a turn, in order: one sent during a turn belongs to it."""
    messages: list[SentMessage] = []
    for position, message in enumerate(transcript):
        if any(isinstance(part, ToolReturnPart | RetryPromptPart) for part in message.parts):
            continue
        prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
        text = "\n".join(show_invocation(_find_words(part)) for part in prompts)
        if text:
            messages.append(SentMessage(position, text, prompts[0].timestamp))
    return messages


def last_answer(messages: Sequence[ModelMessage]) -> str:
    """Return the text of the model's last message that has any, or an empty string."""
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
            if text.strip():
                return text
    return ""


def show_invocation(text: str) -> str:
    """Return the command that became this message, or the message itself if it does not apply a skill."""
    applied = read_message(text)
    if applied is None:
        return text
    return f"/{SKILL_PREFIX}{applied.name} {applied.arguments}".rstrip()


def _find_loads(messages: Sequence[ModelMessage]) -> Iterator[LoadedText]:
    calls: dict[str, ToolCallPart] = {}
    for message in messages:
        if not isinstance(message, ModelRequest):
            calls.update({part.tool_call_id: part for part in message.parts if isinstance(part, ToolCallPart)})
            continue
        invoked_skill = (message.metadata or {}).get(_INVOKED_SKILL, "")
        for part in message.parts:
            loaded = _read_load(part, calls, invoked_skill)
            if loaded:
                yield loaded


def _read_load(part: ModelRequestPart, calls: dict[str, ToolCallPart], invoked_skill: str) -> LoadedText | None:
    if isinstance(part, ToolReturnPart) and part.tool_name == LOAD_TOOL and part.outcome == "success":
        call = calls.get(part.tool_call_id)
        return _read_call(call.args_as_dict(), part.model_response_str()) if call else None

    if isinstance(part, UserPromptPart):
        text = _find_words(part)
        if invoked_skill:
            return LoadedText(invoked_skill, "", text)
        applied = read_message(text)
        if applied:
            return LoadedText(applied.name, "", text)
    return None


def _read_call(arguments: dict[str, Any], text: str) -> LoadedText | None:
    name = arguments.get("skill_name")
    reference = arguments.get("reference")
    offset = arguments.get("offset")
    if not isinstance(name, str):
        return None
    return LoadedText(
        name,
        reference if isinstance(reference, str) else "",
        text,
        offset if isinstance(offset, int) else 0,
    )
