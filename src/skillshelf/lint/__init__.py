"""Checks an author can run: faults as diagnostics.

`check_text` judges the text of a SKILL.md, `check_skill` one skill's folder, `check_path` whatever path a person names.
"""

from skillshelf.lint._codes import CODES, READING
from skillshelf.lint._entries import EntryFault, find_entry_faults
from skillshelf.lint._format import MAX_TOKENS, check_text
from skillshelf.lint._names import check_name, suggest_name
from skillshelf.lint._paths import CheckReport, check_path, check_skill, check_tree
from skillshelf.lint._references import check_content, check_listed, check_named, check_unlisted

__all__ = [
    "CODES",
    "MAX_TOKENS",
    "READING",
    "CheckReport",
    "EntryFault",
    "check_content",
    "check_listed",
    "check_name",
    "check_named",
    "check_path",
    "check_skill",
    "check_text",
    "check_tree",
    "check_unlisted",
    "find_entry_faults",
    "suggest_name",
]
