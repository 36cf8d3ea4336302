"""Put a shelf of three skills behind the MCP server, and connect the SDK's in-memory client to it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client, types

from skillshelf import MemorySource, Shelf
from skillshelf.mcp import SkillsServer, make_server

PDF = "---\nname: pdf\ndescription: Fill in PDF forms.\nmetadata:\n  version: '1.5'\n---\n\n# PDF\n\nSee forms.md.\n"
MANUAL = "---\nname: deploy\ndescription: Deploy it.\ndisable-model-invocation: true\n---\n\nDeploy $ARGUMENTS.\n"
ROUNDS = "---\nname: notes\ndescription: Write notes.\narguments: [version, style]\n---\n\nFor $version in $style.\n"
FILES: dict[str, str | bytes] = {
    "SKILL.md": PDF,
    "references/forms.md": "Fields.\n",
    "assets/logo.png": b"\x89PNG\0\xff",
}


def make_shelf(**skills: Any) -> tuple[Shelf, MemorySource]:
    source = MemorySource({"pdf": FILES, "deploy": MANUAL, "notes": ROUNDS, **skills})
    return Shelf([source]), source


def talk(shelf: Shelf | SkillsServer, use: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """Connect a client to this server, or to a server of this shelf, and call `use` with it."""
    server = make_server(shelf) if isinstance(shelf, Shelf) else shelf

    async def main() -> Any:
        async with Client(server, **options) as client:
            return await use(client)

    return asyncio.run(main())


def text(result: types.CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def invoke(client: Client, name: str) -> str:
    """Invoke a skill that is not for the model, and return the name with the key from its prompt."""
    prompt = await client.get_prompt(name, {})
    [message] = prompt.messages
    assert isinstance(message.content, types.TextContent)
    [signed] = set(re.findall(rf"{name}#\w+", message.content.text))
    return str(signed)


async def load(client: Client, **arguments: Any) -> types.CallToolResult:
    return await client.call_tool("load_skill_instructions", arguments)
