"""Watching, when something goes wrong in it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import Delta, DirectorySource, Shelf
from skillshelf.shelf.watch import Watch

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
