"""What a run of evals gave: one outcome for each trial, as plain values in a JSON file that outlasts the process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from skillshelf.agent.events import SkillLoaded, Usage
from skillshelf.evals._trace import Trace, trace_from_json
from skillshelf.evals.check import Verdict

Status = Literal["passed", "missed", "error"]
"""`error`: the trial was none, because a provider or a check could not be asked. Neither a pass nor a miss."""
Arm = Literal["with", "without", "old"]
"""With the skill as it is, without it, or with the version that `--baseline` names."""


@dataclass(frozen=True, slots=True)
class CaseInfo:
    """What a report needs to know of a case."""

    id: str
    name: str
    skill: str = ""
    should_trigger: bool | None = None
    location: str = ""
    """`path:line`."""
    prompt: str = ""
    """The first message."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one trial."""

    name: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    """One trial: a case, on one arm, for the so-manieth time."""

    case: str
    arm: Arm
    repeat: int
    checks: tuple[CheckResult, ...]
    trace: Trace
    judging: Usage | None = None
    """What the judges among the checks took; None where there was none."""

    @property
    def usage(self) -> Usage:
        """What the trial took, its judges included; the trace has what the agent took."""
        return self.trace.usage + self.judging if self.judging else self.trace.usage

    @property
    def status(self) -> Status:
        """A check that did not hold is a miss, whatever another one would have said that could not be made."""
        if self.trace.error:
            return "error"
        if self.failed:
            return "missed"
        return "error" if any(one.verdict.error for one in self.checks) else "passed"

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that were made and did not hold."""
        return tuple(one for one in self.checks if not one.verdict.passed and not one.verdict.error)

    @property
    def loaded(self) -> frozenset[str]:
        """The skills that entered the conversation."""
        return frozenset(event.skill for event in self.trace.events if isinstance(event, SkillLoaded))


@dataclass(frozen=True, slots=True)
class Run:
    """All outcomes of one invocation, and how it was made."""

    id: str
    started: str
    """ISO 8601, UTC."""
    model: str
    cases: tuple[CaseInfo, ...]
    outcomes: tuple[Outcome, ...]
    skills: Mapping[str, str] = field(default_factory=dict)
    """The skills under test: name to the path of the SKILL.md."""
    repeats: int = 1
    baseline: str = ""
    """`none`, a path or a revision; empty without one."""

    def as_json(self) -> dict[str, Any]:
        return {
            "skillshelf_evals": 1,
            "id": self.id,
            "started": self.started,
            "model": self.model,
            "repeats": self.repeats,
            "baseline": self.baseline,
            "skills": dict(self.skills),
            "cases": [asdict(case) for case in self.cases],
            "outcomes": [outcome_as_json(one) for one in self.outcomes],
        }


def outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "case": outcome.case,
        "arm": outcome.arm,
        "repeat": outcome.repeat,
        "status": outcome.status,
        "checks": [{"name": one.name, **asdict(one.verdict)} for one in outcome.checks],
        "trace": outcome.trace.as_json(),
        "judging": asdict(outcome.judging) if outcome.judging else None,
    }


def outcome_from_json(plain: Mapping[str, Any]) -> Outcome:
    checks = tuple(
        CheckResult(one["name"], Verdict(one["passed"], one["reason"], one["error"])) for one in plain["checks"]
    )
    judging = Usage(**plain["judging"]) if plain.get("judging") else None
    return Outcome(plain["case"], plain["arm"], plain["repeat"], checks, trace_from_json(plain["trace"]), judging)


def run_from_json(plain: Mapping[str, Any]) -> Run:
    return Run(
        plain["id"],
        plain["started"],
        plain["model"],
        tuple(CaseInfo(**case) for case in plain["cases"]),
        tuple(outcome_from_json(one) for one in plain["outcomes"]),
        dict(plain["skills"]),
        plain["repeats"],
        plain["baseline"],
    )
