"""Streamable HTTP behind a guard: the Host, Origin and token of a request are checked before anything else."""

import hmac
import ipaddress
import re
from collections import OrderedDict
from collections.abc import Collection
from contextlib import suppress

from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillshelf.errors import SettingsError
from skillshelf.mcp._limits import MAX_BODY, MAX_SESSIONS
from skillshelf.mcp._server import SkillsServer

MCP_PATH = "/mcp"
HEALTH_PATH = "/health"
_SESSION_HEADER = b"mcp-session-id"
_CHECKED_HEADERS = frozenset((b"host", b"origin", b"authorization"))
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9_.-]+(?::\d{1,5})?|[a-z]+://\[[0-9a-f:.]+\](?::\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Return True if only programs on this machine can reach the host."""
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
    """Return the server as an ASGI application.

    Raises SettingsError for a host that others can reach without a token, and for a token or an origin that no request
    could have.
    """
    token = parse_token(token)
    origins = [parse_origin(origin) for origin in origins]
    if not is_loopback(host) and not token:
        raise SettingsError(
            f"Others can reach {host}: give a token (SKILLSHELF_TOKEN in the environment, or --token-file)."
        )

    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        # An answer in plain JSON is cheaper, but leaves no way to ask the user in the middle of a call.
        json_response=not server.needs_approval,
        max_request_body_size=MAX_BODY,
        # The guard does this, and for hosts that are not loopback as well.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app = _SessionLimiter(app, max_sessions)
    app = Guard(app, token, origins, hosts=_local_hosts(host) if is_loopback(host) else None)
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=tuple(origins),
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("*",),
        expose_headers=("mcp-session-id",),
    )


def parse_token(text: str) -> str:
    """Return a token as a header carries it, without the spaces and line ends that a file or a shell leaves around it.

    Raises SettingsError.
    """
    token = text.strip()
    is_blank = bool(text) and not token
    if is_blank or not token.isprintable():
        raise SettingsError(
            "The token is blank or has characters that an HTTP header cannot carry. Use letters and digits."
        )
    return token


def parse_origin(text: str) -> str:
    """Return an origin as browsers write it. Raises SettingsError."""
    origin = text.lower()
    if not _ORIGIN.fullmatch(origin):
        raise SettingsError(f"{text[:200]!r} is not a web origin. Write it as https://a.b or http://a.b:8080.")
    scheme = origin.partition(":")[0]
    default_port = {"https": ":443", "http": ":80"}.get(scheme, "")
    return origin.removesuffix(default_port)


def _local_hosts(bound: str) -> re.Pattern[bytes]:
    """Return the pattern of Host headers for a loopback address: names of this machine that no DNS can redirect."""
    own_name = f"[{bound}]" if ":" in bound else bound
    names = rf"localhost|127(?:\.\d{{1,3}}){{3}}|\[::1\]|{re.escape(own_name)}"
    return re.compile(rf"(?:{names})(?::\d{{1,5}})?".encode(), re.IGNORECASE)


class Guard:
    """Passes on the requests that are allowed, and answers the others and those for the server's health."""

    def __init__(self, app: ASGIApp, token: str, origins: Collection[str], *, hosts: re.Pattern[bytes] | None) -> None:
        """Allow requests that name one of these `hosts`; without it, any host."""
        self._app = app
        self._hosts = hosts
        self._token = token.encode()
        self._origins = {origin.encode() for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == HEALTH_PATH:
            await JSONResponse({"status": "ok"})(scope, receive, send)
            return

        refusal = self._find_refusal(scope["headers"], scope["scheme"])
        answer = refusal or self._app
        with suppress(ClientDisconnect):  # a client that leaves in the middle of a request is not an error
            await answer(scope, receive, send)

    def _find_refusal(self, raw_headers: Collection[tuple[bytes, bytes]], scheme: str) -> PlainTextResponse | None:
        """Return the answer to a request that is not allowed, or None if it is."""
        headers = dict(raw_headers)
        checked = [name for name, _ in raw_headers if name in _CHECKED_HEADERS]
        if len(checked) != len(set(checked)):  # it is unclear which one counts
            return PlainTextResponse("Send Host, Origin and Authorization only once.", 400)

        # A page in the user's browser can reach this server by a host name of its own, whose address it changes.
        if self._hosts and not self._hosts.fullmatch(headers.get(b"host", b"")):
            return PlainTextResponse("This server is reached as localhost.", 421)

        origin = headers.get(b"origin")
        if origin is not None and origin not in self._origins and not self._is_own_origin(origin, scheme, headers):
            return PlainTextResponse("This origin is not allowed: --allow-origin names those that are.", 403)

        if self._token and not self._has_token(headers):
            return PlainTextResponse("A bearer token is needed.", 401, {"WWW-Authenticate": "Bearer"})
        return None

    def _is_own_origin(self, origin: bytes, scheme: str, headers: dict[bytes, bytes]) -> bool:
        """Return True if this very server is the page's origin: its scheme, host and port are those of the request.

        Only for a loopback host, whose name no DNS server can point somewhere else; any other host proves nothing.
        """
        if self._hosts is None:
            return False
        own = f"{scheme}://".encode() + headers[b"host"].lower()
        default_port = {"http": b":80", "https": b":443"}.get(scheme, b"")
        return origin.removesuffix(default_port) == own.removesuffix(default_port)

    def _has_token(self, headers: dict[bytes, bytes]) -> bool:
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        is_right = hmac.compare_digest(token.strip(), self._token)
        return is_right and kind.lower() == b"bearer"


class _SessionLimiter:
    """Ends the least recently used session when a client opens one over the limit.

    The SDK would refuse the new one, so abandoned sessions would lock everyone out until they expire.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._open_requests: OrderedDict[bytes, list[str]] = OrderedDict()
        """The methods of the requests in progress, by session. The least recently used session comes first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        session = dict(scope["headers"]).get(_SESSION_HEADER, b"")
        if session in self._open_requests:
            await self._use(session, scope, receive, send)
            return

        async def send_and_register(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                opened = dict(message["headers"]).get(_SESSION_HEADER)
                if opened:
                    await self._register(opened, scope)
            await send(message)

        await self._app(scope, receive, send_and_register)

    async def _use(self, session: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        requests = self._open_requests[session]
        requests.append(scope["method"])
        try:
            await self._app(scope, receive, send)
        finally:
            requests.remove(scope["method"])
            if session in self._open_requests:
                self._open_requests.move_to_end(session)
        if scope["method"] == "DELETE":
            self._open_requests.pop(session, None)

    async def _register(self, session: bytes, scope: Scope) -> None:
        while len(self._open_requests) >= self._limit:
            least_used = min(self._open_requests, key=self._rank)
            del self._open_requests[least_used]
            await self._end(least_used, scope)
        self._open_requests[session] = []

    def _rank(self, session: bytes) -> tuple[bool, bool]:
        """Rank sessions for ending: idle ones first, then those with an open stream, then those with a call."""
        requests = self._open_requests[session]
        return "POST" in requests, "GET" in requests

    async def _end(self, session: bytes, scope: Scope) -> None:
        """Send the request by which a client ends its session."""

        async def receive() -> Message:
            return {"type": "http.request", "body": b""}

        async def ignore(message: Message) -> None:
            pass

        delete = {**scope, "method": "DELETE", "headers": [(_SESSION_HEADER, session)]}
        await self._app(delete, receive, ignore)
