"""Text, tables and pages of PDF files, read in a process of its own."""

from skillshelf_skills.pdf_extraction._limits import ReadLimits

__all__ = ["ReadLimits"]
