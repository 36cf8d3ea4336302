"""What of a conversation is kept, and what makes a kept one fit to be sent again."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pydantic_ai.messages import (
    InstructionBaselinePart,
    InstructionDeltaPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    UserPromptPart,
    repair_messages,
)

# Each can hold the listing of the skills: it belongs to the workspace as it is today, never to what was said.
_PROMPT_PARTS = SystemPromptPart, InstructionBaselinePart, InstructionDeltaPart
_GAP = "[Part of the saved conversation could not be read back here.]"


def stripped(message: ModelMessage) -> ModelMessage:
    """The message without the system prompt; the same object where there is none in it."""
    if not isinstance(message, ModelRequest):
        return message
    # Kept even when nothing is left in it: the answer that follows needs a request before it.
    parts = [part for part in message.parts if not isinstance(part, _PROMPT_PARTS)]
    if message.instructions is None and len(parts) == len(message.parts):
        return message
    return replace(message, parts=parts, instructions=None)


def gap(at: datetime) -> ModelRequest:
    """Stands for messages that are lost, so that the model knows, and requests and answers still take turns."""
    return ModelRequest(parts=[UserPromptPart(_GAP, timestamp=at)], timestamp=at)


def sendable(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages as a provider takes them: a call without a result gets one that says it was interrupted."""
    repaired = repair_messages(messages)
    last = repaired[-1] if repaired else None
    if isinstance(last, ModelResponse) and last.state == "suspended":
        # Its job died with the process; pydantic-ai would take no new prompt before it is answered.
        repaired[-1] = replace(last, state="interrupted")
    return repaired
