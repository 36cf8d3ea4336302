"""The servers of one conversation, from its first message to the end of the program, and their tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from skillshelf.errors import MissingExtraError, SettingsError
from skillshelf.settings import settings_file
from skillshelf_agent.servers._limits import MAX_NOTICES
from skillshelf_agent.servers._settings import ServerSettings, find_workspace_servers

if TYPE_CHECKING:
    from skillshelf_agent.servers._server import ToolServer

_SERVER = "skillshelf_mcp_server"
# The server checks its arguments itself: its schema is only shown to the model.
_ANY_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


class ToolServers:
    """MCP servers whose tools the model gets while the block lasts: `async with core.servers:`."""

    def __init__(self, settings: Sequence[ServerSettings] = (), workspace: str = "", *, root: str = "") -> None:
        """`workspace`: the folder that the agent works in. `root`: the root of its repository, if that is another one.

        Raises MissingExtraError if there is a server to start.
        """
        self._settings = tuple(settings)
        self._workspace = workspace
        self._root = root or workspace
        self._servers: dict[str, ToolServer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._notices: list[str] = []
        if self._settings:
            try:
                from mcp import Client  # noqa: F401  # version 1 has none
            except ImportError:
                raise MissingExtraError("MCP servers", "mcp") from None
        self._notices += _describe_unused(workspace)

    @property
    def servers(self) -> Sequence[ToolServer]:
        """The servers that were started."""
        return tuple(self._servers.values())

    async def __aenter__(self) -> ToolServers:
        for settings in self._settings:
            self._start(settings)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all servers. None of their processes is left."""
        await asyncio.gather(*(self._stop(name) for name in self._tasks))
        self._tasks.clear()

    async def restart(self, name: str) -> None:
        """End a server and start it again. Raises SettingsError if there is none of this name."""
        if name not in self._servers:
            names = ", ".join(self._servers) or "none"
            raise SettingsError(f"There is no MCP server named {name!r:.80} here. Servers: {names}.")
        await self._stop(name)
        self._start(self._servers[name].settings)

    async def wait_until_settled(self) -> None:
        """Wait until each server is ready or has failed. Each has its own limit for that."""
        for server in self.servers:
            await server.settled.wait()

    def find(self, tool: str) -> ToolServer | None:
        """Return the server of a tool, by the name that the model knows."""
        for server in self.servers:
            if tool in server.tools:
                return server
        return None

    def take_notices(self) -> list[str]:
        """Return what the user should know since the last time."""
        notices = self._notices[:MAX_NOTICES]
        self._notices.clear()
        return notices

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool. Raises ToolFailed."""
        server = self.find(tool)
        if server is None:
            raise ToolFailed(f"The MCP server of {tool} is not running any more. Go on without it.")
        return await server.call(tool, arguments)

    async def _stop(self, name: str) -> None:
        task = self._tasks[name]
        if self._servers[name].state != "failed":  # a failed one is ending already, and must not be interrupted in that
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _start(self, settings: ServerSettings) -> None:
        from skillshelf_agent.servers._server import ToolServer  # needs the extra `mcp`

        server = ToolServer(settings, self._workspace, self._root, self._notices.append)
        self._servers[settings.name] = server
        self._tasks[settings.name] = asyncio.create_task(server.run())


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


def _describe_unused(workspace: str) -> list[str]:
    """Name the files of a workspace that other tools would take servers from."""
    found = find_workspace_servers(workspace) if workspace else []
    if not found:
        return []
    return [
        f"{found[0]} of this workspace is not used: MCP servers are programs, so only your own settings name them. "
        f"Add those you want to {settings_file()}, as [mcp.NAME]."
    ]
