"""Tools that the user's policy refuses whatever their arguments. They are withheld: the model is not offered them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from skillshelf.agent._policy import Policy
from skillshelf.agent._tool_names import RUN_SCRIPT, SHELL, WRITING
from skillshelf.agent.servers import server_of

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

    from skillshelf.shelf import Shelf

_DECIDED = WRITING | {SHELL, RUN_SCRIPT}
"""The agent's own tools whose calls the policy decides about."""


class WithheldTools:
    """Finds the tools that the policy blocks now. The user may change it in the middle of a turn."""

    def __init__(self, get_policy: Callable[[], Policy], get_shelf: Callable[[], Shelf]) -> None:
        self._get_policy = get_policy
        self._get_shelf = get_shelf

    def find(self, definitions: Iterable[ToolDefinition]) -> frozenset[str]:
        """Return the names of the tools that are withheld."""
        tools = self._get_shelf().tools()
        asking = {tool.name for tool in tools if tool.permission == "ask"}
        decided = [
            definition.name
            for definition in definitions
            if definition.name in _DECIDED or definition.name in asking or server_of(definition)
        ]
        unasked = [tool.name for tool in tools if tool.permission != "ask"]
        return self._get_policy().find_blocked(decided, unasked)

    def leave_out(self, definitions: Iterable[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """Return the tools that the model is offered."""
        definitions = tuple(definitions)
        withheld = self.find(definitions)
        return tuple(definition for definition in definitions if definition.name not in withheld)

    def describe(self, definitions: Iterable[ToolDefinition]) -> str:
        """Return the sentences for the model about tools that it does not have; empty if it has all.

        Tools of MCP servers are not named: nothing else speaks of them.
        """
        names = self.find(definition for definition in definitions if not server_of(definition))
        if not names:
            return ""
        return (
            f"The user's policy blocks these tools, so you do not have them: {', '.join(sorted(names))}. Where a skill "
            "or a task needs one, say what you would do with it. Only the user can change the policy."
        )
