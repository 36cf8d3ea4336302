"""A cache of model responses: a trial that is resumed after a crash pays for no response twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from skillshelf_agent import SHELL, usage_of
from skillshelf_evals._model_calls import CallRecord, ModelCall, cache_key, record_call, restore_response
from skillshelf_evals._placeholders import hide_folders_in
from skillshelf_evals.check import parse_verdicts
from skillshelf_evals.engine._guard import Ask, RunGuard
from skillshelf_evals.engine._store import RunStore


class CachedModel(WrapperModel):
    """A model whose responses survive a crash, so that a resumed trial does not pay for them again.

    A response is stored before the trial sees it. A call that was in flight when the process died is made again,
    because it is unknown whether the provider answered it.
    """

    def __init__(self, wrapped: Model[Any], store: RunStore, guard: RunGuard, name: str) -> None:
        """`name` is that of the trial or the check that makes these calls, one after the other."""
        super().__init__(wrapped)
        self._store = store
        self._guard = guard
        self._name = name
        self._calls = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async def ask() -> ModelResponse:
            return await self.wrapped.request(messages, model_settings, model_request_parameters)

        return await self._find_or_ask(ask, ModelCall(messages, model_settings, model_request_parameters))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        async def ask() -> ModelResponse:
            parameters = model_request_parameters
            async with self.wrapped.request_stream(messages, model_settings, parameters, run_context) as stream:
                async for _ in stream:
                    pass
            return stream.get()

        response = await self._find_or_ask(ask, ModelCall(messages, model_settings, model_request_parameters))
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)

    async def _find_or_ask(self, ask: Ask, call: ModelCall) -> ModelResponse:
        name = self.name_call(call)
        stored = await asyncio.to_thread(self._store.find, "responses", name)
        if stored is None:
            response = await self._guard.call(self.model_id, ask)
            if self.is_worth_storing(response):
                plain = ModelMessagesTypeAdapter.dump_python([response], mode="json")
                text = json.dumps(hide_folders_in(plain))
                await asyncio.to_thread(self._store.add, "responses", name, text)
            return response

        # The resumed trial has a workspace of another name, and the model may have used the old one.
        [plain_response] = json.loads(stored)
        response = restore_response(plain_response, call)
        self._guard.add_usage(usage_of(response))
        return response

    def name_call(self, call: ModelCall) -> str:
        """Return a name by number and question: a response to another question is of no use."""
        self._calls += 1
        record = _clear_command_output(record_call(self.model_id, call))
        return f"{self._name}/{self._calls}/{cache_key(record)}"

    def is_worth_storing(self, response: ModelResponse) -> bool:
        return True


class CachedJudge(CachedModel):
    """A judge whose verdicts survive a crash. A malformed answer is not stored, so the question is asked again."""

    def __init__(self, wrapped: Model[Any], store: RunStore, guard: RunGuard, name: str, sentences: int) -> None:
        """`sentences` is the number of verdicts that an answer must have."""
        super().__init__(wrapped, store, guard, name)
        self._sentences = sentences

    def name_call(self, call: ModelCall) -> str:
        """Return a name by the question alone: other sentences about the same trial are another question."""
        return f"{self._name}/{cache_key(record_call(self.model_id, call))}"

    def is_worth_storing(self, response: ModelResponse) -> bool:
        return parse_verdicts(response.text or "", self._sentences) is not None


def _clear_command_output(record: CallRecord) -> CallRecord:
    """Remove the output of commands: the times and process ids in it are not a reason to pay again."""
    for message in record["messages"]:
        for part in message["parts"]:
            if part["part_kind"] == "tool-return" and part["tool_name"] == SHELL:
                part["content"] = ""
    return record
