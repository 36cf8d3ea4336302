"""The plan of a run: every case, on every arm, as often as it is repeated. The same input gives the same plan."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from skillshelf.errors import EvalError
from skillshelf.shelf import Shelf
from skillshelf.sources import SKILL_FILES, DirectorySource
from skillshelf_evals._baseline import NONE, Baseline
from skillshelf_evals._case import Case, code_skill_file, code_skill_name, make_code_source
from skillshelf_evals._coverage import SkillContent, read_skill_contents
from skillshelf_evals._folders import is_named, skills_in, written_skill_name
from skillshelf_evals._results import Arm, CaseInfo


@dataclass(frozen=True, slots=True)
class Trial:
    """The nth repeat of a case on one arm. The case has the skills of that arm."""

    case: Case
    arm: Arm
    repeat: int

    @property
    def id(self) -> str:
        """The trial's name, unique in a run and the same if the run is started again."""
        return f"{self.case.id}#{self.arm}#{self.repeat}"


@dataclass(frozen=True, slots=True)
class Plan:
    """All trials of a run."""

    cases: tuple[Case, ...]
    trials: tuple[Trial, ...]
    repeats: int = 1
    baseline: str = ""
    new: tuple[str, ...] = ()
    """Skills that the baseline does not have, so there is nothing to compare them with."""

    @property
    def lacks_comparison(self) -> bool:
        """True if there is a baseline, and no case can be compared with it."""
        return bool(self.baseline) and not any(trial.arm != "with" for trial in self.trials)

    @property
    def infos(self) -> tuple[CaseInfo, ...]:
        return tuple(map(CaseInfo.of, self.cases))

    @property
    def skills(self) -> dict[str, str]:
        """The skills under test: the path of the SKILL.md, or of a code skill's module, by name."""
        paths = {skill: _file_under_test(case) for skill, case in self._first_cases().items()}
        return {skill: path for skill, path in paths.items() if path}

    @property
    def contents(self) -> dict[str, SkillContent]:
        """Everything that can be loaded of the skills under test, for the coverage."""
        found: dict[str, SkillContent] = {}
        for case in self._first_cases().values():
            found |= _content_under_test(case)
        return found

    def _first_cases(self) -> dict[str, Case]:
        """Return the first case of each skill under test."""
        first: dict[str, Case] = {}
        for case in self.cases:
            if case.skill:
                first.setdefault(case.skill, case)
        return first


def make_plan(cases: Sequence[Case], repeats: int = 1, baseline: str = "", stage: str = "") -> Plan:
    """Plan the trials of a run. Raises EvalError.

    A scripted case is tried once, and not on the baseline: it would end the same way each time, and it says nothing
    about what a model does without the skill.

    `stage` is a folder for the old versions of skills, which some baselines need.
    """
    _refuse_duplicates(cases)
    against = Baseline(baseline, stage) if baseline else None
    if against and not any(case.skill for case in cases):
        raise EvalError(f"--baseline {baseline}: no case belongs to a skill", "Name the skill under test with `skill:`")

    arms_by_case = [(case, list(_make_arms(case, against))) for case in cases]
    trials: list[Trial] = []
    new: dict[str, None] = {}
    for case, arms in arms_by_case:
        for arm, arm_case in arms:
            trials += (Trial(arm_case, arm, repeat) for repeat in range(1, _repeats_of(case, repeats) + 1))
        if against and not against.removes_skill and case.skill and case.is_live and len(arms) == 1:
            new[case.skill] = None

    return Plan(tuple(cases), tuple(trials), repeats, baseline, tuple(new))


def _repeats_of(case: Case, repeats: int) -> int:
    return repeats if case.is_live else 1


def _refuse_duplicates(cases: Iterable[Case]) -> None:
    """Raise EvalError if two cases have one id: they would be counted as one."""
    locations: dict[str, str] = {}
    for case in cases:
        if case.id in locations:
            first = locations[case.id] or "another place"
            raise EvalError(
                f"{case.location or 'a case'}: {case.id!r} is also in {first}", "Give one of them another name"
            )
        locations[case.id] = case.location


def _make_arms(case: Case, against: Baseline | None) -> Iterator[tuple[Arm, Case]]:
    """Yield the case as it is, and as the baseline has it. Raises EvalError."""
    yield "with", case
    if against is None or not case.skill or not case.is_live:
        return

    without = _remove_skill(case)
    if against.removes_skill:
        if case.should_trigger is None or _checks_outcome(case):
            yield "without", without
        return

    folder = _folder_under_test(case)
    if not folder:
        raise EvalError(
            f"{case.location or case.id}: the skill {case.skill!r} is not among the case's folders of skills, "
            "so there is no place for its old version",
            f"Use --baseline {NONE}",
        )

    old = against.stage_old_version(case.skill, folder)
    if old:
        yield "old", replace(without, skills=(*without.skills, old))


def _checks_outcome(case: Case) -> bool:
    """True if a case checks more than loading. A skill that is not there cannot trigger, so that cannot be compared."""
    return not all(check.about.is_known_without(case.skill) for check in case.checks)


def _remove_skill(case: Case) -> Case:
    """Return the case on a shelf without the skill under test, whether that is a folder or part of the workspace."""
    folders = tuple(_expand_folders(case.skills))
    skills = tuple(folder for folder in folders if not is_named(folder, case.skill))
    code_skills = tuple(skill for skill in case.code_skills if code_skill_name(skill) != case.skill)
    files = _remove_skill_files(case)
    is_unchanged = skills == folders and code_skills == case.code_skills and files == case.files
    if is_unchanged:
        raise EvalError(
            f"{case.location or case.id}: the skill {case.skill!r} is not on the case's shelf, so there is nothing "
            "to leave out",
            "Add its folder to the case's skills",
        )

    return replace(case, skills=skills, code_skills=code_skills, files=files)


def _remove_skill_files(case: Case) -> Mapping[str, bytes]:
    """Return the files of the workspace without any copy of the skill: a model that finds its text has the skill."""
    skill_files = [path for path, data in case.files.items() if _is_skill_file(case.skill, path, data)]
    folders = tuple(f"{os.path.dirname(path)}/" for path in skill_files if os.path.dirname(path))
    return {path: data for path, data in case.files.items() if path not in skill_files and not path.startswith(folders)}


def _is_skill_file(skill: str, path: str, data: bytes) -> bool:
    """True for the SKILL.md of this skill."""
    name = written_skill_name(path, data)
    return bool(name) and skill in (name, os.path.basename(os.path.dirname(path)))


def _folder_under_test(case: Case) -> str:
    """Return the folder of the skill under test; empty for a code skill, and for one in the workspace."""
    for folder in _expand_folders(case.skills):
        if is_named(folder, case.skill):
            return folder
    return ""


def _file_under_test(case: Case) -> str:
    """Return the file that annotations name: the skill's SKILL.md, or the module of a code skill."""
    folder = _folder_under_test(case)
    if folder:
        paths = [os.path.join(folder, name) for name in SKILL_FILES]
        return next((path for path in paths if os.path.exists(path)), os.path.join(folder, ""))
    for skill in case.code_skills:
        if code_skill_name(skill) == case.skill:
            return code_skill_file(skill)
    return ""


def _content_under_test(case: Case) -> dict[str, SkillContent]:
    folder = _folder_under_test(case)
    source = DirectorySource(folder, cache=False) if folder else make_code_source(case.code_skills)
    return read_skill_contents(Shelf([source]), [case.skill])


def _expand_folders(folders: Iterable[str]) -> Iterator[str]:
    """Yield each skill's own folder."""
    for folder in folders:
        if os.path.isdir(folder):
            yield from skills_in(folder)
        else:
            yield folder
