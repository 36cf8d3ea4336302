"""A shelf as an MCP server: `make_server(shelf)` for any transport, `http_app(server)` for streamable HTTP.

`skillshelf serve` is the command. docs/guides/mcp.md says what a client sees.
"""

from typing import TYPE_CHECKING, Any

from skillshelf.errors import MissingExtraError

try:
    import mcp.server  # noqa: F401  # before our own modules, which would fail with less to say
except ImportError:
    raise MissingExtraError("skillshelf.mcp", "mcp") from None

from skillshelf.mcp._pending import PendingSkills
from skillshelf.mcp.http import http_app
from skillshelf.mcp.server import SkillsServer, make_server
from skillshelf.mcp.stdio import serve_stdio

if TYPE_CHECKING:
    from skillshelf.mcp.serving import ConnectionProtocol, serve_http

__all__ = [
    "ConnectionProtocol",
    "PendingSkills",
    "SkillsServer",
    "http_app",
    "make_server",
    "serve_http",
    "serve_stdio",
]


def __getattr__(name: str) -> Any:
    # A server over standard input and output starts without uvicorn, which takes 20 ms to import.
    if name in ("ConnectionProtocol", "serve_http"):
        from skillshelf.mcp import serving

        return getattr(serving, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
