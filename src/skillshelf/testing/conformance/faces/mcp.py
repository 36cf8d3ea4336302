"""MCP: the server over the SDK's in-memory client, with a host that does what one that follows the proposal does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from skillshelf.mcp import make_server
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance.face import Call, Result, Said

from mcp import Client, types  # isort: skip  # after the server, which says what to install

LISTING = "skill://listing"


@dataclass
class _Conversation:
    """The host: the server's instructions and its listing, read before each model call, are the system prompt."""

    client: Client
    stack: AsyncExitStack

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
        result = await self.client.call_tool(call.tool, call.arguments)
        texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
        return Result("\n".join(texts), bool(result.is_error))

    async def close(self) -> None:
        await self.stack.aclose()


class MCP:
    name = "mcp"

    async def open(self, shelf: Shelf) -> _Conversation:
        stack = AsyncExitStack()
        return _Conversation(await stack.enter_async_context(Client(make_server(shelf))), stack)


def make() -> MCP:
    return MCP()
