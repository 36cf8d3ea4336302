"""A file, or a page of it, as `resources/read` gives it: as text if it is text, otherwise as bytes."""

import re
from typing import NamedTuple

from skillshelf.descriptor import SkillDescriptor
from skillshelf.files import Page
from skillshelf.mcp._uris import Address
from skillshelf.pages import PAGE_BYTES, decode_page

# JSON writes each of these bytes with six characters. A long file of them, as text, would be a message over the 10 MiB
# that some clients take; as a blob it is not.
_CONTROLS = re.compile(rb"[\x00-\x07\x0b\x0e-\x1f]")


class Part(NamedTuple):
    """A file, or a page of it."""

    data: bytes
    text: str | None
    """None if the file is not text."""
    media_type: str
    next_offset: int | None = None
    size: int = 0


def part_of(skill: SkillDescriptor, address: Address, page: Page) -> Part:
    """Return a page as text or bytes. Raises ReferenceUnreadableError if no page begins at its offset."""
    decoded = decode_page(skill.name, address.path, page)
    text = decoded.text
    media_type = decoded.media_type
    if text is not None and len(page.data) > PAGE_BYTES and _CONTROLS.search(page.data):
        text = None
        if media_type.startswith("text/"):
            media_type = "application/octet-stream"
    return Part(page.data, text, media_type, decoded.next_offset, page.size)
