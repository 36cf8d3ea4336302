"""Turn a page of a reference's bytes into text.

A long reference comes in pages, both to a turn and to a client of the MCP server. Together the pages read as the whole
file would.
"""

from typing import NamedTuple

from skillshelf.errors import ReferenceUnreadableError
from skillshelf.files import Page
from skillshelf.text import decode_text

PAGE_BYTES = 512 * 1024

# Characters at the end of a page among which a good place to end is searched; without one it ends anywhere.
_MAX_END_SEARCH = 1_000

# The bytes of UTF-8 that continue a character.
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class DecodedPage(NamedTuple):
    """A page of a reference, decoded."""

    text: str | None
    """None if the data is not text."""
    media_type: str
    next_offset: int | None
    """Where the next page begins; None at the end of the file."""


def decode_page(skill: str, path: str, page: Page) -> DecodedPage:
    """Decode a page of a skill's reference. Raises ReferenceUnreadableError if no page begins at its offset."""
    end = page.offset + len(page.data)
    is_last = end >= page.size
    text = decode_text(page.data, is_whole=is_last)
    if page.offset > page.size or (text is None and _starts_inside_character(page)):
        raise wrong_offset(skill, path, page.offset)

    media_type = guess_media_type(path)
    if text is None and media_type.startswith("text/"):
        media_type = "application/octet-stream"
    if text is not None and not is_last:
        text = text[: _find_page_end(text)]
        end = page.offset + len(text.encode())
    return DecodedPage(text, media_type, None if end >= page.size else end)


def guess_media_type(path: str) -> str:
    import mimetypes  # reads the system's tables, 5 ms

    return mimetypes.guess_type(path)[0] or "text/plain"


def wrong_offset(skill: str, path: str, offset: int) -> ReferenceUnreadableError:
    """Return the error for an offset at which no page begins."""
    reason = f"no page begins at offset {offset}; start at 0 and continue where each answer says"
    return ReferenceUnreadableError(skill, path, reason)


def _starts_inside_character(page: Page) -> bool:
    """Return True if the page is text except for the rest of a character at its start: the offset was made up.

    Other data may start like this by chance. Its pages begin at multiples of their size, so no offset is wrong there.
    """
    if page.offset % PAGE_BYTES == 0:
        return False
    rest = page.data[:3].lstrip(_CONTINUATION_BYTES) + page.data[3:]
    return decode_text(rest, is_whole=False) is not None


def _find_page_end(text: str) -> int:
    """Return where to end a page that another follows, so that the pages together read as the whole file would.

    That is after a line feed: nothing that is written out or unified reaches over one. In a text without lines it is
    between two characters that hide nothing, where neither a CR LF nor a sequence of emoji is cut in two.
    """
    line_feed = text.rfind("\n", len(text) // 2)
    if line_feed >= 0:
        return line_feed + 1

    from skillshelf.text.hidden import HIDDEN

    for end in range(len(text) - 1, max(0, len(text) - _MAX_END_SEARCH), -1):
        around = text[end - 1 : end + 1]
        if around != "\r\n" and not HIDDEN.search(around):
            return end
    return len(text)
