"""The models of a run: scripted, replayed, or live with every response kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai_harness.compaction import DEFAULT_CONTEXT_WINDOW

from skillshelf.agent.models import ChosenModel, resolve
from skillshelf.agent.scripted import ScriptedModel
from skillshelf.agent.settings import Settings
from skillshelf.evals.case import Case
from skillshelf.evals.engine.options import SCRIPT, Options
from skillshelf.evals.engine.paid import Kept
from skillshelf.evals.engine.store import Store

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class Models:
    """Of one run in one process."""

    def __init__(self, options: Options, store: Store) -> None:
        self._options, self._store = options, store
        self._resolved: dict[Settings, ChosenModel] = {}

    def answering(self, case: Case, name: str, repeat: int, record: str = "") -> ChosenModel:
        """The model of a trial of this name; `record`: a folder for what it says. Raises SkillError."""
        if case.script is not None:
            return ChosenModel(ScriptedModel(*case.script), "scripted", True, DEFAULT_CONTEXT_WINDOW, True)
        return self._model(case.model, name, repeat, record)

    def judging(self, model: str, name: str, repeat: int) -> Model[Any]:
        """The model that a check of this name asks: the one that it wants, or the run's."""
        return self._model(model, name, repeat, self._options.record).model

    def _model(self, wanted: str, name: str, repeat: int, record: str) -> ChosenModel:
        settings = self._options.settings_of(wanted)
        if self._options.replay:
            from skillshelf.evals.recording import Replay

            model: Model[Any] = Replay(self._options.replay, repeat, wanted)
            window = settings.window or DEFAULT_CONTEXT_WINDOW
            return ChosenModel(model, model.model_id, settings.tools != "off", window, True)
        if settings.model.startswith(SCRIPT):  # begins anew with each trial
            return resolve(settings)
        if settings not in self._resolved:  # a provider's client keeps its connections, a local model its memory
            self._resolved[settings] = resolve(settings)
        chosen = self._resolved[settings]
        model = Kept(chosen.model, self._store, name, self._options.pauses)
        if record:
            from skillshelf.evals.recording import Recording

            model = Recording(model, record, repeat)
        return replace(chosen, model=model)
