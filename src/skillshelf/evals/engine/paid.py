"""A model whose responses are kept: a trial that is run again after its process was killed pays for none of them twice.

A call that was on its way when the process died is made again, since nobody knows what became of it.
"""

from __future__ import annotations

import asyncio
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

from skillshelf.evals.asked import HERE, place, without_place
from skillshelf.evals.engine.store import Store

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

        return await self._once(ask, place(messages, model_request_parameters))

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

        response = await self._once(ask, place(messages, model_request_parameters))
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)

    async def _once(self, ask: Callable[[], Awaitable[ModelResponse]], here: str) -> ModelResponse:
        """`here`: the workspace, which has another name each time a trial is run; a model may have used it."""
        self._calls += 1
        name = f"{self._name}/{self._calls}"
        text = await asyncio.to_thread(self._store.kept, name)
        if text is None:
            response = await patiently(ask, self._pauses)
            text = without_place(ModelMessagesTypeAdapter.dump_json([response]).decode())
            await asyncio.to_thread(self._store.keep, name, text)
            return response
        [kept] = ModelMessagesTypeAdapter.validate_json(text.replace(HERE, here))
        assert isinstance(kept, ModelResponse)
        return kept


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
