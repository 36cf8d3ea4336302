"""LangChain: `create_agent(model, middleware=[Skills(shelf)])`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NotRequired
from uuid import uuid4

from skillshelf.adapters._common import BoundedDict, call_tool, encode_parts, make_feeds
from skillshelf.errors import MissingExtraError
from skillshelf.listing import Feed, ListingForm
from skillshelf.shelf import Turn, all_tools, current_turn, current_turn_of, use_turn
from skillshelf.skills import Tool, typed_errors
from skillshelf.skills.results import Image, Part, base64_of
from skillshelf.text.tokens import DEFAULT_BUDGET

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        HumanInTheLoopMiddleware,
        InterruptOnConfig,
        ModelRequest,
    )
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
    from langchain_core.messages.utils import count_tokens_approximately
    from langchain_core.tools import BaseTool, ToolException
    from langgraph.constants import CONFIG_KEY_CHECKPOINTER
    from langgraph.errors import GraphBubbleUp
except ImportError:
    raise MissingExtraError("skillshelf.adapters.langchain", "langchain") from None

if TYPE_CHECKING:
    from langchain.agents.middleware import ToolCallRequest

    from skillshelf.shelf import Shelf

_FRAMEWORK_ERRORS = (GraphBubbleUp, ToolException)


class _State(AgentState[Any]):
    # The turn's name, because a checkpoint could not store the turn itself.
    skillshelf_turn: NotRequired[Annotated[str, PrivateStateAttr]]


class Skills(AgentMiddleware[_State, Any, Any]):
    """A shelf for an agent: the listing in each model call, the find-skills tools, and those of its code skills.

    A run is a turn of the shelf; if the caller has opened one, the run joins it. A tool whose permission is `ask`
    interrupts as HumanInTheLoopMiddleware does with `interrupt_mode="per_call"`; without a checkpointer it is refused.
    """

    state_schema = _State

    def __init__(self, shelf: Shelf, *, disclosure: ListingForm = "auto", budget: int = DEFAULT_BUDGET) -> None:
        super().__init__()
        self.shelf = shelf
        tools = all_tools(shelf)
        self.tools = [_make_tool(tool) for tool in tools]
        review = InterruptOnConfig(allowed_decisions=["approve", "reject"], when=_can_interrupt)
        self._review = HumanInTheLoopMiddleware[Any, Any, Any](
            {tool.name: review for tool in tools if tool.permission == "ask"}, interrupt_mode="per_call"
        )
        self._turns = BoundedDict[str, Turn](lambda: current_turn_of(shelf) or shelf.turn())
        self._feeds = make_feeds(shelf, disclosure, budget, count_tokens_approximately)

    def before_agent(self, state: _State, runtime: Any) -> dict[str, Any]:
        name = uuid4().hex
        feed = self._feed_of(runtime)
        feed.turn_begins()
        turn = self._turns.get_or_make(name)
        feed.route(turn, _last_message(state["messages"]))  # in a thread, so that it is at hand in the event loop
        return {"skillshelf_turn": name}

    async def abefore_agent(self, state: _State, runtime: Any) -> dict[str, Any]:
        # A sweep stats every skill. That takes milliseconds, in which the event loop would do nothing else.
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def after_agent(self, state: _State, runtime: Any) -> None:
        self._turns.pop(state.get("skillshelf_turn", ""), None)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        return handler(self._add_listing(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        return await handler(self._add_listing(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        with use_turn(self._turn_of(request)):
            return self._review.wrap_tool_call(_mark_approved(request), handler)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Awaitable[Any]]) -> Any:
        with use_turn(self._turn_of(request)):
            return await self._review.awrap_tool_call(_mark_approved(request), handler)

    def _turn_of(self, request: ToolCallRequest) -> Turn:
        # A run that continues in another process has no turn there yet, and perhaps no name for it.
        name = request.state.get("skillshelf_turn")
        if name:
            return self._turns.get_or_make(name)
        return self._turns.make()

    def _feed_of(self, runtime: Any) -> Feed:
        """Return the feed of the conversation, or a new one if the conversation has no id."""
        thread = runtime.execution_info.thread_id if runtime.execution_info else None
        if thread:
            return self._feeds.get_or_make(thread)
        return self._feeds.make()

    def _add_listing(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return the request with the listing, and with notes of what has changed since it was first sent."""
        feed = self._feed_of(request.runtime)
        messages = list(request.messages)
        listing = feed.section(messages)
        for note in feed.notes:
            messages[note.message] = _append_text(messages[note.message], note.text)

        system = request.system_message
        if listing:
            system = _append_text(system, listing) if system else SystemMessage(listing)
        return request.override(system_message=system, messages=messages)


class _Tool(BaseTool):
    """A tool of the shelf for LangChain.

    Not a StructuredTool, which reserves the names `config` and `run_manager` among the arguments.
    """

    tool: Any  # a Tool, whose type pydantic could not check
    approved: bool = False
    handle_tool_error: bool = True

    def _run(self, **arguments: Any) -> Any:
        with typed_errors(self.tool, _FRAMEWORK_ERRORS, ToolException):
            result = self.tool.call(arguments, approved=self.approved)
            if self.tool.is_async:
                result = asyncio.run(result)
            return _encode_result(result)

    async def _arun(self, **arguments: Any) -> Any:
        return await call_tool(
            self.tool,
            arguments,
            current_turn.get(),
            approved=self.approved,
            reraise=_FRAMEWORK_ERRORS,
            wrap_error=ToolException,
            encode=_encode_result,
        )


def _make_tool(tool: Tool) -> _Tool:
    return _Tool(name=tool.name, description=tool.description, args_schema=tool.parameters, tool=tool)


def _encode_result(result: Any) -> str | list[dict[str, Any]]:
    """Return a result as the content of a ToolMessage: text, or blocks if there are images. Blocks have no sound."""
    return encode_parts(result, _encode_part)


def _encode_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image", "base64": base64_of(part), "mime_type": part.media_type}
    return {"type": "text", "text": str(part)}


def _can_interrupt(request: ToolCallRequest) -> bool:
    """Return True if there is a checkpointer, without which a run cannot be interrupted."""
    return request.runtime.config.get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER) is not None


def _mark_approved(request: ToolCallRequest) -> ToolCallRequest:
    """Return the request for the review. A tool that it lets through was approved, if the user could be asked."""
    tool = request.tool
    if not isinstance(tool, _Tool):
        return request
    return request.override(tool=tool.model_copy(update={"approved": _can_interrupt(request)}))


def _last_message(messages: Sequence[BaseMessage]) -> str:
    """Return the text of the user's last message."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return message.text
    return ""


def _append_text(message: BaseMessage, text: str) -> Any:
    content: Any = message.content
    if isinstance(content, str):
        content = f"{content}\n\n{text}"
    else:
        content = [*content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": content})
