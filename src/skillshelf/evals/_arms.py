"""What a case is compared with: itself on a shelf without the skill, or with an old version of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

from skillshelf.errors import EvalError
from skillshelf.evals._baseline import NONE, Baseline
from skillshelf.evals._case import Case
from skillshelf.evals._code_skills import code_skill_name
from skillshelf.evals._results import Arm
from skillshelf.evals._tested import expanded, folder_of, is_of
from skillshelf.skillmd import Unreadable, decode, read
from skillshelf.sources import SKILL_FILES


def arms(case: Case, against: Baseline | None) -> Iterator[tuple[Arm, Case]]:
    """The case as it is, and as the baseline has it. Raises EvalError."""
    yield "with", case
    if against is None or not case.skill:
        return
    without = _without(case)
    if against.removes:
        yield "without", without
        return
    folder = folder_of(case)
    if not folder:
        raise EvalError(
            f"{case.location or case.id}: the skill {case.skill!r} is not among the case's folders of skills, "
            "so that its old version has no place",
            f"Use --baseline {NONE}",
        )
    if old := against.old_version(case.skill, folder):
        yield "old", replace(without, skills=(*without.skills, old))


def _without(case: Case) -> Case:
    """The case on a shelf that lacks the skill under test, whether that came as a folder or with the workspace."""
    every = tuple(expanded(case.skills))
    skills = tuple(folder for folder in every if not is_of(folder, case.skill))
    code_skills = tuple(one for one in case.code_skills if code_skill_name(one) != case.skill)
    files = _files_without(case)
    if (files, skills, code_skills) == (case.files, every, case.code_skills):
        raise EvalError(
            f"{case.location or case.id}: the skill {case.skill!r} is not on the case's shelf, so that there is "
            "nothing to leave out",
            "Add its folder to the case's skills",
        )
    return replace(case, skills=skills, code_skills=code_skills, files=files)


def _files_without(case: Case) -> Mapping[str, bytes]:
    """The workspace without any copy of the skill: a model that finds its text has the skill."""
    own = [path for path, data in case.files.items() if _is_file_of(case.skill, path, data)]
    homes = tuple(f"{home}/" for path in own if (home := os.path.dirname(path)))
    return {path: data for path, data in case.files.items() if path not in own and not path.startswith(homes)}


def _is_file_of(skill: str, path: str, data: bytes) -> bool:
    folder, name = os.path.split(path)
    if name not in SKILL_FILES:
        return False
    try:
        return skill in (os.path.basename(folder), read(decode(data), os.path.basename(folder)).name)
    except Unreadable:
        return os.path.basename(folder) == skill
