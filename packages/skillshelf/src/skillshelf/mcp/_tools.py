"""The find-skills tools and those of code skills. Their descriptions come from code: no skill's text is in them."""

import hashlib
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from mcp import MCPError, types
from mcp.types import INVALID_PARAMS
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from skillshelf.adapters import FrameworkTools, call_tool
from skillshelf.errors import PolicyError, SkillError, ToolArgumentError
from skillshelf.mcp._limits import (
    MAX_AGE,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_OPEN_QUESTIONS,
    MAX_RECENT_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
)
from skillshelf.mcp._prompts import SkillKeys
from skillshelf.mcp._refresher import PendingSkills, RequestContext, ShelfRefresher, add_pending_notice
from skillshelf.shelf import LOAD_TOOL, Shelf, Turn, own_tool_names
from skillshelf.skills import Activation, Tool, describe_denial, describe_unasked, describe_unknown_tool
from skillshelf.skills.results import Image, Part, Structure, base64_of, parts_of, structure_of, text_of
from skillshelf.skills.schema import Mismatch

_RESPONSE_KEY = "approval"
_EMPTY_FORM: dict[str, Any] = {"type": "object", "properties": {}}
"""A form without fields: accepting it means yes."""
_LIST = "list_skills"
_SEARCH = "search_skills"


class RecentAnswer(NamedTuple):
    """The answer to a load, and the texts that it brought in."""

    answer: types.CallToolResult
    activations: tuple[Activation, ...]


class RecentAnswers:
    """Answers to loads, for all clients, until the shelf changes and for at most a second.

    Without it every load reads its file in a thread. With a hundred clients over HTTP that takes the server 1.6 times
    the CPU of one that only answers; with it, 1.0 times as much.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._catalog = shelf.catalog
        self._started = time.monotonic()
        self._answers: dict[str, RecentAnswer] = {}
        self._room = MAX_RECENT_CHARACTERS

    def is_current(self, max_age: float) -> bool:
        """Return True if the shelf has not changed and nothing here is older than `max_age` seconds."""
        age = time.monotonic() - self._started
        return age < max_age and self._catalog is self._shelf.catalog

    def find(self, request: str) -> types.CallToolResult | None:
        """Return the answer to the same request, if it is here. Observers learn of the repeated load."""
        recent = self._answers.get(request)
        if recent is None:
            return None
        for activation in recent.activations:
            self._shelf.observers.report(activation._replace(repeated=True))
        return recent.answer

    def add(self, request: str, answer: types.CallToolResult, activations: Sequence[Activation]) -> None:
        """Keep an answer, and what it brought in, if there is room for it."""
        size = sum(len(block.text) for block in answer.content if isinstance(block, types.TextContent))
        if size <= self._room:
            self._room -= size
            self._answers[request] = RecentAnswer(answer, tuple(activations))


class _AskedCall(NamedTuple):
    """A call that waits for the user's answer, with a digest instead of arguments that may be megabytes long."""

    tool: str
    arguments_digest: bytes


class ToolApprovals:
    """Asks the user before a tool runs. An approval is for one call and is not remembered.

    Each open question has a random state that only the client which was asked has received.
    """

    def __init__(self) -> None:
        self._questions: OrderedDict[str, _AskedCall] = OrderedDict()

    async def request(
        self, ctx: RequestContext, tool: Tool, params: types.CallToolRequestParams
    ) -> types.InputRequiredResult | None:
        """Return None once the user has approved the call, or the question that the client must put to them first.

        Raises PolicyError if the user declines or cannot be asked.
        """
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            raise PolicyError(describe_unasked(tool.name, "this client cannot ask them (it has no elicitation)"))

        # ASCII only: the model chose these characters, and it must not draw on the user's terminal.
        arguments = json.dumps(params.arguments or {})
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._answer_or_question(tool, arguments, params)
        await self._ask_now(ctx, tool, arguments)
        return None

    async def _ask_now(self, ctx: RequestContext, tool: Tool, arguments: str) -> None:
        """Ask in the middle of the call, as the handshake revisions do. Raises PolicyError."""
        try:
            answer = await ctx.session.elicit_form(_format_question(tool, arguments), _EMPTY_FORM, ctx.request_id)
        except MCPError as error:
            raise PolicyError(describe_unasked(tool.name, f"they could not be asked ({error})")) from None
        _check_accepted(tool, answer.action)

    def _answer_or_question(
        self, tool: Tool, arguments: str, params: types.CallToolRequestParams
    ) -> types.InputRequiredResult | None:
        """Ask in the result, as later revisions do: the client repeats the call with the user's answer."""
        call = _AskedCall(tool.name, hashlib.sha256(arguments.encode()).digest())
        asked = self._questions.pop(params.request_state or "", None)
        response = (params.input_responses or {}).get(_RESPONSE_KEY)
        if asked == call and isinstance(response, types.ElicitResult):
            _check_accepted(tool, response.action)
            return None

        state = secrets.token_urlsafe()
        self._questions[state] = call
        while len(self._questions) > MAX_OPEN_QUESTIONS:
            self._questions.popitem(last=False)

        form = types.ElicitRequestFormParams(
            message=_format_question(tool, arguments),
            requested_schema=_EMPTY_FORM,
        )
        return types.InputRequiredResult(
            input_requests={_RESPONSE_KEY: types.ElicitRequest(params=form)},
            request_state=state,
        )


class ServedTool(NamedTuple):
    """A tool, and how clients see it."""

    tool: Tool
    description: types.Tool
    structure: Structure | None
    """The structured result that a tool of a code skill promises."""

    @classmethod
    def make(cls, tool: Tool) -> "ServedTool":
        if tool.name in own_tool_names():
            return cls(tool, _describe_own(tool), None)
        structure = structure_of(tool.method)
        return cls(tool, _describe(tool, structure), structure)


class Tools:
    """Handles `tools/list` and `tools/call`. Each call is a turn of its own."""

    def __init__(
        self,
        shelf: Shelf,
        refresher: ShelfRefresher,
        keys: SkillKeys,
        pending: PendingSkills | None,
        max_age: float = MAX_AGE,
    ) -> None:
        self._shelf = shelf
        self._refresher = refresher
        self._keys = keys
        self._pending = pending
        self._max_age = max_age
        self._approvals = ToolApprovals()
        self._recent = RecentAnswers(shelf)

        self._tools = FrameworkTools(shelf, ServedTool.make)

    @property
    def needs_approval(self) -> bool:
        """True if the user must be asked before some of the tools run."""
        return any(served.tool.permission == "ask" for served in self._tools.current())

    async def list(self, ctx: RequestContext, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[served.description for served in self._tools.current()])

    async def call(
        self, ctx: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tools = {served.tool.name: served for served in self._tools.current()}
        served = tools.get(params.name)
        if served is None:
            served = self._find_blocked(params.name)
        if served is None:
            raise MCPError(INVALID_PARAMS, describe_unknown_tool(params.name, tools))

        tool = served.tool
        arguments = params.arguments or {}
        try:
            check_arguments_size(tool.name, arguments)
            await self._refresher.refresh(self._max_age)

            must_ask = tool.permission == "ask"
            if must_ask:
                question = await self._approvals.request(ctx, tool, params)
                if question is not None:
                    return question
            if tool.name == LOAD_TOOL:
                return await self._load(served, arguments)
            return await self._run(served, arguments, Turn(self._shelf), approved=must_ask)
        except SkillError as error:  # the model gets the message and goes on
            return _text_result(add_pending_notice(error, self._pending), is_error=True)

    def _find_blocked(self, name: str) -> "ServedTool | None":
        """Return a tool that no client is offered, for one that calls it all the same: the answer says why not."""
        for tool in self._shelf.blocked_tools():
            if tool.name == name:
                return ServedTool.make(tool)
        return None

    async def _load(self, served: "ServedTool", arguments: dict[str, Any]) -> types.CallToolResult:
        invoked = self._keys.verify(arguments.get("skill_name"))
        if invoked is not None:  # the client has the key from a prompt: the user invoked the skill
            turn = Turn(self._shelf, invoked=[self._shelf.catalog.find(invoked).descriptor.name])
            return await self._run(served, {**arguments, "skill_name": invoked}, turn)

        if not self._recent.is_current(self._max_age):
            self._recent = RecentAnswers(self._shelf)
        recent = self._recent  # if it is out of date once the file is read, the answer must not go into its successor
        request = json.dumps(arguments, sort_keys=True)
        answer = recent.find(request)
        if answer is None:
            turn = Turn(self._shelf)
            answer = await self._run(served, arguments, turn)
            recent.add(request, answer, turn.activations)
        return answer

    async def _run(
        self, served: "ServedTool", arguments: dict[str, Any], turn: Turn, *, approved: bool = False
    ) -> types.CallToolResult:
        result: types.CallToolResult = await call_tool(
            served.tool,
            arguments,
            turn,
            approved=approved,
            reraise=(MCPError,),
            encode=self._encoder_for(served),
        )
        return result

    def _encoder_for(self, served: "ServedTool") -> Callable[[Any], types.CallToolResult]:
        """Return the function that makes an answer of a tool's result."""
        if served.tool.name == _LIST:
            return self._encode_list
        if served.tool.name == _SEARCH:
            return self._encode_matches
        return partial(_encode_result, served.structure)

    def _encode_list(self, page: dict[str, Any]) -> types.CallToolResult:
        notice = self._pending.notice if self._pending else ""
        if notice:
            page = {**page, "notice": notice}
        return _text_result(text_of(page))

    def _encode_matches(self, matches: dict[str, Any]) -> types.CallToolResult:
        """Encode the skills that a search found. If none fits, pending skills are worth mentioning."""
        if all(skill.get("weak") for skill in matches["skills"]):
            return self._encode_list(matches)
        return _text_result(text_of(matches))


def check_arguments_size(tool: str, arguments: dict[str, Any]) -> None:
    """Raise ToolArgumentError for arguments so long or so deep that reading them is work."""
    room = MAX_CHARACTERS
    stack: list[tuple[Any, int]] = [(arguments, 1)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ToolArgumentError(tool, f"they are nested deeper than {MAX_DEPTH} levels")

        room -= len(value) if isinstance(value, str | list | dict) else 1
        if room < 0:
            raise ToolArgumentError(tool, f"they are longer than {MAX_CHARACTERS:,} characters")

        if isinstance(value, dict):
            stack += [(key, depth + 1) for key in value]
            stack += [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            stack += [(item, depth + 1) for item in value]


def _describe(tool: Tool, structure: Structure | None) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=structure.schema if structure else None,
    )


def _describe_own(tool: Tool) -> types.Tool:
    """Describe a find-skills tool, with what hosts should know of it.

    It changes nothing, so a host need not ask the user before each call. Claude Code offers it to the model from the
    beginning, and leaves tools without this mark to be found by a search.
    """
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        _meta={"anthropic/alwaysLoad": True},
    )


def _encode_result(structure: Structure | None, result: Any) -> types.CallToolResult:
    """Return the answer to a call: its parts for the model and, if the tool promises a structure, that as well."""
    content = [_content_block(part) for part in parts_of(result)]
    if structure is None:
        return types.CallToolResult(content=content)
    try:
        return types.CallToolResult(content=content, structured_content=structure.encode(result))
    except Mismatch as mismatch:
        # A client refuses an answer that breaks the schema it was given. The model still gets the text.
        text = f"This result is not what the tool's return annotation says: {mismatch}."
        return types.CallToolResult(content=[*content, types.TextContent(text=text)], is_error=True)


def _content_block(part: Part) -> types.ContentBlock:
    if isinstance(part, str):
        return types.TextContent(text=part)
    if isinstance(part, Image):
        return types.ImageContent(data=base64_of(part), mime_type=part.media_type)
    return types.AudioContent(data=base64_of(part), mime_type=part.media_type)


def _text_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)


def _format_question(tool: Tool, arguments: str) -> str:
    shown = arguments[:MAX_SHOWN_CHARACTERS].replace("\x7f", "\\u007f")
    hidden = len(arguments) - MAX_SHOWN_CHARACTERS
    if hidden > 0:
        shown += f" … and {hidden:,} more characters"
    return f"Run the tool {tool.name!r} with these arguments?\n{shown}"


def _check_accepted(tool: Tool, action: str) -> None:
    if action != "accept":
        raise PolicyError(describe_denial(tool.name))
