"""What pdfplumber reads: tables, and text with the gaps between its columns.

This runs in the process that reads the file.
"""

from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import Any

import pdfplumber
from pdfplumber.page import Page

from skillshelf.text import text_for_model, truncate
from skillshelf_skills.pdf_extraction._errors import PdfError
from skillshelf_skills.pdf_extraction._results import NOTICE, ExtractedTable, PageTables, PageText

_MAX_CELL = 500
_SETTINGS: dict[str, dict[str, Any]] = {
    "lines": {},
    "spaces": {"vertical_strategy": "text", "horizontal_strategy": "text"},
}


def read_tables(file: BufferedReader, password: str | None, page: int, separated_by: str, limit: int) -> PageTables:
    """Return the tables on a page, up to `limit` characters. Raises PdfError if there is none."""
    with pdfplumber.open(file, pages=[page], password=password or "") as document:
        found = _visible_part(document.pages[0]).extract_tables(_SETTINGS[separated_by])

    tables: list[ExtractedTable] = []
    left = limit
    is_whole = True
    for cells in found:
        rows: list[list[str]] = []
        for row in cells:
            cleaned = [_clean_cell(cell) for cell in row]
            if not any(cleaned):
                continue
            if left <= 0:
                is_whole = False
                break
            rows.append(cleaned)
            left -= sum(map(len, cleaned))
        if rows:
            tables.append(ExtractedTable(rows=rows))
    if not tables:
        raise PdfError(
            f"No table whose cells are separated by {separated_by} was found on page {page}.",
            reference="page_layouts.md",
        )
    return PageTables(notice=NOTICE, page=page, tables=tables, is_whole=is_whole)


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


def _clean_cell(cell: str | None) -> str:
    """Return the text of a cell on one line. A cell that is merged with its neighbour is None."""
    return truncate(" ".join(text_for_model(cell or "").split()), _MAX_CELL)
