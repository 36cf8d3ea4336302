"""Recordings: the answers of a live model, kept in files and replayed.

A replayed run needs no key, costs nothing, and notices when its recording is out of date. A recording is a folder with
one file for each call and one for each model. Commit it: it holds the prompts, the skills' texts and the answers, and
no key.

Trial, model and call are digests in the name of a call's file: an answer that was given in one trial is not used in
another, even if the call is the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, cast

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_core import to_jsonable_python

from skillshelf.errors import EvalError, NotRecordedError
from skillshelf.files import replace_file
from skillshelf_agent import ChosenModel
from skillshelf_evals._limits import MAX_CALLS_COMPARED
from skillshelf_evals._model_calls import (
    CallRecord,
    ModelCall,
    WatchedModel,
    cache_key,
    count_equal_messages,
    describe_differences,
    public_settings,
    record_call,
    restore_response,
)
from skillshelf_evals._placeholders import hide_folders, map_texts

HOW_TO_RECORD = "The same command with --record instead of --replay asks the model"
FORMAT_VERSION = 2
MODEL_PREFIX = "model-"
CALL_PREFIX = "call-"
_MODEL_FILE = re.compile(r"model-[0-9a-f]+\.json")
_CALL_FILE = re.compile(r"call-([0-9a-f]+)-([0-9]+)-([0-9a-f]+)-([0-9a-f]+)-([0-9]+)\.json")
_USERINFO = re.compile(r"(?<=://)[^/@]*@")


class CallFile(NamedTuple):
    """The name of the file of a call."""

    trial: str
    """Like `model` and `call`, a digest."""
    repeat: int
    model: str
    call: str
    number: int
    """The same call has another answer each time it is repeated in a trial."""

    def __str__(self) -> str:
        return f"{CALL_PREFIX}{self.trial}-{self.repeat}-{self.model}-{self.call}-{self.number}.json"


def parse_call_file(name: str) -> CallFile | None:
    """Take the name of a file apart. Return None if it is not the file of a call."""
    match = _CALL_FILE.fullmatch(name)
    if match is None:
        return None
    trial, repeat, model, call, number = match.groups()
    return CallFile(trial, int(repeat), model, call, int(number))


@dataclass(slots=True)
class TrialRecording:
    """The files of one trial in a folder of recordings."""

    folder: str
    trial: str = ""
    """The case and the arm."""
    repeat: int = 1
    written: set[str] = field(default_factory=set)
    """The files of the calls that were recorded in this trial."""
    _calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    def next_file(self, model: str, call: str) -> CallFile:
        """Return the file for a call."""
        self._calls[model, call] += 1
        return CallFile(self._trial_digest, self.repeat, _digest(model), call, self._calls[model, call])

    def write(self, file: CallFile, value: Mapping[str, Any]) -> None:
        write_recording(self.folder, str(file), value)
        self.written.add(str(file))

    def add_files(self, files: Mapping[str, str]) -> None:
        """Write the files that a worker recorded.

        Raises EvalError for any other file: they come from a database that others write to.
        """
        for name, text in files.items():
            file = parse_call_file(name)
            is_expected = self._is_own(file) if file else _MODEL_FILE.fullmatch(name) is not None
            value = _parse_object(text) if is_expected else None
            if value is None:
                raise EvalError(f"A worker sent {name[:120]!r}, which is not a recording of this trial")
            write_recording(self.folder, name, value)
            if file:
                self.written.add(name)

    def remove_outdated(self) -> None:
        """Remove the answers that the same models gave in an earlier recording of this trial."""
        files = [file for file in self._list_calls() if self._is_own(file)]
        models = {file.model for file in files if str(file) in self.written}
        for file in files:
            if str(file) not in self.written and file.model in models:
                os.unlink(os.path.join(self.folder, str(file)))

    def find_calls(self, model: str) -> list[CallFile]:
        """Return the files of all answers of a model in this trial, in all repeats."""
        return [file for file in self._list_calls() if file.model == _digest(model)]

    def _list_calls(self) -> Iterator[CallFile]:
        """Yield the files of this trial, in all repeats."""
        for name in _list_recordings(self.folder, f"{CALL_PREFIX}{self._trial_digest}-"):
            file = parse_call_file(name)
            if file:
                yield file

    def _is_own(self, file: CallFile) -> bool:
        return file.trial == self._trial_digest and file.repeat == self.repeat

    @property
    def _trial_digest(self) -> str:
        return _digest(self.trial, 12)


def recording_of(folder: str, trial_id: str, repeat: int) -> TrialRecording | None:
    """Return the recording of a trial, or None if no folder is given."""
    if not folder:
        return None
    return TrialRecording(folder, trial_id.removesuffix(f"#{repeat}"), repeat)


def read_recording(folder: str, name: str) -> dict[str, Any]:
    """Read a file of a recording. Raises EvalError."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError, TypeError) as error:
        raise EvalError(f"it is not a recording: {error}", f"Remove it. {HOW_TO_RECORD}", path) from None


def write_recording(folder: str, name: str, value: Mapping[str, Any]) -> None:
    """Write a file of a recording in one step: the run may be killed, and others may write the same file."""
    os.makedirs(folder, exist_ok=True)
    text = json.dumps(map_texts(hide_folders, dict(value)), ensure_ascii=False, indent=1)
    # A model can say half a surrogate pair, which UTF-8 cannot hold. JSON writes it as an escape.
    data = f"{text}\n".encode(errors="backslashreplace")
    replace_file(os.path.join(folder, name), data, 0o666)


def _list_recordings(folder: str, prefix: str) -> list[str]:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(name for name in names if name.startswith(prefix) and name.endswith(".json"))


def _parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text holds, or None if it holds none."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        return None


def _digest(text: str, length: int = 8) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """A model of a recording: everything that makes the agent treat its stand-in like the model itself."""

    id: str
    name: str
    system: str
    profile: dict[str, Any]
    settings: dict[str, Any]
    window: int
    wanted: str = ""
    """The model that a case or a check asked for, or the role of the run's judge; empty for the model of the run."""
    names: list[str] = field(default_factory=list)
    """Other names of it, as `--model` had them."""

    def has_name(self, name: str) -> bool:
        return name in (self.id, self.name, self.wanted, *self.names)

    def save(self, folder: str) -> None:
        write_recording(folder, f"{MODEL_PREFIX}{_digest(f'{self.id} {self.wanted}')}.json", asdict(self))


def describe_model(model: Model[Any], window: int = 0, wanted: str = "", names: Iterable[str] = ()) -> RecordedModel:
    """Describe a model for a recording."""
    simple = str | int | float | None
    return RecordedModel(
        id=model.model_id,
        name=model.model_name,
        system=model.system,
        profile={name: value for name, value in model.profile.items() if isinstance(value, simple)},
        settings=to_jsonable_python(public_settings(model.settings), fallback=str),
        window=window or ChosenModel.from_model(model).window,
        wanted=wanted,
        names=list(names),
    )


def read_recorded_models(folder: str) -> list[RecordedModel]:
    """Return the models of a recording. Raises EvalError if there are none."""
    files = [read_recording(folder, file) for file in _list_recordings(folder, MODEL_PREFIX)]
    names = {field.name for field in fields(RecordedModel)}
    # Earlier versions also recorded whether the model got tools.
    models = [
        RecordedModel(**{name: plain[name] for name in names}) for plain in files if plain.keys() - {"tools"} == names
    ]
    if not models:
        other = " but those of another version of skillshelf" if files else ""
        raise EvalError(f"{folder} has no recordings{other}", HOW_TO_RECORD)
    return models


def find_recorded_model(folder: str, name: str = "", preferred: str = "", option: str = "--model") -> RecordedModel:
    """Return the recorded model of this name. Without a name, return the run's own.

    If there are several, return the `preferred` one. Raises EvalError if there is none, or if the user has to choose
    one with `option`.
    """
    models = read_recorded_models(folder)
    if name:
        candidates = [model for model in models if model.has_name(name)]
    else:
        candidates = [model for model in models if not model.wanted] or models
    found = [model for model in candidates if preferred and model.has_name(preferred)] or candidates

    if not found:
        raise EvalError(f"{folder} has no answers of {name}, only of {_list_ids(models)}", HOW_TO_RECORD)
    if len({model.id for model in found}) > 1:
        raise EvalError(f"{folder} has answers of several models: {_list_ids(found)}", f"Choose one with {option}")
    return found[0]


def _list_ids(models: Iterable[RecordedModel]) -> str:
    return ", ".join(sorted({model.id for model in models}))


class Recording(WatchedModel):
    """A model that passes everything on, and keeps the answers."""

    def __init__(self, wrapped: Model[Any], recording: TrialRecording | str, like: RecordedModel | None = None) -> None:
        """`recording` is a folder, or the recording of a trial. `like` describes the model; by default, as it is."""
        super().__init__(wrapped)
        self._recording = TrialRecording(recording) if isinstance(recording, str) else recording
        self._like = like or describe_model(wrapped)
        self._is_model_saved = False

    async def after_call(self, call: ModelCall, response: ModelResponse) -> None:
        if response.state != "complete":  # half an answer is not worth replaying
            return
        record = record_call(self.model_id, call)
        file = self._recording.next_file(self.model_id, cache_key(record))
        await asyncio.to_thread(self._save, file, record, response)

    def _save(self, file: CallFile, record: CallRecord, response: ModelResponse) -> None:
        [answer] = ModelMessagesTypeAdapter.dump_python([response], mode="json")
        answer |= {"run_id": None, "conversation_id": None, "workspace_ref": None}
        # The address of a provider may hold a password.
        answer["provider_url"] = _USERINFO.sub("", answer["provider_url"] or "") or None
        if not self._is_model_saved:
            self._like.save(self._recording.folder)
            self._is_model_saved = True

        self._recording.write(
            file,
            {
                "skillshelf_recording": FORMAT_VERSION,
                "trial": self._recording.trial,
                "repeat": self._recording.repeat,
                "asked": record,
                "answer": answer,
            },
        )


class Replay(Model[Any]):
    """A model that gives the answers recorded for the same calls of the same trial."""

    def __init__(self, recording: TrialRecording | str, like: RecordedModel | None = None) -> None:
        """`like` is the model of the recording to stand in for; the default is the run's own. Raises EvalError."""
        self._recording = TrialRecording(recording) if isinstance(recording, str) else recording
        self._like = like or find_recorded_model(self._recording.folder)
        settings = cast(ModelSettings, self._like.settings)
        profile = cast(ModelProfile, self._like.profile)
        super().__init__(settings=settings or None, profile=profile)

    @property
    def model_name(self) -> str:
        return self._like.name

    @property
    def system(self) -> str:
        return self._like.system

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        call = ModelCall(messages, model_settings, model_request_parameters)
        record = record_call(self._like.id, call)
        name = str(self._recording.next_file(self._like.id, cache_key(record)))
        if not os.path.exists(os.path.join(self._recording.folder, name)):
            raise NotRecordedError(self._explain_missing(record), HOW_TO_RECORD)
        stored = read_recording(self._recording.folder, name)["answer"]
        return restore_response(stored, call)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)

    def _explain_missing(self, record: CallRecord) -> str:
        """Describe how a call differs from the nearest one that was recorded."""
        folder = self._recording.folder
        files = self._recording.find_calls(self._like.id)
        if not files:
            scope = " for this trial" if self._recording.trial else ""
            return f"{folder} has no answers of {self._like.id}{scope}"

        key = cache_key(record)
        times = sum(file.call == key for file in files)
        if times:
            return f"this call was recorded {times} times in {folder}, and is made once more"

        recorded = [read_recording(folder, str(file))["asked"] for file in files[:MAX_CALLS_COMPARED]]
        nearest = max(recorded, key=lambda other: _nearness(record, other))
        differences = "; ".join(describe_differences(record, nearest))
        return f"this call is not in {folder}; the nearest one there differs in {differences}"


def _nearness(now: CallRecord, then: CallRecord) -> tuple[int, int, int]:
    equal_parts = sum(now[part] == then[part] for part in ("system", "tools", "settings"))
    length_difference = abs(len(now["messages"]) - len(then["messages"]))
    return count_equal_messages(now, then), equal_parts, -length_difference
