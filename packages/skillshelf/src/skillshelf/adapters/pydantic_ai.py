"""pydantic-ai: `Agent(model, capabilities=[Skills(shelf)])`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skillshelf.adapters._common import FrameworkTools, call_tool, make_feeds, open_turn
from skillshelf.errors import MissingExtraError
from skillshelf.shelf import Turn, current_turn, use_turn
from skillshelf.skills import Tool
from skillshelf.skills.results import Audio, Image, Part, has_media, has_nested_bytes, parts_of, text_of
from skillshelf.text.tokens import DEFAULT_BUDGET, estimate

try:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
    from pydantic_ai.messages import (
        BinaryContent,
        ModelMessage,
        ModelRequest,
        TextContent,
        UserContent,
        UserPromptPart,
        tool_return_ta,
    )
    from pydantic_ai.tools import Tool as FrameworkTool
    from pydantic_ai.toolsets import FunctionToolset
except ImportError:
    raise MissingExtraError("skillshelf.adapters.pydantic_ai", "pydantic-ai") from None

if TYPE_CHECKING:
    from pydantic_ai.models import ModelRequestContext

    from skillshelf.listing import ListingForm
    from skillshelf.shelf import Shelf


_FRAMEWORK_ERRORS = (ApprovalRequired, CallDeferred, ModelRetry, ToolFailed)


class Skills(AbstractCapability[Any]):
    """A shelf for an agent: the listing in each model call, the find-skills tools, and those of its code skills.

    A run is a turn of the shelf. If the caller has opened one (`with shelf.turn():`), the run joins it.
    """

    id = "skillshelf"

    def __init__(self, shelf: Shelf, *, disclosure: ListingForm = "auto", budget: int = DEFAULT_BUDGET) -> None:
        self.shelf = shelf
        self.feeds = make_feeds(shelf, disclosure, budget, _count_tokens, _mark)
        # A tool and its schema are made once, not for every run.
        self._tools = FrameworkTools(shelf, _make_tool)
        self._turn: Turn | None = None

    async def for_run(self, ctx: RunContext[Any]) -> Skills:
        """Return a copy with the turn of this run."""
        run = copy(self)
        feed = self.feeds.get_or_make(ctx.conversation_id)
        run._turn = await open_turn(self.shelf, lambda turn: feed.route(turn, _text_of_prompt(ctx.prompt)))
        return run

    def get_instructions(self) -> Any:
        def make_section(ctx: RunContext[Any]) -> str | None:
            return self.feeds.get_or_make(ctx.conversation_id).section(ctx.messages) or None

        return make_section

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        feed = self.feeds.get_or_make(ctx.conversation_id)
        messages = request_context.messages
        if feed.fits(messages):
            notes = [(note.message, note.text) for note in feed.notes]
        else:
            # The host has just shortened the history: all notes go to its end, and the next call starts over.
            notes = [(len(messages) - 1, "\n\n".join(note.text for note in feed.notes))]
            feed.renew()

        for index, text in notes:
            message = messages[index]
            if isinstance(message, ModelRequest):
                messages[index] = replace(message, parts=[*message.parts, UserPromptPart(text)])
        return request_context

    async def wrap_tool_execute(self, ctx: RunContext[Any], *, args: Any, handler: Any, **_: Any) -> Any:
        with use_turn(self._turn):  # including a host's tool that runs another agent
            return await handler(args)

    def get_toolset(self) -> FunctionToolset[Any]:
        return FunctionToolset(self._tools.current(), id="skillshelf")


def _make_tool(tool: Tool) -> FrameworkTool[Any]:
    async def call(ctx: RunContext[Any], **arguments: Any) -> Any:
        if tool.permission == "ask" and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"arguments": arguments})
        return await call_tool(
            tool,
            arguments,
            current_turn.get(),  # that of the run: see `Skills.wrap_tool_execute`
            approved=ctx.tool_call_approved,
            reraise=_FRAMEWORK_ERRORS,
            wrap_error=ToolFailed,
            encode=_encode_result,
        )

    return FrameworkTool.from_schema(call, tool.name, tool.description, tool.parameters, takes_ctx=True)


def _encode_result(result: Any) -> Any:
    """Return a result as pydantic-ai can send it, with images and sound, or as text if it cannot."""
    if has_media(result):
        parts = [_encode_part(part) for part in parts_of(result)]
        return parts if isinstance(result, list | tuple) else parts[0]

    try:
        tool_return_ta.dump_json(result)
    except ValueError:  # including a result that contains itself
        return text_of(result)
    if has_nested_bytes(result):  # pydantic-ai would write bytes as text, those of an image deep inside included
        return text_of(result)
    return result


def _encode_part(part: Part) -> str | BinaryContent:
    if isinstance(part, Image | Audio):
        return BinaryContent(part.data, media_type=part.media_type)
    return part


def _text_of_prompt(prompt: str | Sequence[UserContent] | None) -> str:
    """Return the words of a user's message, without its files. A run that only goes on has no message."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = [item.content if isinstance(item, TextContent) else item for item in prompt]
    return "\n".join(text for text in texts if isinstance(text, str))


def _mark(message: ModelMessage) -> str:
    """Return a text that tells this message from others."""
    return "\n".join(f"{part.part_kind} {_text_of(part)}" for part in message.parts)


def _count_tokens(messages: Sequence[ModelMessage]) -> int:
    """Estimate the tokens of a conversation."""
    return sum(estimate(_text_of(part)) for message in messages for part in message.parts)


def _text_of(part: Any) -> str:
    """Return a part's content as text, with a word for an image instead of its bytes."""
    content = getattr(part, "content", "")
    items = content if isinstance(content, list) else [content]
    texts = [f"[{item.identifier}]" if isinstance(item, BinaryContent) else str(item) for item in items]
    return " ".join(texts)
