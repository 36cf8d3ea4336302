"""MCP over pipes: `skillshelf serve` in a process that the SDK's client starts, as a host does."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack

from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._stage import server_command
from skillshelf.testing.conformance.faces.mcp import ScriptedClient

from mcp import StdioServerParameters  # isort: skip  # after the server, which names the extra to install
from mcp.client.stdio import stdio_client  # isort: skip


class MCPStdio:
    name = "mcp-stdio"

    async def open(self, shelf: Shelf) -> ScriptedClient:
        python, *words = server_command(shelf)
        parameters = StdioServerParameters(command=python, args=words, env=dict(os.environ))
        stack = AsyncExitStack()
        with open(os.devnull, "w", encoding="utf-8") as silence:  # its messages on standard error are for users
            return await ScriptedClient(stack).connect(stdio_client(parameters, errlog=silence))


def make() -> MCPStdio:
    return MCPStdio()
