"""The todo list of a conversation: the model keeps it, and the user sees it above the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from skillshelf.text import text_for_model
from skillshelf_agent._own_tools import make_tool
from skillshelf_agent._tool_names import UPDATE_TODOS


@dataclass(frozen=True, slots=True)
class Todo:
    text: str
    state: Literal["pending", "doing", "done"]


class TodoTool:
    """Offers `update_todos`, where there is a user who sees the list."""

    def __init__(self, *, is_offered: bool) -> None:
        self.toolset: FunctionToolset[Any] = FunctionToolset([make_tool(self.update_todos, self._offer)])
        self._is_offered = is_offered

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tool as the model gets it."""
        return tuple(tool.tool_def for tool in self.toolset.tools.values()) if self._is_offered else ()

    async def _offer(self, ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        return definition if self._is_offered and not ctx.deps.is_side else None

    async def update_todos(self, ctx: RunContext[Any], todos: list[Todo]) -> str:
        """Replace the todo list that the user sees. For work of three steps or more.

        Args:
            todos: The whole list, in order.
        """
        ctx.deps.conversation.todos = todos
        return describe_todos(todos)


def describe_todos(todos: Sequence[Todo]) -> str:
    """Return how far the list is."""
    done = sum(todo.state == "done" for todo in todos)
    return f"{done} of {len(todos)} done"


def find_todos(messages: Sequence[ModelMessage]) -> list[Todo]:
    """Return the list as the model left it last in these messages."""
    returned = {
        (part.tool_name, part.tool_call_id)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart) and part.tool_name == UPDATE_TODOS and part.outcome == "success"
    }
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            for part in reversed(message.parts):
                if isinstance(part, ToolCallPart) and (part.tool_name, part.tool_call_id) in returned:
                    return _read(part)
    return []


def note_todos(todos: Sequence[Todo]) -> str:
    """Return the list for a model that does not see it in its messages any more."""
    lines = "\n".join(f"- {todo.state}: {text_for_model(todo.text)}" for todo in todos)
    return f"[Note from the application, not a request: your todo list is\n{lines}]"


def _read(call: ToolCallPart) -> list[Todo]:
    try:
        return TypeAdapter(list[Todo]).validate_python(call.args_as_dict().get("todos"))
    except ValueError:
        return []
