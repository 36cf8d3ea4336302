"""The tool `run_skill`: a skill with `context: fork` does a task in a conversation of its own."""

from __future__ import annotations

from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import RunCancelled, ToolFailed
from pydantic_ai.tools import ToolDefinition

from skillshelf.agent._exchange import Exchange
from skillshelf.agent._explain import explain_error
from skillshelf.agent._own_tools import ToolForSkills
from skillshelf.discovery import is_for_user_only
from skillshelf.errors import SkillError, SkillNotFoundError
from skillshelf.shelf import Shelf


class SideTool(ToolForSkills):
    """Offers `run_skill` if a skill on the shelf runs apart."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__(shelf, self.run_skill, lambda skill: skill.runs_apart)

    async def _offer(self, ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        return None if ctx.deps.is_side else await super()._offer(ctx, definition)

    async def run_skill(self, ctx: RunContext[Exchange], skill_name: str, task: str) -> str:
        """Have a skill marked context="fork" do a task in a conversation of its own, and get the result.

        It sees nothing of this conversation, and uses the same tools.

        Args:
            skill_name: The skill's name as listed.
            task: The whole task, with every fact and path that it needs.
        """
        exchange = ctx.deps
        if exchange.is_side:
            raise ToolFailed("A skill that runs apart cannot start another one. Load the skill instead.")
        try:
            skill = exchange.turn.shelf.catalog.find(skill_name).descriptor
            if is_for_user_only(skill_name, exchange.turn):
                raise SkillNotFoundError(skill_name)
            if not skill.runs_apart:
                raise ToolFailed(f"{skill.name!r} does not run apart: load it with load_skill_instructions.")
            return await exchange.run_side(skill_name, skill, task, by="model", call_id=ctx.tool_call_id or "")
        except SkillError as error:
            raise ToolFailed(str(error)) from error
        except (ToolFailed, RunCancelled):
            raise
        except Exception as error:  # whatever a provider raises: the main conversation goes on
            raise ToolFailed(f"The skill could not finish: {explain_error(error).message}") from error
