"""A program's own agent loop: the tools in OpenAI's forms, and calls by name that always return text.

from skillshelf.adapters.openai import dispatch, openai_tools

response = client.chat.completions.create(model=…, messages=…, tools=openai_tools(shelf, "chat"))
text = dispatch(shelf, call.function.name, call.function.arguments)
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from inspect import isawaitable
from typing import Any, Literal

from skillshelf.errors import PolicyError, SkillError
from skillshelf.shelf import Shelf, all_tools, current_turn_of, use_turn
from skillshelf.skills import (
    Tool,
    describe_denial,
    describe_unasked,
    describe_unknown_tool,
    parse_arguments,
    typed_errors,
)
from skillshelf.skills.results import text_of

Form = Literal["chat", "responses"]
Arguments = str | Mapping[str, Any]
Approve = Callable[[Tool, Mapping[str, Any]], bool]
ApproveAsync = Callable[[Tool, Mapping[str, Any]], bool | Awaitable[bool]]


def openai_tools(shelf: Shelf, form: Form) -> list[Any]:
    """Return the find-skills tools and those of the code skills as dicts for `tools=` of an OpenAI-shaped API.

    `form` is the API: Chat Completions or Responses. Run the calls that the model makes with `dispatch`.
    """
    if form not in ("chat", "responses"):
        raise ValueError(f"Unknown form {form!r}. Choose 'chat' or 'responses'.")

    definitions: list[Any] = []
    for tool in all_tools(shelf):
        function = {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            # A strict schema has no optional arguments, and the Responses API is strict unless a tool says otherwise.
            "strict": False,
        }
        if form == "chat":
            definitions.append({"type": "function", "function": function})
        else:
            definitions.append({"type": "function", **function})
    return definitions


def dispatch(shelf: Shelf, name: str, arguments: Arguments, *, approve: Approve | None = None) -> str:
    """Run the tool that a model called and return the text to give back to it.

    `arguments` are a mapping, or JSON text as the model wrote it. `approve` asks the user about a call of a tool whose
    permission is `ask`; without it such a call is refused. Inside `with shelf.turn():` the call belongs to that turn,
    otherwise it has a turn of its own.

    A model's mistake never raises: an unknown tool, wrong arguments, a refused call and a tool that fails come back as
    text that the model can act on.
    """
    try:
        tool = _find_tool(shelf, name)
        parsed = parse_arguments(name, arguments)
        approved = _check_answer(tool, _ask(tool, parsed, approve))
        with typed_errors(tool), use_turn(current_turn_of(shelf) or shelf.turn()):
            result = tool.call(parsed, approved=approved)
            if tool.is_async:
                result = _run_to_end(result)
            return text_of(result)
    except SkillError as error:
        return str(error)


async def dispatch_async(shelf: Shelf, name: str, arguments: Arguments, *, approve: ApproveAsync | None = None) -> str:
    """Do what `dispatch` does without holding up the event loop. `approve` may be async, too."""
    try:
        tool = _find_tool(shelf, name)
        parsed = parse_arguments(name, arguments)
        answer = _ask(tool, parsed, approve)
        if isawaitable(answer):
            answer = await answer
        approved = _check_answer(tool, answer)
        # Opening a turn and running a plain method may read files or wait: in a thread, so that the loop goes on.
        with typed_errors(tool), use_turn(current_turn_of(shelf) or await asyncio.to_thread(shelf.turn)):
            if tool.is_async:
                result = await tool.call(parsed, approved=approved)
            else:
                result = await asyncio.to_thread(tool.call, parsed, approved=approved)
            return text_of(result)
    except SkillError as error:
        return str(error)


def _find_tool(shelf: Shelf, name: str) -> Tool:
    tools = all_tools(shelf)
    for tool in (*tools, *shelf.blocked_tools()):  # a call of a blocked tool says that it is blocked
        if tool.name == name:
            return tool
    raise SkillError(describe_unknown_tool(name, [tool.name for tool in tools]))


def _ask(tool: Tool, arguments: Mapping[str, Any], approve: ApproveAsync | None) -> bool | Awaitable[bool] | None:
    """Put the call to the user if the tool's permission is `ask`. None means that the tool does not ask."""
    if tool.permission != "ask":
        return None
    if approve is None:
        raise PolicyError(describe_unasked(tool.name, "this program does not ask them"))
    return approve(tool, arguments)


def _check_answer(tool: Tool, answer: object) -> bool:
    """Return whether the user approved the call. Raises PolicyError for any answer but True."""
    if answer is None and tool.permission != "ask":
        return False
    if answer is not True:
        raise PolicyError(describe_denial(tool.name))
    return True


def _run_to_end(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine from plain code, even if that code runs inside an event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(copy_context().run, asyncio.run, coroutine).result()
