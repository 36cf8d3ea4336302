"""What pdfplumber reads: tables, and text with the gaps between its columns.

This runs in the process that reads the file.
"""

from collections.abc import Iterable, Iterator, Sequence
from io import BufferedReader
from typing import Any

import pdfplumber
from pdfplumber.page import Page

from skillshelf.text import text_for_model, truncate
from skillshelf_skills.pdf_extraction._errors import PdfError
from skillshelf_skills.pdf_extraction._pages import format_pages
from skillshelf_skills.pdf_extraction._results import NOTICE, DocumentTables, ExtractedTable, PageText

_MAX_CELL = 500
_SETTINGS: dict[str, dict[str, Any]] = {
    "lines": {},
    "spaces": {"vertical_strategy": "text", "horizontal_strategy": "text"},
}


def read_tables(
    file: BufferedReader, password: str | None, wanted: Sequence[int], separated_by: str, limit: int
) -> DocumentTables:
    """Return the tables on pages, up to `limit` characters. Raises PdfError if there is none.

    A page that does not fit is left for the next call. The first page alone is cut.
    """
    tables: list[ExtractedTable] = []
    next_pages: Sequence[int] = ()
    is_whole = True
    for index, page in enumerate(wanted):
        with pdfplumber.open(file, pages=[page], password=password or "") as document:
            found = _visible_part(document.pages[0]).extract_tables(_SETTINGS[separated_by])
        on_page, size = _clean_tables(found, page, limit)
        if size > limit:
            is_whole = False
            if tables:
                next_pages = wanted[index:]
                break
        tables += on_page
        limit -= size

    if not tables:
        raise PdfError(
            f"No table whose cells are separated by {separated_by} was found on page {format_pages(wanted)}.",
            reference="page_layouts.md",
        )
    return DocumentTables(notice=NOTICE, tables=tables, is_whole=is_whole, next_pages=format_pages(next_pages))


def read_layout(file: BufferedReader, password: str | None, pages: Sequence[int]) -> Iterator[PageText]:
    """Yield the text of pages as it is laid out: rows of characters, with spaces for the gaps."""
    for number in pages:
        with pdfplumber.open(file, pages=[number], password=password or "") as document:
            text = _visible_part(document.pages[0]).extract_text(layout=True)
        lines = [line.rstrip() for line in text_for_model(text).split("\n")]
        yield PageText(page=number, text="\n".join(lines).strip("\n"))


def _visible_part(page: Page) -> Page:
    """Return a page without the characters outside its bounds, which no reader of the page can see."""
    left, top, right, bottom = page.cropbox

    def is_visible(item: dict[str, Any]) -> bool:
        if item["object_type"] != "char":
            return True
        return bool(item["x1"] > left and item["x0"] < right and item["bottom"] > top and item["top"] < bottom)

    return page.filter(is_visible)


def _clean_tables(
    found: Iterable[Sequence[Sequence[str | None]]], page: int, limit: int
) -> tuple[list[ExtractedTable], int]:
    """Return the rows that fit in `limit` characters, and how many characters all rows have."""
    tables: list[ExtractedTable] = []
    size = 0
    for cells in found:
        rows: list[list[str]] = []
        for row in cells:
            cleaned = [_clean_cell(cell) for cell in row]
            size += sum(map(len, cleaned))
            if any(cleaned) and size <= limit:
                rows.append(cleaned)
        if rows:
            tables.append(ExtractedTable(page=page, rows=rows))
    return tables, size


def _clean_cell(cell: str | None) -> str:
    """Return the text of a cell on one line. A cell that is merged with its neighbour is None."""
    return truncate(" ".join(text_for_model(cell or "").split()), _MAX_CELL)
