"""Run the HTTP server: its socket, the limits on its connections, and its end."""

import asyncio
import logging
import resource
import socket
import sys
from collections.abc import Callable
from typing import Any, cast

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillshelf.mcp._limits import ConnectionLimits

# uvicorn's own protocol, which its `http` setting takes as a class. There is no other way to refuse, count and time
# connections before a request has arrived.
from uvicorn.protocols.http.h11_impl import H11Protocol  # isort: skip

RESERVED_FILES = 128
"""Open files for skills, logs and the process itself; the rest that the system allows can be connections."""
_CONNECTION_KEY = "skillshelf.connection"
"""Where the connection of a request is found in the state of its ASGI scope."""
_REQUEST_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

_refuse_connection = PlainTextResponse(
    "This server accepts no more connections at the moment. Try again later.", 503, {"connection": "close"}
)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    # Connections inherit it. Without it, the second half of an answer waits 40 ms for word that the first has arrived;
    # asyncio sets it only for sockets that name their protocol.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


async def serve_http(
    app: ASGIApp,
    listening: socket.socket,
    limits: ConnectionLimits | None = None,
    close_streams: Callable[[], None] | None = None,
) -> None:
    """Serve an application until a signal ends the process.

    `close_streams` is called first when the server shuts down: streams that the application ends by itself then end
    with an answer, while others are cut off.
    """
    limits = limits or ConnectionLimits()
    limits = limits._replace(connections=min(limits.connections, _raise_file_limit() - RESERVED_FILES))
    limiter = _ConnectionLimiter(app, limits)
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_worth_logging)
    config = uvicorn.Config(
        limiter,
        http=cast(Any, limiter.make_connection),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # The limiter closes idle connections; uvicorn must not do it earlier.
        timeout_keep_alive=int(limits.request_seconds) + 1,
        timeout_graceful_shutdown=2,
    )

    def prepare_shutdown() -> None:
        if close_streams is not None:
            close_streams()
        limiter.close_streams()

    await _HttpServer(config, prepare_shutdown).serve(sockets=[listening])


class _HttpServer(uvicorn.Server):
    """A uvicorn server that calls a function before it shuts down."""

    def __init__(self, config: uvicorn.Config, prepare_shutdown: Callable[[], None]) -> None:
        super().__init__(config)
        self._prepare_shutdown = prepare_shutdown

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._prepare_shutdown()
        await super().shutdown(sockets)


class _ConnectionLimiter:
    """Limits the number of connections, and the time each may take to send a request.

    uvicorn's own `limit_concurrency` would refuse the clients that are already connected as well.
    """

    def __init__(self, app: ASGIApp, limits: ConnectionLimits) -> None:
        self._app = app
        self.limits = limits
        self.connections: set[_Connection] = set()

    def make_connection(self, *, app_state: dict[str, Any], **options: Any) -> "_Connection":
        """Make the protocol for a new connection. uvicorn passes these options."""
        return _Connection(self, app_state, options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        connection: _Connection = scope["state"][_CONNECTION_KEY]
        if connection.is_excess:
            await _refuse_connection(scope, receive, send)
        else:
            await connection.answer(self._app, scope, receive, send)

    def close_streams(self) -> None:
        """Close the standing streams, each of which would stay open as long as its client."""
        for connection in self.connections:
            if connection.is_streaming:
                connection.close()


class _Connection(asyncio.Protocol):
    """A TCP connection. It passes everything to uvicorn, and closes if a request does not arrive in time."""

    def __init__(self, limiter: _ConnectionLimiter, app_state: dict[str, Any], options: dict[str, Any]) -> None:
        self._limiter = limiter
        self._http = H11Protocol(app_state={**app_state, _CONNECTION_KEY: self}, **options)
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle | None = None
        self._is_in_request = False
        self._is_served = False
        self.is_excess = False
        """True if the connection is over the limit and is only told so."""
        self.is_streaming = False
        """True during a GET, which opens a stream that only its client ends."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._limiter.connections.add(self)
        excess = len(self._limiter.connections) - self._limiter.limits.connections
        if excess > self._limiter.limits.refusals:
            self.close()
            return

        self.is_excess = excess > 0
        self._is_served = True
        self._http.connection_made(self._transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        self._limiter.connections.discard(self)
        if self._is_served:
            self._http.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_served:
            self._http.data_received(data)

    def eof_received(self) -> None:
        if self._is_served:
            self._http.eof_received()

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    async def answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose headers have arrived. The rest of it must arrive before the deadline."""

        async def receive_in_time() -> Message:
            message = await receive()
            is_last = not message.get("more_body", False)
            if is_last:
                self._clear_deadline()
            return message

        async def send_and_stop_waiting(message: Message) -> None:
            self._clear_deadline()  # it is answered, whether all of it has arrived or not
            await send(message)

        self._is_in_request = True
        self.is_streaming = scope["method"] == "GET"
        try:
            await app(scope, receive_in_time, send_and_stop_waiting)
        finally:
            self._is_in_request = False
            self.is_streaming = False
            self._set_deadline()

    def close(self) -> None:
        self._transport.close()

    def _set_deadline(self) -> None:
        self._clear_deadline()
        if not self._transport.is_closing():
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self._limiter.limits.request_seconds, self._close_late)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_late(self) -> None:
        if self._is_in_request:
            self._transport.write(_REQUEST_TIMEOUT)
        self.close()


def _raise_file_limit() -> int:
    """Allow as many open files as the system does, whatever the shell has set. Return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Return False for a client that left in the middle of its request: that is not an error of the server."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))
