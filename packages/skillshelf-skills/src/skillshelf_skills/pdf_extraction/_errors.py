"""What can go wrong with a PDF file, in words that a model can act on."""

from skillshelf.errors import GuidedError


class PdfError(GuidedError):
    """A PDF file can't be read, or not in this way."""


class PasswordNeededError(PdfError):
    """The file is encrypted, and there is no password for it, or a wrong one."""
