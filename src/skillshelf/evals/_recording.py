"""What a live model said, kept in files and played back: a run that needs no key, costs nothing and tells when it is
out of date.

A recording is a folder with one file for each call, named after the trial and everything that went in. Commit it: it
holds the prompts, the skills' texts and the answers, and no key.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai_harness.compaction import DEFAULT_CONTEXT_WINDOW, resolve_context_window
from pydantic_core import to_jsonable_python

from skillshelf.errors import EvalError
from skillshelf.evals._asked import Asked, Sent, asked, common, differences, key, public, put_back
from skillshelf.evals._observe import Watched
from skillshelf.evals._recorded import Recorded, recorded
from skillshelf.evals._tape import AGAIN, Tape, read

# Reading them all to name the nearest is for people: beyond this many, some will do.
_LOOKED_AT = 2000
_USERINFO = re.compile(r"(?<=://)[^/@]*@")


class Recording(Watched):
    """Passes everything on as it is, and keeps what the model said."""

    def __init__(self, wrapped: Model[Any], tape: Tape | str, like: Recorded | None = None) -> None:
        """`tape`: a folder, or what belongs to a trial in one. `like`: what is to be known of the model."""
        super().__init__(wrapped)
        self._tape = Tape(tape) if isinstance(tape, str) else tape
        self._like, self._described = like or describe(wrapped), False

    async def said(self, sent: Sent, response: ModelResponse) -> None:
        if response.state == "complete":  # half an answer is none to play back
            call = asked(self.model_id, sent)
            name = self._tape.next(self.model_id, key(call))
            await asyncio.to_thread(self._keep, name, call, response)

    def _keep(self, name: str, call: Asked, response: ModelResponse) -> None:
        [answer] = ModelMessagesTypeAdapter.dump_python([response], mode="json")
        answer |= {"run_id": None, "conversation_id": None, "workspace_ref": None}
        answer["provider_url"] = _USERINFO.sub("", answer["provider_url"] or "") or None  # which may hold a password
        if not self._described:
            self._like.keep(self._tape.folder)
            self._described = True
        of = {"trial": self._tape.trial, "repeat": self._tape.repeat}
        self._tape.keep(name, {"skillshelf_recording": 2, **of, "asked": call, "answer": answer})


class Replay(Model[Any]):
    """Says what was recorded for the same call of the same trial, and nothing where there is none."""

    def __init__(self, tape: Tape | str, like: Recorded | None = None) -> None:
        """`like`: the one model of the folder whose answers are meant; by default the run's own. Raises EvalError."""
        self._tape = Tape(tape) if isinstance(tape, str) else tape
        self._like = like or recorded(self._tape.folder)
        settings, profile = cast(ModelSettings, self._like.settings), cast(ModelProfile, self._like.profile)
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
        sent = Sent(messages, model_settings, model_request_parameters)
        call = asked(self._like.id, sent)
        name = self._tape.next(self._like.id, key(call))
        if not os.path.exists(os.path.join(self._tape.folder, name)):
            raise EvalError(self._why(call), AGAIN)
        answer = put_back(read(self._tape.folder, name)["answer"], sent)
        [response] = ModelMessagesTypeAdapter.validate_json(json.dumps([answer]))
        assert isinstance(response, ModelResponse)
        return response

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

    def _why(self, call: Asked) -> str:
        """What differs from the nearest call that was recorded."""
        folder, files = self._tape.folder, self._tape.calls(self._like.id)
        if not files:
            trial = f" in {self._tape.trial}" if self._tape.trial else ""
            return f"{folder} has nothing that {self._like.id} said{trial}"
        if same := [name for name in files if key(call) in name]:
            return f"this call was recorded {len(same)} times in {folder}, and is asked for once more"
        others = [read(folder, name)["asked"] for name in files[:_LOOKED_AT]]
        then = max(others, key=lambda other: _nearness(call, other))
        return f"this call is not in {folder}; from the nearest one there differ {'; '.join(differences(call, then))}"


def describe(
    model: Model[Any], tools: bool = True, window: int = 0, wanted: str = "", names: list[str] | None = None
) -> Recorded:
    """A model as its stand-in must be."""
    profile = {name: value for name, value in model.profile.items() if isinstance(value, str | int | float | None)}
    settings = to_jsonable_python(public(model.settings), fallback=str)
    window = window or resolve_context_window(model) or DEFAULT_CONTEXT_WINDOW
    return Recorded(
        model.model_id, model.model_name, model.system, profile, settings, tools, window, wanted, names or []
    )


def _nearness(now: Asked, then: Asked) -> tuple[int, int, int]:
    alike = sum(now[part] == then[part] for part in ("system", "tools", "settings"))
    return common(now, then), alike, -abs(len(now["messages"]) - len(then["messages"]))
