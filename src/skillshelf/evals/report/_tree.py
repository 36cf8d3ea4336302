"""What a report shows, as one tree of values that every renderer reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillshelf.evals._results import Arm, CaseInfo, Outcome, Run
from skillshelf.evals.report._versus import Versus
from skillshelf.evals.stats import Confusion, Counts, Coverage, PassK, Rate, Spending, TriggerScore, wilson

ARMS: tuple[Arm, ...] = ("with", "without", "old")


@dataclass(frozen=True, slots=True)
class Failure:
    """A check that did not hold, with one of its reasons."""

    check: str
    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class Stop:
    """What ended a trial before its time: a limit that a model ran into, a skill that is not there. It counts."""

    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class CaseArm:
    """A case on one arm."""

    outcomes: tuple[Outcome, ...]
    counts: Counts
    rate: Rate
    spent: Spending
    """What the agent took in the trials that count; what errors and judges took is in the sum of the arm."""
    failures: tuple[Failure, ...]
    errors: tuple[str, ...]
    stops: tuple[Stop, ...] = ()
    """Of the trials that missed."""


_NO_TRIALS = CaseArm((), Counts(), wilson(0, 0), Spending(), (), ())


@dataclass(frozen=True, slots=True)
class CaseSummary:
    info: CaseInfo
    arms: Mapping[Arm, CaseArm]

    @property
    def main(self) -> CaseArm:
        """With the skill as it is; empty where it was never run so."""
        return self.arms.get("with") or _NO_TRIALS


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """All cases of a group on one arm."""

    counts: Counts
    rate: Rate
    tries: tuple[PassK, ...]
    spent: Spending
    """Everything that was paid for, errors and judges too."""


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that are counted together: those of a skill, or all."""

    name: str
    """Empty for cases that belong to no skill."""
    cases: tuple[CaseSummary, ...]
    arms: Mapping[Arm, ArmSummary]
    versus: tuple[Versus, ...]
    trigger: TriggerScore | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """An infrastructure error, and the trials it kept from being any."""

    message: str
    times: int
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    run: Run
    total: Group
    skills: tuple[Group, ...]
    confusion: Confusion | None
    """None for a run without trigger sets."""
    coverage: tuple[Coverage, ...]
    faults: tuple[Fault, ...]
