"""Cases as people write them: YAML, Python, and the JSON of other tools."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.evals.formats._document import Row, parse_yaml, read_bytes, read_text
    from skillshelf.evals.formats._find import case_files, case_folder, find_cases, list_cases

__all__ = [
    "Row",
    "case_files",
    "case_folder",
    "find_cases",
    "list_cases",
    "parse_yaml",
    "read_bytes",
    "read_text",
]

__getattr__ = export_lazily(
    __name__,
    {
        "_document": ["Row", "parse_yaml", "read_bytes", "read_text"],
        "_find": ["case_files", "case_folder", "find_cases", "list_cases"],
    },
)
