"""OpenAI Agents SDK: `Agent(name, instructions=skills.instructions("You are …"), tools=skills.tools())`."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from skillshelf.adapters._common import call_tool, encode_parts, open_turn
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.shelf import Turn, all_tools
from skillshelf.skills import Tool, parse_arguments
from skillshelf.skills.results import Image, Part, data_url
from skillshelf.text.tokens import DEFAULT_BUDGET

try:
    from agents import Agent, FunctionTool, RunContextWrapper, ToolOutputImage, ToolOutputText
except ImportError:
    raise MissingExtraError("skillshelf.adapters.openai_agents", "openai-agents") from None

if TYPE_CHECKING:
    from agents import Tool as AgentTool
    from agents.tool_context import ToolContext

    from skillshelf.listing import Listing, ListingForm
    from skillshelf.shelf import Shelf

Dynamic = Callable[[RunContextWrapper[Any], Agent[Any]], str | Awaitable[str]]


class Skills:
    """A shelf for agents: the listing in each model call, the find-skills tools, and those of its code skills.

    A run is a turn of the shelf, from its first model call on, with no hook to pass to `Runner.run`. If the caller has
    opened one (`with shelf.turn():`), the run joins it. A tool whose permission is `ask` needs approval in the SDK's
    way: `result.interruptions`, then `state.approve(…)`.
    """

    def __init__(self, shelf: Shelf, *, disclosure: ListingForm = "auto", budget: int = DEFAULT_BUDGET) -> None:
        self.shelf = shelf
        self.disclosure = disclosure
        self.budget = budget
        all_tools(shelf)  # raises InvalidSkillError here, where the program can correct it
        self._turns: dict[int, Turn] = {}

    def instructions(self, own: str | Dynamic = "") -> Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]:
        """Return the agent's own instructions followed by the listing, made again for each model call."""

        async def make_instructions(ctx: RunContextWrapper[Any], agent: Agent[Any]) -> str:
            await self._turn_of(ctx)
            text = own if isinstance(own, str) else own(ctx, agent)
            if inspect.isawaitable(text):
                text = await text
            return "\n\n".join(filter(None, (text, self._listing().text)))

        return make_instructions

    def tools(self) -> list[AgentTool]:
        """Return the shelf's tools, for an agent's `tools`."""
        return [self._make_tool(tool) for tool in all_tools(self.shelf)]

    def _listing(self) -> Listing:
        return self.shelf.listing(self.disclosure, self.budget)

    async def _turn_of(self, ctx: RunContextWrapper[Any]) -> Turn:
        """Return the turn of this run."""
        # The usage is the one object that the SDK makes for each run and hands to instructions and tools alike. Hooks
        # and instructions run in tasks of their own, whose context variables a tool does not see.
        run = id(ctx.usage)
        if run not in self._turns:
            turn = await open_turn(self.shelf, lambda _: self._listing())
            self._turns.setdefault(run, turn)  # a call that runs beside this one may have been faster
            weakref.finalize(ctx.usage, self._turns.pop, run, None)
        return self._turns[run]

    def _make_tool(self, tool: Tool) -> FunctionTool:
        async def call(ctx: ToolContext[Any], raw_arguments: str) -> Any:
            approved = ctx.is_tool_approved(tool.name, ctx.tool_call_id) is True
            try:
                arguments = parse_arguments(tool.name, raw_arguments)
                turn = await self._turn_of(ctx)
                return await call_tool(tool, arguments, turn, approved=approved, encode=_encode_result)
            except SkillError as error:  # a raised error would end the run
                return str(error)

        return FunctionTool(
            tool.name,
            tool.description,
            tool.parameters,
            call,
            strict_json_schema=False,  # a strict schema has no optional arguments
            needs_approval=tool.permission == "ask",
        )


def _encode_result(result: Any) -> str | list[ToolOutputText | ToolOutputImage]:
    """Return a result as the SDK sends it: text, or a list with images. Sound cannot be sent."""
    return encode_parts(result, _encode_part)


def _encode_part(part: Part) -> ToolOutputText | ToolOutputImage:
    if isinstance(part, Image):
        return ToolOutputImage(image_url=data_url(part))
    return ToolOutputText(text=str(part))
