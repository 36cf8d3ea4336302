"""The results of a run: one outcome for each trial, as plain values in a JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from skillshelf.text import truncate
from skillshelf_agent.events import SkillLoaded, Usage
from skillshelf_evals._artefacts import NO_ARTEFACTS, Artefacts
from skillshelf_evals._case import Case
from skillshelf_evals._trace import Trace
from skillshelf_evals.check import About, Verdict

Status = Literal["passed", "missed", "error"]
"""`error` means that the trial, or one of its checks, could not be completed. It is neither a pass nor a miss."""
Arm = Literal["with", "without", "old"]
"""With the skill as it is, without it, or with the version that `--baseline` names."""

_NO_SUBJECT = About("")
MAX_QUERY = 80
"""Characters of a query in the name of a case."""


@dataclass(frozen=True, slots=True)
class CaseInfo:
    """The facts about a case that reports show."""

    id: str
    name: str
    skill: str = ""
    should_trigger: bool | None = None
    location: str = ""
    """`path:line`."""
    prompt: str = ""
    """The first message."""
    is_named: bool = True
    """False if the author gave the case no name."""
    turns_digest: str = ""
    """A digest of all messages and edits."""
    live: bool = True
    """True if a model answers or judges. A case with a script and without a judge ends the same way every time."""

    @property
    def query(self) -> str:
        """The prompt of a trigger case, and of one without a name: it is what the author knows the case by."""
        if self.should_trigger is None and self.is_named:
            return ""
        return " ".join(self.prompt.split())

    @property
    def label(self) -> str:
        """The id of the case, with its query, for readers."""
        return f"{self.id}: {truncate(self.query, MAX_QUERY)!r}" if self.query else self.id

    @classmethod
    def of(cls, case: Case) -> CaseInfo:
        return cls(
            id=case.id,
            name=case.name,
            skill=case.skill,
            should_trigger=case.should_trigger,
            location=case.location,
            prompt=case.prompt,
            is_named=case.is_named,
            turns_digest=case.turns_digest,
            live=case.is_live,
        )


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one trial."""

    name: str
    verdict: Verdict
    about: About = _NO_SUBJECT


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one trial: the nth repeat of a case on one arm."""

    case: str
    arm: Arm
    repeat: int
    checks: tuple[CheckResult, ...]
    trace: Trace
    judging: Usage | None = None
    """The usage of the judges among the checks; None if there was none."""
    artefacts: Artefacts = NO_ARTEFACTS
    """The files that the trial created or changed, as they are kept beside the report."""

    @property
    def usage(self) -> Usage:
        """The usage of the trial, judges included. The trace has the usage of the agent alone."""
        if self.judging is None:
            return self.trace.usage
        return self.trace.usage + self.judging

    @property
    def status(self) -> Status:
        """`missed` if a check did not hold, even if another check could not be completed."""
        if self.trace.error:
            return "error"
        if self.failed:
            return "missed"
        if any(result.verdict.error for result in self.checks):
            return "error"
        return "passed"

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that were made and did not hold."""
        return tuple(result for result in self.checks if not result.verdict.passed and not result.verdict.error)

    @property
    def loaded(self) -> frozenset[str]:
        """The skills that entered the conversation."""
        return frozenset(event.skill for event in self.trace.events if isinstance(event, SkillLoaded))


@dataclass(frozen=True, slots=True)
class Run:
    """All outcomes of one run, and how it was made."""

    id: str
    started: str
    """ISO 8601, UTC."""
    model: str
    cases: tuple[CaseInfo, ...]
    outcomes: tuple[Outcome, ...]
    skills: Mapping[str, str] = field(default_factory=dict)
    """The skills under test: the path of the SKILL.md by name."""
    repeats: int = 1
    baseline: str = ""
    """`none`, a path or a revision; empty if the run has no baseline."""
    replayed: bool = False
    """True if recorded answers stood in for every model."""
    judge: str = ""
    """The models that judged, separated by commas; empty if no check asked one."""

    def is_live(self, case: CaseInfo) -> bool:
        """Return whether chance has a part in how a case of this run ends."""
        return case.live and not self.replayed

    def as_json(self) -> dict[str, Any]:
        """Return the run as `run.json` has it."""
        plain: dict[str, Any] = _adapter().dump_python(self)
        for outcome, plain_outcome in zip(self.outcomes, plain["outcomes"], strict=True):
            plain_outcome["status"] = outcome.status
        return {"skillshelf_evals": 1, **plain}


def run_from_json(plain: Mapping[str, Any]) -> Run:
    """Return the run that `as_json` described. Raises pydantic's ValidationError."""
    return _adapter().validate_python(plain)


@cache
def _adapter() -> TypeAdapter[Run]:
    return TypeAdapter(Run)
