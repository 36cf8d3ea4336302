"""Streamable HTTP, and who may use it: the right Host, Origin and token, before anything else is looked at."""

import hmac
import inspect
import ipaddress
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from skillshelf.errors import SettingsError
from skillshelf.mcp._server import SkillsServer

PATH, HEALTH = "/mcp", "/health"
MAX_BODY = 4 * 1024 * 1024
MAX_SESSIONS = 1_100
"""Of the handshake revisions. One that its client left without a word takes 43 KB: all of them 46 MiB."""
SESSION_SECONDS = 30 * 60.0
"""After which a session is over that is not used."""
_JUDGED = frozenset((b"host", b"origin", b"authorization"))
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9_.-]+(?::\d{1,5})?|[a-z]+://\[[0-9a-f:.]+\](?::\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def http_app(
    server: SkillsServer,
    *,
    token: str = "",
    host: str = "127.0.0.1",
    origins: Collection[str] = (),
    max_sessions: int = MAX_SESSIONS,
) -> ASGIApp:
    """The server as an ASGI application. Raises SettingsError for a host that others can reach without a token, and
    for a token or an origin that no request could have."""
    token, origins = token_of(token), [origin_of(origin) for origin in origins]
    if not is_loopback(host) and not token:
        raise SettingsError(
            f"Others can reach {host}: give a token (SKILLSHELF_TOKEN in the environment, or --token-file)."
        )
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        # An answer in plain JSON is cheaper, but leaves no way to ask the person in the middle of a call.
        json_response=not server.tools.asks,
        max_request_body_size=MAX_BODY,
        **_session_options(server, max_sessions),
        # The guard does this, for hosts that are no loopback too.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app = Guard(app, token, origins, hosts=local_hosts(host) if is_loopback(host) else None)
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=tuple(origins),
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("*",),
        expose_headers=("mcp-session-id",),
    )


def _session_options(server: SkillsServer, max_sessions: int) -> dict[str, Any]:
    """Return the limits on sessions as far as this version of the SDK has them: 2.3 does, 2.1 does not."""
    options = {"max_sessions": max_sessions, "session_idle_timeout": SESSION_SECONDS}
    known = inspect.signature(server.streamable_http_app).parameters
    return {name: value for name, value in options.items() if name in known}


def token_of(text: str) -> str:
    """A token as a header can carry it: what a file or a shell put behind it is not part of it."""
    token = text.strip()
    if (text and not token) or not token.isprintable():
        raise SettingsError("The token is blank, or has characters that no header can carry: give one of letters.")
    return token


def origin_of(text: str) -> str:
    """An origin as browsers write it."""
    origin = text.lower()
    if not _ORIGIN.fullmatch(origin):
        raise SettingsError(f"No web page has the origin {text[:200]!r}: name it as https://a.b or http://a.b:8080.")
    default = {"https": ":443", "http": ":80"}.get(origin.partition(":")[0], "")
    return origin.removesuffix(default) if default else origin


def local_hosts(bound: str) -> re.Pattern[bytes]:
    """What a Host header may say where only this machine is let in: any name of it that no DNS can give away."""
    named = f"[{bound}]" if ":" in bound else bound
    names = rf"localhost|127(?:\.\d{{1,3}}){{3}}|\[::1\]|{re.escape(named)}"
    return re.compile(rf"(?:{names})(?::\d{{1,5}})?".encode(), re.IGNORECASE)


class Guard:
    """Answers who is not let through, and whoever asks whether the server is well."""

    def __init__(self, app: ASGIApp, token: str, origins: Collection[str], *, hosts: re.Pattern[bytes] | None) -> None:
        """`hosts`: those that a request may name; any, without it."""
        self._app, self._hosts, self._token = app, hosts, token.encode()
        self._origins = {origin.encode() for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == HEALTH:
            await JSONResponse({"status": "ok"})(scope, receive, send)
        else:
            with suppress(ClientDisconnect):  # who leaves in the middle of a request is no error of ours
                await (self._refusal(scope["headers"], scope["scheme"]) or self._app)(scope, receive, send)

    def _refusal(self, sent: Collection[tuple[bytes, bytes]], scheme: str) -> PlainTextResponse | None:
        headers = dict(sent)
        names = [name for name, _ in sent if name in _JUDGED]
        if len(names) != len(set(names)):  # which of them counts, nobody can say
            return PlainTextResponse("Host, Origin and Authorization are to be sent once.", 400)
        # A page in the person's browser can name this server by a host of its own, whose address it changes.
        if self._hosts and not self._hosts.fullmatch(headers.get(b"host", b"")):
            return PlainTextResponse("This server is reached as localhost.", 421)
        origin = headers.get(b"origin")
        if origin is not None and origin not in self._origins and not self._is_own(origin, scheme, headers):
            return PlainTextResponse("This origin is not allowed: --allow-origin names those that are.", 403)
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        same = hmac.compare_digest(given.strip(), self._token)
        if self._token and not (same and kind.lower() == b"bearer"):
            return PlainTextResponse("A bearer token is needed.", 401, {"WWW-Authenticate": "Bearer"})
        return None

    def _is_own(self, origin: bytes, scheme: str, headers: dict[bytes, bytes]) -> bool:
        """Return True if this very server is the page's origin: its scheme, host and port are those of the request.

        Only for a loopback host, whose name no DNS server can point somewhere else; any other host proves nothing.
        """
        if self._hosts is None:
            return False
        own = f"{scheme}://".encode() + headers[b"host"].lower()
        default_port = {"http": b":80", "https": b":443"}.get(scheme, b"")
        return origin.removesuffix(default_port) == own.removesuffix(default_port)
