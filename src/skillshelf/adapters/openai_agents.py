"""OpenAI Agents SDK: `Agent(name, instructions=skills.instructions("You are …"), tools=skills.tools())`."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from skillshelf.adapters._common import Disclosure, call_tool, opened
from skillshelf.discovery import all_tools
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.results import Image, Part, data_url, parts_of
from skillshelf.tokens import DEFAULT_BUDGET
from skillshelf.tools import Tool, parse_arguments
from skillshelf.turn import Turn

try:
    from agents import Agent, FunctionTool, RunContextWrapper, ToolOutputImage, ToolOutputText
except ImportError:
    raise MissingExtraError("skillshelf.adapters.openai_agents", "openai-agents") from None

if TYPE_CHECKING:
    from agents import Tool as AgentTool
    from agents.tool_context import ToolContext

    from skillshelf.listing import Listing
    from skillshelf.shelf import Shelf

Dynamic = Callable[[RunContextWrapper[Any], Agent[Any]], str | Awaitable[str]]


class Skills:
    """A shelf for agents: the listing in each model call, the find-skills tools, and those of its code skills.

    A run is a turn of the shelf, from its first model call on, with no hook to pass to `Runner.run`. Where the caller
    has opened a turn, as with `with shelf.turn():`, the run joins it. A tool whose permission is `ask` needs approval
    in the SDK's way: `result.interruptions`, then `state.approve(…)`.
    """

    def __init__(self, shelf: Shelf, *, disclosure: Disclosure = "auto", budget: int = DEFAULT_BUDGET) -> None:
        self.shelf, self.disclosure, self.budget = shelf, disclosure, budget
        self._tools = all_tools(shelf)
        self._turns: dict[int, Turn] = {}

    def instructions(self, own: str | Dynamic = "") -> Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]:
        """The agent's own instructions with the listing after them, made anew for each model call."""

        async def dynamic(ctx: RunContextWrapper[Any], agent: Agent[Any]) -> str:
            await self._turn(ctx)
            said = own if isinstance(own, str) else own(ctx, agent)
            text = await said if inspect.isawaitable(said) else said
            return "\n\n".join(filter(None, (text, self._listing().text)))

        return dynamic

    def tools(self) -> list[AgentTool]:
        """Return the shelf's tools, for an agent's `tools`."""
        return [self._tool(tool) for tool in self._tools]

    def _listing(self) -> Listing:
        return self.shelf.listing(self.disclosure, self.budget)

    async def _turn(self, ctx: RunContextWrapper[Any]) -> Turn:
        """The turn of this run."""
        # Its usage is the one thing that the SDK makes for each run and hands to instructions and tools alike: hooks
        # and instructions run in tasks of their own, whose context variables a tool does not see.
        run = id(ctx.usage)
        if run not in self._turns:
            # A call that runs beside this one may have been faster.
            self._turns.setdefault(run, await opened(self.shelf, self._listing))
            weakref.finalize(ctx.usage, self._turns.pop, run, None)
        return self._turns[run]

    def _tool(self, tool: Tool) -> FunctionTool:
        async def call(ctx: ToolContext[Any], written: str) -> Any:
            approved = ctx.is_tool_approved(tool.name, ctx.tool_call_id) is True
            try:
                arguments = parse_arguments(tool.name, written)
                return await call_tool(tool, arguments, await self._turn(ctx), approved=approved, encode=_output)
            except SkillError as error:  # what is raised here would end the run
                return str(error)

        return FunctionTool(
            tool.name,
            tool.description,
            tool.parameters,
            call,
            strict_json_schema=False,  # a strict schema has no optional arguments
            needs_approval=tool.permission == "ask",
        )


def _output(result: Any) -> str | list[ToolOutputText | ToolOutputImage]:
    """Return a result as the SDK sends it: text, or a list with images. Sound cannot be sent."""
    parts = parts_of(result)
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return [_output_part(part) for part in parts]


def _output_part(part: Part) -> ToolOutputText | ToolOutputImage:
    if isinstance(part, Image):
        return ToolOutputImage(image_url=data_url(part))
    return ToolOutputText(text=str(part))
