"""What can go wrong with a PDF file, in words that a model can act on."""

from skillshelf.bundled._guided_errors import GuidedError
from skillshelf.errors import error_code


class PdfError(GuidedError):
    """A PDF file cannot be read, or not in this way."""


class PdfNotFoundError(PdfError):
    """There is no such PDF file in the folder that the user attached."""


class OutsideFolderError(PdfError):
    """The path leads out of the folder that the user attached."""


class TooLargeError(PdfError):
    """The file has more bytes than may be read."""


class NotPdfError(PdfError):
    """The file is empty, or holds something else."""


class DamagedPdfError(PdfError):
    """The file is cut short, or breaks the rules of the format."""


class PasswordNeededError(PdfError):
    """The file is encrypted, and there is no password for it, or a wrong one."""


class NoSuchPageError(PdfError):
    """The document has no such page, or the pages are not written as they should be."""


class NoTextError(PdfError):
    """The pages have no text. They are scans, drawings or blank."""

    reference = "scanned_pages.md"


class NoTablesError(PdfError):
    """No table was found on the page."""

    reference = "page_layouts.md"


class TooSlowError(PdfError):
    """Reading took longer than it may, and was ended."""


class ReaderCrashedError(PdfError):
    """The process that read the file died, or ran out of memory."""


class OcrUnavailableError(PdfError):
    """The OCR engine, or one of its languages, is not installed."""

    reference = "scanned_pages.md"


ERRORS: dict[str, type[PdfError]] = {error_code(cls): cls for cls in PdfError.__subclasses__()}
"""The errors by code."""
