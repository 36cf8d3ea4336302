"""What a transport keeps while it serves, and how its clients hear that the shelf changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)

from skillshelf.mcp.turns import Clients
from skillshelf.mcp.uris import LISTING
from skillshelf.shelf import Shelf

SECONDS = 1.0
"""Between two notices at the least, however many files change."""


class Hub:
    """The clients of one transport, and the bus for those that listen."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.clients = Clients(shelf)
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Hub"]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._announce)
            try:
                yield self
            finally:
                self.listen.close()
                tasks.cancel_scope.cancel()

    async def _announce(self) -> None:
        known = self._shelf.catalog.generation
        while True:
            await anyio.sleep(SECONDS)
            self.clients.tidy()
            if self._shelf.catalog.generation != known:
                known = self._shelf.catalog.generation
                await self._tell()

    async def _tell(self) -> None:
        for event in (ResourcesListChanged(), PromptsListChanged(), ResourceUpdated(LISTING)):
            await self._bus.publish(event)
        async with anyio.create_task_group() as tasks:
            for connection in self.clients.connections():
                tasks.start_soon(_notify, connection)


async def _notify(connection: Connection) -> None:
    # A client that does not read must not keep the others from hearing of it.
    with anyio.move_on_after(SECONDS):
        await connection.send_resource_list_changed()
        await connection.send_prompt_list_changed()
