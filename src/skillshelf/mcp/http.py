"""Streamable HTTP, and who may use it: the right Host, Origin and token, before anything else is looked at."""

import hmac
import ipaddress
import re
import socket
from collections.abc import Collection, Mapping
from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillshelf.errors import SettingsError
from skillshelf.mcp.server import SkillsServer
from skillshelf.mcp.turns import CONNECTION

PATH, HEALTH = "/mcp", "/health"
MAX_BODY = 4 * 1024 * 1024
_LOOPBACK_HOST = re.compile(rb"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def http_app(
    server: SkillsServer, *, token: str = "", host: str = "127.0.0.1", origins: Collection[str] = ()
) -> ASGIApp:
    """The server as an ASGI application. Raises SettingsError for a host that others can reach without a token."""
    if not is_loopback(host) and not token:
        raise SettingsError(f"Others can reach {host}: give a token (--token, or SKILLSHELF_TOKEN in the environment).")
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        # An answer in plain JSON is cheaper, but leaves no way to ask the person in the middle of a call.
        json_response=not server.tools.asks,
        max_request_body_size=MAX_BODY,
        # The guard does this, for hosts that are no loopback too.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app = Guard(app, token, frozenset(origins), local=is_loopback(host))
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=tuple(origins),
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("*",),
        expose_headers=("mcp-session-id",),
    )


class Guard:
    """Answers who is not let through, and whoever asks whether the server is well."""

    def __init__(self, app: ASGIApp, token: str, origins: Collection[str], *, local: bool) -> None:
        self._app, self._local, self._token = app, local, token.encode()
        self._origins = {origin.encode() for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == HEALTH:
            await JSONResponse({"status": "ok"})(scope, receive, send)
        else:
            refused = self._refusal(dict(scope["headers"]))
            await (refused or self._app)(scope, receive, send)

    def _refusal(self, headers: Mapping[bytes, bytes]) -> PlainTextResponse | None:
        # A page in the person's browser can name this server by a host of its own, whose address it changes.
        if self._local and not _LOOPBACK_HOST.fullmatch(headers.get(b"host", b"")):
            return PlainTextResponse("This server is reached as localhost.", 421)
        origin = headers.get(b"origin")
        if origin is not None and origin not in self._origins:
            return PlainTextResponse("This origin is not allowed: --allow-origin names those that are.", 403)
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        same = hmac.compare_digest(given.strip(), self._token)
        if self._token and not (same and scheme.lower() == b"bearer"):
            return PlainTextResponse("A bearer token is needed.", 401, {"WWW-Authenticate": "Bearer"})
        return None


class _Connection:
    """Stands for one TCP connection, as long as it lasts."""


class _Protocol(H11Protocol):
    def __init__(self, config: uvicorn.Config, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: _Connection()}, _loop)


def listen(host: str, port: int) -> socket.socket:
    """Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


async def serve_http(app: ASGIApp, listening: socket.socket) -> None:
    """Serve until a signal ends it."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        # Where requests stand alone a connection is all that tells a client, so it is not dropped while a model thinks.
        timeout_keep_alive=300,
        # A stream for notices stays open as long as its client: not a reason to stay.
        timeout_graceful_shutdown=2,
    )
    await uvicorn.Server(config).serve(sockets=[listening])
