"""What a transport keeps while it serves, and how its clients hear that the shelf changed."""

import logging
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import anyio
from mcp import MCPError, types
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from skillshelf.mcp._looks import Looks
from skillshelf.mcp._subscriptions import MOST, Subscriptions
from skillshelf.mcp._turns import Clients, Context, connection_of
from skillshelf.shelf import Shelf

SECONDS = 1.0
"""Between two notices at the least, however many files change."""
SWEEP_SECONDS = 2.0
"""Between two sweeps while somebody is to be told: a watcher makes it faster, where there is one."""
STREAMS = 1_024
"""Of changes at once, for the clients of one transport together."""
_REST = 20
"""A sweep of so many skills that it takes long is followed by a pause so many times as long."""

log = logging.getLogger(__name__)


class Hub:
    """The clients of one transport, what they subscribed to, and the bus for those that listen."""

    def __init__(self, shelf: Shelf, looks: Looks) -> None:
        self._shelf, self._looks = shelf, looks
        self._subscriptions = Subscriptions(shelf)
        self.clients = Clients(shelf, lambda client: self._subscriptions.remove(client.subscribed))
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus, max_subscriptions=STREAMS)
        self._listening = 0
        self._known = shelf.catalog.generation
        """What has been told."""
        self._next_sweep = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Hub"]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._announce)
            try:
                yield self
            finally:
                self._streams.close()
                tasks.cancel_scope.cancel()

    async def initialized(self, ctx: Context, params: types.NotificationParams) -> None:
        """From here on the client is told of changes, whether it asks for anything or not."""
        self.clients.of(ctx)

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """A stream of changes, in the revisions that have them. Acknowledged is what can come: tools never change."""
        if self._listening >= STREAMS:  # the SDK would say so too, but after the files have been read
            raise MCPError(INTERNAL_ERROR, "Subscription limit reached")
        asked, uris = params.notifications, list[str]()
        if connection := connection_of(ctx):
            connection.at_end.add(self._streams.close)
        self._listening += 1
        try:
            uris = await self._subscriptions.add(asked.resource_subscriptions or ())
            honored = asked.model_copy(update={"tools_list_changed": None, "resource_subscriptions": uris})
            return await self._streams(ctx, params.model_copy(update={"notifications": honored}))
        finally:
            self._listening -= 1
            self._subscriptions.remove(uris)

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """`resources/subscribe` of the handshake revisions."""
        client = self.clients.of(ctx)
        if params.uri in client.subscribed:
            return types.EmptyResult()
        if len(client.subscribed) >= MOST:
            raise _too_many()
        if not await self._subscriptions.add([params.uri]):
            raise MCPError(INVALID_PARAMS, f"No resource is served at {params.uri[:200]!r}")
        # After that: other requests of the client may have subscribed meanwhile, to this one or to too many.
        if params.uri in client.subscribed:
            self._subscriptions.remove([params.uri])
        elif len(client.subscribed) >= MOST:
            self._subscriptions.remove([params.uri])
            raise _too_many()
        client.subscribed.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        client = self.clients.of(ctx)
        if params.uri in client.subscribed:
            client.subscribed.discard(params.uri)
            self._subscriptions.remove([params.uri])
        return types.EmptyResult()

    async def _announce(self) -> None:
        while True:
            await anyio.sleep(SECONDS)
            self.clients.tidy()
            if not self._listening and not self.clients.handshakes:
                self._known = self._shelf.catalog.generation
                continue
            try:
                await self._look()
            except Exception:  # whatever it is, it must not end the server, whose task this is
                log.exception("looking for changes failed")

    async def _look(self) -> None:
        """Find out what changed, and tell it."""
        began = time.monotonic()
        due = began >= self._next_sweep
        if due:
            self._next_sweep = began + SWEEP_SECONDS
            await self._looks.look(SWEEP_SECONDS)
        changed = self._shelf.catalog.generation != self._known
        self._known = self._shelf.catalog.generation
        updated = await self._subscriptions.changed() if due or changed else []
        if due:
            ended = time.monotonic()
            self._next_sweep = max(began + SWEEP_SECONDS, ended + _REST * (ended - began))
        if changed or updated:
            await self._tell(changed, updated)

    async def _tell(self, changed: bool, updated: Collection[str]) -> None:
        lists = (ResourcesListChanged(), PromptsListChanged()) if changed else ()
        for event in (*lists, *map(ResourceUpdated, updated)):
            await self._bus.publish(event)
        async with anyio.create_task_group() as tasks:
            for client in self.clients.handshakes:
                if client.connection:
                    tasks.start_soon(_notify, client.connection, changed, client.subscribed.intersection(updated))


def _too_many() -> MCPError:
    return MCPError(INVALID_PARAMS, f"A client can subscribe to {MOST:,} resources at once.")


async def _notify(connection: Connection, changed: bool, updated: Collection[str]) -> None:
    # A client that does not read must not keep the others from hearing of it.
    with anyio.move_on_after(SECONDS):
        if changed:
            await connection.send_resource_list_changed()
            await connection.send_prompt_list_changed()
        for uri in sorted(updated):
            await connection.send_resource_updated(uri)
