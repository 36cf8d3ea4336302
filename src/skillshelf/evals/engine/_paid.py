"""A model whose responses are kept: a trial that is run again after its process was killed pays for none of them twice.

A call that was on its way when the process died is made again, since nobody knows what became of it.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from skillshelf.agent import SHELL
from skillshelf.evals._asked import Asked, Sent, asked, key, put_back
from skillshelf.evals._place import everywhere, without_place
from skillshelf.evals.check import verdict_in
from skillshelf.evals.engine._store import Store

PAUSES = (1.0, 3.0, 9.0, 27.0)
"""Seconds before each further attempt at a call that failed for a reason that passes."""
_LONGEST = 90.0
_PASSING = (
    ModelConnectionError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
    ConnectionError,
    TimeoutError,
)


class Kept(WrapperModel):
    """Asks, and keeps what came back before anybody sees it; what is kept already is not asked again."""

    def __init__(self, wrapped: Model[Any], store: Store, name: str, pauses: Sequence[float] = PAUSES) -> None:
        """`name`: of the trial or the check whose calls these are, in the order in which they are made."""
        super().__init__(wrapped)
        self._store, self._name, self._pauses = store, name, pauses
        self._calls = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async def ask() -> ModelResponse:
            return await self.wrapped.request(messages, model_settings, model_request_parameters)

        return await self._once(ask, Sent(messages, model_settings, model_request_parameters))

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

        response = await self._once(ask, Sent(messages, model_settings, model_request_parameters))
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)

    async def _once(self, ask: Callable[[], Awaitable[ModelResponse]], sent: Sent) -> ModelResponse:
        name = self.name_of(sent)
        text = await asyncio.to_thread(self._store.kept, name)
        if text is None:
            response = await patiently(ask, self._pauses)
            if self.is_answer(response):
                plain = ModelMessagesTypeAdapter.dump_python([response], mode="json")
                await asyncio.to_thread(self._store.keep, name, json.dumps(everywhere(without_place, plain)))
            return response
        # A trial that is run again has a workspace of another name, and the model may have used it.
        [kept] = ModelMessagesTypeAdapter.validate_json(json.dumps(put_back(json.loads(text), sent)))
        assert isinstance(kept, ModelResponse)
        return kept

    def name_of(self, sent: Sent) -> str:
        """By number and question: the answer to another one is none, whatever has changed since it was given."""
        self._calls += 1
        return f"{self._name}/{self._calls}/{key(_without_output(asked(self.model_id, sent)))}"

    def is_answer(self, response: ModelResponse) -> bool:
        return True


class KeptVerdict(Kept):
    """A judge's. By its question: another rubric in the same place is another question. A maybe is asked again."""

    def name_of(self, sent: Sent) -> str:
        return f"{self._name}/{key(asked(self.model_id, sent))}"

    def is_answer(self, response: ModelResponse) -> bool:
        return verdict_in(response.text or "") is not None


def _without_output(call: Asked) -> Asked:
    """What commands print has the time in it, or a number of a process: that is no reason to pay again."""
    for message in call["messages"]:
        for part in message["parts"]:
            if part["part_kind"] == "tool-return" and part["tool_name"] == SHELL:
                part["content"] = ""
    return call


async def patiently(ask: Callable[[], Awaitable[ModelResponse]], pauses: Sequence[float]) -> ModelResponse:
    """Ask again after a failure that passes, such as a rate limit, as often as there are pauses."""
    for pause in pauses:
        try:
            return await ask()
        except _PASSING as error:
            wanted = getattr(error, "retry_after", None) or 0.0
            # Unevenly, so that trials that were refused together do not come back together.
            await asyncio.sleep(min(_LONGEST, max(pause * random.uniform(0.75, 1.25), wanted)))
    return await ask()
