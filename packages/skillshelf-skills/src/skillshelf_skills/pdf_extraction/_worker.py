"""The worker that reads a PDF file. It gets the descriptor of the file, and answers with `result`, or `error`.

Libraries for PDF are large, and files can be made to crash them or to keep them busy for ever.
"""

import base64
import os
from collections.abc import Mapping, Sequence
from io import BufferedReader
from typing import Any

from skillshelf_skills.pdf_extraction._errors import PasswordNeededError, PdfError


def answer(request: Mapping[str, Any], data: Sequence[bytes]) -> dict[str, Any]:
    """Do what a request asks for."""
    try:
        with os.fdopen(request["descriptor"], "rb") as file:
            return {"result": _read(file, request["password"], request["action"], request["arguments"])}
    except PdfError as error:
        return _describe(error)
    except Exception as error:  # the libraries raise nearly anything for a file that breaks the rules
        if _is_lack_of_memory(error):
            raise MemoryError from None
        return _describe(PdfError(f"The file breaks the rules of the format ({type(error).__name__})."))


def _describe(error: PdfError) -> dict[str, Any]:
    return {
        "error": error.reason,
        "reference": error.reference,
        "needs_password": isinstance(error, PasswordNeededError),
    }


def _is_lack_of_memory(error: BaseException | None) -> bool:
    """Return True for MemoryError, also inside an error of pdfplumber's."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _read(file: BufferedReader, password: str | None, action: str, arguments: Mapping[str, Any]) -> Any:
    """Carry out an action. PDFium opens the file in any case, and says best what is wrong with it."""
    from skillshelf_skills.pdf_extraction import _document

    with _document.open_document(file, password) as document:
        match action:
            case "describe":
                return _document.describe(document, **arguments)
            case "text":
                return _document.read_text(document, **arguments)
            case "layout":
                return _read_layout(file, password, len(document), **arguments)
            case "tables":
                return _read_tables(file, password, len(document), **arguments)
            case "picture":
                image = _document.render_page(document, **arguments)
                data = base64.b64encode(_document.encode_png(image)).decode()
                return {"png": data, "total_pages": len(document)}
            case "scan":
                return _read_scan(document, **arguments)
    raise ValueError(action)


def _read_layout(file: BufferedReader, password: str | None, total: int, pages: str, offset: int, limit: int) -> Any:
    from skillshelf_skills.pdf_extraction._document import assemble_text
    from skillshelf_skills.pdf_extraction._pages import parse_pages
    from skillshelf_skills.pdf_extraction._tables import read_layout

    wanted = parse_pages(pages, total)
    return assemble_text(read_layout(file, password, wanted), wanted, total, offset, limit)


def _read_tables(
    file: BufferedReader, password: str | None, total: int, pages: str, separated_by: str, limit: int
) -> Any:
    from skillshelf_skills.pdf_extraction._pages import parse_pages
    from skillshelf_skills.pdf_extraction._tables import read_tables

    return read_tables(file, password, parse_pages(pages, total), separated_by, limit)


def _read_scan(document: Any, page: int, language: str, limit: int) -> Any:
    from skillshelf_skills.pdf_extraction._document import render_page
    from skillshelf_skills.pdf_extraction._ocr import OCR_SIDE, find_engine, read_picture

    engine = find_engine(language)
    image = render_page(document, page, side=OCR_SIDE, grey=True)
    return read_picture(engine, image, page, language, limit)
