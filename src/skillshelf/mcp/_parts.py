"""A file, or a page of it, as `resources/read` gives it: as text if it is text, otherwise as bytes."""

import re
from typing import NamedTuple

from skillshelf.descriptor import SkillDescriptor
from skillshelf.files import Page
from skillshelf.mcp._uris import Address
from skillshelf.text import decode_text
from skillshelf.turn import PAGE_BYTES, wrong_offset

# The bytes of UTF-8 that continue a character.
_INNER = bytes(range(0x80, 0xC0))
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


def media_type_of(path: str) -> str:
    import mimetypes  # reads the system's tables, 5 ms

    return mimetypes.guess_type(path)[0] or "text/plain"


def part_of(skill: SkillDescriptor, address: Address, page: Page) -> Part:
    """Return a page as text or bytes. Raises ReferenceUnreadableError if no page begins at its offset."""
    media_type = media_type_of(address.path)
    end = page.offset + len(page.data)
    text = decode_text(page.data, is_whole=end >= page.size)
    if len(page.data) > PAGE_BYTES and _CONTROLS.search(page.data):
        text = None
    if page.offset > page.size or (text is None and _is_cut(page)):
        raise wrong_offset(skill, address.path, address.offset)
    if text is not None:
        end = page.offset + len(text.encode())
    elif media_type.startswith("text/"):
        media_type = "application/octet-stream"
    return Part(page.data, text, media_type, end if end < page.size else None, page.size)


def _is_cut(page: Page) -> bool:
    """Return True if it is text but for the rest of a character at its beginning: the client made the offset up.

    Other data may begin so by chance, but its pages begin at multiples of their size.
    """
    rest = page.data[:3].lstrip(_INNER) + page.data[3:]
    return page.offset % PAGE_BYTES != 0 and decode_text(rest, is_whole=False) is not None
