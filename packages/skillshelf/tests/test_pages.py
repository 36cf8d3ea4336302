"""Pages of long references: a turn and the MCP server follow one rule."""

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from mcp import Client, types

from mcp_kit import PDF, make_shelf, talk
from skillshelf import Turn
from skillshelf.errors import ReferenceUnreadableError
from skillshelf.files import Page
from skillshelf.shelf.pages import PAGE_BYTES, decode_page


def test_a_turn_and_the_server_begin_their_pages_at_the_same_offsets() -> None:
    """Pages end after a line, for a model that loads them and for a client that reads a resource."""
    long = "Eine Zeile mit Umlauten: äöü.\n" * 150_000
    shelf, _ = make_shelf(pdf={"SKILL.md": PDF, "long.md": long})
    turn = Turn(shelf)

    async def read_page(client: Client, offset: int) -> tuple[str, str]:
        [part] = (await client.read_resource(f"skill://pdf/long.md?offset={offset}")).contents
        assert isinstance(part, types.TextResourceContents)
        return part.text, (part.meta or {}).get("skillshelf/nextUri", "")

    async def use(client: Client) -> None:
        page = turn.load("pdf", "long.md")
        while page.next_offset is not None:
            assert page.text.endswith("\n")
            page = turn.load("pdf", "long.md", offset=page.next_offset)
            text, next_uri = await read_page(client, page.offset)
            assert text == page.text
            assert next_uri.rpartition("=")[2] == str(page.next_offset or "")

    talk(shelf, use)


@pytest.mark.parametrize("offset", [1, 3, 7])
def test_an_offset_inside_a_character_or_past_the_end_is_refused(offset: int) -> None:
    data = "äöü".encode()
    with pytest.raises(ReferenceUnreadableError, match=f"no page begins at offset {offset}"):
        decode_page("pdf", "a.md", Page(data[offset:], offset, len(data)))


def test_a_page_of_binary_data_may_begin_with_any_byte() -> None:
    """Its pages begin at multiples of their size, where a byte that continues a character means nothing."""
    decoded = decode_page("pdf", "a.bin", Page(b"\xbf rest", PAGE_BYTES, PAGE_BYTES + 6))
    assert (decoded.text, decoded.media_type, decoded.next_offset) == (None, "application/octet-stream", None)
