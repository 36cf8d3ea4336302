"""Checks an author can run: faults as diagnostics.

`check_text` judges the text of a SKILL.md, `check_skill` one skill's folder, `check_path` whatever path a person names.
"""

from skillshelf.lint._entries import EntryFault, find_entry_faults
from skillshelf.lint.format import check_text
from skillshelf.lint.paths import Checked, check_path, check_skill, look

__all__ = ["Checked", "EntryFault", "check_path", "check_skill", "check_text", "find_entry_faults", "look"]
