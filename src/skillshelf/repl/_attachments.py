"""What a message brings along, in a line for the user."""

from collections.abc import Iterator

from skillshelf.agent import AgentCore, Attachment, FoundAttachments

_MAX_PROBLEMS = 5
"""Lines about files that were not attached. A pasted text can be full of words that begin with `@`."""


def describe_attachments(core: AgentCore, found: FoundAttachments) -> Iterator[str]:
    """Yield a line for each attached file, and for each that could not be attached."""
    for attachment in found.attachments:
        yield f"attached {attachment.name}: {_describe_size(core, attachment)}"
    yield from found.problems[:_MAX_PROBLEMS]
    if len(found.problems) > _MAX_PROBLEMS:
        yield f"… and {len(found.problems) - _MAX_PROBLEMS} more that were not attached"


def _describe_size(core: AgentCore, attachment: Attachment) -> str:
    return f"{attachment.summary}, ~{attachment.count_tokens(core.shelf.counter):,} tokens"
