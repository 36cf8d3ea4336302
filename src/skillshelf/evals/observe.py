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


class Observed(WrapperModel):
    """Passes everything on as it is."""

    def __init__(self, wrapped: Model[Any]) -> None:
        super().__init__(wrapped)
        self.systems: list[str] = []
        """The system prompt of each call."""

    def _note(self, parameters: ModelRequestParameters) -> None:
        self.systems.append(InstructionPart.join(parameters.instruction_parts or []) or "")

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        self._note(model_request_parameters)
        return await super().request(messages, model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        self._note(model_request_parameters)
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as response:
            yield response
