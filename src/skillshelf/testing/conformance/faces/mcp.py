"""MCP: the server over the SDK's in-memory client, with a host that does what one that follows the proposal does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from skillshelf.mcp import make_server
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._face import Call, Result, Said

from mcp import Client, types  # isort: skip  # after the server, which says what to install
from mcp.client.context import ClientRequestContext  # isort: skip

LISTING = "skill://listing"


class Host:
    """The server's instructions and its listing, read before each model call, are the system prompt."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        """What is to be closed at the end."""
        self.client: Client
        self._asked: Call | None = None

    async def connect(self, server: Any) -> Host:
        """`server`: anything that the SDK's client can connect to."""
        self.client = await self.stack.enter_async_context(Client(server, elicitation_callback=self._person))
        return self

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        tools = await self.client.list_tools()
        systems, results = [], []
        for call in calls:
            systems.append(await self._system())
            results.append(await self._call(call))
        systems.append(await self._system())
        return Said(tuple(systems), tuple(tool.name for tool in tools.tools), tuple(results), answer)

    async def _system(self) -> str:
        listing = await self.client.read_resource(LISTING)
        texts = [one.text for one in listing.contents if isinstance(one, types.TextResourceContents)]
        return "\n\n".join([self.client.instructions or "", *texts])

    async def _call(self, call: Call) -> Result:
        self._asked = call
        result = await self.client.call_tool(call.tool, call.arguments)
        texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
        return Result("\n".join(texts), bool(result.is_error))

    async def _person(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept" if self._asked and self._asked.approve else "decline")

    async def close(self) -> None:
        await self.stack.aclose()


class MCP:
    name = "mcp"

    async def open(self, shelf: Shelf) -> Host:
        return await Host(AsyncExitStack()).connect(make_server(shelf))


def make() -> MCP:
    return MCP()
