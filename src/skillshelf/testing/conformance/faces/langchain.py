"""LangChain, with its GenericFakeChatModel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillshelf.adapters.langchain import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._face import Call, Result, Said

from langchain.agents import create_agent  # isort: skip  # after the adapter, which says what to install
from langchain_core.language_models import GenericFakeChatModel  # isort: skip
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage  # isort: skip
from langchain_core.outputs import ChatResult  # isort: skip
from langgraph.checkpoint.memory import InMemorySaver  # isort: skip
from langgraph.types import Command  # isort: skip

_THREAD = {"configurable": {"thread_id": "one"}}


class Scripted(GenericFakeChatModel):
    """The fake model, with tools, and with a memory of what it was sent."""

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
        self.said = 0

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        steps = [ToolCall(name=one.tool, args=one.arguments, id=f"{self.said}-{at}") for at, one in enumerate(calls)]
        self.model.messages = iter([*(AIMessage("", tool_calls=[step]) for step in steps), AIMessage(answer)])
        self.model.requests, self.said = [], self.said + 1
        state = await self.agent.ainvoke({"messages": [HumanMessage(text)]}, _THREAD)
        while asked_about := state.get("__interrupt__"):
            about = asked_about[0].value
            yes = Call(about["name"], about["args"], approve=True) in calls
            state = await self.agent.ainvoke(Command(resume={"type": "approve" if yes else "reject"}), _THREAD)
        asked = {step["id"] for step in steps}
        returned = [one for one in state["messages"] if isinstance(one, ToolMessage) and one.tool_call_id in asked]
        return Said(
            tuple(request[0].text for request in self.model.requests if isinstance(request[0], SystemMessage)),
            self.model.offered,
            tuple(Result(one.text, one.status == "error") for one in returned),
            state["messages"][-1].text,
            tuple(request[-1].text for request in self.model.requests),
        )

    async def close(self) -> None:
        """Nothing is open."""


class LangChain:
    name = "langchain"

    async def open(self, shelf: Shelf) -> _Conversation:
        return _Conversation(shelf)


def make() -> LangChain:
    return LangChain()
