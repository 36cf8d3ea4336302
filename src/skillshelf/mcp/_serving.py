"""The HTTP server itself: its socket, its connections, and its end."""

import asyncio
import logging
import resource
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import h11
import uvicorn
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillshelf.mcp._turns import CONNECTION


class Limits(NamedTuple):
    """How much the clients of a server may hold."""

    connections: int = 2_048
    """At once. A request on one more is answered with 503."""
    request_seconds: float = 30.0
    """From a request's first byte to its last, and from a new connection to the end of its first request."""


_LAST_WORDS = 0.5
"""For a stream that is told to end."""
_REFUSALS = 64
"""Connections over the limit that hear why they are refused. Further ones are closed without a word."""
_FILES = 128
"""For skills, logs and the process itself; the rest of what the system lets us open can be connections."""
_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

_refuse = PlainTextResponse(
    "This server has as many connections as it takes. Try again later.", 503, {"connection": "close"}
)


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

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: Any = None,
        *,
        limits: Limits | None = None,
    ) -> None:
        self._connection = _Connection()
        self._limits = limits or Limits()
        self._deadline: asyncio.TimerHandle | None = None
        super().__init__(config, server_state, {**app_state, CONNECTION: self._connection}, _loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Not uvicorn's `limit_concurrency`: that one refuses the clients that are already there as well.
        excess = len(self.connections) - self._limits.connections
        if excess > _REFUSALS:
            transport.close()
            return
        if excess > 0:
            self.app = _refuse
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_incomplete = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if is_incomplete and self._deadline is None:
            self._set_deadline()
        elif not is_incomplete:
            self._clear_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # The beginning of the next request may have come together with the last one. Then no data need follow.
        has_begun = self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])
        if has_begun and self._deadline is None:
            self._set_deadline()

    def _set_deadline(self) -> None:
        """Give the client until then to complete a request. Between two requests uvicorn has a limit of its own."""
        self._deadline = self.loop.call_later(self._limits.request_seconds, self._cut_off)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut_off(self) -> None:
        if self.transport.is_closing():
            return
        has_begun = self.cycle is not None and not self.cycle.response_started
        if has_begun:
            self.transport.write(_LATE)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._clear_deadline()
        if self.timeout_keep_alive_task is not None:
            # uvicorn leaves it if the connection broke, and it holds all of this.
            self.timeout_keep_alive_task.cancel()

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


async def serve_http(app: ASGIApp, listening: socket.socket, limits: Limits | None = None) -> None:
    """Serve until a signal ends it."""
    limits = limits or Limits()
    limits = limits._replace(connections=min(limits.connections, _raise_file_limit() - _FILES))
    protocol: Any = partial(ConnectionProtocol, limits=limits)
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_no_departure)
    config = uvicorn.Config(
        app,
        http=protocol,
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


def _raise_file_limit() -> int:
    """Open as many files as the system allows, whatever the shell has set. Return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def _is_no_departure(record: logging.LogRecord) -> bool:
    """A client that leaves in the middle of its request is no error of ours."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))
