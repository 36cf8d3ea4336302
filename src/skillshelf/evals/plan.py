"""What a run has to do: every case, on every arm, as often as it is repeated. The same input gives the same plan."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from skillshelf.errors import EvalError
from skillshelf.evals.baseline import NONE, Baseline, is_skill, skill_name
from skillshelf.evals.case import Case, Message
from skillshelf.evals.results import Arm, CaseInfo
from skillshelf.sources.folder import SKILL_FILES


@dataclass(frozen=True, slots=True)
class Trial:
    """One case, on one arm, for the so-manieth time. The case has the skills of the arm."""

    case: Case
    arm: Arm
    repeat: int

    @property
    def id(self) -> str:
        """Tells it from every other trial of a run, and stays the same when the run is begun again."""
        return f"{self.case.id}#{self.arm}#{self.repeat}"


@dataclass(frozen=True, slots=True)
class Plan:
    """All trials of a run."""

    cases: tuple[Case, ...]
    trials: tuple[Trial, ...]
    repeats: int = 1
    baseline: str = ""

    @property
    def infos(self) -> tuple[CaseInfo, ...]:
        return tuple(_info(case) for case in self.cases)

    @property
    def skills(self) -> dict[str, str]:
        """The skills under test: name to the path of the SKILL.md."""
        first: dict[str, Case] = {}
        for case in self.cases:
            if case.skill:
                first.setdefault(case.skill, case)
        folders = {skill: _folder_of(case) for skill, case in first.items()}
        return {skill: _skill_file(folder) for skill, folder in folders.items() if folder}


def make_plan(cases: Sequence[Case], repeats: int = 1, baseline: str = "", stage: str = "") -> Plan:
    """`stage`: a folder for the old versions of skills, where the baseline is one. Raises EvalError."""
    _refuse_twins(cases)
    against = Baseline(baseline, stage) if baseline else None
    trials = []
    for case in cases:
        for arm, one in _arms(case, against):
            trials += [Trial(one, arm, repeat) for repeat in range(1, repeats + 1)]
    return Plan(tuple(cases), tuple(trials), repeats, baseline)


def _refuse_twins(cases: Iterable[Case]) -> None:
    """Two cases of one name would be counted as one."""
    known: dict[str, str] = {}
    for case in cases:
        if case.id in known:
            first = known[case.id] or "another place"
            raise EvalError(
                f"{case.location or 'a case'}: {case.id!r} is also in {first}", "Give one of them another name"
            )
        known[case.id] = case.location


def _arms(case: Case, against: Baseline | None) -> Iterator[tuple[Arm, Case]]:
    yield "with", case
    if against is None or not case.skill:
        return
    without = _without(case)
    if against.removes:
        yield "without", without
        return
    folder = _folder_of(case)
    if not folder:
        raise EvalError(
            f"{case.location or case.id}: the skill {case.skill!r} is not among the case's folders of skills, "
            "so that its old version has no place",
            f"Use --baseline {NONE}",
        )
    yield "old", replace(without, skills=(*without.skills, against.old_version(case.skill, folder)))


def _without(case: Case) -> Case:
    """The case on a shelf that lacks the skill under test, whether that came as a folder or with the workspace."""
    skills = tuple(folder for folder in _expanded(case.skills) if not _is(folder, case.skill))
    homes = {
        path[: -len(name)] for path in case.files for name in SKILL_FILES if path.endswith(f"/{case.skill}/{name}")
    }
    files: Mapping[str, bytes] = {
        path: data for path, data in case.files.items() if not path.startswith(tuple(homes) or ("\0",))
    }
    if len(files) == len(case.files) and len(skills) == len(tuple(_expanded(case.skills))):
        raise EvalError(
            f"{case.location or case.id}: the skill {case.skill!r} is not on the case's shelf, so that there is "
            "nothing to leave out",
            "Add its folder to the case's skills",
        )
    return replace(case, skills=skills, files=files)


def _expanded(folders: Iterable[str]) -> Iterator[str]:
    """Each skill's own folder."""
    for folder in folders:
        if is_skill(folder) or not os.path.isdir(folder):
            yield folder
        else:
            yield from sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())


def _is(folder: str, skill: str) -> bool:
    return os.path.basename(os.path.abspath(folder)) == skill or skill_name(folder) == skill


def _folder_of(case: Case) -> str:
    return next((folder for folder in _expanded(case.skills) if _is(folder, case.skill)), "")


def _skill_file(folder: str) -> str:
    return next(path for name in (*SKILL_FILES, "") if os.path.exists(path := os.path.join(folder, name)))


def _info(case: Case) -> CaseInfo:
    prompt = next((turn.text for turn in case.turns if isinstance(turn, Message)), "")
    return CaseInfo(case.id, case.name, case.skill, case.should_trigger, case.location, prompt)
