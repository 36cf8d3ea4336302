"""How the agent's own tools become tools of pydantic-ai."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import Tool, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from skillshelf.shelf import Shelf
from skillshelf.skills import Catalog, SkillDescriptor

_schemas: dict[Callable[..., Any], Any] = {}
"""Each schema is made once for all agents of the process. Making them took two fifths of a scripted trial: 11 ms of 28.

By the function of a class, without the object of one agent, which would keep its workspace alive.
"""


def make_tool(method: Any, prepare: Callable[..., Any] | None = None) -> Tool[Any]:
    """Return a bound method as a tool. `prepare` decides at each step whether the tool is offered."""
    function = method.__func__
    schema = _schemas.get(function)
    if schema is not None:
        return Tool(method, prepare=prepare, function_schema=replace(schema, function=method))

    tool: Tool[Any] = Tool(method, prepare=prepare)
    _schemas[function] = replace(tool.function_schema, function=function)
    return tool


class ToolForSkills:
    """A tool that the model is offered only if a skill on the shelf has a use for it."""

    def __init__(self, shelf: Shelf, method: Any, has_use: Callable[[SkillDescriptor], bool]) -> None:
        self._shelf = shelf
        self._has_use = has_use
        self._searched: Catalog | None = None
        self._found = False
        self.toolset: FunctionToolset[Any] = FunctionToolset([make_tool(method, self._offer)])

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tool as the model gets it now; empty if no skill has a use for it."""
        if not self._is_useful():
            return ()
        return tuple(tool.tool_def for tool in self.toolset.tools.values())

    async def _offer(self, ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        return definition if self._is_useful() else None

    def _is_useful(self) -> bool:
        """Return True if a skill has a use for the tool. Ten thousand skills are searched once, not for every call."""
        catalog = self._shelf.catalog
        if catalog is not self._searched:
            self._searched = catalog
            self._found = any(self._has_use(skill) for skill in catalog.values())
        return self._found
