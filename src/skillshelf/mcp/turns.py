"""Whose turn it is: each client has a turn of its own, and no client sees anything of another's.

MCP tells a server neither where a user message begins nor where its answer ends. What can be seen: a prompt that is
asked for (the person has spoken), and a shelf that changed. Between the two nothing tells the next call of one answer
from the first of another, and a stale text in a new turn is worse than a text read twice in the same, which takes a
fraction of a millisecond. So a turn ends with a prompt, with a change, and after ten seconds in any case.
"""

import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar
from mcp import types
from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from skillshelf.errors import SkillError
from skillshelf.shelf import Shelf
from skillshelf.turn import Turn

if TYPE_CHECKING:
    from skillshelf.mcp.changes import Hub

TURN_SECONDS = 10.0
LOOK_SECONDS = 1.0
"""A tool call that comes later than this after the last look at the folders looks again."""
CONNECTION = "skillshelf.connection"
"""Where `skillshelf.mcp.http` puts what stands for one TCP connection, in the state of an ASGI scope."""
_STATE = "skillshelf.client"
# Apart from anyio's own threads, of which the reader of standard input takes one, and for each event loop.
_LIMITS: RunVar[dict[str, anyio.CapacityLimiter]] = RunVar("skillshelf_mcp_threads")

Context: TypeAlias = "ServerRequestContext[Hub, Any]"
P = ParamSpec("P")
T = TypeVar("T")
Asked = tuple[str, str, int]


async def in_thread(job: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
    """For what reads files, or looks at every skill: meanwhile the others are answered."""
    limiter = threads("files", 16)
    return await to_thread.run_sync(lambda: job(*args, **keywords), limiter=limiter, abandon_on_cancel=True)


def threads(what_for: str, most: int) -> anyio.CapacityLimiter:
    """So many threads at once for this, and no more."""
    limits = _LIMITS.get({})
    if what_for not in limits:
        _LIMITS.set({**limits, what_for: anyio.CapacityLimiter(most)})
    return _LIMITS.get()[what_for]


class Looks:
    """Sweeps of the shelf, as few as will do: whoever asks while one is under way shares the next."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._began = float("-inf")
        """When the last sweep that ended had begun."""
        self._lock = anyio.Lock()

    async def look(self, within: float = 0.0) -> None:
        """After this the shelf is as the disk was so many seconds ago, or later."""
        wanted = time.monotonic() - within
        if self._began >= wanted:
            return
        async with self._lock:
            if self._began >= wanted:
                return
            began = time.monotonic()
            with suppress(SkillError, OSError):  # a root that is gone, say: what was there last serves on
                await in_thread(self._shelf.reload)
            self._began = began


class Open(NamedTuple):
    """A turn, and the answers that were given in it."""

    turn: Turn
    answers: dict[Asked, types.CallToolResult]


class Client:
    """What the server keeps of one client."""

    def __init__(self, shelf: Shelf, connection: Connection | None = None) -> None:
        self._shelf = shelf
        self.connection = connection
        """Where a client of the handshake revisions is told of changes."""
        self.lock = anyio.Lock()
        """Held while a load reads: a turn is not made for two threads."""
        self._open = Open(Turn(shelf), {})
        self._ends = 0.0
        self._generation = -1

    def open(self) -> Open:
        """The turn that is on, or else a new one."""
        if time.monotonic() >= self._ends or self._generation != self._shelf.catalog.generation:
            return self.begin()
        return self._open

    def begin(self) -> Open:
        """A new turn. What the person invoked earlier in the conversation stays invoked."""
        self._open = Open(Turn(self._shelf, self._open.turn.invoked), {})
        self._ends = time.monotonic() + TURN_SECONDS
        self._generation = self._shelf.catalog.generation
        return self._open

    def tidy(self) -> None:
        """Lets go of a turn that is over."""
        if time.monotonic() >= self._ends and self._open.answers:
            self.begin()
            self._ends = 0.0


class Clients:
    """The clients of one transport, each found again by what the protocol gives to tell them apart."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._pipe = Client(shelf)
        self._connections: weakref.WeakKeyDictionary[object, Client] = weakref.WeakKeyDictionary()
        self._handshakes: set[Client] = set()

    def of(self, ctx: Context) -> Client:
        """The client that sent this."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return self._of_handshake(ctx)
        if ctx.request is None:  # a pipe, or a client in this process: there is nobody else on it
            return self._pipe
        # Over HTTP, a request of the revisions without a handshake stands alone. The TCP connection it came on is one
        # client's; where no server tells us of it, nothing outlives the request.
        connection = ctx.request.scope.get("state", {}).get(CONNECTION)
        if connection is None:
            return Client(self._shelf)
        if connection not in self._connections:
            self._connections[connection] = Client(self._shelf)
        return self._connections[connection]

    def _of_handshake(self, ctx: Context) -> Client:
        # Where the SDK documents that state of a connection goes; 2.3 hands it to handlers in this way only.
        connection = ctx.session._connection
        client = connection.state.get(_STATE)
        if not isinstance(client, Client):
            client = connection.state[_STATE] = Client(self._shelf, connection)
            self._handshakes.add(client)
            connection.exit_stack.callback(self._handshakes.discard, client)
        return client

    def connections(self) -> list[Connection]:
        """Of the clients that are told of changes unasked."""
        return [client.connection for client in self._handshakes if client.connection]

    def tidy(self) -> None:
        """Lets go of what turns that are over held."""
        for client in (self._pipe, *self._handshakes, *self._connections.values()):
            client.tidy()
