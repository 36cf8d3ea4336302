"""MCP over streamable HTTP: `skillshelf serve --http` in a process of its own, on a loopback socket, with a token."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from asyncio.subprocess import PIPE, Process
from contextlib import AsyncExitStack

from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._stage import server_command
from skillshelf.testing.conformance.faces.mcp import ScriptedClient

import httpx2  # isort: skip  # after the server, which names the extra to install
from mcp.client.streamable_http import streamable_http_client  # isort: skip


class MCPHttp:
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


def make() -> MCPHttp:
    return MCPHttp()
