"""A shelf as an MCP server: `make_server(shelf)` for any transport, `http_app(server)` for streamable HTTP.

`skillshelf serve` is the command; docs/guides/mcp.md describes what a client sees.
"""

from typing import TYPE_CHECKING

from skillshelf.errors import MissingExtraError
from skillshelf.lazy import export_lazily
from skillshelf.mcp._limits import ConnectionLimits

try:
    from mcp import MCPError  # noqa: F401  # before our own modules, whose error would say less; version 1 has none
except ImportError:
    raise MissingExtraError("skillshelf.mcp", "mcp") from None

from skillshelf.mcp._refresher import PendingSkills
from skillshelf.mcp._server import SkillsServer, make_server
from skillshelf.mcp._stdio import serve_stdio

if TYPE_CHECKING:
    from skillshelf.mcp._http import MCP_PATH, http_app, is_loopback
    from skillshelf.mcp._serve import listen, serve_http

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
# A host waits for a server over standard input to start; HTTP takes a tenth of that time, and it needs none of it.
__getattr__ = export_lazily(
    __name__, {"_http": ["MCP_PATH", "http_app", "is_loopback"], "_serve": ["listen", "serve_http"]}
)
