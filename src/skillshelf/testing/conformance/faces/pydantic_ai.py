"""pydantic-ai, with its FunctionModel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from skillshelf.adapters.pydantic_ai import Skills
from skillshelf.agent.scripted import Call as Step
from skillshelf.agent.scripted import ScriptedModel
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance.face import Call, Result, Said

from pydantic_ai import Agent  # isort: skip  # after the adapter, which says what to install
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart  # isort: skip


@dataclass
class _Conversation:
    agent: Agent[None, str]
    history: list[ModelMessage] = field(default_factory=list)

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        model = ScriptedModel(*(Step(call.tool, call.arguments) for call in calls), answer)
        run = await self.agent.run(text, message_history=self.history, model=model)
        self.history = run.all_messages()
        parts = [part for one in run.new_messages() if isinstance(one, ModelRequest) for part in one.parts]
        returned = [part for part in parts if isinstance(part, ToolReturnPart)]
        return Said(
            tuple(request.system for request in model.requests),
            model.requests[0].tools,
            tuple(Result(part.model_response_str(wrap_if_error=False), part.outcome != "success") for part in returned),
            run.output,
        )

    async def close(self) -> None:
        """Nothing is open."""


class PydanticAI:
    name = "pydantic-ai"

    async def open(self, shelf: Shelf) -> _Conversation:
        return _Conversation(Agent(capabilities=[Skills(shelf)]))


def make() -> PydanticAI:
    return PydanticAI()
