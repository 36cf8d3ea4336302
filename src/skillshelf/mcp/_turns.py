"""Whose turn it is: each client has a turn of its own, and no client sees anything of another's.

MCP tells a server neither where a user message begins nor where its answer ends. What can be seen: a prompt that is
asked for (the person has spoken), and a shelf that changed. Between the two nothing tells the next call of one answer
from the first of another, and a stale text in a new turn is worse than a text read twice in the same, which takes a
fraction of a millisecond. So a turn ends with a prompt, with a change, and after ten seconds in any case.
"""

import sys
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from mcp import types
from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from skillshelf.mcp._reads import Asked, Reads, SharingTurn
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from skillshelf.mcp._changes import Hub

TURN_SECONDS = 10.0
ANSWER_BYTES = 1024 * 1024
"""Of answers that a turn keeps: as much as fills a long context. What is over is made again."""
CONNECTION = "skillshelf.connection"
"""Where `skillshelf.mcp.serving` puts what stands for one TCP connection, in the state of an ASGI scope."""
_STATE = "skillshelf.client"

Context: TypeAlias = "ServerRequestContext[Hub, Any]"


def stands_alone(ctx: Context) -> bool:
    """Whether nothing tells for certain which client sent a request."""
    return ctx.request is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def connection_of(ctx: Context) -> Any:
    """What stands for the TCP connection that a request came on; None where no server tells us of it."""
    return ctx.request.scope.get("state", {}).get(CONNECTION) if ctx.request else None


class Open:
    """A turn, and the answers that were given in it."""

    def __init__(self, turn: SharingTurn, ends: float, generation: int) -> None:
        self.turn, self.ends, self.generation = turn, ends, generation
        self.answers: dict[Asked, types.CallToolResult] = {}
        self._room = ANSWER_BYTES

    def keep(self, asked: Asked, answer: types.CallToolResult, text: str) -> None:
        """For the next time, if it is short enough for the room that is left."""
        size = sys.getsizeof(text)
        if size <= self._room:
            self._room -= size
            self.answers[asked] = answer


class Client:
    """What the server keeps of one client. Of one that has not loaded anything, next to nothing: there may be many."""

    def __init__(self, shelf: Shelf, reads: Reads, connection: Connection | None = None) -> None:
        self._shelf, self._reads = shelf, reads
        self.invoked: set[str] = set()
        """By the person, in this turn or an earlier one."""
        self.connection = connection
        """Where a client of the handshake revisions is told of changes."""
        self.subscribed: set[str] = set()
        """The URIs that a client of the handshake revisions subscribed to."""
        self._lock: anyio.Lock | None = None
        self._open: Open | None = None

    @property
    def is_reading(self) -> bool:
        """Whether a thread is at work in the turn, or about to be. To ask the turn's own lock is not enough: the thread
        may take it in the next moment, and the event loop would wait for it, with all clients."""
        return self._lock is not None and self._lock.locked()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """One load at a time: however many a client asks for at once, it takes one thread of those that all share."""
        self._lock = self._lock or anyio.Lock()
        async with self._lock:
            try:
                yield
            except anyio.get_cancelled_exc_class():
                self._open = None  # the thread reads on in this turn, and nobody shall wait for it
                raise

    def open(self) -> Open:
        """The turn that is on, or else a new one."""
        on = self._open
        if on and time.monotonic() < on.ends and on.generation == self._shelf.catalog.generation:
            return on
        return self._begin(self._reads.lately())

    def begin(self) -> Open:
        """A new turn, in which nothing is given that was read before it."""
        return self._begin(time.monotonic())

    def _begin(self, since: float) -> Open:
        turn = SharingTurn(self._shelf, self.invoked, self._reads, since)
        self._open = Open(turn, time.monotonic() + TURN_SECONDS, self._shelf.catalog.generation)
        return self._open

    def tidy(self) -> None:
        """Lets go of a turn that is over."""
        if self._open and time.monotonic() >= self._open.ends:
            self._open = None


class Clients:
    """The clients of one transport, each found again by what the protocol gives to tell them apart."""

    def __init__(self, shelf: Shelf, on_leave: Callable[[Client], None]) -> None:
        self._shelf, self._reads, self._on_leave = shelf, Reads(), on_leave
        self._pipe = self._client()
        self._connections: weakref.WeakKeyDictionary[object, Client] = weakref.WeakKeyDictionary()
        self.handshakes: set[Client] = set()
        """Those that are told of changes unasked."""

    def _client(self, connection: Connection | None = None) -> Client:
        return Client(self._shelf, self._reads, connection)

    def of(self, ctx: Context) -> Client:
        """The client that sent this."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return self._of_handshake(ctx)
        if not stands_alone(ctx):  # a pipe, or a client in this process: there is nobody else on it
            return self._pipe
        # Over HTTP, a request of the revisions without a handshake stands alone. The TCP connection it came on is one
        # client's; where no server tells us of it, a turn does not outlive the request.
        connection = connection_of(ctx)
        if connection is None:
            return self._client()
        if connection not in self._connections:
            self._connections[connection] = self._client()
        return self._connections[connection]

    def _of_handshake(self, ctx: Context) -> Client:
        # Where the SDK documents that state of a connection goes; 2.3 hands it to handlers in this way only.
        connection = ctx.session._connection
        client = connection.state.get(_STATE)
        if not isinstance(client, Client):
            client = connection.state[_STATE] = self._client(connection)
            self.handshakes.add(client)
            connection.exit_stack.callback(self._forget, client)
        return client

    def _forget(self, client: Client) -> None:
        """Client and connection name each other, and would wait for a garbage collection with all that was loaded."""
        self.handshakes.discard(client)
        self._on_leave(client)
        if client.connection:
            client.connection.state.pop(_STATE, None)

    def tidy(self) -> None:
        """Lets go of what turns that are over held."""
        self._reads.tidy()
        for client in (self._pipe, *self.handshakes, *self._connections.values()):
            client.tidy()
