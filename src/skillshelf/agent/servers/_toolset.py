"""The servers' tools as pydantic-ai takes them. The gate recognizes them by their metadata."""

from __future__ import annotations

from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from skillshelf.agent.servers._servers import ToolServers

_SERVER = "skillshelf_mcp_server"
# The server checks its arguments itself: its schema is only shown to the model.
_ANY_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


class ServerToolset(AbstractToolset[Any]):
    """The tools of all servers that are ready. Servers that are still starting are waited for."""

    def __init__(self, servers: ToolServers) -> None:
        self._servers = servers

    @property
    def id(self) -> str:
        return "skillshelf_servers"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        await self._servers.wait_until_settled()
        tools: dict[str, ToolsetTool[Any]] = {}
        for definition in self.definitions():
            tools[definition.name] = ToolsetTool(
                toolset=self, tool_def=definition, max_retries=ctx.max_retries, args_validator=_ANY_ARGUMENTS
            )
        return tools

    def definitions(self) -> list[ToolDefinition]:
        """Return the tools that can be called now."""
        return [
            ToolDefinition(
                name=tool.name,
                parameters_json_schema=tool.parameters,
                description=tool.description,
                metadata={_SERVER: server.name},
            )
            for server in self._servers.servers
            for tool in server.tools.values()
        ]

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        return await self._servers.call(name, tool_args)


def server_of(tool: ToolDefinition) -> str:
    """Return the name of the MCP server that a tool comes from, or an empty string."""
    return str((tool.metadata or {}).get(_SERVER, ""))
