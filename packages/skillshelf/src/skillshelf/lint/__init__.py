"""Checks for authors, which report faults of skills as diagnostics.

`check_text` checks the text of a SKILL.md, `check_skill` a skill's folder, `check_path` any path that a user names, and
`check_code_skills` an installed package.
"""

from skillshelf.lint._codes import CODES
from skillshelf.lint._disk import CheckReport, check_path, check_skill, check_tree
from skillshelf.lint._fields import check_name, find_entry_faults, suggest_name
from skillshelf.lint._format import apply_format, check_text
from skillshelf.lint._limits import MAX_TOKENS
from skillshelf.lint._package import check_code_skills

__all__ = [
    "CODES",
    "MAX_TOKENS",
    "CheckReport",
    "apply_format",
    "check_code_skills",
    "check_name",
    "check_path",
    "check_skill",
    "check_text",
    "check_tree",
    "find_entry_faults",
    "suggest_name",
]
