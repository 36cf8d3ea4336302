"""Microsoft Agent Framework: `Agent(client, context_providers=[Skills(shelf)])`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.adapters._common import Disclosure, call_tool, feeds, opened
from skillshelf.discovery import all_tools
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.listing import Feed
from skillshelf.results import Part, parts_of
from skillshelf.tokens import DEFAULT_BUDGET, estimate
from skillshelf.tools import Tool
from skillshelf.turn import Turn, current_turn, use_turn

try:
    from agent_framework import (
        ChatMiddleware,
        Content,
        ContextProvider,
        FunctionMiddleware,
        FunctionTool,
        Message,
        merge_chat_options,
    )
    from pydantic import BaseModel
except ImportError:
    raise MissingExtraError("skillshelf.adapters.agent_framework", "agent-framework") from None

if TYPE_CHECKING:
    from agent_framework import AgentSession, ChatContext, FunctionInvocationContext, SessionContext, SupportsAgentRun

    from skillshelf.shelf import Shelf


class Skills(ContextProvider):
    """A shelf for an agent: the listing in each model call, the find-skills tools, and those of its code skills.

    A run is a turn of the shelf. Where the caller has opened one, as with `with shelf.turn():`, the run joins it.
    """

    def __init__(self, shelf: Shelf, *, disclosure: Disclosure = "auto", budget: int = DEFAULT_BUDGET) -> None:
        super().__init__("skillshelf")
        self.shelf = shelf
        self._tools = [_tool(tool) for tool in all_tools(shelf)]
        self._feeds = feeds(shelf, disclosure, budget, _tokens, _mark)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        context.extend_tools(self.source_id, self._tools)
        feed = self._feeds.of(session.session_id)
        feed.turn_begins()
        # Instructions given here would stand still for the run; a middleware is asked before each model call.
        turn = await opened(self.shelf, feed.listing)
        context.extend_middleware(self.source_id, [_Listing(self.source_id, feed), _Inside(turn)])


class _Listing(ChatMiddleware):
    """Puts the listing as it is now into a model call; the caller's options and history stay as they are."""

    def __init__(self, source: str, feed: Feed) -> None:
        self._source, self._feed = source, feed

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        messages, options = context.messages, dict(context.options or {})
        feed = self._feed
        if options.get("conversation_id"):  # the service keeps the history: nothing here to put a note beside
            feed.renew()
        section = feed.section(messages)
        if section:
            context.options = merge_chat_options(options, {"instructions": section})
        if feed.notes:
            context.messages = list(messages)
            mark = {"_attribution": {"source_id": self._source}}  # keeps notes out of the saved history
            for note in reversed(feed.notes):  # from the end, so that the numbers before stay right
                told = Message("user", [note.text], additional_properties=mark)
                context.messages.insert(note.message + 1, told)
        await call_next()


class _Inside(FunctionMiddleware):
    """Calls every tool in the turn of the run: also one of the host that runs another agent."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        with use_turn(self._turn):
            await call_next()


def _tool(tool: Tool) -> FunctionTool:
    async def call(**given: Any) -> Any:
        try:
            # The framework calls a tool that asks only after a yes.
            return await call_tool(tool, given, current_turn.get(), approved=tool.permission == "ask", encode=_contents)
        except SkillError as error:
            # Raised, the text would be hidden from the model, and three in a row would take its tools away.
            return str(error)

    mode: Literal["always_require", "never_require"] = "always_require" if tool.permission == "ask" else "never_require"
    return FunctionTool(
        name=tool.name, description=tool.description, func=call, input_model=_arguments(tool), approval_mode=mode
    )


def _contents(result: Any) -> str | list[Content]:
    """Return a result as the framework takes it: text, or contents if there are images or sound."""
    parts = parts_of(result)
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return [_content(part) for part in parts]


def _content(part: Part) -> Content:
    if isinstance(part, str):
        return Content.from_text(part)
    return Content.from_data(part.data, part.media_type)


def _arguments(tool: Tool) -> type[BaseModel]:
    """Shows the model the tool's schema and takes anything: `Tool.call` says what is wrong, the framework does not."""

    class Arguments(BaseModel, extra="allow"):
        @classmethod
        def model_json_schema(cls, *args: Any, **keywords: Any) -> dict[str, Any]:
            return tool.parameters

    return Arguments


def _mark(message: Message) -> str:
    return f"{message.role} {[str(one.text or one.result or one.arguments) for one in message.contents]}"


def _tokens(messages: Sequence[Message]) -> int:
    """About how many tokens a conversation has."""
    contents = (content for message in messages for content in message.contents)
    return sum(estimate(str(content.text or content.result or content.arguments or "")) for content in contents)
