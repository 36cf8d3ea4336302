"""What a live model said, kept in files and played back: a run that needs no key, costs nothing and tells when it is
out of date.

A recording is a folder with one file for each call, named after everything that went in. Commit it: it holds the
prompts, the skills' texts and the answers, and no key.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_core import to_jsonable_python

from skillshelf.errors import EvalError
from skillshelf.evals.asked import HERE, Asked, asked, common, differences, key, place, without_place

_CALL, _MODEL = "call-", "model-"
_AGAIN = "`skillshelf eval --record` asks the model again"
# Reading them all to name the nearest is for people: beyond this many, some will do.
_LOOKED_AT = 2000
_USERINFO = re.compile(r"(?<=://)[^/@]*@")


class Recording(WrapperModel):
    """Passes everything on as it is, and keeps what the model said."""

    def __init__(self, wrapped: Model[Any], folder: str, repeat: int = 1) -> None:
        """`repeat`: the so-manieth trial of a case this model is for; each has its own answers."""
        super().__init__(wrapped)
        self._folder, self._repeat = folder, repeat
        self._seen: Counter[str] = Counter()
        self._described = False

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        call, file = self._begin(messages, model_settings, model_request_parameters)
        response = await super().request(messages, model_settings, model_request_parameters)
        await asyncio.to_thread(self._keep, call, file, response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        call, file = self._begin(messages, model_settings, model_request_parameters)
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as stream:
            yield stream
        response = stream.get()
        if response.state == "complete":  # half an answer is none to play back
            await asyncio.to_thread(self._keep, call, file, response)

    def _begin(
        self, messages: list[ModelMessage], settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> tuple[Asked, str]:
        call = asked(self.model_id, messages, settings, parameters)
        self._seen[key(call)] += 1
        return call, _file(key(call), self._repeat, self._seen[key(call)])

    def _keep(self, call: Asked, file: str, response: ModelResponse) -> None:
        [answer] = ModelMessagesTypeAdapter.dump_python([response], mode="json")
        answer |= {"run_id": None, "conversation_id": None, "workspace_ref": None}
        answer["provider_url"] = _USERINFO.sub("", answer["provider_url"] or "") or None  # which may hold a password
        os.makedirs(self._folder, exist_ok=True)
        if not self._described:
            _write(self._folder, f"{_MODEL}{key({'model': self.model_id})[:8]}.json", _description(self.wrapped))
            self._described = True
        _write(self._folder, file, {"skillshelf_recording": 1, "asked": call, "answer": answer})


class Replay(Model[Any]):
    """Says what was recorded for the same call, and nothing where there is none."""

    def __init__(self, folder: str, repeat: int = 1, name: str = "") -> None:
        """`name`: the one model of the folder whose answers are meant, as `provider:model`. Raises EvalError."""
        known = [_read(folder, file) for file in _names(folder, _MODEL)]
        self._models = [one for one in known if not name or name in (one["id"], one["name"])]
        if not self._models:
            what = f"has nothing that {name} said" if known else "has no recordings"
            raise EvalError(f"{folder} {what}", _AGAIN)
        first = self._models[0]
        super().__init__(settings=first["settings"], profile=first["profile"])
        self._folder, self._repeat = folder, repeat
        self._seen: Counter[str] = Counter()

    @property
    def model_name(self) -> str:
        return str(self._models[0]["name"])

    @property
    def system(self) -> str:
        return str(self._models[0]["system"])

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        calls = [asked(one["id"], messages, model_settings, model_request_parameters) for one in self._models]
        self._seen.update(map(key, calls))
        for call in calls:
            name = _file(key(call), self._repeat, self._seen[key(call)])
            if os.path.exists(os.path.join(self._folder, name)):
                answer = json.dumps([_read(self._folder, name)["answer"]])
                here = place(messages, model_request_parameters)
                [response] = ModelMessagesTypeAdapter.validate_json(answer.replace(HERE, here))
                assert isinstance(response, ModelResponse)
                return response
        raise EvalError(self._why(calls), _AGAIN)

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

    def _why(self, calls: list[Asked]) -> str:
        """What differs from the nearest call that was recorded."""
        files = _names(self._folder, _CALL)
        for call in calls:
            if same := [name for name in files if name.startswith(f"{_CALL}{key(call)}")]:
                return f"this call was recorded {len(same)} times in {self._folder}, and is asked for once more"
        recorded = [_read(self._folder, name)["asked"] for name in files[:_LOOKED_AT]]
        pairs = [(call, other) for call in calls for other in recorded if other["model"] == call["model"]]
        if not pairs:
            return f"{self._folder} has no calls of {calls[0]['model']}"
        now, then = max(pairs, key=_nearness)
        return (
            f"this call is not in {self._folder}; from the nearest one there differ {'; '.join(differences(now, then))}"
        )


def _nearness(pair: tuple[Asked, Asked]) -> tuple[int, int, int]:
    now, then = pair
    alike = sum(now[part] == then[part] for part in ("system", "tools", "settings"))
    return common(now, then), alike, -abs(len(now["messages"]) - len(then["messages"]))


def _description(model: Model[Any]) -> dict[str, Any]:
    """What a stand-in must be like, so that the agent treats it as the model."""
    profile = {name: value for name, value in model.profile.items() if isinstance(value, str | int | float | None)}
    settings = to_jsonable_python(model.settings, fallback=str)
    return {
        "id": model.model_id,
        "name": model.model_name,
        "system": model.system,
        "profile": profile,
        "settings": settings,
    }


def _file(digest: str, repeat: int, occurrence: int) -> str:
    return f"{_CALL}{digest}-{repeat}-{occurrence}.json"


def _names(folder: str, prefix: str) -> list[str]:
    names: Iterator[str] = iter(os.listdir(folder) if os.path.isdir(folder) else ())
    return sorted(name for name in names if name.startswith(prefix) and name.endswith(".json"))


def _read(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
        return dict(value)
    except (OSError, ValueError, TypeError) as error:
        raise EvalError(f"it is no recording: {error}", f"Remove it; {_AGAIN}", path) from None


def _write(folder: str, name: str, value: dict[str, Any]) -> None:
    """All of it or nothing: a run may be killed at any time, and others may be writing the same."""
    text = without_place(json.dumps(value, ensure_ascii=False, indent=1))
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".", encoding="utf-8", delete=False) as file:
        file.write(text + "\n")
    os.chmod(file.name, 0o644)  # a temporary file is for its owner alone, and this one is for a repository
    os.replace(file.name, os.path.join(folder, name))
