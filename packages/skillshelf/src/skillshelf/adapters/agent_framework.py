"""Microsoft Agent Framework: `Agent(client, context_providers=[Skills(shelf)])`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.adapters._common import FrameworkTools, call_tool, encode_parts, make_feeds, open_turn
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.listing import Feed, ListingForm
from skillshelf.shelf import Turn, current_turn, use_turn
from skillshelf.skills import Tool
from skillshelf.skills.results import Part
from skillshelf.text.tokens import DEFAULT_BUDGET, estimate

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

    A run is a turn of the shelf. If the caller has opened one (`with shelf.turn():`), the run joins it.
    """

    def __init__(self, shelf: Shelf, *, disclosure: ListingForm = "auto", budget: int = DEFAULT_BUDGET) -> None:
        super().__init__("skillshelf")
        self.shelf = shelf
        self._tools = FrameworkTools(shelf, _make_tool)
        self._feeds = make_feeds(shelf, disclosure, budget, _count_tokens, _mark)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        context.extend_tools(self.source_id, self._tools.current())
        feed = self._feeds.get_or_make(session.session_id)
        feed.turn_begins()
        text = "\n".join(message.text for message in context.input_messages if message.role == "user")
        turn = await open_turn(self.shelf, lambda turn: feed.route(turn, text))
        # Instructions given here would not change during the run; middleware runs before each model call.
        context.extend_middleware(self.source_id, [_ListingMiddleware(self.source_id, feed), _TurnMiddleware(turn)])


class _ListingMiddleware(ChatMiddleware):
    """Adds the current listing to a model call. The caller's options and history stay as they are."""

    def __init__(self, source: str, feed: Feed) -> None:
        self._source = source
        self._feed = feed

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        messages = context.messages
        options = dict(context.options or {})
        feed = self._feed
        if options.get("conversation_id"):  # the service keeps the history: there is no message to put a note beside
            feed.renew()

        section = feed.section(messages)
        if section:
            context.options = merge_chat_options(options, {"instructions": section})
        if feed.notes:
            context.messages = list(messages)
            attribution = {"_attribution": {"source_id": self._source}}  # keeps notes out of the saved history
            for note in reversed(feed.notes):  # from the end, so that earlier indexes stay right
                message = Message("user", [note.text], additional_properties=attribution)
                context.messages.insert(note.message + 1, message)
        await call_next()


class _TurnMiddleware(FunctionMiddleware):
    """Calls every tool in the turn of the run, including a host's tool that runs another agent."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        with use_turn(self._turn):
            await call_next()


def _make_tool(tool: Tool) -> FunctionTool:
    # The framework calls a tool that needs approval only after the user has approved the call.
    needs_approval = tool.permission == "ask"

    async def call(**arguments: Any) -> Any:
        turn = current_turn.get()
        try:
            return await call_tool(tool, arguments, turn, approved=needs_approval, encode=_encode_result)
        except SkillError as error:
            # A raised error would hide its text from the model, and three in a row would take its tools away.
            return str(error)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        func=call,
        input_model=_make_input_model(tool),
        approval_mode="always_require" if needs_approval else "never_require",
    )


def _encode_result(result: Any) -> str | list[Content]:
    """Return a result as the framework takes it: text, or contents if there are images or sound."""
    return encode_parts(result, _encode_part)


def _encode_part(part: Part) -> Content:
    if isinstance(part, str):
        return Content.from_text(part)
    return Content.from_data(part.data, part.media_type)


def _make_input_model(tool: Tool) -> type[BaseModel]:
    """Return a model that has the tool's schema and accepts anything: `Tool.call` explains errors, the framework
    does not."""

    class Arguments(BaseModel, extra="allow"):
        @classmethod
        def model_json_schema(cls, *args: Any, **keywords: Any) -> dict[str, Any]:
            return tool.parameters

    return Arguments


def _mark(message: Message) -> str:
    """Return a text that tells this message from others."""
    return f"{message.role} {[_text_of(content) for content in message.contents]}"


def _count_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a conversation."""
    return sum(estimate(_text_of(content)) for message in messages for content in message.contents)


def _text_of(content: Content) -> str:
    return str(content.text or content.result or content.arguments or "")
