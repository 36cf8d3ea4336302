"""A proxy on this machine that lets a program, such as a browser, reach what the rules allow and nothing else."""

import base64
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from skillshelf.errors import AddressRefusedError, FetchFailedError, SkillError
from skillshelf_skills.net._connections import open_connection
from skillshelf_skills.net._rules import NetworkRules, name_site

_MAX_HEAD = 64 * 1024
_PIECE = 64 * 1024
_MAX_REFUSALS = 100
_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead)
"""How a stream says that the other side has ended the connection."""
# What stands between a client and its proxy does not concern the server, nor the other way round.
_HOP_BY_HOP = frozenset(
    {"proxy-authorization", "proxy-authenticate", "proxy-connection", "connection", "keep-alive", "upgrade"}
)


class GuardedProxy:
    """A proxy for HTTP and HTTPS. Use it in `async with`, within one task: all its connections end with the block.

    Only a client with the password may use it. Other programs of this machine, such as commands in a sandbox, find the
    port and get nothing.
    """

    def __init__(self, rules: NetworkRules | None = None, *, max_total_bytes: int = 500_000_000) -> None:
        """`max_total_bytes` is the most that all servers together may send. The rules' `max_bytes` has no meaning here:
        what a connection carries is encrypted.
        """
        self.rules = rules or NetworkRules()
        self.user = "skillshelf"
        self.password = secrets.token_urlsafe(24)
        self.port = 0
        self.refusals: list[SkillError] = []
        """Why requests of the program were refused or failed, the latest last. The program sees a bare 403 or 502."""
        self._credentials = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        self._room = max_total_bytes
        self._stack = AsyncExitStack()

    @property
    def url(self) -> str:
        """The address of the proxy, without user and password."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = listener.extra(SocketAttribute.local_port)
        await self._stack.enter_async_context(listener)
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(listener.serve, self._serve)
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._stack.aclose()

    async def _serve(self, client: SocketStream) -> None:
        async with client:
            try:
                head = await self._read_head(client)
                if head is not None:
                    await self._connect(client, head)
            except (AddressRefusedError, FetchFailedError) as error:
                self.refusals = [*self.refusals, error][-_MAX_REFUSALS:]
                status = "403 Forbidden" if isinstance(error, AddressRefusedError) else "502 Bad Gateway"
                await _refuse(client, status, str(error))
            except (*_GONE, OSError):
                return  # one of the two sides went away

    async def _read_head(self, client: SocketStream) -> "_Head | None":
        """Return the head of a request that may be served; otherwise answer it, and return None."""
        received = BufferedByteReceiveStream(client)
        try:
            with anyio.fail_after(self.rules.seconds):
                data = await received.receive_until(b"\r\n\r\n", _MAX_HEAD)
            head = _parse_head(data, received.buffer)
        except (anyio.DelimiterNotFound, TimeoutError, ValueError):
            await _refuse(client, "400 Bad Request", "This is not a request to a proxy.")
            return None
        if not secrets.compare_digest(head.credentials.encode(), self._credentials.encode()):
            await _refuse(client, "407 Proxy Authentication Required", "", 'Proxy-Authenticate: Basic realm="-"')
            return None
        return head

    async def _connect(self, client: SocketStream, head: "_Head") -> None:
        if not head.is_tunnel:
            self.rules.check_scheme(head.url)
        if self._room <= 0:
            raise FetchFailedError(name_site(head.host, head.port), "too many bytes were received already")
        async with await open_connection(self.rules, head.host, head.port) as server:
            if head.is_tunnel:
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await server.send(head.forwarded)
            await self._relay(client, server, head)

    async def _relay(self, client: SocketStream, server: SocketStream, head: "_Head") -> None:
        """Pass bytes both ways until the server is done, the client has gone, or there is no more room."""
        received = BufferedByteReceiveStream(server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_send_on, client, server, head.body_left, tasks.cancel_scope)
            try:
                if not head.is_tunnel:
                    await self._pass_on_head(client, received)
                while self._room > 0:
                    piece = await received.receive(_PIECE)
                    self._room -= len(piece)
                    await client.send(piece)
            except (*_GONE, anyio.DelimiterNotFound):
                pass
            tasks.cancel_scope.cancel()  # nothing that the client still says can have an answer

    async def _pass_on_head(self, client: SocketStream, received: BufferedByteReceiveStream) -> None:
        """Pass on the head of an answer, in which the connection ends with it.

        A client that kept the connection would send its next request, for another site, to this server.
        """
        is_interim = True
        while is_interim and self._room > 0:
            data = await received.receive_until(b"\r\n\r\n", _MAX_HEAD)
            self._room -= len(data)
            first, *lines = data.decode("latin-1").split("\r\n")
            is_interim = first.partition(" ")[2].startswith("1")
            kept = [line for line in lines if _name_of(line) not in _HOP_BY_HOP]
            if not is_interim:
                kept.append("Connection: close")
            await client.send("\r\n".join([first, *kept, "", ""]).encode("latin-1"))


@dataclass(frozen=True, slots=True)
class _Head:
    """The first lines of a request to a proxy."""

    url: str
    """What it asks for; of a tunnel, host and port."""
    host: str
    port: int
    credentials: str
    is_tunnel: bool
    forwarded: bytes
    """What the server gets first: of a request its head, and the body as far as it has come."""
    body_left: int | None
    """How much of the body is still to come; None for a tunnel, which has no end."""


def _parse_head(data: bytes, more: bytes) -> _Head:
    """Return the parts of a request's head, with what was received after it. Raises ValueError for anything else."""
    first, *lines = data.decode("latin-1").split("\r\n")
    if any(set(line) & set("\r\n\0") for line in (first, *lines)):
        raise ValueError("a line could be read as several")
    if any(_name_of(line) in ("", "transfer-encoding") for line in lines):
        raise ValueError("a header is malformed, or the body has no length")
    method, target, version = first.split(" ")
    is_tunnel = method == "CONNECT"
    parts = urlsplit(f"//{target}" if is_tunnel else target)
    if not parts.hostname or parts.scheme == "https":
        raise ValueError("the request names no host, or should be encrypted and is not")

    head = _Head(
        url=target,
        host=parts.hostname,
        port=parts.port or (443 if is_tunnel else 80),
        credentials=_find_value(lines, "proxy-authorization").removeprefix("Basic "),
        is_tunnel=is_tunnel,
        forwarded=more,
        body_left=None,
    )
    if is_tunnel:
        return head

    # The server gets the host that was checked, whatever else the client calls it, and not a byte after the body.
    length_text = _find_value(lines, "content-length") or "0"
    if not length_text.isdecimal():
        raise ValueError("the length of the body is not a number")
    length = int(length_text)
    kept = [line for line in lines if _name_of(line) not in _HOP_BY_HOP and _name_of(line) != "host"]
    path = parts._replace(scheme="", netloc="", path=parts.path or "/", fragment="").geturl()
    host = f"Host: {parts.netloc.rpartition('@')[2]}"
    request = "\r\n".join([f"{method} {path} {version}", host, *kept, "Connection: close", "", ""])
    return replace(head, forwarded=request.encode("latin-1") + more[:length], body_left=max(0, length - len(more)))


def _name_of(line: str) -> str:
    """Return the name of a header in lower case; empty for a line that is not a header."""
    name, colon, _ = line.partition(":")
    return name.lower() if colon and not set(name) & set(" \t") else ""


def _find_value(lines: Sequence[str], name: str) -> str:
    """Return the value of a header. Raises ValueError if it is given twice, and could be read in two ways."""
    values = [line.partition(":")[2].strip() for line in lines if _name_of(line) == name]
    if len(values) > 1:
        raise ValueError(f"there are several {name}")
    return values[0] if values else ""


async def _send_on(client: SocketStream, server: SocketStream, left: int | None, scope: anyio.CancelScope) -> None:
    """Pass on what the client sends, at most `left` bytes, and end everything when the client goes."""
    while True:
        try:
            piece = await client.receive(_PIECE)
        except _GONE:
            scope.cancel()
            return
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        try:
            await server.send(piece)
        except _GONE:
            return  # it wants no more, and may still answer


async def _refuse(client: SocketStream, status: str, text: str, *headers: str) -> None:
    body = text.encode()
    lines = [f"HTTP/1.1 {status}", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", *headers]
    with suppress(*_GONE):
        await client.send("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
