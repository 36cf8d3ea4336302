"""One MCP server: started in the background, asked for its tools, called, and ended."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Literal

import httpx2
from mcp import Client, MCPError, types
from mcp.client.streamable_http import streamable_http_client
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent

from skillshelf.agent.filetools import sniff_media_type
from skillshelf.agent.servers._describe import MAX_TOOLS, RawTool, ServerTool, describe_tools
from skillshelf.agent.servers._program import ServerProgram
from skillshelf.agent.servers._settings import ServerSettings
from skillshelf.errors import SettingsError
from skillshelf.results import MAX_MEDIA
from skillshelf.text import clean_line, count_noun, hide_values, text_for_model, to_json, truncate

State = Literal["starting", "ready", "failed", "stopped"]

_MAX_PAGES = 20
_MAX_RESULT = 50_000
_MAX_PARTS = 100
_SOUNDS = ("audio/mpeg", "audio/wav")
_MAX_PROBLEM = 300


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
                    self.tools = await self._list_tools(client)
                self._client = client
                self.state = "ready"
                self.settled.set()
                await (program.ended if program is not None else asyncio.Event()).wait()
                self._fail("it ended", program)
        except asyncio.CancelledError:
            self.state = "stopped"
            raise
        except TimeoutError:
            self._fail(f"it did not start within {self.settings.start_seconds:g} seconds", program)
        except (SettingsError, OSError) as error:
            self._fail(str(error).rstrip("."), program)
        except Exception as error:  # whatever the SDK raises for what a server does; the agent goes on without it
            self._fail(self._describe(error), program)
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
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return self._make_safe(str(error)) or type(error).__name__

    def _make_safe(self, text: str) -> str:
        """Return a text of the server or the SDK for a message: one line, without keys and control characters."""
        return truncate(clean_line(hide_values(text, self.settings.list_secrets())), _MAX_PROBLEM)

    async def _open_http(self, stack: AsyncExitStack) -> Any:
        timeout = httpx2.Timeout(30, read=self.settings.call_seconds + 30)
        http = httpx2.AsyncClient(headers=self.settings.expand_headers(), timeout=timeout)
        await stack.enter_async_context(http)
        return streamable_http_client(self.settings.url, http_client=http)

    async def _list_tools(self, client: Client) -> dict[str, ServerTool]:
        found: list[RawTool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += [RawTool(tool.name, tool.description or "", tool.input_schema) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None or len(found) > MAX_TOOLS:
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
        return describe_tools(self.name, found)

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
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                raise ToolFailed(
                    f"The MCP server {self.name} ended the connection during the call. The call may still have had an "
                    "effect."
                ) from error
            raise ToolFailed(f"The MCP server {self.name} answered with an error: {self._describe(error)}") from error
        except Exception as error:  # the connection broke: the SDK has many words for that
            raise ToolFailed(f"The connection to the MCP server {self.name} broke: {self._describe(error)}") from error

        parts = _read_parts(result)
        if result.is_error:
            raise ToolFailed("\n\n".join(part for part in parts if isinstance(part, str)) or "The tool failed.")
        return parts[0] if len(parts) == 1 else parts


def _read_parts(result: types.CallToolResult) -> list[str | BinaryContent]:
    """Return a result as texts and images, no longer than other results."""
    parts: list[str | BinaryContent] = []
    room = _MAX_RESULT
    media = MAX_MEDIA
    left_out = 0
    for block in result.content[:_MAX_PARTS]:
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
    if len(result.content) > _MAX_PARTS:
        parts.append(f"[… {count_noun(len(result.content) - _MAX_PARTS, 'further part')} left out]")
    if not parts and result.structured_content is not None:
        parts.append(truncate(text_for_model(to_json(result.structured_content)), _MAX_RESULT))
    return parts or ["(no output)"]


def _read_media(block: types.ImageContent | types.AudioContent, room: int) -> BinaryContent | None:
    """Return an image or sound of a kind that providers take, or None.

    They refuse every request with another one in it, and the conversation would keep it.
    """
    data = _decode(block.data)
    if data is None or len(data) > room:
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


def _decode(data: str) -> bytes | None:
    if len(data) > 2 * MAX_MEDIA:
        return None
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None
