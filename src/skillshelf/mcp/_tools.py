"""The find-skills tools and those of code skills. Their descriptions are the code's own: no skill's text is in them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from mcp import MCPError, types
from mcp.types import INVALID_PARAMS

from skillshelf.adapters import call_tool
from skillshelf.catalog import Catalog
from skillshelf.discovery import SkillDiscoverySkill, all_tools
from skillshelf.errors import SkillError, ToolArgumentError
from skillshelf.mcp._approval import Approvals
from skillshelf.mcp._keys import Keys
from skillshelf.mcp._looks import LOOK_SECONDS, Looks, in_thread
from skillshelf.mcp._pending import PendingSkills, explain_error
from skillshelf.mcp._reads import Asked
from skillshelf.mcp._turns import Client, Context
from skillshelf.results import Image, Part, Structure, base64_of, parts_of, structure_of, text_of
from skillshelf.schema import Mismatch
from skillshelf.shelf import Shelf
from skillshelf.tools import Tool, describe_unknown_tool, typed_errors
from skillshelf.turn import Turn, use_turn

_LIST = "list_skills"
_SEARCH = "search_skills"
_LOAD = "load_skill_instructions"
MAX_CHARACTERS, MAX_DEPTH = 1_000_000, 64
"""Of the arguments of one call."""
# Then a host need not ask the person before each call.
_READS = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

Answer = types.CallToolResult | types.InputRequiredResult


class Tools:
    def __init__(self, shelf: Shelf, looks: Looks, keys: Keys, pending: PendingSkills | None) -> None:
        self._shelf = shelf
        self._looks = looks
        self._keys = keys
        self._pending = pending
        own = {tool.name for tool in SkillDiscoverySkill(shelf).tools()}
        self._tools = {tool.name: tool for tool in all_tools(shelf)}
        self._structures = {name: structure_of(tool.method) for name, tool in self._tools.items() if name not in own}
        tools = [
            _listed(tool, own=name in own, structure=self._structures.get(name)) for name, tool in self._tools.items()
        ]
        self._listed = types.ListToolsResult(tools=tools)
        self._every: tuple[Catalog, str, types.CallToolResult] | None = None
        """The answer that names all skills, and the catalog and the notice it was made from."""
        self._lock = anyio.Lock()
        self._approvals = Approvals()
        self.asks = any(tool.permission == "ask" for tool in self._tools.values())
        """Whether the person must be asked before some of them run."""

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return self._listed

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, describe_unknown_tool(params.name, self._tools))
        arguments = params.arguments or {}
        try:
            await self._looks.look(LOOK_SECONDS)
            if tool.name == _LIST and not arguments:
                return await self._list_skills(tool)
            client = ctx.lifespan_context.clients.of(ctx)
            if tool.name == _LOAD:
                return await _load(tool, client, self._let_in(client, arguments))
            bound(tool.name, arguments)
            asks = tool.permission == "ask"
            question = await self._approvals.ask(ctx, tool, params) if asks else None
            if question is not None:
                return question
            result: types.CallToolResult = await call_tool(
                tool,
                arguments,
                client.open().turn,
                approved=asks,
                reraise=(MCPError,),
                encode=self._encoder(tool),
            )
            return result
        except SkillError as error:  # the model hears of it and goes on
            return _told(explain_error(error, self._pending), is_error=True)

    def _let_in(self, client: Client, arguments: dict[str, Any]) -> dict[str, Any]:
        """Whoever has the key has got it with the prompt: the person has invoked the skill."""
        name = self._keys.name_of(arguments.get("skill_name"))
        if name is None:
            return arguments
        client.invoked.add(self._shelf.catalog.find(name).descriptor.name)
        return {**arguments, "skill_name": name}

    async def _list_skills(self, tool: Tool) -> types.CallToolResult:
        """The same for everybody until something changes, and long: made once and held once."""
        async with self._lock:
            catalog = self._shelf.catalog
            notice = self._notice
            if self._every is None or self._every[0] is not catalog or self._every[1] != notice:
                self._every = catalog, notice, self._encode_list(await in_thread(tool.call, {}))
            return self._every[2]

    @property
    def _notice(self) -> str:
        return self._pending.notice if self._pending else ""

    def _encoder(self, tool: Tool) -> Callable[[Any], types.CallToolResult]:
        """Return the function that makes an answer of a tool's result."""
        if tool.name == _LIST:
            return self._encode_list
        if tool.name == _SEARCH:
            return self._encode_matches
        return partial(_result, self._structures.get(tool.name))

    def _encode_list(self, page: dict[str, Any]) -> types.CallToolResult:
        return _told(text_of({**page, "notice": self._notice} if self._notice else page))

    def _encode_matches(self, found: dict[str, Any]) -> types.CallToolResult:
        """Encode the skills that a search found. If there are none, pending skills are worth mentioning."""
        return _told(text_of(found)) if found["skills"] else self._encode_list(found)


async def _load(tool: Tool, client: Client, arguments: dict[str, Any]) -> types.CallToolResult:
    """The load, in the client's turn: the same again is the same answer, without a thread or a file."""
    asked = _asked(arguments)
    on = client.open()
    if asked is not None and asked in on.answers:
        on.turn.hits += 1
        return on.answers[asked]
    bound(tool.name, arguments)
    if asked is not None and not client.is_reading and on.turn.is_at_hand(asked):
        text = _call_in(on.turn, tool, arguments)
    else:
        async with client.reading():
            on = client.open()  # not before: the load that this one waited for may have been given up, its turn with it
            text = await in_thread(_call_in, on.turn, tool, arguments)
    answer = _told(text)
    if asked is not None:
        on.keep(asked, answer, text)
    return answer


def _call_in(turn: Turn, tool: Tool, arguments: dict[str, Any]) -> str:
    with use_turn(turn), typed_errors(tool):  # a source of somebody's own may raise anything
        return text_of(tool.call(arguments))


def _asked(arguments: dict[str, Any]) -> Asked | None:
    """What a load asks for; None where its arguments have yet to be refused."""
    name, reference, offset = arguments.get("skill_name"), arguments.get("reference"), arguments.get("offset", 0)
    reference = "" if reference is None else reference
    known = arguments.keys() <= {"skill_name", "reference", "offset"}
    if not known or not isinstance(name, str) or not isinstance(reference, str) or type(offset) is not int:
        return None
    return name, reference, offset


def bound(tool: str, arguments: dict[str, Any]) -> None:
    """Raises ToolArgumentError for arguments so long or so deep that looking at them is work."""
    left = MAX_CHARACTERS
    stack: list[tuple[Any, int]] = [(arguments, 1)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ToolArgumentError(tool, f"they are nested deeper than {MAX_DEPTH} levels")
        left -= len(value) if isinstance(value, str | list | dict) else 1
        if left < 0:
            raise ToolArgumentError(tool, f"they are longer than {MAX_CHARACTERS:,} characters")
        if isinstance(value, dict):
            stack += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            stack += [(part, depth + 1) for part in value]


def _listed(tool: Tool, *, own: bool, structure: Structure | None) -> types.Tool:
    """Of our own a host may know that they change nothing, and has them before the model from the beginning: Claude
    Code leaves others for it to find with a search. Of a code skill's nothing is known."""
    told: Any = {"annotations": _READS, "_meta": {"anthropic/alwaysLoad": True}} if own else {}
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=structure.schema if structure else None,
        **told,
    )


def _result(structure: Structure | None, result: Any) -> types.CallToolResult:
    """Return the answer to a call: its parts for the model and, if the tool promises a structure, that as well."""
    content = [_block(part) for part in parts_of(result)]
    if structure is None:
        return types.CallToolResult(content=content)
    try:
        return types.CallToolResult(content=content, structured_content=structure.encode(result))
    except Mismatch as mismatch:
        # A client refuses an answer that breaks the schema it was given. The model still gets the text.
        text = f"This result is not what the tool's return annotation says: {mismatch}."
        return types.CallToolResult(content=[*content, types.TextContent(text=text)], is_error=True)


def _block(part: Part) -> types.ContentBlock:
    if isinstance(part, str):
        return types.TextContent(text=part)
    if isinstance(part, Image):
        return types.ImageContent(data=base64_of(part), mime_type=part.media_type)
    return types.AudioContent(data=base64_of(part), mime_type=part.media_type)


def _told(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)
