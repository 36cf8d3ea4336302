"""Test how the MCP server notifies clients of changes, and which resources they can subscribe to."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from mcp import Client, MCPError, types
from mcp.server.subscriptions import ResourceUpdated

from skillshelf import MemorySource, Shelf
from skillshelf.mcp import SkillsServer
from skillshelf.mcp._limits import NoticeLimits
from skillshelf.mcp._notices import Notifier, WatchedResources
from skillshelf.mcp._refresher import ShelfRefresher
from skillshelf.skills import Found
from skillshelf.sources import DirectorySource

PDF = "---\nname: pdf\ndescription: Fill in PDF forms.\n---\n\nSee forms.md.\n"
LISTS = ["notifications/resources/list_changed", "notifications/prompts/list_changed"]
UPDATED = "notifications/resources/updated"
SKILL, FORMS, LISTING = "skill://pdf/SKILL.md", "skill://pdf/references/forms.md", "skill://listing"


QUICK = NoticeLimits(notice_seconds=0.05, sweep_seconds=0.1)


def talk(
    shelf: Shelf,
    use: Callable[[Client], Awaitable[Any]],
    limits: NoticeLimits = QUICK,
    max_age: float = 1.0,
    **options: Any,
) -> Any:
    """Connect a client to a server that sends its notices quickly."""
    server = SkillsServer(shelf, notices=limits, max_age=max_age)

    async def main() -> Any:
        async with Client(server, **options) as client:
            return await asyncio.wait_for(use(client), 90)

    return asyncio.run(main())


async def wait_until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds, or after a minute: then the assertion that follows fails."""
    for _ in range(1200):
        if condition():
            return
        await asyncio.sleep(0.05)


def make_shelf_on_disk(tmp_path: Path, write: Callable[..., Path]) -> Shelf:
    write("pdf", body="Old.\n", references__forms_md="Fields.", references__more_md="More.")
    return Shelf([DirectorySource(tmp_path, "project", cache=False)])


class Notifications(list[tuple[str, str]]):
    """The notifications that a client of the handshake revisions receives: the method, and the URI if there is one."""

    async def hear(self, message: Any) -> None:
        self.append((message.method, getattr(message.params, "uri", "")))

    def updated(self) -> list[str]:
        return [uri for method, uri in self if method == UPDATED]


def test_subscribers_are_notified_of_a_change() -> None:
    """These clients use the revision that has subscriptions."""
    source = MemorySource({"pdf": PDF})
    shelf = Shelf([source])

    async def use(client: Client) -> str:
        async with client.listen(resources_list_changed=True, prompts_list_changed=True) as events:
            source.put("paint", PDF.replace("pdf", "paint"))
            shelf.reload()
            async for event in events:
                return type(event).__name__
        return ""

    assert talk(shelf, use) in ("ResourcesListChanged", "PromptsListChanged")


def test_handshake_clients_are_notified_without_subscribing() -> None:
    """Notifications cover resources and prompts, not tools."""
    source = MemorySource({"pdf": PDF})
    shelf, notifications = Shelf([source]), Notifications()

    async def use(client: Client) -> None:
        source.put("paint", PDF.replace("pdf", "paint"))
        shelf.reload()
        await wait_until(lambda: len(notifications) == 2)

    talk(shelf, use, mode="legacy", message_handler=notifications.hear)
    assert notifications == [(method, "") for method in LISTS]


def test_an_edit_is_found_without_a_watcher(tmp_path: Path, write: Callable[..., Path]) -> None:
    """The server sweeps on its own while a client wants notifications."""
    shelf, notifications = make_shelf_on_disk(tmp_path, write), Notifications()

    async def use(client: Client) -> None:
        write("paint")
        await wait_until(lambda: len(notifications) == 2)

    talk(shelf, use, mode="legacy", message_handler=notifications.hear)
    assert [method for method, _ in notifications] == LISTS


class Counting(MemorySource):
    sweeps = 0

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        self.sweeps += 1
        return super().refresh(changed)


def test_the_server_does_not_sweep_without_listeners() -> None:
    """A client of the revision without a handshake gets no notifications until it subscribes."""
    source = Counting({"pdf": PDF})
    shelf = Shelf([source])

    async def use(client: Client) -> tuple[int, int]:
        before = source.sweeps
        await asyncio.sleep(0.5)
        idle = source.sweeps - before
        async with client.listen(resources_list_changed=True):
            await wait_until(lambda: source.sweeps > before)
        return idle, source.sweeps - before

    idle, listening = talk(shelf, use)
    assert idle == 0
    assert listening > 0


class Faulty(MemorySource):
    broken = False

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        if self.broken:
            raise ZeroDivisionError
        return super().refresh(changed)


def test_a_failing_source_does_not_stop_the_server() -> None:
    """Clients are notified once the source recovers."""
    source = Faulty({"pdf": PDF})
    shelf, notifications = Shelf([source]), Notifications()

    async def use(client: Client) -> None:
        source.broken = True
        await asyncio.sleep(0.5)
        assert notifications == []
        source.put("paint", PDF.replace("pdf", "paint"))
        source.broken = False
        await wait_until(lambda: len(notifications) == 2)

    talk(shelf, use, mode="legacy", message_handler=notifications.hear)
    assert [method for method, _ in notifications] == LISTS


def test_a_failing_source_keeps_its_last_known_state(caplog: pytest.LogCaptureFixture) -> None:
    """Every request is answered, and the log reports the failure once."""
    source = Faulty({"pdf": PDF})

    async def use(client: Client) -> None:
        source.broken = True
        for name, arguments in (
            ("load_skill_instructions", {"skill_name": "pdf"}),
            ("search_skills", {"query": "forms"}),
            ("list_skills", {}),
        ):
            result = await client.call_tool(name, arguments)
            assert not result.is_error
        assert (await client.read_resource(LISTING)).contents
        assert len((await client.list_resources()).resources) == 2
        assert len((await client.list_prompts()).prompts) == 1
        assert (await client.get_prompt("pdf")).messages

    talk(Shelf([source]), use, max_age=0.0)
    assert [record.getMessage() for record in caplog.records] == [
        "Reloading skills failed; serving the last known state"
    ]


class Torn(MemorySource):
    """A source that raises an unexpected exception for one of its files."""

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        if key == "torn":
            raise ZeroDivisionError
        return super().reference(key, descriptor, path, offset, limit)


def test_an_unreadable_file_does_not_block_notifications_of_others() -> None:
    """A client that subscribed to other files never sees the exception."""
    torn = {"SKILL.md": PDF.replace("pdf", "torn"), "references/forms.md": "Fields."}
    source = Torn({"pdf": {"SKILL.md": PDF, "references/forms.md": "Fields."}, "torn": torn})
    shelf = Shelf([source])

    async def use(client: Client) -> Any:
        uris = [FORMS, "skill://torn/references/forms.md"]
        async with client.listen(resource_subscriptions=uris) as events:
            assert events.honored.resource_subscriptions == [FORMS]
            source.put("pdf", {"SKILL.md": PDF, "references/forms.md": "New."})
            return await anext(events)

    assert talk(shelf, use) == ResourceUpdated(FORMS)


class Session:
    """The session of a client that reads its messages, or never does."""

    def __init__(self, *, stalls: bool) -> None:
        self.stalls = stalls
        self.sent = 0
        self.client_params = object()

    async def send_resource_list_changed(self) -> None:
        self.sent += 1
        if self.stalls:
            await asyncio.Event().wait()

    send_prompt_list_changed = send_resource_list_changed


def test_a_client_that_does_not_read_does_not_block_others() -> None:
    """The other client receives this change and the next one."""
    source = MemorySource({"pdf": PDF})
    shelf = Shelf([source])
    stalled = Session(stalls=True)
    reading = Session(stalls=False)

    async def main() -> None:
        async with Notifier(shelf, ShelfRefresher(shelf), shelf.listing, QUICK).run() as notifier:
            contexts: list[Any] = [SimpleNamespace(session=session) for session in (stalled, reading)]
            clients = [asyncio.create_task(notifier.serve_client(ctx, types.NotificationParams())) for ctx in contexts]
            await asyncio.sleep(0)
            for number in (1, 2):
                source.put(f"s{number}", PDF.replace("pdf", f"s{number}"))
                shelf.reload()
                await wait_until(lambda: reading.sent >= 2 * number)  # noqa: B023  # awaited in this round
            for client in clients:
                client.cancel()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert reading.sent == 4
    assert stalled.sent == 2


class Gated(Counting):
    """A source whose first sweep waits until the test releases it."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.go = threading.Event()
        self.go.set()

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        changes = super().refresh(changed)
        self.go.wait(60)
        return changes


def test_requests_during_a_sweep_share_the_next_one() -> None:
    """Ten requests at once cost two sweeps: the running one, and one for all the others."""
    source = Gated({"pdf": PDF})
    shelf = Shelf([source])

    async def main() -> int:
        refresher, before = ShelfRefresher(shelf), source.sweeps
        source.go.clear()
        asking = [asyncio.create_task(refresher.refresh())]
        await wait_until(lambda: source.sweeps > before)
        asking += [asyncio.create_task(refresher.refresh()) for _ in range(9)]
        await asyncio.sleep(0.2)
        source.go.set()
        await asyncio.gather(*asking)
        return source.sweeps - before

    assert asyncio.run(main()) == 2


def test_subscribers_learn_which_of_their_resources_changed(tmp_path: Path, write: Callable[..., Path]) -> None:
    """Edit a SKILL.md, edit a reference in place, and remove another: each is reported on its own."""
    shelf = make_shelf_on_disk(tmp_path, write)
    more = "skill://pdf/references/more.md"

    async def use(client: Client) -> list[set[Any]]:
        events_received: list[set[Any]] = []
        async with client.listen(resource_subscriptions=[SKILL, FORMS, more]) as events:
            for change in (
                lambda: (tmp_path / "pdf/references/forms.md").write_text("New fields."),
                lambda: write("pdf", body="New.\n"),
                lambda: (tmp_path / "pdf/references/more.md").unlink(),
            ):
                change()
                events_received.append({await anext(events)})
                await asyncio.sleep(0.3)
        return events_received

    assert talk(shelf, use) == [{ResourceUpdated(FORMS)}, {ResourceUpdated(SKILL)}, {ResourceUpdated(more)}]


def test_the_server_acknowledges_only_subscriptions_it_can_serve() -> None:
    """It acknowledges listed resources, and no changes of tools, because tools never change."""
    source = MemorySource({"pdf": {"SKILL.md": PDF, "references/forms.md": "Fields."}})
    requested = [
        SKILL,
        FORMS,
        LISTING,
        "skill://none/SKILL.md",
        "skill://pdf/references/none.md",
        "skill://pdf/SKILL%2Emd",
        "skill://pdf/references/forms.md?offset=1",
        "https://a.b/",
    ]

    async def use(client: Client) -> Any:
        async with client.listen(
            tools_list_changed=True, resources_list_changed=True, resource_subscriptions=requested
        ) as events:
            return events.honored, client.server_capabilities

    honored, capabilities = talk(Shelf([source]), use)
    assert honored == types.SubscriptionFilter(
        resources_list_changed=True, resource_subscriptions=[SKILL, FORMS, LISTING]
    )
    assert (capabilities.resources.subscribe, capabilities.tools.list_changed) == (True, False)


@pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed")
def test_a_handshake_client_subscribes_and_unsubscribes(tmp_path: Path, write: Callable[..., Path]) -> None:
    """A resource that is not served is refused."""
    shelf, notifications = make_shelf_on_disk(tmp_path, write), Notifications()
    forms = tmp_path / "pdf/references/forms.md"

    async def use(client: Client) -> None:
        assert client.server_capabilities.resources
        assert client.server_capabilities.resources.subscribe
        for uri in ("skill://none/SKILL.md", "skill://pdf", "https://a.b/"):
            with pytest.raises(MCPError, match="No resource is served"):
                await client.subscribe_resource(uri)
        for _ in range(2):
            await client.subscribe_resource(FORMS)
        forms.write_text("New fields.")
        await wait_until(lambda: notifications.updated() == [FORMS])
        await client.subscribe_resource(SKILL)
        await client.unsubscribe_resource(FORMS)
        forms.write_text("Newer fields.")
        await asyncio.sleep(0.5)
        write("pdf", body="New.\n")
        await wait_until(lambda: len(notifications.updated()) > 1)

    talk(shelf, use, mode="legacy", message_handler=notifications.hear)
    assert notifications.updated() == [FORMS, SKILL]


@pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed")
def test_the_subscriptions_of_a_client_are_limited() -> None:
    """The limit holds for concurrent requests, and unsubscribing makes room for another."""
    source = MemorySource({"pdf": {"SKILL.md": PDF, **{f"{at}.md": "x" for at in range(6)}}})
    uris = [f"skill://pdf/{at}.md" for at in range(6)]

    async def use(client: Client) -> None:
        results = await asyncio.gather(*map(client.subscribe_resource, uris), return_exceptions=True)
        refused = [result for result in results if isinstance(result, MCPError)]
        assert [str(result) for result in refused] == ["A client can subscribe to 2 resources at once."] * 4
        subscribed = [uri for uri, result in zip(uris, results, strict=True) if not isinstance(result, MCPError)]
        await client.unsubscribe_resource(subscribed[0])
        await client.subscribe_resource(LISTING)

    talk(Shelf([source]), use, QUICK._replace(subscriptions=2), mode="legacy")


def test_a_resource_is_watched_until_its_last_subscriber_leaves(tmp_path: Path, write: Callable[..., Path]) -> None:
    """Two clients subscribe, and leave one after the other."""
    shelf = make_shelf_on_disk(tmp_path, write)
    resources = WatchedResources(shelf, shelf.listing)
    forms = tmp_path / "pdf/references/forms.md"

    async def main() -> list[list[str]]:
        changes = []
        watched = [await resources.watch([SKILL, FORMS, FORMS]), await resources.watch([FORMS])]
        for at, uris in enumerate(watched):
            forms.write_text(f"Fields {at}.")
            changes.append(await resources.find_changed())
            resources.unwatch(uris)
        forms.write_text("No fields.")
        return [*changes, await resources.find_changed()]

    assert asyncio.run(main()) == [[FORMS], [FORMS], []]


class Slow(MemorySource):
    """A source whose reads wait until the test releases them."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.go, self.lock = threading.Event(), threading.Lock()
        self.reads = self.now = self.most = 0

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        with self.lock:
            self.reads, self.now = self.reads + 1, self.now + 1
            self.most = max(self.most, self.now)
        self.go.wait(60)
        with self.lock:
            self.now -= 1
        return super().reference(key, descriptor, path, offset, limit)


def test_concurrent_subscriptions_use_one_thread() -> None:
    """The files of clients that leave early are not read."""
    source = Slow({"pdf": {"SKILL.md": PDF, **{f"{at}.md": "x" for at in range(100)}}})
    uris = [f"skill://pdf/{at}.md" for at in range(100)]

    async def main() -> list[str]:
        shelf = Shelf([source])
        resources = WatchedResources(shelf, shelf.listing)
        leaving = [asyncio.create_task(resources.watch(uris)) for _ in range(5)]
        await wait_until(lambda: source.reads > 0)
        await asyncio.sleep(0.2)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        source.go.set()
        await wait_until(lambda: source.now == 0)
        return await resources.watch([uris[0]])

    assert asyncio.run(main()) == [uris[0]]
    assert source.most == 1
    assert source.reads <= 30


def test_a_subscription_over_the_limit_is_refused_before_any_read() -> None:
    """The files of a subscription may be long."""
    source = Slow({"pdf": {"SKILL.md": PDF, "references/forms.md": "Fields."}})
    source.go.set()

    async def use(client: Client) -> None:
        async with client.listen(resources_list_changed=True):
            with pytest.raises(MCPError, match="Subscription limit reached"):
                async with client.listen(resource_subscriptions=[FORMS]):
                    pass

    talk(Shelf([source]), use, QUICK._replace(streams=1))
    assert source.reads == 0
