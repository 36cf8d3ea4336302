"""A model that is watched: what it was sent is kept for the checks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import InstructionPart, ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from skillshelf.evals._asked import Sent


class Watched(WrapperModel):
    """Passes everything on as it is. A subclass is told what goes in and what comes back."""

    def sends(self, sent: Sent) -> None:
        """A call begins."""

    async def said(self, sent: Sent, response: ModelResponse) -> None:
        """A call is over; perhaps it broke off."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        sent = Sent(list(messages), model_settings, model_request_parameters)
        self.sends(sent)
        response = await super().request(messages, model_settings, model_request_parameters)
        await self.said(sent, response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        sent = Sent(list(messages), model_settings, model_request_parameters)
        self.sends(sent)
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as stream:
            yield stream
        await self.said(sent, stream.get())


class Observed(Watched):
    """Keeps what the checks want to know."""

    def __init__(self, wrapped: Model[Any]) -> None:
        super().__init__(wrapped)
        self.systems: list[str] = []
        """The system prompt of each call."""

    def sends(self, sent: Sent) -> None:
        self.systems.append(InstructionPart.join(sent.parameters.instruction_parts or []) or "")
