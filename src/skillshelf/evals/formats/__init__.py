"""Cases as users write them: YAML, Python, and the JSON of other tools."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.evals.formats._document import YamlList, YamlMapping, parse_document, read_bytes, read_text
    from skillshelf.evals.formats._find import find_case_files, find_cases, find_folder_to_approve, list_cases
    from skillshelf.evals.formats._home import find_skill_folder

__all__ = [
    "YamlList",
    "YamlMapping",
    "find_case_files",
    "find_cases",
    "find_folder_to_approve",
    "find_skill_folder",
    "list_cases",
    "parse_document",
    "read_bytes",
    "read_text",
]

__getattr__ = export_lazily(
    __name__,
    {
        "_document": ["YamlList", "YamlMapping", "parse_document", "read_bytes", "read_text"],
        "_find": ["find_case_files", "find_cases", "find_folder_to_approve", "list_cases"],
        "_home": ["find_skill_folder"],
    },
)
