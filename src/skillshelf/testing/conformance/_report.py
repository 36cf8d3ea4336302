"""What a run of the scenario found, as values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one step went."""

    step: str
    problem: str = ""
    """Empty where it passed, else what was expected and what came."""
    note: str = ""
    """What the face declares that it cannot keep, where this step would have asked for it."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a face went through the scenario."""

    face: str
    outcomes: tuple[Outcome, ...] = ()
    missing: str = ""
    """What to install first, where the face could not run."""

    @property
    def passed(self) -> bool:
        return not self.missing and all(not one.problem for one in self.outcomes)

    def __str__(self) -> str:
        faults = [f"{one.step}: {one.problem}" for one in self.outcomes if one.problem]
        return f"{self.face}: {self.missing or '; '.join(faults) or 'passed'}"
