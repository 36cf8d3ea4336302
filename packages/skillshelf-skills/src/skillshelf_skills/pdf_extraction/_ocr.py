"""Text from the picture of a page, by the program Tesseract.

This runs in the process that reads the file. The picture goes through a pipe, so that nothing is written to the disk.
"""

import csv
import io
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from skillshelf.text import text_for_model
from skillshelf_skills.pdf_extraction._errors import PdfError
from skillshelf_skills.pdf_extraction._results import NOTICE, ScannedText

if TYPE_CHECKING:
    from PIL.Image import Image

OCR_SIDE = 3500
"""Pixels of the longer side: 300 dots per inch on A4."""
_LANGUAGE = re.compile(r"[A-Za-z]{3,}(?:_[A-Za-z]+)*(?:\+[A-Za-z]{3,}(?:_[A-Za-z]+)*)*")
_INSTALL = "apt install tesseract-ocr, or brew install tesseract"


def find_engine(language: str) -> str:
    """Return the path of the engine. Raises PdfError if it, or a language such as `deu+eng`, is missing."""
    engine = shutil.which("tesseract")
    if engine is None:
        raise PdfError(
            f"There is no tesseract on this machine, which reads scanned pages. The user can install it: {_INSTALL}.",
            reference="scanned_pages.md",
        )
    if not _LANGUAGE.fullmatch(language) or len(language) > 100:
        raise PdfError(
            "A language is written as 'eng', 'deu' or 'deu+eng', not like this.", reference="scanned_pages.md"
        )

    listed = subprocess.run([engine, "--list-langs"], capture_output=True, text=True, check=False).stdout
    installed = sorted(set(listed.split("\n")[1:]) - {"", "osd"})
    missing = [name for name in language.split("+") if name not in installed]
    if missing:
        packages = " ".join(f"tesseract-ocr-{name.replace('_', '-').lower()}" for name in missing)
        raise PdfError(
            f"The OCR language {' and '.join(missing)} is not installed; there are: {', '.join(installed) or 'none'}. "
            f"The user can install it: apt install {packages}, or brew install tesseract-lang.",
            reference="scanned_pages.md",
        )
    return engine


def read_picture(engine: str, image: "Image", page: int, language: str, limit: int) -> ScannedText:
    """Return the text in a picture. Raises PdfError if there is none."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    command = [engine, "stdin", "stdout", "-l", language, "--dpi", "300", "tsv"]
    ended = subprocess.run(command, input=buffer.getvalue(), capture_output=True, check=False)
    if ended.returncode < 0:
        raise PdfError(f"The OCR engine was ended on page {page}: it took too long, or too much memory.")

    lines: dict[tuple[str, str, str], list[str]] = {}
    confidences: list[float] = []
    table = io.StringIO(ended.stdout.decode("utf-8", "replace"))
    for word in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE):
        text = (word["text"] or "").strip()
        if not text or float(word["conf"]) < 0:  # a row about a block or a line
            continue
        place = (word["block_num"], word["par_num"], word["line_num"])
        lines.setdefault(place, []).append(text)
        confidences.append(float(word["conf"]))
    if not lines:
        raise PdfError(
            f"The OCR engine found no text on page {page}. Look at it with show_pdf_page.", reference="scanned_pages.md"
        )

    text = text_for_model(_join_lines(lines))
    return ScannedText(
        notice=NOTICE,
        page=page,
        text=text[:limit],
        confidence_percent=round(sum(confidences) / len(confidences)),
        is_whole=len(text) <= limit,
    )


def _join_lines(lines: dict[tuple[str, str, str], list[str]]) -> str:
    """Return lines as text, with an empty line between paragraphs."""
    joined: list[str] = []
    paragraph = None
    for (block, paragraph_number, _), words in lines.items():
        if joined and (block, paragraph_number) != paragraph:
            joined.append("")
        paragraph = (block, paragraph_number)
        joined.append(" ".join(words))
    return "\n".join(joined)
