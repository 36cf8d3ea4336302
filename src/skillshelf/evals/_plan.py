"""What a run has to do: every case, on every arm, as often as it is repeated. The same input gives the same plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillshelf.errors import EvalError
from skillshelf.evals._arms import arms
from skillshelf.evals._baseline import Baseline
from skillshelf.evals._case import Case, Message
from skillshelf.evals._results import Arm, CaseInfo
from skillshelf.evals._tested import file_of, text_of
from skillshelf.evals.stats import SkillText

MOST = 1_000_000
"""Trials of a run: more do not fit in memory, nor in anybody's budget."""


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
    new: tuple[str, ...] = ()
    """Skills that the baseline does not have, so that there is nothing to compare them with."""

    @property
    def infos(self) -> tuple[CaseInfo, ...]:
        return tuple(_info(case) for case in self.cases)

    @property
    def skills(self) -> dict[str, str]:
        """The skills under test: name to the path of the SKILL.md, or of the module of a code skill."""
        paths = {skill: file_of(case) for skill, case in self._tested.items()}
        return {skill: path for skill, path in paths.items() if path}

    @property
    def texts(self) -> dict[str, SkillText]:
        """What there is to be loaded of the skills under test, for the coverage."""
        found: dict[str, SkillText] = {}
        for case in self._tested.values():
            found |= text_of(case)
        return found

    @property
    def _tested(self) -> dict[str, Case]:
        """Each skill under test, and the first case of it."""
        first: dict[str, Case] = {}
        for case in self.cases:
            if case.skill:
                first.setdefault(case.skill, case)
        return first


def make_plan(cases: Sequence[Case], repeats: int = 1, baseline: str = "", stage: str = "") -> Plan:
    """`stage`: a folder for the old versions of skills, where the baseline is one. Raises EvalError."""
    _refuse_twins(cases)
    against = Baseline(baseline, stage) if baseline else None
    if against and not any(case.skill for case in cases):
        raise EvalError(f"--baseline {baseline}: no case is of a skill", "Name the skill under test with `skill:`")
    compared = [(case, tuple(arms(case, against))) for case in cases]
    if sum(len(found) for _, found in compared) * repeats > MOST:
        raise EvalError(f"{len(cases)} cases {repeats} times are more than {MOST:,} trials", "Repeat them less often")
    trials = [
        Trial(one, arm, repeat) for _, found in compared for arm, one in found for repeat in range(1, repeats + 1)
    ]
    new = {case.skill: None for case, found in compared if against and case.skill and len(found) == 1}
    return Plan(tuple(cases), tuple(trials), repeats, baseline, tuple(new))


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


def _info(case: Case) -> CaseInfo:
    prompt = next((turn.text for turn in case.turns if isinstance(turn, Message)), "")
    return CaseInfo(case.id, case.name, case.skill, case.should_trigger, case.location, prompt)
