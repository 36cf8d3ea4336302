"""Microsoft Agent Framework, with a scripted chat client under the framework's own loop of function calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
)

from skillshelf.adapters.agent_framework import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance import Call, Promise, Reply, Result


class ScriptedClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Makes the calls of its script one by one, then gives the answer."""

    def __init__(self, *script: Call | str) -> None:
        super().__init__()
        self.script = list(script)
        self.requests: list[tuple[list[Message], dict[str, Any]]] = []
        """The messages and the options of each model call."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **keywords: Any
    ) -> Any:
        self.requests.append((list(messages), dict(options)))
        step = self.script.pop(0)
        if isinstance(step, str):
            content = Content.from_text(step)
        else:
            call_id = f"call-{len(self.requests)}"
            content = Content.from_function_call(call_id, step.tool, arguments=step.arguments)
        if stream:
            return self._build_response_stream(_stream(content))
        return _respond(content)


async def _respond(content: Content) -> ChatResponse[Any]:
    return ChatResponse(messages=Message("assistant", [content]))


async def _stream(content: Content) -> AsyncIterator[ChatResponseUpdate]:
    yield ChatResponseUpdate(contents=[content], role="assistant")


@dataclass
class _Conversation:
    agent: Agent[Any]
    client: ScriptedClient
    session: AgentSession

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        self.client.script = [*calls, answer]
        self.client.requests = []
        response = await self.agent.run(text, session=self.session)
        contents = _contents_of(response)
        while response.user_input_requests:
            answers = [
                question.to_function_approval_response(_is_approved(question, calls))
                for question in response.user_input_requests
            ]
            response = await self.agent.run(Message("user", answers), session=self.session)
            contents += _contents_of(response)

        requests = self.client.requests
        return Reply(
            system_prompts=tuple(str(options.get("instructions", "")) for _, options in requests),
            tools=tuple(tool.name for tool in requests[0][1]["tools"]),
            results=tuple(_read_result(content) for content in contents if content.type == "function_result"),
            answer=response.messages[-1].text,
            last_messages=tuple(_text_of(messages[-1]) for messages, _ in requests),
        )

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def _contents_of(response: AgentResponse[Any]) -> list[Content]:
    return [content for message in response.messages for content in message.contents]


def _text_of(message: Message) -> str:
    return "\n".join(str(content.text or content.result) for content in message.contents)


def _is_approved(question: Content, calls: Sequence[Call]) -> bool:
    call: Any = question.function_call
    return Call(call.name, call.parse_arguments(), approve=True) in calls


def _read_result(content: Content) -> Result:
    # The adapter's refusals are plain answers without a mark: after three marked ones the framework stops the model.
    failed = True if content.exception else None
    return Result(str(content.result), failed)


class AgentFramework:
    name = "agent-framework"
    exceptions: Mapping[Promise, str] = {
        "errors-marked": "the framework takes a model's tools away after three results that are marked as errors"
    }

    async def open(self, shelf: Shelf) -> _Conversation:
        client = ScriptedClient()
        return _Conversation(Agent(client, context_providers=[Skills(shelf)]), client, AgentSession())
