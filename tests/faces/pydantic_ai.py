"""pydantic-ai, with its FunctionModel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from skillshelf.adapters.pydantic_ai import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance import Call, Reply, Result
from skillshelf_agent.testing import Request, ScriptedModel
from skillshelf_agent.testing import ScriptedCall as Step


def last_message(request: Request) -> str:
    """Return the text of a request's last message."""
    return "\n".join(str(getattr(part, "content", "")) for part in request.messages[-1].parts)


@dataclass
class _Conversation:
    agent: Agent[None, str | DeferredToolRequests]
    history: list[ModelMessage] = field(default_factory=list)

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        model = ScriptedModel(*(Step(call.tool, call.arguments) for call in calls), answer)
        run: Any = await self.agent.run(text, message_history=self.history, model=model)
        new: list[ModelMessage] = run.new_messages()
        while isinstance(run.output, DeferredToolRequests):
            run = await self.agent.run(
                message_history=run.all_messages(),
                deferred_tool_results=_answer_questions(run.output, calls),
                model=model,
            )
            new += run.new_messages()
        self.history = run.all_messages()
        parts = [part for message in new if isinstance(message, ModelRequest) for part in message.parts]
        returned = [part for part in parts if isinstance(part, ToolReturnPart)]
        return Reply(
            system_prompts=tuple(request.system for request in model.requests),
            tools=model.requests[0].tools,
            results=tuple(
                Result(part.model_response_str(wrap_if_error=False), part.outcome != "success") for part in returned
            ),
            answer=run.output,
            last_messages=tuple(last_message(request) for request in model.requests),
        )

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def _answer_questions(requests: DeferredToolRequests, calls: Sequence[Call]) -> DeferredToolResults:
    approved = [(call.tool, call.arguments) for call in calls if call.approve]
    return DeferredToolResults(
        approvals={
            request.tool_call_id: (request.tool_name, request.args_as_dict()) in approved
            for request in requests.approvals
        }
    )


class PydanticAI:
    name = "pydantic-ai"

    async def open(self, shelf: Shelf) -> _Conversation:
        return _Conversation(Agent(capabilities=[Skills(shelf)], output_type=[str, DeferredToolRequests]))
