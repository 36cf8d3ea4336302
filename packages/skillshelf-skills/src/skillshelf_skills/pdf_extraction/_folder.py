"""The folder that the user attached. Nothing outside it is opened."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from skillshelf.files import NotPlainFile, TreeEntry, open_below, open_file_below, split_below, walk
from skillshelf.sources import SKIPPED_FOLDERS
from skillshelf.text import clean_line, closest_names, quote_for_model, truncate
from skillshelf_skills.pdf_extraction._errors import PdfError
from skillshelf_skills.pdf_extraction._results import FoundPdfs

_MEGABYTE = 1_000_000
_MAX_SHOWN = 200
_MAX_FOUND = 200
_MAX_SEARCHED = 20_000


@contextmanager
def open_pdf(folder: str, path: str, max_megabytes: int) -> Iterator[int]:
    """Open a file below the folder and provide its descriptor. Raises PdfError."""
    shown = quote_for_model(truncate(path, _MAX_SHOWN))
    if not _can_be_written(path):
        raise PdfError(f"{shown} has characters that no path here may have.")
    root = os.path.realpath(folder)
    parts = split_below(root, os.path.join(root, path))
    if parts is None:
        raise PdfError(f"{shown} lies outside the folder that the user attached.")
    if not parts:
        raise PdfError(f"{shown} is the attached folder itself. Name a PDF file in it.")

    with ExitStack() as stack:
        try:
            descriptor, info = stack.enter_context(open_file_below(root, parts))
        except FileNotFoundError:
            raise PdfError(f"There is no file {shown} in the attached folder. {_suggest(root, path)}") from None
        except NotPlainFile as error:
            raise PdfError(f"{shown} is not opened: {error.reason}.") from None
        except OSError as error:
            raise PdfError(f"{shown} cannot be opened: {error.strerror}.") from None

        if info.st_size > max_megabytes * _MEGABYTE:
            size = info.st_size / _MEGABYTE
            raise PdfError(f"{shown} has {size:,.0f} MB. At most {max_megabytes:,} MB are read.")
        if not info.st_size:
            raise PdfError(f"{shown} is empty: it has 0 bytes.")
        yield descriptor


def find_pdfs(folder: str) -> FoundPdfs:
    """Return the paths of the PDF files below the folder. Hidden folders and those of dependencies are left out.

    Links are not followed. Raises PdfError if the folder is gone.
    """
    paths: list[str] = []
    searched = 0
    with ExitStack() as stack:
        try:
            top = stack.enter_context(open_below(os.path.realpath(folder), ()))
        except (OSError, NotPlainFile):
            raise PdfError("The folder that the user attached is gone, or cannot be read.") from None

        for entry in walk(top, _is_searched):
            searched += 1
            if len(paths) == _MAX_FOUND or searched > _MAX_SEARCHED:
                return FoundPdfs(paths=paths, is_whole=False)
            is_pdf = entry.kind == "file" and entry.name.lower().endswith(".pdf")
            if is_pdf and _can_be_written(entry.path):
                paths.append(entry.path)
    return FoundPdfs(paths=paths, is_whole=True)


def _can_be_written(path: str) -> bool:
    """Return True if a model can write the path, and a reader can tell it from others: nothing in it hides."""
    return clean_line(path) == path


def _is_searched(entry: TreeEntry) -> bool:
    return not entry.name.startswith(".") and entry.name not in SKIPPED_FOLDERS


def _suggest(folder: str, path: str) -> str:
    close = closest_names(path, find_pdfs(folder)["paths"])
    if close:
        return f"Did you mean {' or '.join(map(quote_for_model, close))}?"
    return "Call find_pdfs to see which there are."
