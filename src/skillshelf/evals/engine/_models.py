"""The options of a run, and its models: scripted, replayed, or live with a response cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai_harness.compaction import DEFAULT_CONTEXT_WINDOW

from skillshelf.agent import ChosenModel, ScriptedModel, Settings, resolve
from skillshelf.evals._case import Case
from skillshelf.evals._recording import (
    RecordedModel,
    Recording,
    Replay,
    TrialRecording,
    describe_model,
    find_recorded_model,
)
from skillshelf.evals._trial import DEFAULT_TIMEOUT
from skillshelf.evals.engine._budget import Limits
from skillshelf.evals.engine._guard import NO_LIMITS, RETRY_PAUSES, RunGuard
from skillshelf.evals.engine._response_cache import CachedJudge, CachedModel
from skillshelf.evals.engine._store import RunStore

if TYPE_CHECKING:
    from pydantic_ai.models import Model

DEFAULT_PARALLEL = 4
SCRIPT_PREFIX = "script:"


@dataclass(frozen=True, slots=True)
class Options:
    """Everything about a run except its cases and skills."""

    settings: Settings = field(default_factory=Settings)
    record: str = ""
    """A folder to record the model's answers in."""
    replay: str = ""
    """A folder of recorded answers to use instead of a model."""
    engine: str = ""
    """The PostgreSQL server that workers share; empty to run all trials here."""
    parallel: int = DEFAULT_PARALLEL
    """Trials at once, in each process; 0 leaves all of them to workers."""
    rate: int = 0
    """Trials that may begin in a minute, over all processes; 0 for no limit."""
    timeout: int = DEFAULT_TIMEOUT
    """Seconds that a trial may take."""
    limits: Limits = NO_LIMITS
    """How much the run may spend."""
    pauses: Sequence[float] = RETRY_PAUSES
    named: str = ""
    """The model that the user named for this run; the one in `settings` may come from a file."""

    @property
    def server(self) -> str:
        """The engine, if there is work for it: a replay costs nothing and needs no help."""
        return "" if self.replay else self.engine

    def settings_for(self, model: str) -> Settings:
        """Return the settings for a case or check that asks for a model of its own; the run's if it asks for none."""
        return replace(self.settings, model=model) if model else self.settings

    def is_scripted(self, model: str) -> bool:
        return self.settings_for(model).model.startswith(SCRIPT_PREFIX)

    def is_free(self, case: Case) -> bool:
        """True if a trial of the case can be repeated at no cost."""
        return case.script is not None or bool(self.replay) or self.is_scripted(case.model)

    def as_json(self) -> dict[str, Any]:
        """Return the part that a worker must know. A worker has its own keys, and replays nothing."""
        return {
            "settings": asdict(self.settings),
            "record": bool(self.record),
            "timeout": self.timeout,
            "pauses": list(self.pauses),
        }


def options_from_json(plain: Mapping[str, Any]) -> Options:
    """Return the options as a worker knows them."""
    settings = Settings(**{**plain["settings"], "packages": tuple(plain["settings"]["packages"])})
    return Options(settings, timeout=plain["timeout"], pauses=plain["pauses"])


class RunModels:
    """The models of one run in one process."""

    def __init__(self, options: Options, store: RunStore) -> None:
        self._options = options
        self._store = store
        self.guard = RunGuard(options.pauses, options.limits)
        self._resolved: dict[Settings, ChosenModel] = {}
        self._replayed: dict[str, RecordedModel] = {}

    def model_for_trial(self, case: Case, name: str, recording: TrialRecording | None = None) -> ChosenModel:
        """Return the model for a trial of this name, to be recorded or replayed if a recording is given.

        Raises SkillError.
        """
        if case.script is not None:
            return ChosenModel(ScriptedModel(*case.script), "scripted", True, DEFAULT_CONTEXT_WINDOW, True)
        return self._find_model(case.model, name, recording, CachedModel)

    def model_for_judge(self, model: str, name: str, recording: TrialRecording | None = None) -> Model[Any]:
        """Return the model for a check of this name: the one it asks for, or the run's. Raises SkillError."""
        return self._find_model(model, name, recording, CachedJudge).model

    def _find_model(
        self, wanted: str, name: str, recording: TrialRecording | None, cached: type[CachedModel]
    ) -> ChosenModel:
        if self._options.replay:
            assert recording is not None
            return self._replay_model(wanted, recording)

        chosen = self._resolve(wanted)
        model = chosen.model
        if not self._options.is_scripted(wanted):
            model = cached(model, self._store, self.guard, name)
        if recording:
            names = sorted({chosen.name, self._options.settings_for(wanted).model} - {""})
            like = describe_model(chosen.model, chosen.tools, chosen.window, wanted, names)
            model = Recording(model, recording, like)

        return replace(chosen, model=model)

    def _replay_model(self, wanted: str, recording: TrialRecording) -> ChosenModel:
        if wanted not in self._replayed:  # a folder of thousands of files is searched once
            self._replayed[wanted] = find_replayed_model(self._options, wanted)
        like = self._replayed[wanted]
        # With its recorded properties, whatever the settings are now: otherwise the agent would send other calls.
        return ChosenModel(Replay(recording, like), like.id, like.tools, like.window, True)

    def _resolve(self, wanted: str) -> ChosenModel:
        settings = self._options.settings_for(wanted)
        if self._options.is_scripted(wanted):  # a script begins anew with each trial
            return resolve(settings)
        if settings not in self._resolved:  # a provider's client keeps its connections, a local model its memory
            self._resolved[settings] = resolve(settings)
        return self._resolved[settings]


def find_replayed_model(options: Options, wanted: str = "") -> RecordedModel:
    """Return the recorded model to replay for a case or check that asks for `wanted`. Raises EvalError.

    A model that the user named for this run must be in the recording. One from a settings file only decides between
    several: another user's recording can be replayed whatever one's own favourite is.
    """
    return find_recorded_model(options.replay, wanted or options.named, options.settings.model)
