"""The HTTP server itself: its socket, its connections, and its end."""

import asyncio
import logging
import resource
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillshelf.mcp.turns import CONNECTION

REQUEST_SECONDS = 30.0
"""In which a new connection must have sent its first request."""
_LAST_WORDS = 0.5
"""For a stream that is told to end."""


class _Connection:
    """Stands for one TCP connection, as long as it lasts."""

    def __init__(self) -> None:
        self.at_end: set[Callable[[], None]] = set()
        """What ends the streams that are open on it, when the server is to end."""


class ConnectionProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn that tells the app which requests came on one connection: `uvicorn.run(app, http=…)`.

    All that ASGI itself tells of a connection is the address of its other end: a proxy's, for all who come through it,
    and another program's as soon as this one has hung up.
    """

    def __init__(self, config: uvicorn.Config, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        self._connection = _Connection()
        super().__init__(config, server_state, {**app_state, CONNECTION: self._connection}, _loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Nobody shall hold a connection who asks for nothing. Between two requests uvicorn has its own limit.
        self._patience = self.loop.call_later(REQUEST_SECONDS, self._close_unless_asked)

    def _close_unless_asked(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._patience.cancel()
        self._unset_keepalive_if_required()  # uvicorn leaves it where the connection broke, and it holds all of this

    def shutdown(self) -> None:
        for end in self._connection.at_end:
            end()
        super().shutdown()
        # A stream with no end of its own is cut off.
        self.loop.call_later(_LAST_WORDS if self._connection.at_end else 0, self._end_stream)

    def _end_stream(self) -> None:
        cycle = self.cycle  # an answer that has not begun is no stream, and comes
        if cycle and cycle.response_started and not cycle.response_complete:
            self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    # Connections inherit it. Else the second half of an answer waits 40 ms for word that the first has arrived; asyncio
    # sees to that only for sockets that name their protocol.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


async def serve_http(app: ASGIApp, listening: socket.socket) -> None:
    """Serve until a signal ends it."""
    _allow_many_connections()
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_no_departure)
    config = uvicorn.Config(
        app,
        http=ConnectionProtocol,
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


def _allow_many_connections() -> None:
    """As many as the system lets us have: the limit that a shell sets is for programs that know no better."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _is_no_departure(record: logging.LogRecord) -> bool:
    """A client that leaves in the middle of its request is no error of ours."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))
