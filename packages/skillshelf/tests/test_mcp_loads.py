"""Test loads through the MCP server: each is a turn of its own, and its answer is shared for at most a second."""

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

from mcp_kit import FILES, PDF, load, make_shelf, talk, text
from skillshelf import MemorySource, Shelf
from skillshelf.mcp import SkillsServer
from skillshelf.mcp._limits import MAX_RECENT_CHARACTERS
from skillshelf.shelf.pages import PAGE_BYTES
from skillshelf.sources import DirectorySource


class Counting(MemorySource):
    """A source that records which references are read."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.read: list[str] = []

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        self.read.append(path)
        return super().reference(key, descriptor, path, offset, limit)


def test_the_same_load_within_a_moment_reads_the_file_once() -> None:
    source = Counting({"pdf": FILES})
    shelf = Shelf([source])
    activations: list[Any] = []
    shelf.observers.add(activations.append)
    counted: list[Any] = []
    shelf.observers.add(counted.append, repeats=True)

    async def use(client: Client) -> None:
        for _ in range(3):
            assert text(await load(client, skill_name="pdf", reference="references/forms.md")) == "Fields.\n"

    talk(SkillsServer(shelf, max_age=60.0), use)
    assert source.read == ["references/forms.md"]
    assert [(each.skill, each.by) for each in activations] == [("pdf", "model")]
    assert [each.repeated for each in counted] == [False, True, True]


def test_an_edited_skill_is_read_again(tmp_path: Path, write: Callable[..., Path]) -> None:
    path = write("pdf", body="Old.\n")
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def use(client: Client) -> None:
        assert "Old." in text(await load(client, skill_name="pdf"))
        path.write_text(path.read_text().replace("Old.", "New and longer."))
        await client.read_resource("skill://listing")  # looks for changes
        assert "New and longer." in text(await load(client, skill_name="pdf"))

    talk(SkillsServer(shelf, max_age=60.0), use)


def test_a_reference_that_is_edited_in_place_is_read_again(tmp_path: Path, write: Callable[..., Path]) -> None:
    """A sweep does not see the edit, so an answer is shared only briefly."""
    write("pdf", references__forms_md="Old.")
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def use(client: Client) -> None:
        assert text(await load(client, skill_name="pdf", reference="forms.md")) == "Old."
        (tmp_path / "pdf/references/forms.md").write_text("New.")
        assert text(await load(client, skill_name="pdf", reference="forms.md")) == "New."

    talk(SkillsServer(shelf, max_age=0.0), use)


class Stuck(MemorySource):
    """A source that blocks reads of `slow.md` until the test releases them."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.begun = threading.Event()
        self.go = threading.Event()

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        page = super().reference(key, descriptor, path, offset, limit)
        if path == "slow.md":
            self.begun.set()
            self.go.wait(60)
        return page


def test_an_answer_that_was_read_before_a_change_is_not_shared_after_it() -> None:
    source = Stuck({"pdf": {"SKILL.md": PDF, "slow.md": "Old."}})
    shelf = Shelf([source])

    async def use(client: Client) -> list[str]:
        slow = asyncio.create_task(load(client, skill_name="pdf", reference="slow.md"))
        await asyncio.to_thread(source.begun.wait, 30)
        source.put("pdf", {"SKILL.md": PDF, "slow.md": "New."})
        shelf.reload()
        source.go.set()
        return [text(await slow), text(await load(client, skill_name="pdf", reference="slow.md"))]

    assert talk(SkillsServer(shelf, max_age=60.0), use) == ["Old.", "New."]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_slow_load_does_not_delay_others(mode: str) -> None:
    """This holds while the load runs and after its client has cancelled it."""
    source = Stuck({"pdf": {"SKILL.md": PDF, "slow.md": "Slow.", "fast.md": "Fast.", "more.md": "More."}})

    async def use(client: Client) -> list[str]:
        slow = asyncio.create_task(load(client, skill_name="pdf", reference="slow.md"))
        await asyncio.to_thread(source.begun.wait, 30)
        fast = await asyncio.wait_for(load(client, skill_name="pdf", reference="fast.md"), 30)
        slow.cancel()
        more = await asyncio.wait_for(load(client, skill_name="pdf", reference="more.md"), 30)
        return [text(fast), text(more)]

    try:
        assert talk(Shelf([source]), use, mode=mode) == ["Fast.", "More."]
    finally:
        source.go.set()


def test_the_memory_for_recent_answers_is_limited() -> None:
    """A client may request many pages of a long file."""
    shelf, _ = make_shelf(pdf={"SKILL.md": PDF, "long.md": "x" * (40 * PAGE_BYTES)})

    async def use(client: Client) -> int:
        for page in range(40):
            await load(client, skill_name="pdf", reference="long.md", offset=page * PAGE_BYTES)
        gc.collect()
        answers = [each for each in gc.get_objects() if isinstance(each, types.CallToolResult)]
        return sum(len(text(answer)) for answer in answers)

    characters = talk(SkillsServer(shelf, max_age=60.0), use)
    assert 0 < characters <= MAX_RECENT_CHARACTERS


def test_loads_and_reloads_leave_no_files_open(tmp_path: Path, write: Callable[..., Path]) -> None:
    """A thousand loads that each read the file, and fifty reloads, must not leak a descriptor."""
    path = write("pdf", references__forms_md="Fields.")
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def use(client: Client) -> None:
        await load(client, skill_name="pdf")
        before = len(os.listdir("/proc/self/fd"))
        for number in range(1000):
            assert text(await load(client, skill_name="pdf", reference="forms.md")) == "Fields."
            if number % 20 == 0:
                path.write_text(path.read_text() + "More.\n")
                shelf.reload()
        assert len(os.listdir("/proc/self/fd")) == before

    talk(SkillsServer(shelf, max_age=0.0), use)
