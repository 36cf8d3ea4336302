"""MCP over the SDK's client, with a host that follows the skills proposal: in memory, over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from skillshelf.mcp import MCP_PATH, http_app, listen, make_server, serve_http
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance import Call, Reply, Result, server_command

LISTING = "skill://listing"


class ScriptedClient:
    """A host whose system prompt is the server's instructions and its listing, read before each model call."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        """Everything to close at the end."""
        self.client: Client
        self._current_call: Call | None = None

    async def connect(self, server: Any) -> ScriptedClient:
        """Connect to a server: anything that the SDK's client accepts."""
        self.client = await self.stack.enter_async_context(Client(server, elicitation_callback=self._answer_question))
        return self

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        tools = await self.client.list_tools()
        system_prompts: list[str] = []
        results: list[Result] = []
        for call in calls:
            system_prompts.append(await self._read_system_prompt())
            results.append(await self._call_tool(call))
        system_prompts.append(await self._read_system_prompt())
        return Reply(
            system_prompts=tuple(system_prompts),
            tools=tuple(tool.name for tool in tools.tools),
            results=tuple(results),
            answer=answer,
        )

    async def _read_system_prompt(self) -> str:
        listing = await self.client.read_resource(LISTING)
        texts = [content.text for content in listing.contents if isinstance(content, types.TextResourceContents)]
        return "\n\n".join([self.client.instructions or "", *texts])

    async def _call_tool(self, call: Call) -> Result:
        self._current_call = call
        result = await self.client.call_tool(call.tool, call.arguments)
        texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
        return Result("\n".join(texts), bool(result.is_error))

    async def _answer_question(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        is_approved = self._current_call is not None and self._current_call.approve
        return types.ElicitResult(action="accept" if is_approved else "decline")

    async def close(self) -> None:
        await self.stack.aclose()


class MCP:
    """A server in this process."""

    name = "mcp"

    async def open(self, shelf: Shelf) -> ScriptedClient:
        return await ScriptedClient(AsyncExitStack()).connect(make_server(shelf))


class MCPStdio:
    """A server in a process that the SDK's client starts, as a host does."""

    name = "mcp-stdio"

    async def open(self, shelf: Shelf) -> ScriptedClient:
        python, *words = server_command(shelf)
        parameters = StdioServerParameters(command=python, args=words, env=dict(os.environ))
        stack = AsyncExitStack()
        with open(os.devnull, "w", encoding="utf-8") as silence:
            return await ScriptedClient(stack).connect(stdio_client(parameters, errlog=silence))


class MCPHttp:
    """A server on a loopback socket, with a token."""

    name = "mcp-http"

    async def open(self, shelf: Shelf) -> ScriptedClient:
        token = secrets.token_urlsafe()
        server = make_server(shelf)
        app = http_app(server, token=token, host="127.0.0.1", origins=[])
        stack = AsyncExitStack()
        listening = stack.enter_context(listen("127.0.0.1", 0))
        serving = asyncio.create_task(serve_http(app, listening, close_streams=server.close_streams))
        stack.push_async_callback(_cancel, serving)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}{MCP_PATH}"
        headers = {"authorization": f"Bearer {token}"}
        # This machine is not reached through a proxy that the environment names.
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, trust_env=False))
        return await ScriptedClient(stack).connect(streamable_http_client(url, http_client=http))


async def _cancel(serving: asyncio.Task[None]) -> None:
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
