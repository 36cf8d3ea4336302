"""Cases as users write them: YAML, Python, and the JSON of other tools."""

from skillshelf_evals.formats._document import DocumentModel, read_list
from skillshelf_evals.formats._find import (
    find_case_files,
    find_cases,
    find_folder_to_approve,
    find_folders,
    find_queries,
    find_skill_folders,
    list_cases,
)
from skillshelf_evals.formats._home import find_skill_folder
from skillshelf_evals.formats._yaml import read_step

__all__ = [
    "DocumentModel",
    "find_case_files",
    "find_cases",
    "find_folder_to_approve",
    "find_folders",
    "find_queries",
    "find_skill_folder",
    "find_skill_folders",
    "list_cases",
    "read_list",
    "read_step",
]
