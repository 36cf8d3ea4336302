"""LangChain, with its GenericFakeChatModel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from skillshelf.adapters.langchain import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance import Call, Reply, Result

_THREAD = {"configurable": {"thread_id": "one"}}


class Scripted(GenericFakeChatModel):
    """The fake model, with tools, and with a record of its requests."""

    requests: list[list[BaseMessage]] = []  # noqa: RUF012  # pydantic copies it for each model
    offered: tuple[str, ...] = ()

    def bind_tools(self, tools: Sequence[Any], **keywords: Any) -> Scripted:
        self.offered = tuple(tool.name for tool in tools)
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **keywords: Any) -> ChatResult:
        self.requests.append(list(messages))
        return super()._generate(messages, *args, **keywords)


class _Conversation:
    def __init__(self, shelf: Shelf) -> None:
        self.model = Scripted(messages=iter(()))
        self.agent: Any = create_agent(self.model, middleware=[Skills(shelf)], checkpointer=InMemorySaver())
        self.messages_sent = 0

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        self.messages_sent += 1
        steps = [
            ToolCall(name=call.tool, args=call.arguments, id=f"{self.messages_sent}-{index}")
            for index, call in enumerate(calls)
        ]
        self.model.messages = iter([*(AIMessage("", tool_calls=[step]) for step in steps), AIMessage(answer)])
        self.model.requests = []

        state = await self.agent.ainvoke({"messages": [HumanMessage(text)]}, _THREAD)
        while state.get("__interrupt__"):
            question = state["__interrupt__"][0].value
            is_approved = Call(question["name"], question["args"], approve=True) in calls
            resume: Any = Command(resume={"type": "approve" if is_approved else "reject"})
            state = await self.agent.ainvoke(resume, _THREAD)

        ids = {step["id"] for step in steps}
        returned = [
            message for message in state["messages"] if isinstance(message, ToolMessage) and message.tool_call_id in ids
        ]
        requests = self.model.requests
        return Reply(
            system_prompts=tuple(request[0].text for request in requests if isinstance(request[0], SystemMessage)),
            tools=self.model.offered,
            results=tuple(Result(message.text, message.status == "error") for message in returned),
            answer=state["messages"][-1].text,
            last_messages=tuple(request[-1].text for request in requests),
        )

    async def close(self) -> None:
        """Do nothing: nothing is open."""


class LangChain:
    name = "langchain"

    async def open(self, shelf: Shelf) -> _Conversation:
        return _Conversation(shelf)
