"""Microsoft Agent Framework, with a chat client that is scripted, under the framework's own loop of function calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillshelf.adapters.agent_framework import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._face import Call, Promise, Result, Said

from agent_framework import (  # isort: skip  # after the adapter, which says what to install
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
        said = Content.from_text(step) if isinstance(step, str) else self._call(step)
        return self._build_response_stream(_streamed(said)) if stream else _whole(said)

    def _call(self, step: Call) -> Content:
        return Content.from_function_call(f"call-{len(self.requests)}", step.tool, arguments=step.arguments)


async def _whole(said: Content) -> ChatResponse[Any]:
    return ChatResponse(messages=Message("assistant", [said]))


async def _streamed(said: Content) -> AsyncIterator[ChatResponseUpdate]:
    yield ChatResponseUpdate(contents=[said], role="assistant")


@dataclass
class _Conversation:
    agent: Agent[Any]
    client: ScriptedClient
    session: AgentSession

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        self.client.script, self.client.requests = [*calls, answer], []
        response = await self.agent.run(text, session=self.session)
        contents = _contents(response)
        while asked := response.user_input_requests:
            words = [one.to_function_approval_response(_approved(one, calls)) for one in asked]
            response = await self.agent.run(Message("user", words), session=self.session)
            contents += _contents(response)
        return Said(
            tuple(str(options.get("instructions", "")) for _, options in self.client.requests),
            tuple(tool.name for tool in self.client.requests[0][1]["tools"]),
            tuple(_result(content) for content in contents if content.type == "function_result"),
            response.messages[-1].text,
            tuple(_text(messages[-1]) for messages, _ in self.client.requests),
        )

    async def close(self) -> None:
        """Nothing is open."""


def _contents(response: AgentResponse[Any]) -> list[Content]:
    return [content for message in response.messages for content in message.contents]


def _text(message: Message) -> str:
    return "\n".join(str(one.text or one.result) for one in message.contents)


def _approved(asked: Content, calls: Sequence[Call]) -> bool:
    call: Any = asked.function_call
    return Call(call.name, call.parse_arguments(), approve=True) in calls


def _result(content: Content) -> Result:
    # The adapter's refusals are plain answers, which the framework does not mark: after three it would stop the model.
    return Result(str(content.result), True if content.exception else None)


class AgentFramework:
    name = "agent-framework"
    exceptions: Mapping[Promise, str] = {
        "errors-marked": "the framework takes a model's tools away after three results that are marked as errors"
    }

    async def open(self, shelf: Shelf) -> _Conversation:
        client = ScriptedClient()
        return _Conversation(Agent(client, context_providers=[Skills(shelf)]), client, AgentSession())


def make() -> AgentFramework:
    return AgentFramework()
