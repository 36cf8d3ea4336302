"""The tokens of images and documents in a conversation. No provider says them beforehand, so all are estimates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic_ai.messages import BinaryContent, ModelMessage, ToolReturnPart, UserPromptPart

_IMAGE_TOKENS = 1_600
"""What a large image takes with most providers, which scale larger ones down to this."""
_DOCUMENT_BYTES_PER_TOKEN = 25
"""A page of a PDF has about 50 KB, and takes about 2,000 tokens as text and as an image."""


def estimate_file_tokens(file: BinaryContent) -> int:
    """Return about how many tokens a file takes that is not text."""
    if file.is_image:
        return _IMAGE_TOKENS
    return max(_IMAGE_TOKENS, len(file.data) // _DOCUMENT_BYTES_PER_TOKEN)


def estimate_files(messages: Sequence[ModelMessage]) -> int:
    """Return about how many tokens the images and documents of a conversation take."""
    return sum(estimate_file_tokens(file) for file in _list_files(messages))


def _list_files(messages: Sequence[ModelMessage]) -> Iterator[BinaryContent]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                yield from (file for file in part.files if isinstance(file, BinaryContent))
            elif isinstance(part, UserPromptPart) and not isinstance(part.content, str):
                yield from (item for item in part.content if isinstance(item, BinaryContent))
