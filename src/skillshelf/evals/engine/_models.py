"""The models of a run: scripted, replayed, or live with every response kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai_harness.compaction import DEFAULT_CONTEXT_WINDOW

from skillshelf.agent import ChosenModel, ScriptedModel, Settings, resolve
from skillshelf.evals._case import Case
from skillshelf.evals._recorded import Recorded, recorded
from skillshelf.evals._recording import Recording, Replay, describe
from skillshelf.evals._tape import Tape
from skillshelf.evals.engine._options import SCRIPT, Options
from skillshelf.evals.engine._paid import Kept, KeptVerdict
from skillshelf.evals.engine._store import Store

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class Models:
    """Of one run in one process."""

    def __init__(self, options: Options, store: Store) -> None:
        self._options, self._store = options, store
        self._resolved: dict[Settings, ChosenModel] = {}
        self._replayed: dict[str, Recorded] = {}

    def answering(self, case: Case, name: str, tape: Tape | None = None) -> ChosenModel:
        """The model of a trial of this name; `tape`: where that is recorded or replayed. Raises SkillError."""
        if case.script is not None:
            return ChosenModel(ScriptedModel(*case.script), "scripted", True, DEFAULT_CONTEXT_WINDOW, True)
        return self._model(case.model, name, tape, Kept)

    def judging(self, model: str, name: str, tape: Tape | None = None) -> Model[Any]:
        """The model that a check of this name asks: the one that it wants, or the run's."""
        return self._model(model, name, tape, KeptVerdict).model

    def _model(self, wanted: str, name: str, tape: Tape | None, kept: type[Kept]) -> ChosenModel:
        if self._options.replay:
            assert tape is not None
            if wanted not in self._replayed:  # a folder of thousands of files is looked through once
                self._replayed[wanted] = replayed(self._options, wanted)
            like = self._replayed[wanted]
            # As it was then, whatever is set here: to a model that was sent something else, this was never said.
            return ChosenModel(Replay(tape, like), like.id, like.tools, like.window, True)
        chosen = self._live(wanted)
        model = chosen.model
        if not _is_script(self._options, wanted):
            model = kept(model, self._store, name, self._options.pauses)
        if tape:
            names = sorted({chosen.name, self._options.settings_of(wanted).model} - {""})
            model = Recording(model, tape, describe(chosen.model, chosen.tools, chosen.window, wanted, names))
        return replace(chosen, model=model)

    def _live(self, wanted: str) -> ChosenModel:
        settings = self._options.settings_of(wanted)
        if _is_script(self._options, wanted):  # begins anew with each trial
            return resolve(settings)
        if settings not in self._resolved:  # a provider's client keeps its connections, a local model its memory
            self._resolved[settings] = resolve(settings)
        return self._resolved[settings]


def replayed(options: Options, wanted: str = "") -> Recorded:
    """The model whose answers are played back for a case or a check that wants this one. Raises EvalError.

    A model that was named for this run must be in the recording. One from a settings file only decides between several:
    somebody else's recording is played back whatever one's own favourite is.
    """
    return recorded(options.replay, wanted or options.named, options.settings.model)


def _is_script(options: Options, wanted: str) -> bool:
    return options.settings_of(wanted).model.startswith(SCRIPT)
