"""A shelf as an MCP server: `make_server(shelf)` for any transport, `http_app(server)` for streamable HTTP.

`skillshelf serve` is the command; docs/guides/mcp.md describes what a client sees.
"""

from skillshelf.errors import MissingExtraError
from skillshelf.mcp._limits import ConnectionLimits

try:
    from mcp import MCPError  # noqa: F401  # before our own modules, whose error would say less; version 1 has none
except ImportError:
    raise MissingExtraError("skillshelf.mcp", "mcp") from None

from skillshelf.mcp._http import MCP_PATH, http_app, is_loopback
from skillshelf.mcp._refresher import PendingSkills
from skillshelf.mcp._serve import listen, serve_http
from skillshelf.mcp._server import SkillsServer, make_server
from skillshelf.mcp._stdio import serve_stdio

__all__ = [
    "MCP_PATH",
    "ConnectionLimits",
    "PendingSkills",
    "SkillsServer",
    "http_app",
    "is_loopback",
    "listen",
    "make_server",
    "serve_http",
    "serve_stdio",
]
