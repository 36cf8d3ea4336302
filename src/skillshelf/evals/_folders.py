"""Folders of skills, as cases name them: a skill, or a folder with skills in it."""

from __future__ import annotations

import os

from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.sources import SKILL_FILES

LEFT_OUT = "evals"
"""Of a skill, what no model gets to see: one that knows the questions proves nothing."""


def is_skill(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in SKILL_FILES)


def skill_name(folder: str) -> str:
    """As the shelf names it: the frontmatter's word, or the folder's."""
    base = os.path.basename(os.path.abspath(folder))
    for name in SKILL_FILES:
        try:
            # Without O_NONBLOCK a named pipe in its place would hold the program up for good.
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                return read(decode(file.read(MAX_FILE + 1)), base).name
        except (OSError, Unreadable):
            continue
    return base


def skills_in(folder: str) -> list[str]:
    """The folder of each skill: this one, or those right below it. Raises OSError."""
    if is_skill(folder):
        return [folder]
    return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
