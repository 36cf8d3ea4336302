"""One MCP server: started in the background, asked for its tools, called, and ended."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
from mcp import Client, MCPError, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import ValidationError
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent

from skillshelf.errors import SettingsError
from skillshelf.skills.results import MAX_MEDIA
from skillshelf.text import clean_line, count_noun, find_hidden, hide_values, text_for_model, to_json, truncate
from skillshelf_agent.filetools import sniff_media_type
from skillshelf_agent.servers._limits import (
    MAX_DEPTH,
    MAX_DESCRIPTION,
    MAX_NAME,
    MAX_PARTS,
    MAX_PROBLEM,
    MAX_RESULT,
    MAX_SCHEMA,
    MAX_SCHEMA_TEXT,
    MAX_TOOL_LIST,
    MAX_TOOLS,
    limit_response,
)
from skillshelf_agent.servers._program import ServerProgram
from skillshelf_agent.servers._settings import ServerSettings

State = Literal["starting", "ready", "failed", "stopped"]

_SEPARATOR = "__"
"""Between the server's name and the tool's. No tool of the agent's own has it in its name."""
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")
_ANY_ARGUMENTS: dict[str, Any] = {"type": "object"}
_SOUNDS = ("audio/mpeg", "audio/wav")


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server, as the model gets it."""

    name: str
    """With the server's name in front."""
    remote_name: str
    """The server's own name for it."""
    description: str
    parameters: dict[str, Any]


class ToolServer:
    """A server of the user's settings. `run` is the task that it lives in."""

    def __init__(self, settings: ServerSettings, workspace: str, root: str, report: Callable[[str], None]) -> None:
        """`report` gets sentences for the user."""
        self.settings = settings
        self.state: State = "starting"
        self.problem = ""
        """Why the server cannot be used, in words."""
        self.tools: dict[str, ServerTool] = {}
        self.settled = asyncio.Event()
        """Set when the server is ready or has failed."""
        self._workspace = workspace
        self._root = root
        self._report = report
        self._client: Client | None = None

    @property
    def name(self) -> str:
        return self.settings.name

    async def run(self) -> None:
        """Start the server and keep it until the task is cancelled or the server ends by itself."""
        program: ServerProgram | None = None
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.settings.start_seconds):
                    transport: Any
                    if self.settings.url:
                        transport = await self._open_http(stack)
                    else:
                        program = ServerProgram(self.settings, self._workspace, self._root)
                        transport = program.connect()
                    client = Client(transport)
                    await stack.enter_async_context(client)
                    client.session.validate_tool_result = _accept  # type: ignore[method-assign]
                    self.tools = await self._list_tools(client)
                self._client = client
                self.state = "ready"
                self.settled.set()
                if program is None:
                    await asyncio.Event().wait()
                else:
                    await program.ended.wait()
                    self._fail(program.end_reason, program)
        except asyncio.CancelledError:
            self.state = "stopped"
            raise
        except TimeoutError:
            self._fail(f"it did not start within {self.settings.start_seconds:g} seconds", program)
        except (SettingsError, OSError) as error:
            self._fail(str(error).rstrip("."), program)
        except Exception as error:  # whatever the SDK raises for what a server does; the agent goes on without it
            cause = _unwrap(error)
            reason = self._describe(cause)
            self._fail(f"it sent a damaged reply ({reason})" if _is_damage(cause) else reason, program)
        finally:
            self._client = None
            self.tools = {}
            self.settled.set()

    def _fail(self, reason: str, program: ServerProgram | None) -> None:
        last = self._make_safe(program.last_error) if program is not None else ""
        self.state = "failed"
        self.problem = self._make_safe(reason) + (f" ({last})" if last else "")
        self._report(
            f"The MCP server {self.name} cannot be used: {self.problem}. /mcp restart {self.name} tries again."
        )

    def _describe(self, error: BaseException) -> str:
        if isinstance(error, ValidationError):  # its own text has lines about each of up to 100,000 values
            return f"{count_noun(error.error_count(), 'error')} in {error.title}"
        return self._make_safe(str(error)) or type(error).__name__

    def _make_safe(self, text: str) -> str:
        """Return a text of the server or the SDK for a message: one line, without keys and control characters."""
        hidden = hide_values(text, self.settings.list_secrets())[: 10 * MAX_PROBLEM]
        return truncate(clean_line(hidden), MAX_PROBLEM)

    async def _open_http(self, stack: AsyncExitStack) -> Any:
        timeout = httpx2.Timeout(30, read=self.settings.call_seconds + 30)
        http = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **self.settings.expand_headers()},
            timeout=timeout,
            event_hooks={"response": [limit_response]},
        )
        await stack.enter_async_context(http)
        return streamable_http_client(self.settings.url, http_client=http)

    async def _list_tools(self, client: Client) -> dict[str, ServerTool]:
        found: list[types.Tool] = []
        size = 0
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            size += len(page.model_dump_json())
            if size > MAX_TOOL_LIST:
                raise ValueError(f"its tool list is over {MAX_TOOL_LIST // 1024**2} MiB")
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break

        wanted = self.settings.tools
        if wanted is not None:
            missing = [name for name in wanted if name not in {tool.name for tool in found}]
            if missing:
                self._report(f"The MCP server {self.name} has no tool named {missing[0]!r:.80}.")
            found = [tool for tool in found if tool.name in wanted]
        if len(found) > MAX_TOOLS:
            self._report(
                f"The MCP server {self.name} has more than {MAX_TOOLS} tools, so some are left out. Name those you "
                f"want in your settings: `tools` in [mcp.{self.name}]."
            )
        return _describe_tools(self.name, found)

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool by the name that the model knows. Raises ToolFailed, with words for the model."""
        tool = self.tools.get(name)
        client = self._client
        if tool is None or client is None:
            raise ToolFailed(
                f"The MCP server {self.name} is not running, so {name} cannot be called. Go on without it."
            )
        try:
            async with asyncio.timeout(self.settings.call_seconds):
                result = await client.call_tool(tool.remote_name, arguments)
        except TimeoutError:
            raise ToolFailed(
                f"The MCP server {self.name} did not answer within {self.settings.call_seconds:g} seconds. The call "
                "may still have had an effect."
            ) from None
        except Exception as error:  # the SDK has many classes for what servers and connections do
            cause = _unwrap(error)
            reason = self._describe(cause)
            effect = "The call may still have had an effect."
            if _is_damage(cause):
                text = f"The MCP server {self.name} sent a damaged reply ({reason}). {effect}"
            elif isinstance(cause, MCPError) and cause.code == types.CONNECTION_CLOSED:
                text = f"The MCP server {self.name} ended the connection during the call ({reason}). {effect}"
            elif isinstance(cause, MCPError):
                text = f"The MCP server {self.name} answered with an error: {reason}"
            else:
                text = f"The connection to the MCP server {self.name} broke: {reason}"
            raise ToolFailed(text) from error

        parts = _read_parts(result)
        if result.is_error:
            raise ToolFailed("\n\n".join(part for part in parts if isinstance(part, str)) or "The tool failed.")
        return parts[0] if len(parts) == 1 else parts


async def _accept(name: str, result: types.CallToolResult) -> None:
    """Accept a structured result that does not match the tool's output schema.

    The SDK would match it with the server's own regular expressions, one of which can hold up the agent for ever.
    """


def _unwrap(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_damage(error: BaseException) -> bool:
    """Decide whether an error is about a reply that cannot be understood, or that is over a limit."""
    return isinstance(error, ValidationError) or (isinstance(error, MCPError) and error.code == types.PARSE_ERROR)


def _read_parts(result: types.CallToolResult) -> list[str | BinaryContent]:
    """Return a result as texts and images, no longer than other results."""
    parts: list[str | BinaryContent] = []
    room = MAX_RESULT
    media = MAX_MEDIA
    left_out = 0
    for block in result.content[:MAX_PARTS]:
        if isinstance(block, types.ImageContent | types.AudioContent):
            content = _read_media(block, media)
            if content is None:
                parts.append("[An image or sound was left out: it is too large, damaged or of an unknown kind.]")
            else:
                parts.append(content)
                media -= len(content.data)
            continue

        text = _text_of(block)
        left_out += max(0, len(text) - room)
        text = text[:room]
        room -= len(text)
        if text:
            parts.append(text_for_model(text))

    if left_out:
        parts.append(f"[… {left_out:,} characters were left out]")
    if len(result.content) > MAX_PARTS:
        parts.append(f"[… {count_noun(len(result.content) - MAX_PARTS, 'further part')} left out]")
    if not parts and result.structured_content is not None:
        parts.append(truncate(text_for_model(to_json(result.structured_content)), MAX_RESULT))
    return parts or ["(no output)"]


def _read_media(block: types.ImageContent | types.AudioContent, room: int) -> BinaryContent | None:
    """Return an image or sound of a kind that providers take, or None.

    They refuse every request with another one in it, and the conversation would keep it.
    """
    try:
        data = base64.b64decode(block.data, validate=True)
    except ValueError:
        return None
    if len(data) > room:
        return None
    if isinstance(block, types.ImageContent):
        media_type = sniff_media_type(data)
        return BinaryContent(data, media_type=media_type) if media_type.startswith("image/") else None
    return BinaryContent(data, media_type=block.mime_type) if block.mime_type in _SOUNDS else None


def _text_of(block: Any) -> str:
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.ResourceLink):
        return f"[Resource: {block.uri}]"
    if isinstance(block, types.EmbeddedResource):
        return str(getattr(block.resource, "text", f"[Resource: {block.resource.uri}]"))
    return f"[{type(block).__name__}]"


# -- tools, made fit for a prompt: names that cannot collide, and bounded, visible text -------------------------------


def _describe_tools(server: str, tools: Sequence[types.Tool]) -> dict[str, ServerTool]:
    """Return the tools for the model by their new names. The first count, up to the limit."""
    described: dict[str, ServerTool] = {}
    for tool in tools:
        name = _make_name(server, tool.name)
        if name not in described and len(described) < MAX_TOOLS:
            text = truncate(clean_line(tool.description or ""), MAX_DESCRIPTION)
            description = f"[From the MCP server {server}] {text}".rstrip()
            described[name] = ServerTool(name, tool.name, description, _clean_schema(tool.input_schema))
    return described


def _make_name(server: str, tool: str) -> str:
    """Return a name that providers accept. A name that had to be shortened gets a mark that keeps it apart."""
    plain = _OTHER_CHARACTERS.sub("_", tool) or "tool"
    room = MAX_NAME - len(server) - len(_SEPARATOR)
    if len(plain) > room:
        mark = hashlib.sha256(tool.encode(errors="surrogatepass")).hexdigest()[:8]
        plain = f"{plain[: room - 9]}_{mark}"
    return f"{server}{_SEPARATOR}{plain}"


def _clean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its texts cut and cleaned. One that is too large, too deep or hides something is dropped."""
    try:
        cleaned = _clean_value(schema, 0)
        is_fit = isinstance(cleaned, dict) and len(json.dumps(cleaned)) <= MAX_SCHEMA
    except (ValueError, TypeError, RecursionError):
        is_fit = False
    if not is_fit:
        return dict(_ANY_ARGUMENTS)
    return {**cleaned, "type": "object"}


def _clean_value(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, str):
        return truncate(clean_line(value), MAX_SCHEMA_TEXT)
    if isinstance(value, Mapping):
        cleaned: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str) or not key.isprintable() or any(find_hidden(key)):
                raise ValueError("a name that cannot be shown")
            cleaned[key] = _clean_value(item, depth + 1)
        return cleaned
    if isinstance(value, list | tuple):
        return [_clean_value(item, depth + 1) for item in value]
    return value
