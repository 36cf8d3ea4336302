"""LangChain: `create_agent(model, middleware=[Skills(shelf)])`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, NotRequired
from uuid import uuid4

from skillshelf.adapters._common import Disclosure, Kept, call_tool, feeds
from skillshelf.discovery import all_tools
from skillshelf.errors import MissingExtraError
from skillshelf.listing import Feed
from skillshelf.results import Image, Part, base64_of, parts_of
from skillshelf.tokens import DEFAULT_BUDGET
from skillshelf.tools import typed_errors
from skillshelf.turn import Turn, current_turn, current_turn_of, use_turn

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        HumanInTheLoopMiddleware,
        InterruptOnConfig,
        ModelRequest,
    )
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import BaseMessage, SystemMessage
    from langchain_core.messages.utils import count_tokens_approximately
    from langchain_core.tools import BaseTool, ToolException
    from langgraph.constants import CONFIG_KEY_CHECKPOINTER
    from langgraph.errors import GraphBubbleUp
except ImportError:
    raise MissingExtraError("skillshelf.adapters.langchain", "langchain") from None

if TYPE_CHECKING:
    from langchain.agents.middleware import ToolCallRequest

    from skillshelf.shelf import Shelf

_FOR_THE_FRAMEWORK = (GraphBubbleUp, ToolException)


class _State(AgentState[Any]):
    # The name of the turn and not the turn, which no checkpoint could hold.
    skillshelf_turn: NotRequired[Annotated[str, PrivateStateAttr]]


class Skills(AgentMiddleware[_State, Any, Any]):
    """A shelf for an agent: the listing in each model call, the find-skills tools, and those of its code skills.

    A run is a turn of the shelf; where the caller has opened one, the run joins it. A tool whose permission is `ask`
    interrupts as HumanInTheLoopMiddleware does with `interrupt_mode="per_call"`; without a checkpointer it is refused.
    """

    state_schema = _State

    def __init__(self, shelf: Shelf, *, disclosure: Disclosure = "auto", budget: int = DEFAULT_BUDGET) -> None:
        super().__init__()
        self.shelf, tools = shelf, all_tools(shelf)
        self.tools = [_Tool(name=t.name, description=t.description, args_schema=t.parameters, tool=t) for t in tools]
        review = InterruptOnConfig(allowed_decisions=["approve", "reject"], when=_can_ask)
        self._review = HumanInTheLoopMiddleware[Any, Any, Any](
            {tool.name: review for tool in tools if tool.permission == "ask"}, interrupt_mode="per_call"
        )
        self._turns = Kept[str, Turn](lambda: current_turn_of(shelf) or shelf.turn())
        self._feeds = feeds(shelf, disclosure, budget, count_tokens_approximately)

    def before_agent(self, state: _State, runtime: Any) -> dict[str, Any]:
        name, feed = uuid4().hex, self._feed(runtime)
        feed.turn_begins()
        self._turns.of(name)
        feed.listing()  # at hand from now on
        return {"skillshelf_turn": name}

    async def abefore_agent(self, state: _State, runtime: Any) -> dict[str, Any]:
        # A sweep stats every skill, which is milliseconds in which nothing else would answer.
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def after_agent(self, state: _State, runtime: Any) -> None:
        self._turns.pop(state.get("skillshelf_turn", ""), None)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        return handler(self._told(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        return await handler(self._told(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        with use_turn(self._turn(request)):
            return self._review.wrap_tool_call(_reviewed(request), handler)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Awaitable[Any]]) -> Any:
        with use_turn(self._turn(request)):
            return await self._review.awrap_tool_call(_reviewed(request), handler)

    def _turn(self, request: ToolCallRequest) -> Turn:
        # A run that goes on in another process has no turn there yet, and perhaps no name for it.
        name = request.state.get("skillshelf_turn")
        return self._turns.of(name) if name else self._turns.make()

    def _feed(self, runtime: Any) -> Feed:
        """That of the conversation, if it has an id to be known by."""
        thread = runtime.execution_info.thread_id if runtime.execution_info else None
        return self._feeds.of(thread) if thread else self._feeds.make()

    def _told(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request with the listing, and with what changed since the conversation was told."""
        feed, messages = self._feed(request.runtime), list(request.messages)
        listing = feed.section(messages)
        for note in feed.notes:
            messages[note.message] = _longer(messages[note.message], note.text)
        system = request.system_message
        if listing:
            system = _longer(system, listing) if system else SystemMessage(listing)
        return request.override(system_message=system, messages=messages)


class _Tool(BaseTool):
    # Not a StructuredTool, which keeps the names `config` and `run_manager` from the arguments of a tool.
    tool: Any  # a Tool: its type is not one that pydantic could check
    approved: bool = False
    handle_tool_error: bool = True

    def _run(self, **arguments: Any) -> Any:
        with typed_errors(self.tool, _FOR_THE_FRAMEWORK, ToolException):
            result = self.tool.call(arguments, approved=self.approved)
            return _content(asyncio.run(result) if self.tool.is_async else result)

    async def _arun(self, **arguments: Any) -> Any:
        return await call_tool(
            self.tool,
            arguments,
            current_turn.get(),
            approved=self.approved,
            reraise=_FOR_THE_FRAMEWORK,
            wrap_error=ToolException,
            encode=_content,
        )


def _content(result: Any) -> str | list[dict[str, Any]]:
    """Return a result as the content of a ToolMessage: text, or blocks if there are images. Blocks have no sound."""
    parts = parts_of(result)
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return [_block(part) for part in parts]


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image", "base64": base64_of(part), "mime_type": part.media_type}
    return {"type": "text", "text": str(part)}


def _can_ask(request: ToolCallRequest) -> bool:
    """Whether there are checkpoints to interrupt the run at."""
    return request.runtime.config.get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER) is not None


def _reviewed(request: ToolCallRequest) -> ToolCallRequest:
    """For the review, behind which a tool that asks has been approved wherever there was a way to ask."""
    tool = request.tool
    if not isinstance(tool, _Tool):
        return request
    return request.override(tool=tool.model_copy(update={"approved": _can_ask(request)}))


def _longer(message: BaseMessage, text: str) -> Any:
    content = message.content
    longer = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": longer})
