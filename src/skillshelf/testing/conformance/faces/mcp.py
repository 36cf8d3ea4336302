"""MCP over the SDK's in-memory client, with a host that follows the skills proposal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from skillshelf.mcp import make_server
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._face import Call, Reply, Result

from mcp import Client, types  # isort: skip  # after the server, which names the extra to install
from mcp.client.context import ClientRequestContext  # isort: skip

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
    name = "mcp"

    async def open(self, shelf: Shelf) -> ScriptedClient:
        return await ScriptedClient(AsyncExitStack()).connect(make_server(shelf))


def make() -> MCP:
    return MCP()
