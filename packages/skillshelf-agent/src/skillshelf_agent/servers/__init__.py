"""MCP servers whose tools the agent may call. Only the user's settings name them; a workspace has no say.

The client is that of the MCP SDK, which the extra `mcp` brings, with a transport of our own for programs. See
`docs/adr/0009-pydantic-ai-and-a-gate.md`.
"""

from skillshelf_agent.servers._servers import ServerToolset, ToolServers, server_of
from skillshelf_agent.servers._settings import ServerSettings, load_servers

__all__ = ["ServerSettings", "ServerToolset", "ToolServers", "load_servers", "server_of"]
