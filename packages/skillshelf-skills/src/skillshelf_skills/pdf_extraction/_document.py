"""What PDFium reads: the description of a document, its text, and pictures of its pages.

This runs in the process that reads the file.
"""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import TYPE_CHECKING, cast

import pypdfium2
from pypdfium2 import raw

from skillshelf.text import clean_line, text_for_model, truncate
from skillshelf_skills.pdf_extraction._errors import (
    PasswordNeededError,
    PdfError,
)
from skillshelf_skills.pdf_extraction._pages import check_page, format_pages, parse_pages
from skillshelf_skills.pdf_extraction._results import NOTICE, Description, DocumentText, OutlineEntry, PageText

if TYPE_CHECKING:
    from PIL.Image import Image

_HEADER = b"%PDF-"
_HEADER_WITHIN = 1024
"""Readers accept a header after some bytes of something else."""
_MIN_CHARACTERS = 5
"""A page with fewer is a scan with a page number, not text."""
_MAX_EXAMINED = 300
_MAX_OUTLINE = 60
_MAX_VALUE = 300
_MILLIMETRES_PER_POINT = 25.4 / 72
_MAX_IMAGE_BYTES = 3_000_000


@contextmanager
def open_document(file: BufferedReader, password: str | None) -> Iterator[pypdfium2.PdfDocument]:
    """Open a document and close it at the end. Raises PdfError."""
    file.seek(0)  # the descriptor is shared with the process that opened it, and its position too
    if _HEADER not in file.read(_HEADER_WITHIN):
        raise PdfError("The file is not a PDF: it does not begin with %PDF-.")
    file.seek(0)
    try:
        document = pypdfium2.PdfDocument(file, password=password)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            if password is None:
                raise PasswordNeededError("The file is encrypted, and no password for it is known.") from None
            raise PasswordNeededError("The file is encrypted, and the password that the user set is wrong.") from None
        if error.err_code == raw.FPDF_ERR_SECURITY:
            raise PasswordNeededError("The file is encrypted in a way that is not supported.") from None
        raise PdfError("The file begins like a PDF, but is damaged or cut short.") from None
    with document:
        document.init_forms()  # before anything else, or the fields of a form stay empty in a picture
        if not len(document):
            raise PdfError("The file has no pages that can be read.")
        yield document


def describe(document: pypdfium2.PdfDocument, *, seconds: float) -> Description:
    """Return what is in a document. After `seconds`, no further page is looked at."""
    deadline = time.monotonic() + seconds
    kinds: dict[str, list[int]] = {"text": [], "scanned": [], "blank": [], "damaged": []}
    examined: list[int] = []
    for number in range(1, min(len(document), _MAX_EXAMINED) + 1):
        if time.monotonic() > deadline:
            break
        kinds[_kind_of_page(document, number)].append(number)
        examined.append(number)

    if len(kinds["damaged"]) == len(document):
        raise PdfError("None of its pages can be read.")

    width, height = (round(side * _MILLIMETRES_PER_POINT) for side in document.get_page_size(0))
    metadata = document.get_metadata_dict(skip_empty=True)
    return Description(
        notice=NOTICE,
        pages=len(document),
        size_of_page_1=f"{width} × {height} mm",
        metadata={key: _short(value) for key, value in metadata.items()},
        is_encrypted=raw.FPDF_GetSecurityHandlerRevision(document) != -1,
        has_form=document.get_formtype() != raw.FORMTYPE_NONE,
        examined=format_pages(examined),
        text_pages=format_pages(kinds["text"]),
        scanned_pages=format_pages(kinds["scanned"]),
        blank_pages=format_pages(kinds["blank"]),
        damaged_pages=format_pages(kinds["damaged"]),
        outline=_read_outline(document),
    )


def read_text(document: pypdfium2.PdfDocument, pages: str, offset: int, limit: int) -> DocumentText:
    """Return the text of pages, up to `limit` characters, from the character `offset` of the first page on.

    Raises PdfError if none of them has any.
    """
    wanted = parse_pages(pages, len(document))
    texts = (PageText(page=number, text=_text_of_page(document, number)) for number in wanted)
    return assemble_text(texts, wanted, len(document), offset, limit)


def assemble_text(
    texts: Iterator[PageText], wanted: list[int], total_pages: int, offset: int, limit: int
) -> DocumentText:
    """Return the texts of pages up to a limit, and where to go on. Pages after the limit are not read."""
    kept: list[PageText] = []
    without_text: list[int] = []
    left = limit
    next_pages: list[int] = []
    next_offset = 0
    for index, page in enumerate(texts):
        text = page["text"]
        start = 0
        if index == 0:
            start = min(max(0, offset), len(text))
        if len(text) < _MIN_CHARACTERS:
            without_text.append(page["page"])
        part = text[start : start + left]
        left -= len(part)
        if part:
            kept.append(PageText(page=page["page"], text=part))
        if start + len(part) < len(text):
            next_pages = wanted[index:]
            next_offset = start + len(part)
            break
        if left <= 0:
            next_pages = wanted[index + 1 :]
            break

    if not kept and len(without_text) == len(wanted):
        raise PdfError(
            f"There is no text on page {format_pages(wanted)}: it is scanned, drawn or blank. "
            f"Call read_scanned_page, or look at it with show_pdf_page.",
            reference="scanned_pages.md",
        )
    return DocumentText(
        notice=NOTICE,
        total_pages=total_pages,
        pages=kept,
        pages_without_text=format_pages(without_text),
        is_whole=not next_pages,
        next_pages=format_pages(next_pages),
        next_offset=next_offset,
    )


def render_page(document: pypdfium2.PdfDocument, number: int, *, side: int, grey: bool = False) -> "Image":
    """Return a picture of a page whose longer side has at most `side` pixels."""
    check_page(number, len(document))
    page = _open_page(document, number)
    longer = max(page.get_size())
    if longer <= 0:
        raise PdfError(f"Page {number} has no size.")
    # The library rounds each side up to a whole pixel.
    bitmap = page.render(scale=(side - 0.5) / longer, grayscale=grey)
    return cast("Image", bitmap.to_pil())


def encode_png(image: "Image") -> bytes:
    """Return a picture as PNG, made smaller until it fits into a message."""
    while True:
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        data = buffer.getvalue()
        if len(data) <= _MAX_IMAGE_BYTES:
            return data
        image = image.reduce(2)


def _open_page(document: pypdfium2.PdfDocument, number: int) -> pypdfium2.PdfPage:
    try:
        return document[number - 1]
    except pypdfium2.PdfiumError:
        raise PdfError(f"Page {number} is damaged.") from None


def _text_of_page(document: pypdfium2.PdfDocument, number: int) -> str:
    """Return the text inside the page's bounds, which leaves out text that no reader of the page can see there."""
    try:
        text = _open_page(document, number).get_textpage().get_text_bounded()
    except pypdfium2.PdfiumError:
        raise PdfError(f"Page {number} is damaged.") from None
    return text_for_model(text).strip()


def _kind_of_page(document: pypdfium2.PdfDocument, number: int) -> str:
    try:
        text = _text_of_page(document, number)
    except PdfError:
        return "damaged"
    if len(text) >= _MIN_CHARACTERS:
        return "text"
    has_objects = next(_open_page(document, number).get_objects(max_depth=1), None) is not None
    return "scanned" if has_objects else "blank"


def _read_outline(document: pypdfium2.PdfDocument) -> list[OutlineEntry]:
    entries: list[OutlineEntry] = []
    for bookmark in document.get_toc(max_depth=4):
        if len(entries) == _MAX_OUTLINE:
            break
        destination = bookmark.get_dest()
        index = destination.get_index() if destination else None
        page = None if index is None else index + 1
        entries.append(OutlineEntry(title=_short(bookmark.get_title()), page=page, level=bookmark.level + 1))
    return entries


def _short(value: str) -> str:
    return truncate(clean_line(value), _MAX_VALUE)
