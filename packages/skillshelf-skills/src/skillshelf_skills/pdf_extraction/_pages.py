"""Page numbers as people write them: `3`, `2-5`, `1,4,8-`."""

import re
from collections.abc import Iterable

from skillshelf.text import count_noun
from skillshelf_skills.pdf_extraction._errors import PdfError

_PART = re.compile(r"(\d{1,7})(?:(-)(\d{1,7})?)?")
_MAX_LENGTH = 500


def parse_pages(text: str, total: int) -> list[int]:
    """Return the pages that a text names, in its order, each once. An empty text names them all.

    Raises PdfError if the document does not have one of them.
    """
    if not text.strip():
        return list(range(1, total + 1))

    pages: dict[int, None] = {}
    for part in text[:_MAX_LENGTH].split(","):
        match = _PART.fullmatch(part.strip().replace(" ", ""))
        if match is None or len(text) > _MAX_LENGTH:
            raise PdfError("Pages are written as '3', '2-5' or '1,4,8-', not like this.")
        first = int(match[1])
        last = first
        if match[2]:
            last = int(match[3]) if match[3] else total
        for page in (first, last):
            check_page(page, total)
        pages.update(dict.fromkeys(range(first, last + 1)))
    if not pages:
        raise PdfError("The first page of a range must not be greater than its last.")
    return list(pages)


def check_page(page: int, total: int) -> None:
    """Raise PdfError unless the document has the page."""
    if not 1 <= page <= total:
        raise PdfError(f"There is no page {page}. The document has {count_noun(total, 'page')}, from 1 on.")


def format_pages(pages: Iterable[int]) -> str:
    """Return pages in the form that `parse_pages` reads: `1-3,7`."""
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and page == ranges[-1][1] + 1:
            ranges[-1][1] = page
        else:
            ranges.append([page, page])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
