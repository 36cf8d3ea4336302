"""The templates of `skillshelf new`, and the search for sentences of theirs that an author has not replaced."""

from skillshelf.skillmd.templates._fill import (
    fill_code_skill,
    fill_project,
    fill_skill,
    find_template_sentences,
    module_name,
)

__all__ = [
    "fill_code_skill",
    "fill_project",
    "fill_skill",
    "find_template_sentences",
    "module_name",
]
