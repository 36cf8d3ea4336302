"""Watching, when something goes wrong in it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import Delta, DirectorySource, Shelf
from skillshelf.shelf.watch import Watch
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.trust import Trust

pytest.importorskip("watchfiles")
Write = Callable[..., Path]


def wait_for(write: Write, seen: threading.Event, folder: str) -> bool:
    """Writes until it is seen: a watcher takes a moment to begin."""
    for number in range(50):
        write(folder, f"Does it {number} times.")
        if seen.wait(0.2):
            return True
    return False


def test_a_callback_that_fails_is_recorded_and_watching_goes_on(tmp_path: Path, write: Write) -> None:
    """The exception is in `failure`, and the next change still calls the callback."""
    failed, told = threading.Event(), threading.Event()

    def on_change(delta: Delta) -> None:
        if not failed.is_set():
            failed.set()
            raise LookupError("no such window")
        told.set()

    with Shelf([DirectorySource(tmp_path)]).watch(on_change) as watch:
        assert wait_for(write, failed, "a")
        assert wait_for(write, told, "b")
    assert str(watch.failure) == "no such window"


def test_a_callback_can_close_its_watch(tmp_path: Path, write: Write) -> None:
    """Closing from inside the callback stops the watch without an error."""
    closed = threading.Event()
    watches: list[Watch] = []

    def on_change(delta: Delta) -> None:
        watches[0].close()
        closed.set()

    watches.append(Shelf([DirectorySource(tmp_path)]).watch(on_change))
    assert wait_for(write, closed, "a")
    watches[0].close()
    assert watches[0].failure is None


def test_a_watch_on_a_workspace_also_notices_what_begins_to_wait_for_review(tmp_path: Path, write: Write) -> None:
    """A changed skill leaves the shelf as it is, and so does a changed AGENTS.md."""
    write("pdf")
    agents = tmp_path / "AGENTS.md"
    agents.write_text("Use tabs.")
    skills = WorkspaceSkills(tmp_path, trust=Trust.open())
    skills.approve(skills.pending)
    skills.reload()
    told = threading.Event()
    with skills.watch(told.set):
        assert wait_for(write, told, "pdf")
        assert [pending.name for pending in skills.pending] == ["pdf"]
        agents.write_text("Use spaces.")
        told.clear()
        while [pending.name for pending in skills.pending] != ["pdf", "AGENTS.md"]:
            assert told.wait(10)
            told.clear()
    assert not skills.take_watched()


def test_a_watch_on_a_workspace_keeps_its_changes_until_they_are_taken(tmp_path: Path, write: Write) -> None:
    skills = WorkspaceSkills(tmp_path)
    told = threading.Event()
    with skills.watch(told.set):
        assert wait_for(write, told, "pdf")
    assert skills.take_watched().added == ("pdf",)
