"""MCP over the SDK's client, with a host that follows the skills proposal: in memory, over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from skillshelf.mcp import make_server
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._face import Call, Reply, Result
from skillshelf.testing.conformance._stage import server_command

import httpx2  # isort: skip  # after the server, which names the extra to install
from mcp import Client, StdioServerParameters, types  # isort: skip
from mcp.client.context import ClientRequestContext  # isort: skip
from mcp.client.stdio import stdio_client  # isort: skip
from mcp.client.streamable_http import streamable_http_client  # isort: skip

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
    """`skillshelf serve` in a process that the SDK's client starts, as a host does."""

    name = "mcp-stdio"

    async def open(self, shelf: Shelf) -> ScriptedClient:
        python, *words = server_command(shelf)
        parameters = StdioServerParameters(command=python, args=words, env=dict(os.environ))
        stack = AsyncExitStack()
        with open(os.devnull, "w", encoding="utf-8") as silence:  # its messages on standard error are for users
            return await ScriptedClient(stack).connect(stdio_client(parameters, errlog=silence))


class MCPHttp:
    """`skillshelf serve --http` in a process of its own, on a loopback socket, with a token."""

    name = "mcp-http"

    async def open(self, shelf: Shelf) -> ScriptedClient:
        token = secrets.token_urlsafe()
        process = await asyncio.create_subprocess_exec(
            *server_command(shelf, "--http", "--port", "0"),
            stdin=PIPE,
            stderr=PIPE,
            env={**os.environ, "SKILLSHELF_TOKEN": token},
        )
        stack = AsyncExitStack()
        stack.push_async_callback(_stop, process)
        try:
            url = await _read_url(process)
            headers = {"authorization": f"Bearer {token}"}
            # This machine is not reached through a proxy that the environment names.
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, trust_env=False))
            return await ScriptedClient(stack).connect(streamable_http_client(url, http_client=http))
        except BaseException:
            await stack.aclose()
            raise


async def _read_url(process: Process) -> str:
    """Return the address that the server prints. Raises RuntimeError with its output if it prints none."""
    assert process.stderr is not None
    output = ""
    async for line in process.stderr:
        text = line.decode()
        match = re.search(r"http://\S+", text)
        if match:
            return match[0]
        output += text
    raise RuntimeError(f"skillshelf serve --http did not start: {output}")


async def _stop(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
    await process.wait()
