"""The options of a run, and its models: scripted, replayed, or live with a response cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skillshelf.settings import NAMES
from skillshelf_agent import ChosenModel, Settings, resolve
from skillshelf_agent.testing import ScriptedModel
from skillshelf_evals._case import Case
from skillshelf_evals._recording import (
    RecordedModel,
    Recording,
    Replay,
    TrialRecording,
    describe_model,
    find_recorded_model,
    read_recorded_models,
)
from skillshelf_evals._trial import DEFAULT_TIMEOUT
from skillshelf_evals.engine._guard import NO_LIMITS, RETRY_PAUSES, RunGuard, SpendingLimits
from skillshelf_evals.engine._response_cache import CachedJudge, CachedModel
from skillshelf_evals.engine._store import RunStore

if TYPE_CHECKING:
    from pydantic_ai.models import Model

DEFAULT_PARALLEL = 4
SCRIPT_PREFIX = "script:"
JUDGE_ROLE = "(judge)"
"""Stands in a recording for the judge of the run, whichever model that was."""


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
    limits: SpendingLimits = NO_LIMITS
    """How much the run may spend."""
    pauses: Sequence[float] = RETRY_PAUSES
    named: str = ""
    """The model that the user named for this run; the one in `settings` may come from a file."""
    judge: Settings | None = None
    """The judge for checks that name no model; None for the model of the run."""
    named_judge: str = ""
    """The judge that the user named for this run."""

    @property
    def server(self) -> str:
        """The engine, if there is work for it: a replay costs nothing and needs no help."""
        return "" if self.replay else self.engine

    @property
    def are_workers_alone(self) -> bool:
        """True if no trial runs in this process."""
        return bool(self.engine) and not self.parallel

    def settings_for(self, model: str) -> Settings:
        """Return the settings for a case or check that asks for a model of its own; the run's if it asks for none."""
        return replace(self.settings, model=model) if model else self.settings

    def settings_for_judge(self, model: str) -> Settings:
        """Return the settings for a check that asks for a judge of its own; those of the run's judge if it does not."""
        if model or self.judge is None:
            return self.settings_for(model)
        return self.judge

    def is_free(self, case: Case) -> bool:
        """True if a trial of the case can be repeated at no cost."""
        return case.script is not None or bool(self.replay) or _is_scripted(self.settings_for(case.model))

    @property
    def is_judging_free(self) -> bool:
        """True if the judge of the run costs nothing."""
        return bool(self.replay) or _is_scripted(self.settings_for_judge(""))

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
    values = {name: value for name, value in plain["settings"].items() if name in NAMES}
    settings = Settings(**{**values, "packages": tuple(values["packages"])})
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
            return ChosenModel.from_model(ScriptedModel(*case.script))
        if self._options.replay:
            return self._replay_model(case.model, find_replayed_model, recording)
        return self._make_model(
            case.model,
            self._options.settings_for(case.model),
            lambda model: CachedModel(model, self._store, self.guard, name),
            recording,
        )

    def model_for_judge(
        self, model: str, sentences: int, name: str, recording: TrialRecording | None = None
    ) -> Model[Any]:
        """Return the judge of a trial of this name: the model that the checks ask for, or the run's judge.

        It is asked for a verdict on this many sentences. Raises SkillError.
        """
        role = JUDGE_ROLE if self._options.judge and not model else model
        if self._options.replay:
            return self._replay_model(model or JUDGE_ROLE, find_replayed_judge, recording).model
        chosen = self._make_model(
            role,
            self._options.settings_for_judge(model),
            lambda model: CachedJudge(model, self._store, self.guard, name, sentences),
            recording,
        )
        return chosen.model

    def _make_model(
        self,
        wanted: str,
        settings: Settings,
        cache: Callable[[Model[Any]], CachedModel],
        recording: TrialRecording | None,
    ) -> ChosenModel:
        chosen = self._resolve(settings)
        model = chosen.model
        if not _is_scripted(settings):
            model = cache(model)
        if recording:
            names = sorted({chosen.name, settings.model} - {""})
            like = describe_model(chosen.model, chosen.window, wanted, names)
            model = Recording(model, recording, like)

        return replace(chosen, model=model)

    def _replay_model(
        self, wanted: str, find: Callable[[Options, str], RecordedModel], recording: TrialRecording | None
    ) -> ChosenModel:
        assert recording is not None
        if wanted not in self._replayed:  # a folder of thousands of files is searched once
            self._replayed[wanted] = find(self._options, wanted)
        like = self._replayed[wanted]
        # With its recorded properties, whatever the settings are now: otherwise the agent would send other calls.
        return ChosenModel(Replay(recording, like), like.id, like.window)

    def _resolve(self, settings: Settings) -> ChosenModel:
        if _is_scripted(settings):  # a script starts over with each trial
            return resolve(settings)
        if settings not in self._resolved:  # a provider's client keeps its connections, a local model its memory
            self._resolved[settings] = resolve(settings)
        return self._resolved[settings]


def _is_scripted(settings: Settings) -> bool:
    return settings.model.startswith(SCRIPT_PREFIX)


def find_replayed_model(options: Options, wanted: str = "") -> RecordedModel:
    """Return the recorded model to replay for a case or check that asks for `wanted`. Raises EvalError.

    A model that the user named for this run must be in the recording. One from a settings file only decides between
    several: another user's recording can be replayed whatever one's own favourite is.
    """
    return find_recorded_model(options.replay, wanted or options.named, options.settings.model)


def find_replayed_judge(options: Options, wanted: str = JUDGE_ROLE) -> RecordedModel:
    """Return the recorded model to replay for a check that asks for `wanted`. Raises EvalError.

    A recording that was made without a judge of its own has the verdicts of the run's model.
    """
    if wanted != JUDGE_ROLE:
        return find_replayed_model(options, wanted)
    if options.named_judge:
        return find_recorded_model(options.replay, options.named_judge)
    if any(model.wanted == JUDGE_ROLE for model in read_recorded_models(options.replay)):
        preferred = options.judge.model if options.judge else ""
        return find_recorded_model(options.replay, JUDGE_ROLE, preferred, option="--judge")
    return find_replayed_model(options)
