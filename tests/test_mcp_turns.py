"""The turns of the MCP server's clients: what is read once, what is kept, and who waits for whom."""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from mcp import Client, types
from mcp_kit import FILES, PDF, ROUNDS, load, shelf_of, talk, text

from skillshelf import MemorySource, Shelf
from skillshelf.mcp import _reads as reads
from skillshelf.mcp import _turns as turns
from skillshelf.mcp._looks import in_thread
from skillshelf.pages import PAGE_BYTES
from skillshelf.sources import DirectorySource
from skillshelf.turn import Loaded


def test_the_same_load_in_a_turn_reads_nothing() -> None:
    """And the shelf hears of it once."""
    shelf, _ = shelf_of()
    heard: list[Any] = []
    shelf.on_activation(heard.append)

    async def use(client: Client) -> None:
        assert await load(client, skill_name="pdf") == await load(client, skill_name="pdf", reference="")

    talk(shelf, use)
    assert [(one.skill, one.by) for one in heard] == [("pdf", "model")]


def test_an_edit_ends_the_turn(tmp_path: Path, write: Callable[..., Path]) -> None:
    """A reader of the listing sees it at once, and so does the next load."""
    path = write("pdf", body="Old.\n")
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def use(client: Client) -> None:
        assert "Old." in text(await load(client, skill_name="pdf"))
        path.write_text(path.read_text().replace("Old.", "New and longer."))
        await client.read_resource("skill://listing")
        assert "New and longer." in text(await load(client, skill_name="pdf"))

    talk(shelf, use)


def test_a_turn_ends_by_itself(tmp_path: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that is edited in place changes nothing that a sweep looks at, and is read anew all the same."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.05)
    monkeypatch.setattr(reads, "SHARED_SECONDS", 0.05)
    write("pdf", references__forms_md="Old.")
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def use(client: Client) -> None:
        assert text(await load(client, skill_name="pdf", reference="forms.md")) == "Old."
        (tmp_path / "pdf/references/forms.md").write_text("New.")
        await asyncio.sleep(0.1)
        assert text(await load(client, skill_name="pdf", reference="forms.md")) == "New."

    talk(shelf, use)


class Counting(MemorySource):
    """Says what was read of it."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.read: list[str] = []

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        self.read.append(path)
        return super().reference(key, descriptor, path, offset, limit)


def test_what_was_just_read_is_read_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns that begin within a second share a text. After a prompt, where the person has spoken, it is read anew."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(reads, "SHARED_SECONDS", 60.0)
    source = Counting({"pdf": FILES, "notes": ROUNDS})
    shelf = Shelf([source])
    heard: list[Any] = []
    shelf.on_activation(heard.append)

    async def use(client: Client) -> None:
        for _ in range(3):
            assert text(await load(client, skill_name="pdf", reference="references/forms.md")) == "Fields.\n"
        assert source.read == ["references/forms.md"]
        monkeypatch.setattr(turns, "TURN_SECONDS", 60.0)
        await client.get_prompt("notes", {})
        await load(client, skill_name="pdf", reference="references/forms.md")

    talk(shelf, use)
    assert source.read == ["references/forms.md"] * 2
    assert [one.skill for one in heard] == ["pdf", "pdf", "pdf", "notes", "pdf"]


def test_a_text_of_a_changed_skill_is_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """However lately it was read."""
    monkeypatch.setattr(reads, "SHARED_SECONDS", 60.0)
    shelf, source = shelf_of()

    async def use(client: Client) -> str:
        await load(client, skill_name="pdf", reference="references/forms.md")
        source.put("pdf", {**FILES, "references/forms.md": "New."})
        shelf.reload()
        return text(await load(client, skill_name="pdf", reference="references/forms.md"))

    assert talk(shelf, use) == "New."


def test_of_a_long_file_little_is_kept() -> None:
    """Neither for the client that pages through it, in its turn, nor for the others."""
    shelf, _ = shelf_of(pdf={"SKILL.md": PDF, "long.md": "x" * (40 * PAGE_BYTES)})

    async def use(client: Client) -> tuple[int, int, int]:
        for at in range(40):
            await load(client, skill_name="pdf", reference="long.md", offset=at * PAGE_BYTES)
        alive = gc.get_objects()
        answers = [one for one in alive if isinstance(one, types.CallToolResult)]
        shared = [one for one in alive if isinstance(one, reads.Read)]
        return len(answers), sum(len(text(one)) for one in answers), sum(len(one.loaded.text) for one in shared)

    gc.collect()
    count, answered, shared = talk(shelf, use)
    assert count > 0
    assert answered <= turns.ANSWER_BYTES
    assert 0 < shared <= reads.SHARED_BYTES


def test_what_expired_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is read again takes none beside itself."""
    monkeypatch.setattr(reads, "SHARED_BYTES", 1000)
    card, kept = shelf_of()[0].catalog["pdf"], reads.Reads()

    def keep(path: str) -> bool:
        kept.keep(("pdf", path, 0), reads.Read(1.0, card, Loaded("pdf", path, "x" * 600, 600)))
        return kept.find(("pdf", path, 0), card, 0.0) is not None

    assert [keep("a.md"), keep("a.md"), keep("b.md")] == [True, True, False]
    kept.tidy()
    assert [keep("b.md"), keep("a.md")] == [True, False]


class Stuck(MemorySource):
    """Whoever reads `slow.md` of it waits until the test lets go."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.begun, self.go = threading.Event(), threading.Event()

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        if path == "slow.md":
            self.begun.set()
            self.go.wait(60)
        return super().reference(key, descriptor, path, offset, limit)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_nobody_waits_for_a_load_that_was_given_up(mode: str) -> None:
    """Neither the load that waited behind it, nor the next: its thread reads on, by itself."""
    source = Stuck({"pdf": {"SKILL.md": PDF, "slow.md": "Slow.", "fast.md": "Fast.", "more.md": "More."}})

    async def use(client: Client) -> list[str]:
        slow = asyncio.create_task(load(client, skill_name="pdf", reference="slow.md"))
        await asyncio.to_thread(source.begun.wait, 30)
        waiting = asyncio.create_task(load(client, skill_name="pdf", reference="fast.md"))
        await asyncio.sleep(0.2)
        slow.cancel()
        told = [text(await asyncio.wait_for(waiting, 30))]
        return [*told, text(await asyncio.wait_for(load(client, skill_name="pdf", reference="more.md"), 30))]

    try:
        assert talk(Shelf([source]), use, mode=mode) == ["Fast.", "More."]
    finally:
        source.go.set()


def test_the_event_loop_waits_for_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is at hand is given without a thread, but not while another load of the client is about to begin: that one
    could come first, and all clients would wait for it."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(reads, "SHARED_SECONDS", 60.0)
    shelf, _ = shelf_of(pdf={"SKILL.md": PDF, "a.md": "A", "b.md": "B"})
    loaded: list[tuple[str, bool]] = []
    main = threading.main_thread()
    shelf.on_activation(lambda one: loaded.append((one.reference, threading.current_thread() is main)))
    go = threading.Event()

    async def use(client: Client) -> None:
        for _ in range(2):
            await load(client, skill_name="pdf", reference="a.md")
        busy = [asyncio.create_task(in_thread(go.wait, 60)) for _ in range(16)]
        await asyncio.sleep(0)
        both = [asyncio.create_task(load(client, skill_name="pdf", reference=name)) for name in ("b.md", "a.md")]
        await asyncio.sleep(0.2)
        go.set()
        await asyncio.gather(*busy, *both)

    talk(shelf, use)
    assert loaded == [("a.md", False), ("a.md", True), ("b.md", False), ("a.md", False)]


def test_loads_and_reloads_leave_nothing_open(
    tmp_path: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand loads that each read the file, fifty reloads: as many open files as before."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    path = write("pdf", references__forms_md="Fields.")
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def use(client: Client) -> None:
        await load(client, skill_name="pdf")
        before = len(os.listdir("/proc/self/fd"))
        for at in range(1000):
            assert text(await load(client, skill_name="pdf", reference="forms.md")) == "Fields."
            if at % 20 == 0:
                path.write_text(path.read_text() + "More.\n")
                shelf.reload()
        assert len(os.listdir("/proc/self/fd")) == before

    talk(shelf, use)
