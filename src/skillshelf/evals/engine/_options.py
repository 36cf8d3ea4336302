"""How a run is made: which model answers, how many trials at once, where it is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from skillshelf.agent import Settings
from skillshelf.evals._case import Case
from skillshelf.evals._trial import SECONDS
from skillshelf.evals.engine._paid import PAUSES

PARALLEL = 4
SCRIPT = "script:"


@dataclass(frozen=True, slots=True)
class Options:
    """All that a run was told, cases and skills aside."""

    settings: Settings = field(default_factory=Settings)
    record: str = ""
    """A folder for what the model says."""
    replay: str = ""
    """A folder of such, in the place of a model."""
    engine: str = ""
    """The PostgreSQL server that workers share; empty for SQLite in the run's folder."""
    parallel: int = PARALLEL
    """Trials at once, in each process; 0 leaves all to the workers."""
    rate: int = 0
    """Trials that begin in a minute, over all processes; 0 for as many as will."""
    timeout: int = SECONDS
    """Seconds that a trial may take."""
    pauses: Sequence[float] = PAUSES
    """Seconds before each further attempt at a call that failed for a reason that passes."""
    named: str = ""
    """The model that the person named for this run; the settings may have one from a file."""

    @property
    def server(self) -> str:
        """The engine, where there is something for it to do: what is replayed costs nothing and needs nobody's help."""
        return "" if self.replay else self.engine

    def settings_of(self, model: str) -> Settings:
        """For a case or a check that wants a model of its own; the run's where it wants none."""
        return replace(self.settings, model=model) if model else self.settings

    def is_free(self, case: Case) -> bool:
        """Whether a trial can be run again at no cost."""
        scripted = case.script is not None or self.settings_of(case.model).model.startswith(SCRIPT)
        return scripted or bool(self.replay)

    def as_json(self) -> dict[str, Any]:
        """What a worker must know. A worker has its own keys, and replays nothing."""
        told = {"settings": asdict(self.settings), "record": bool(self.record)}
        return {**told, "timeout": self.timeout, "pauses": list(self.pauses)}


def options_from_json(plain: Mapping[str, Any]) -> Options:
    """As a worker knows them."""
    return Options(Settings(**plain["settings"]), timeout=plain["timeout"], pauses=plain["pauses"])
