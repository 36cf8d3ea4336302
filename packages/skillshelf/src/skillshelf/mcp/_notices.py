"""Notify clients of changed skills: `list_changed` for all of them, `resources/updated` for subscribers."""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from mcp import MCPError, types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

from skillshelf.listing import Listing
from skillshelf.mcp._limits import MAX_ECHO, NoticeLimits
from skillshelf.mcp._refresher import RequestContext, ShelfRefresher, run_in_thread
from skillshelf.mcp._skill_files import LISTING_URI, format_uri, parse_uri, read_served_file
from skillshelf.shelf import Shelf

_READ_AT_ONCE = 20
"""Resources that are read in one go. If the subscriber leaves, the rest is not read."""
_REST_FACTOR = 20
"""A sweep is followed by a pause at least this many times as long, so that a large collection costs 5 % of a core."""

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _HandshakeClient:
    """A client of a protocol revision with a handshake, while it is connected."""

    session: ServerSession
    client_params: types.InitializeRequestParams
    """Kept here so that its identity stays this client's."""
    subscribed: set[str] = field(default_factory=set)
    """URIs of resources."""


class Notifier:
    """Watches the shelf for the clients of one transport and notifies them of changes."""

    def __init__(
        self,
        shelf: Shelf,
        refresher: ShelfRefresher,
        make_listing: Callable[[], Listing],
        limits: NoticeLimits | None = None,
    ) -> None:
        self._shelf = shelf
        self._refresher = refresher
        self._limits = limits or NoticeLimits()
        self._resources = WatchedResources(shelf, make_listing, self._limits.subscriptions)

        # By the identity of the parameters of its handshake: the SDK makes a session object for each request, and these
        # parameters, which cannot be hashed, are all that the requests of a client share publicly.
        self._clients: dict[int, _HandshakeClient] = {}
        """By the identity of the client's `initialize` parameters: the SDK keeps one object for each connection."""
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus, max_subscriptions=self._limits.streams)
        self._open_streams = 0

        self._announced_generation = shelf.catalog.generation
        self._next_sweep = 0.0

    @asynccontextmanager
    async def run(self) -> AsyncIterator["Notifier"]:
        """Notify clients as long as the context is open."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._announce_changes)
            try:
                yield self
            finally:
                self.close_streams()
                tasks.cancel_scope.cancel()

    def close_streams(self) -> None:
        """End every `subscriptions/listen` stream with its final answer."""
        self._streams.close()

    async def serve_client(self, ctx: RequestContext, params: types.NotificationParams) -> None:
        """Handle `notifications/initialized`: notify this client until it leaves.

        A handler runs at most as long as its connection. This one never returns, so its end is the client's departure.
        """
        client_params = ctx.session.client_params
        if client_params is None or id(client_params) in self._clients:
            return

        client = _HandshakeClient(ctx.session, client_params)
        self._clients[id(client_params)] = client
        try:
            await anyio.sleep_forever()
        finally:
            del self._clients[id(client_params)]
            self._resources.unwatch(client.subscribed)

    async def listen(
        self, ctx: RequestContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Handle `subscriptions/listen`: stream changes until the client closes the stream.

        The answer acknowledges only changes that can happen: those of tools cannot.
        """
        if self._open_streams >= self._limits.streams:  # the SDK refuses it too, but only after the files were read
            raise MCPError(INTERNAL_ERROR, "Subscription limit reached")

        requested = params.notifications
        uris: list[str] = []
        self._open_streams += 1
        try:
            uris = await self._resources.watch(requested.resource_subscriptions or ())
            honored = requested.model_copy(update={"tools_list_changed": None, "resource_subscriptions": uris})
            return await self._streams(ctx, params.model_copy(update={"notifications": honored}))
        finally:
            self._open_streams -= 1
            self._resources.unwatch(uris)

    async def subscribe(self, ctx: RequestContext, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Handle `resources/subscribe` of the handshake revisions."""
        client = self._find_client(ctx)
        if params.uri in client.subscribed:
            return types.EmptyResult()

        self._check_room(client)
        if not await self._resources.watch([params.uri]):
            raise MCPError(INVALID_PARAMS, f"No resource is served at {params.uri[:MAX_ECHO]!r}")

        # Other requests of this client may have subscribed while the file was read.
        if params.uri in client.subscribed:
            self._resources.unwatch([params.uri])
            return types.EmptyResult()
        try:
            self._check_room(client)
        except MCPError:
            self._resources.unwatch([params.uri])
            raise
        client.subscribed.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: RequestContext, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Handle `resources/unsubscribe` of the handshake revisions."""
        client = self._find_client(ctx)
        if params.uri in client.subscribed:
            client.subscribed.discard(params.uri)
            self._resources.unwatch([params.uri])
        return types.EmptyResult()

    def _find_client(self, ctx: RequestContext) -> _HandshakeClient:
        client = self._clients.get(id(ctx.session.client_params))
        if client is None:
            raise MCPError(INVALID_REQUEST, "This client can't subscribe: it hasn't sent notifications/initialized.")
        return client

    def _check_room(self, client: _HandshakeClient) -> None:
        most = self._limits.subscriptions
        if len(client.subscribed) >= most:
            raise MCPError(INVALID_PARAMS, f"A client can subscribe to {most:,} resources at once.")

    async def _announce_changes(self) -> None:
        while True:
            await anyio.sleep(self._limits.notice_seconds)
            if not self._open_streams and not self._clients:
                self._announced_generation = self._shelf.catalog.generation
                continue
            try:
                await self._announce_next()
            except Exception:  # this task is the server's: whatever fails here must not end it
                logger.exception("Looking for changed skills failed")

    async def _announce_next(self) -> None:
        """Find the changes since the last notice and send one for them."""
        started = time.monotonic()
        is_sweep_due = started >= self._next_sweep
        if is_sweep_due:
            self._next_sweep = started + self._limits.sweep_seconds
            await self._refresher.refresh(self._limits.sweep_seconds)

        is_changed = self._shelf.catalog.generation != self._announced_generation
        self._announced_generation = self._shelf.catalog.generation
        updated: list[str] = []
        if is_sweep_due or is_changed:
            updated = await self._resources.find_changed()
        if is_sweep_due:
            ended = time.monotonic()
            self._next_sweep = max(self._next_sweep, ended + _REST_FACTOR * (ended - started))

        if is_changed or updated:
            await self._send_notices(is_changed, updated)

    async def _send_notices(self, is_changed: bool, updated: Collection[str]) -> None:
        if is_changed:
            await self._bus.publish(ResourcesListChanged())
            await self._bus.publish(PromptsListChanged())
        for uri in updated:
            await self._bus.publish(ResourceUpdated(uri))

        async with anyio.create_task_group() as tasks:
            for client in self._clients.values():
                tasks.start_soon(self._notify_client, client, is_changed, client.subscribed.intersection(updated))

    async def _notify_client(self, client: _HandshakeClient, is_changed: bool, updated: Collection[str]) -> None:
        # A client that does not read must not delay the notices of the others.
        with anyio.move_on_after(self._limits.notice_seconds):
            if is_changed:
                await client.session.send_resource_list_changed()
                await client.session.send_prompt_list_changed()
            for uri in sorted(updated):
                await client.session.send_resource_updated(uri)


class WatchedResources:
    """The resources that clients subscribed to, each with the digest of its last known content.

    They are read from time to time, because a sweep does not see that a reference was edited in place: only that a
    SKILL.md changed, or that a reference came or went.
    """

    def __init__(
        self,
        shelf: Shelf,
        make_listing: Callable[[], Listing],
        most_at_once: int = NoticeLimits().subscriptions,
    ) -> None:
        self._shelf = shelf
        self._make_listing = make_listing
        self._most_at_once = most_at_once
        self._lock = anyio.Lock()
        """Subscriptions that come at once take one thread together, of those that all requests share."""
        self._watchers: Counter[str] = Counter()
        self._digests: dict[str, bytes | None] = {}
        """By URI. None if the resource is not served any more."""

    async def watch(self, uris: Iterable[str]) -> list[str]:
        """Return those of the resources that are served. `find_changed` reports them from now on."""
        unique = list(dict.fromkeys(uris))
        async with self._lock:
            digests = await self._read_digests(unique[: self._most_at_once])

        served = [uri for uri, digest in digests.items() if digest]
        self._watchers.update(served)
        for uri in served:
            self._digests.setdefault(uri, digests[uri])
        return served

    def unwatch(self, uris: Iterable[str]) -> None:
        """Undo one `watch` of these resources."""
        for uri in uris:
            self._watchers[uri] -= 1
            if self._watchers[uri] <= 0:
                del self._watchers[uri]
                self._digests.pop(uri, None)

    async def find_changed(self) -> list[str]:
        """Return the watched resources whose content differs from that of the last call."""
        if not self._watchers:
            return []

        changed = []
        for uri, digest in (await self._read_digests(list(self._watchers))).items():
            if uri in self._digests and self._digests[uri] != digest:
                self._digests[uri] = digest
                changed.append(uri)
        return changed

    async def _read_digests(self, uris: Sequence[str]) -> dict[str, bytes | None]:
        digests: dict[str, bytes | None] = {}
        for start in range(0, len(uris), _READ_AT_ONCE):
            digests |= await run_in_thread(self._digest_resources, uris[start : start + _READ_AT_ONCE])
        return digests

    def _digest_resources(self, uris: Iterable[str]) -> dict[str, bytes | None]:
        return {uri: self._digest_resource(uri) for uri in uris}

    def _digest_resource(self, uri: str) -> bytes | None:
        """Return the digest of a file, or of a long file's first page and its size. None if it is not a resource."""
        address = parse_uri(uri)
        # Only in the listed spelling: otherwise a client could subscribe to one file under any number of names.
        if address is None or uri != format_uri(address.name, address.path):
            return None

        try:
            if uri == LISTING_URI:
                return hashlib.sha256(self._make_listing().text.encode()).digest()
            file = read_served_file(self._shelf, address)
        except Exception:  # a user's own source may raise anything; the other resources are still watched
            return None
        return hashlib.sha256(b"%d\n" % file.size + file.data).digest()
