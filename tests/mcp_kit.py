"""A shelf of three skills behind the MCP server, and a client of the SDK in this process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client, types

from skillshelf import MemorySource, Shelf
from skillshelf.mcp import make_server

PDF = "---\nname: pdf\ndescription: Fill in PDF forms.\nmetadata:\n  version: '1.5'\n---\n\n# PDF\n\nSee forms.md.\n"
MANUAL = "---\nname: deploy\ndescription: Deploy it.\ndisable-model-invocation: true\n---\n\nDeploy $ARGUMENTS.\n"
ROUNDS = "---\nname: notes\ndescription: Write notes.\narguments: [version, style]\n---\n\nFor $version in $style.\n"
FILES: dict[str, str | bytes] = {
    "SKILL.md": PDF,
    "references/forms.md": "Fields.\n",
    "assets/logo.png": b"\x89PNG\0\xff",
}


def shelf_of(**skills: Any) -> tuple[Shelf, MemorySource]:
    source = MemorySource({"pdf": FILES, "deploy": MANUAL, "notes": ROUNDS, **skills})
    return Shelf([source]), source


def talk(shelf: Shelf, use: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        async with Client(make_server(shelf), **options) as client:
            return await use(client)

    return asyncio.run(main())


def text(result: types.CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def load(client: Client, **arguments: Any) -> types.CallToolResult:
    return await client.call_tool("load_skill_instructions", arguments)
