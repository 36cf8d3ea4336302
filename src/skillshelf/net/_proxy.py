"""A proxy on this machine that lets a program, such as a browser, reach what the rules allow and nothing else."""

import base64
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from skillshelf.errors import AddressRefusedError, FetchFailedError, SkillError
from skillshelf.net._connections import open_connection
from skillshelf.net._rules import NetworkRules

_MAX_HEAD = 64 * 1024
_PIECE = 64 * 1024
_MAX_REFUSALS = 100
_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead)
"""How a stream says that the other side has ended the connection."""
# What stands between a client and its proxy does not concern the server.
_HOP_BY_HOP = frozenset({"proxy-authorization", "proxy-connection", "connection", "keep-alive"})


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
            raise FetchFailedError(head.host, "too many bytes were received already")
        async with await open_connection(self.rules, head.host, head.port) as server:
            if head.is_tunnel:
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await server.send(head.forwarded)
            await self._relay(client, server)

    async def _relay(self, client: SocketStream, server: SocketStream) -> None:
        """Pass bytes both ways until the server is done, the client has gone, or there is no more room."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_send_on, client, server)
            try:
                while self._room > 0:
                    piece = await server.receive(_PIECE)
                    self._room -= len(piece)
                    await client.send(piece)
            except _GONE:
                pass
            tasks.cancel_scope.cancel()  # nothing that the client still says can have an answer


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
    """What the server gets of it: nothing of a tunnel's, otherwise a request that ends the connection."""


def _parse_head(data: bytes, more: bytes) -> _Head:
    """Return the parts of a request's head, with what was received after it. Raises ValueError for anything else."""
    first, *lines = data.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ")
    is_tunnel = method == "CONNECT"
    parts = urlsplit(f"//{target}" if is_tunnel else target)
    if not parts.hostname:
        raise ValueError("the request names no host")

    path = parts._replace(scheme="", netloc="").geturl() or "/"
    kept = [line for line in lines if line.partition(":")[0].strip().lower() not in _HOP_BY_HOP]
    request = "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""]).encode("latin-1")
    return _Head(
        url=target,
        host=parts.hostname,
        port=parts.port or (443 if is_tunnel else 80),
        credentials=_find_credentials(lines),
        is_tunnel=is_tunnel,
        forwarded=more if is_tunnel else request + more,
    )


def _find_credentials(lines: Sequence[str]) -> str:
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip().lower() == "proxy-authorization":
            return value.strip().removeprefix("Basic ")
    return ""


async def _send_on(client: SocketStream, server: SocketStream) -> None:
    try:
        while True:
            await server.send(await client.receive(_PIECE))
    except anyio.EndOfStream:
        with suppress(*_GONE, OSError):
            await server.send_eof()
    except _GONE:
        return


async def _refuse(client: SocketStream, status: str, text: str, *headers: str) -> None:
    body = text.encode()
    lines = [f"HTTP/1.1 {status}", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", *headers]
    await client.send("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
