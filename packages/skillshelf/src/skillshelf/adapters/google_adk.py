"""Google ADK: `LlmAgent(model=…, name=…, tools=[Skills(shelf)])`."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.adapters._common import FrameworkTools, call_tool, make_feeds, open_turn
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.listing import Feed, ListingForm
from skillshelf.shelf import Turn, current_turn_of
from skillshelf.skills import Tool
from skillshelf.skills.results import Audio, Image, Part, data_of, has_media, parts_of
from skillshelf.text.tokens import DEFAULT_BUDGET, estimate

try:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ImportError:
    raise MissingExtraError("skillshelf.adapters.google_adk", "google-adk") from None

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf


class Skills(BaseToolset):
    """A shelf for an agent: the listing in each model call, the find-skills tools, and those of its code skills.

    An invocation is a turn of the shelf. If the caller has opened one (`with shelf.turn():`), the invocation joins it.
    """

    def __init__(self, shelf: Shelf, *, disclosure: ListingForm = "auto", budget: int = DEFAULT_BUDGET) -> None:
        super().__init__()
        self.shelf = shelf
        self._feeds = make_feeds(shelf, disclosure, budget, _count_tokens)
        self._tools = FrameworkTools[BaseTool](shelf, lambda tool: _Tool(tool, self))
        self._turns: dict[tuple[str, int], Turn] = {}

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return self._tools.current()

    async def turn(self, context: ToolContext) -> Turn:
        """Return the turn that the caller has opened, or that of the invocation."""
        callers_turn = current_turn_of(self.shelf)
        if callers_turn:
            return callers_turn

        key = (context.invocation_id, id(context.session))
        if key not in self._turns:
            feed = self._feed_of(context)
            feed.turn_begins()
            text = _text_of_content(context.user_content)
            turn = await open_turn(self.shelf, lambda turn: feed.route(turn, text))
            self._turns.setdefault(key, turn)  # a branch that runs beside this one may have been faster
            # A toolset does not learn when an invocation ends, but each has a session object of its own.
            weakref.finalize(context.session, self._turns.pop, key, None)
        return self._turns[key]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await self.turn(tool_context)
        feed = self._feed_of(tool_context)
        contents = llm_request.contents
        section = feed.section(contents)
        if section:
            llm_request.append_instructions([section])
        for note in reversed(feed.notes):  # from the end, so that earlier indexes stay right
            # Beside the message and not in it: some providers accept function responses only by themselves.
            content = types.Content(role="user", parts=[types.Part(text=note.text)])
            contents.insert(note.message + 1, content)

    def _feed_of(self, context: ToolContext) -> Feed:
        session = context.session
        key = (session.app_name, session.user_id, session.id, context.agent_name)
        return self._feeds.get_or_make(key)


class _Tool(BaseTool):
    """A tool of a skill, as ADK calls it."""

    def __init__(self, tool: Tool, skills: Skills) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool = tool
        self._skills = skills

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.parameters
        )

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        return self._tool.permission == "ask"

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        confirmation = tool_context.tool_confirmation
        approved = confirmation is not None and confirmation.confirmed
        turn = await self._skills.turn(tool_context)
        try:
            return await call_tool(self._tool, args, turn, approved=approved, encode=_encode_result)
        except SkillError as error:  # the model can act on it; a raised error would end the run
            return {"error": str(error)}


def _encode_result(result: Any) -> Any:
    """Return a result as ADK takes it: JSON, or a list whose images and sounds become parts of the response."""
    if not has_media(result):
        return data_of(result)
    return [_encode_part(part) for part in parts_of(result)]


def _encode_part(part: Part) -> str | types.Part:
    if isinstance(part, Image | Audio):
        return types.Part.from_bytes(data=part.data, mime_type=part.media_type)
    return part


def _count_tokens(contents: Sequence[types.Content]) -> int:
    """Estimate the tokens of a conversation."""
    return sum(estimate(_text_of(part)) for content in contents for part in content.parts or ())


def _text_of_content(content: types.Content | None) -> str:
    """Return the words of a user's message."""
    parts = content.parts if content else None
    return "\n".join(part.text for part in parts or () if part.text)


def _text_of(part: types.Part) -> str:
    """Return a part as text, without the bytes of images that a tool returned."""
    if part.text:
        return part.text
    if part.function_response:
        return str(part.function_response.response)
    return str(part.function_call or "")
