"""The skill that a case is for, among those on its shelf."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from skillshelf.evals._case import Case
from skillshelf.evals._code_skills import code_skill_name, code_source, written_in
from skillshelf.evals._folders import skill_name, skills_in
from skillshelf.evals.stats import SkillText, skill_texts
from skillshelf.shelf import Shelf
from skillshelf.sources import SKILL_FILES, DirectorySource


def folder_of(case: Case) -> str:
    """Its folder; empty for a code skill, and for one that comes with the workspace."""
    return next((folder for folder in expanded(case.skills) if is_of(folder, case.skill)), "")


def file_of(case: Case) -> str:
    """The file that an annotation blames: its SKILL.md, or the module of a code skill."""
    if folder := folder_of(case):
        return next(path for name in (*SKILL_FILES, "") if os.path.exists(path := os.path.join(folder, name)))
    return next((written_in(one) for one in case.code_skills if code_skill_name(one) == case.skill), "")


def text_of(case: Case) -> dict[str, SkillText]:
    """What there is of it to be loaded, by its name."""
    folder = folder_of(case)
    source = DirectorySource(folder, cache=False) if folder else code_source(case.code_skills)
    return skill_texts(Shelf([source]), [case.skill])


def expanded(folders: Iterable[str]) -> Iterator[str]:
    """Each skill's own folder."""
    for folder in folders:
        yield from skills_in(folder) if os.path.isdir(folder) else [folder]


def is_of(folder: str, skill: str) -> bool:
    return os.path.basename(os.path.abspath(folder)) == skill or skill_name(folder) == skill
