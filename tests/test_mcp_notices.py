"""How clients of the MCP server hear of changes, and what they may subscribe to."""

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
from skillshelf.descriptor import Found
from skillshelf.mcp import SkillsServer
from skillshelf.mcp._notices import NoticeLimits, Notifier, WatchedResources
from skillshelf.mcp._refresher import ShelfRefresher
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


async def until(done: Callable[[], bool]) -> None:
    """Return when the condition holds, or after a minute: the test's own assertion then fails."""
    for _ in range(1200):
        if done():
            return
        await asyncio.sleep(0.05)


def on_disk(tmp_path: Path, write: Callable[..., Path]) -> Shelf:
    write("pdf", body="Old.\n", references__forms_md="Fields.", references__more_md="More.")
    return Shelf([DirectorySource(tmp_path, "project", cache=False)])


class Hearing(list[tuple[str, str]]):
    """What a client of the handshake revisions is told: the method, and the URI where there is one."""

    async def hear(self, message: Any) -> None:
        self.append((message.method, getattr(message.params, "uri", "")))

    def updated(self) -> list[str]:
        return [uri for method, uri in self if method == UPDATED]


def test_listeners_hear_of_a_change() -> None:
    """A client that subscribed, in the revision that has subscriptions."""
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


def test_clients_of_the_handshake_hear_of_a_change_unasked() -> None:
    """Of resources and of prompts, not of tools."""
    source = MemorySource({"pdf": PDF})
    shelf, heard = Shelf([source]), Hearing()

    async def use(client: Client) -> None:
        source.put("paint", PDF.replace("pdf", "paint"))
        shelf.reload()
        await until(lambda: len(heard) == 2)

    talk(shelf, use, mode="legacy", message_handler=heard.hear)
    assert heard == [(method, "") for method in LISTS]


def test_an_edit_is_found_without_a_watcher(tmp_path: Path, write: Callable[..., Path]) -> None:
    """The server sweeps by itself while there is somebody to tell."""
    shelf, heard = on_disk(tmp_path, write), Hearing()

    async def use(client: Client) -> None:
        write("paint")
        await until(lambda: len(heard) == 2)

    talk(shelf, use, mode="legacy", message_handler=heard.hear)
    assert [method for method, _ in heard] == LISTS


class Counting(MemorySource):
    sweeps = 0

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        self.sweeps += 1
        return super().refresh(changed)


def test_nobody_listens_and_nothing_is_swept() -> None:
    """A client of the revision without a handshake, which has not asked to be told."""
    source = Counting({"pdf": PDF})
    shelf = Shelf([source])

    async def use(client: Client) -> tuple[int, int]:
        before = source.sweeps
        await asyncio.sleep(0.5)
        idle = source.sweeps - before
        async with client.listen(resources_list_changed=True):
            await until(lambda: source.sweeps > before)
        return idle, source.sweeps - before

    idle, told = talk(shelf, use)
    assert idle == 0
    assert told > 0


class Faulty(MemorySource):
    broken = False

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        if self.broken:
            raise ZeroDivisionError
        return super().refresh(changed)


def test_a_source_that_fails_does_not_end_the_server() -> None:
    """What it says once it is well again, clients hear."""
    source = Faulty({"pdf": PDF})
    shelf, heard = Shelf([source]), Hearing()

    async def use(client: Client) -> None:
        source.broken = True
        await asyncio.sleep(0.5)
        assert heard == []
        source.put("paint", PDF.replace("pdf", "paint"))
        source.broken = False
        await until(lambda: len(heard) == 2)

    talk(shelf, use, mode="legacy", message_handler=heard.hear)
    assert [method for method, _ in heard] == LISTS


def test_a_source_that_fails_takes_nothing_away(caplog: pytest.LogCaptureFixture) -> None:
    """Every request is answered from the last known state, and the log reports the failure once."""
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
    """Of one of its files it raises what no source should."""

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        if key == "torn":
            raise ZeroDivisionError
        return super().reference(key, descriptor, path, offset, limit)


def test_a_file_that_cannot_be_read_keeps_no_other_from_being_told() -> None:
    """Of what its source raises a client that subscribed to others hears nothing."""
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
    """The session of a client that reads what it is sent, or never does."""

    def __init__(self, *, stalls: bool) -> None:
        self.stalls = stalls
        self.sent = 0
        self.client_params = object()

    async def send_resource_list_changed(self) -> None:
        self.sent += 1
        if self.stalls:
            await asyncio.Event().wait()

    send_prompt_list_changed = send_resource_list_changed


def test_a_client_that_does_not_read_keeps_no_other_from_hearing() -> None:
    """Of this change, and of the next."""
    source = MemorySource({"pdf": PDF})
    shelf = Shelf([source])
    stalled = Session(stalls=True)
    reading = Session(stalls=False)

    async def main() -> None:
        async with Notifier(shelf, ShelfRefresher(shelf), QUICK).run() as notifier:
            contexts: list[Any] = [SimpleNamespace(session=session) for session in (stalled, reading)]
            clients = [asyncio.create_task(notifier.serve_client(ctx, types.NotificationParams())) for ctx in contexts]
            await asyncio.sleep(0)
            for number in (1, 2):
                source.put(f"s{number}", PDF.replace("pdf", f"s{number}"))
                shelf.reload()
                await until(lambda: reading.sent >= 2 * number)  # noqa: B023  # awaited in this round
            for client in clients:
                client.cancel()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert reading.sent == 4
    assert stalled.sent == 2


class Gated(Counting):
    """The first sweep of it takes until the test lets it go."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.go = threading.Event()
        self.go.set()

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        found = super().refresh(changed)
        self.go.wait(60)
        return found


def test_whoever_asks_during_a_look_shares_the_next() -> None:
    """Ten at once are two sweeps, the one under way and one for all the others."""
    source = Gated({"pdf": PDF})
    shelf = Shelf([source])

    async def main() -> int:
        refresher, before = ShelfRefresher(shelf), source.sweeps
        source.go.clear()
        asking = [asyncio.create_task(refresher.refresh())]
        await until(lambda: source.sweeps > before)
        asking += [asyncio.create_task(refresher.refresh()) for _ in range(9)]
        await asyncio.sleep(0.2)
        source.go.set()
        await asyncio.gather(*asking)
        return source.sweeps - before

    assert asyncio.run(main()) == 2


def test_a_listener_hears_which_of_its_resources_changed(tmp_path: Path, write: Callable[..., Path]) -> None:
    """A SKILL.md, a reference that was edited in place, one that is gone: each is told, and no other."""
    shelf = on_disk(tmp_path, write)
    more = "skill://pdf/references/more.md"

    async def use(client: Client) -> list[set[Any]]:
        told: list[set[Any]] = []
        async with client.listen(resource_subscriptions=[SKILL, FORMS, more]) as events:
            for change in (
                lambda: (tmp_path / "pdf/references/forms.md").write_text("New fields."),
                lambda: write("pdf", body="New.\n"),
                lambda: (tmp_path / "pdf/references/more.md").unlink(),
            ):
                change()
                told.append({await anext(events)})
                await asyncio.sleep(0.3)
        return told

    assert talk(shelf, use) == [{ResourceUpdated(FORMS)}, {ResourceUpdated(SKILL)}, {ResourceUpdated(more)}]


def test_only_what_can_be_told_is_acknowledged() -> None:
    """Resources that are served, as they are listed, and no change of tools, of which there is none."""
    source = MemorySource({"pdf": {"SKILL.md": PDF, "references/forms.md": "Fields."}})
    wanted = [
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
            tools_list_changed=True, resources_list_changed=True, resource_subscriptions=wanted
        ) as events:
            return events.honored, client.server_capabilities

    honored, capabilities = talk(Shelf([source]), use)
    assert honored == types.SubscriptionFilter(
        resources_list_changed=True, resource_subscriptions=[SKILL, FORMS, LISTING]
    )
    assert (capabilities.resources.subscribe, capabilities.tools.list_changed) == (True, False)


@pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed")
def test_a_client_of_the_handshake_subscribes(tmp_path: Path, write: Callable[..., Path]) -> None:
    """It hears of its resources until it does not want to, and what is not served is refused."""
    shelf, heard = on_disk(tmp_path, write), Hearing()
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
        await until(lambda: heard.updated() == [FORMS])
        await client.subscribe_resource(SKILL)
        await client.unsubscribe_resource(FORMS)
        forms.write_text("Newer fields.")
        await asyncio.sleep(0.5)
        write("pdf", body="New.\n")
        await until(lambda: len(heard.updated()) > 1)

    talk(shelf, use, mode="legacy", message_handler=heard.hear)
    assert heard.updated() == [FORMS, SKILL]


@pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed")
def test_the_subscriptions_of_a_client_are_limited() -> None:
    """However many it asks for at once. It gets another one as soon as it gives one up."""
    source = MemorySource({"pdf": {"SKILL.md": PDF, **{f"{at}.md": "x" for at in range(6)}}})
    uris = [f"skill://pdf/{at}.md" for at in range(6)]

    async def use(client: Client) -> None:
        done = await asyncio.gather(*map(client.subscribe_resource, uris), return_exceptions=True)
        refused = [one for one in done if isinstance(one, MCPError)]
        assert [str(one) for one in refused] == ["A client can subscribe to 2 resources at once."] * 4
        taken = [uri for uri, one in zip(uris, done, strict=True) if not isinstance(one, MCPError)]
        await client.unsubscribe_resource(taken[0])
        await client.subscribe_resource(LISTING)

    talk(Shelf([source]), use, QUICK._replace(subscriptions=2), mode="legacy")


def test_a_resource_is_watched_as_long_as_somebody_wants_it(tmp_path: Path, write: Callable[..., Path]) -> None:
    """Two subscribed: with the first to leave it goes on, with the second it ends."""
    resources = WatchedResources(on_disk(tmp_path, write))
    forms = tmp_path / "pdf/references/forms.md"

    async def main() -> list[list[str]]:
        told = []
        taken = [await resources.watch([SKILL, FORMS, FORMS]), await resources.watch([FORMS])]
        for at, uris in enumerate(taken):
            forms.write_text(f"Fields {at}.")
            told.append(await resources.find_changed())
            resources.unwatch(uris)
        forms.write_text("No fields.")
        return [*told, await resources.find_changed()]

    assert asyncio.run(main()) == [[FORMS], [FORMS], []]


class Slow(MemorySource):
    """A read of it takes until the test lets it go."""

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


def test_however_many_subscribe_at_once_they_take_one_thread() -> None:
    """And of those who leave before their files were read, the rest is not read."""
    source = Slow({"pdf": {"SKILL.md": PDF, **{f"{at}.md": "x" for at in range(100)}}})
    uris = [f"skill://pdf/{at}.md" for at in range(100)]

    async def main() -> list[str]:
        resources = WatchedResources(Shelf([source]))
        leaving = [asyncio.create_task(resources.watch(uris)) for _ in range(5)]
        await until(lambda: source.reads > 0)
        await asyncio.sleep(0.2)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        source.go.set()
        await until(lambda: source.now == 0)
        return await resources.watch([uris[0]])

    assert asyncio.run(main()) == [uris[0]]
    assert source.most == 1
    assert source.reads <= 30


def test_a_listener_over_the_limit_is_refused_before_anything_is_read() -> None:
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


@pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed")
def test_the_clients_that_are_notified_are_limited() -> None:
    """A client over the limit is served, but not notified."""
    source = MemorySource({"pdf": PDF})
    heard = Hearing()

    async def use(client: Client) -> None:
        with pytest.raises(MCPError, match="already notifies 0 clients"):
            await client.subscribe_resource(SKILL)
        assert (await client.read_resource(SKILL)).contents

    talk(Shelf([source]), use, QUICK._replace(clients=0), mode="legacy", message_handler=heard.hear)
    assert heard == []
