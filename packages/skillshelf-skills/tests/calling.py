"""Calls of a skill's tools, as a host makes them."""

import asyncio
from typing import Any

from skillshelf import BaseSkill


def call(skill: BaseSkill, tool_name: str, /, **arguments: Any) -> Any:
    """Call a tool that the user approved, and return its result."""
    (tool,) = [tool for tool in skill.tools() if tool.name == tool_name]
    result = tool.call(arguments, approved=True)
    return asyncio.run(result) if tool.is_async else result
