"""MCP servers whose tools the agent may call. Only the user's settings name them; a workspace has no say.

The client is that of the MCP SDK, which the extra `mcp` brings, with a transport of our own for programs.
"""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily
from skillshelf.agent.servers._settings import ServerSettings, find_workspace_servers, load_servers

if TYPE_CHECKING:
    from skillshelf.agent.servers._servers import ToolServers
    from skillshelf.agent.servers._toolset import ServerToolset, server_of

__all__ = ["ServerSettings", "ServerToolset", "ToolServers", "find_workspace_servers", "load_servers", "server_of"]

__getattr__ = export_lazily(
    __name__, {"_servers": ["ToolServers"], "_toolset": ["ServerToolset", "server_of"]}, extra="chat"
)
