"""A shelf as an MCP server: `make_server(shelf)` for any transport, `http_app(server)` for streamable HTTP.

`skillshelf serve` is the command; docs/guides/mcp.md describes what a client sees.
"""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily
from skillshelf.errors import MissingExtraError
from skillshelf.mcp._limits import ConnectionLimits

try:
    import mcp.server  # noqa: F401  # before our own modules, whose error would say less
except ImportError:
    raise MissingExtraError("skillshelf.mcp", "mcp") from None

from skillshelf.mcp._http import MCP_PATH, http_app, is_loopback
from skillshelf.mcp._refresher import PendingSkills
from skillshelf.mcp._server import SkillsServer, make_server
from skillshelf.mcp._stdio import serve_stdio

if TYPE_CHECKING:
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

# A server over standard input and output starts without uvicorn, which takes 20 ms to import.
__getattr__ = export_lazily(__name__, {"_serve": ["listen", "serve_http"]})
