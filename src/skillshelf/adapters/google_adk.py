"""Google ADK: `LlmAgent(model=…, name=…, tools=[Skills(shelf)])`."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.adapters._common import Disclosure, call_tool, feeds, opened
from skillshelf.discovery import all_tools
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.listing import Feed
from skillshelf.results import Audio, Image, Part, data_of, has_media, parts_of
from skillshelf.tokens import DEFAULT_BUDGET, estimate
from skillshelf.tools import Tool
from skillshelf.turn import Turn, current_turn_of

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

    An invocation is a turn of the shelf. Where the caller has opened one, as with `with shelf.turn():`, it joins that.
    """

    def __init__(self, shelf: Shelf, *, disclosure: Disclosure = "auto", budget: int = DEFAULT_BUDGET) -> None:
        super().__init__()
        self.shelf = shelf
        self._feeds = feeds(shelf, disclosure, budget, _tokens)
        self._tools: list[BaseTool] = [_Tool(tool, self) for tool in all_tools(shelf)]
        self._turns: dict[tuple[str, int], Turn] = {}

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return self._tools

    async def turn(self, context: ToolContext) -> Turn:
        """The one that the caller opened, or that of the invocation."""
        if turn := current_turn_of(self.shelf):
            return turn
        key = (context.invocation_id, id(context.session))
        if key not in self._turns:
            # A branch that runs beside this one may have been faster.
            feed = self._feed(context)
            self._turns.setdefault(key, await opened(self.shelf, feed.listing))
            feed.turn_begins()
            # A toolset is not told of an invocation's end; each has a session object of its own, which goes with it.
            weakref.finalize(context.session, self._turns.pop, key, None)
        return self._turns[key]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await self.turn(tool_context)
        feed, contents = self._feed(tool_context), llm_request.contents
        if section := feed.section(contents):
            llm_request.append_instructions([section])
        for note in reversed(feed.notes):  # from the end, so that the numbers before stay right
            # Beside the message and not in it: some providers take function responses only by themselves.
            contents.insert(note.message + 1, types.Content(role="user", parts=[types.Part(text=note.text)]))

    def _feed(self, context: ToolContext) -> Feed:
        session = context.session
        return self._feeds.of((session.app_name, session.user_id, session.id, context.agent_name))


class _Tool(BaseTool):
    """A tool of a skill, as ADK calls it."""

    def __init__(self, tool: Tool, skills: Skills) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool, self._skills = tool, skills

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
            return await call_tool(self._tool, args, turn, approved=approved, encode=_response)
        except SkillError as error:  # said so that the model can act on it; raised, it would end the run
            return {"error": str(error)}


def _response(result: Any) -> Any:
    """Return a result as ADK takes it: JSON, or a list whose images and sounds become parts of the response."""
    if not has_media(result):
        return data_of(result)
    return [_response_part(part) for part in parts_of(result)]


def _response_part(part: Part) -> str | types.Part:
    if isinstance(part, Image | Audio):
        return types.Part.from_bytes(data=part.data, mime_type=part.media_type)
    return part


def _tokens(contents: Sequence[types.Content]) -> int:
    """About how many tokens a conversation has."""
    parts = (part for content in contents for part in content.parts or ())
    return sum(estimate(_text(part)) for part in parts)


def _text(part: types.Part) -> str:
    """Return a part as text, without the bytes of images that a tool returned."""
    if part.text:
        return part.text
    if part.function_response:
        return str(part.function_response.response)
    return str(part.function_call or "")
