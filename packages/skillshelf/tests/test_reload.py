"""Reloading: changed skills are read again, others are not, and broken ones keep their last good version."""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import Delta, DirectorySource, MissingExtraError, Shelf
from skillshelf.listing import parse

Write = Callable[..., Path]
watching: list[bool] = []
"""An audit hook cannot be taken back, only switched off."""


def shelf_of(path: Path) -> Shelf:
    return Shelf([DirectorySource(path, "project")])


def names(delta: Delta) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return delta.added, delta.changed, delta.removed


def test_a_reload_returns_what_was_added_changed_and_removed(tmp_path: Path, write: Write) -> None:
    """If nothing changed, the Delta is false and the catalog the same."""
    write("a")
    gone = write("b")
    shelf = shelf_of(tmp_path)
    before = shelf.catalog
    assert not shelf.reload()
    assert shelf.catalog is before
    write("a", "Other words.")
    write("c")
    gone.unlink()
    assert names(shelf.reload()) == (("c",), ("a",), ("b",))
    assert list(before) == ["a", "b"]
    assert list(shelf.catalog) == ["a", "c"]
    assert shelf.catalog.generation > before.generation


def test_only_the_body_changed_is_a_change_too(tmp_path: Path, write: Write) -> None:
    """It is noticed even if size and modification time are the same."""
    path = write("a", body="one\n")
    shelf = shelf_of(tmp_path)
    stamp = path.stat()
    write("a", body="two\n")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert names(shelf.reload()) == ((), ("a",), ())
    assert shelf.instructions("a") == "two\n"


def test_touching_a_file_changes_nothing(tmp_path: Path, write: Write) -> None:
    """New times without new bytes are not a change."""
    path = write("a")
    shelf = shelf_of(tmp_path)
    path.touch()
    path.chmod(0o600)
    assert not shelf.reload()


def test_a_reload_of_known_paths_reads_nothing_else(tmp_path: Path, write: Write) -> None:
    """reload(changed=[…]) reads only the skills of these paths."""
    a, b = write("a"), write("deep/b")
    shelf = shelf_of(tmp_path)
    write("a", "New a.")
    write("deep/b", "New b.")
    write("deep/c")
    assert names(shelf.reload(changed=[b])) == ((), ("b",), ())
    assert shelf.catalog["a"].description == "Does it."
    assert names(shelf.reload(changed=[tmp_path / "deep/c/SKILL.md", a])) == (("c",), ("a",), ())
    (tmp_path / "deep/c/SKILL.md").unlink()
    (tmp_path / "deep/c").rmdir()
    assert names(shelf.reload(changed=[str(tmp_path / "deep/c/SKILL.md")])) == ((), (), ("c",))
    assert not shelf.reload(changed=["/elsewhere/SKILL.md"])
    assert not shelf.reload()


def test_a_changed_reference_is_a_change_of_its_skill(tmp_path: Path, write: Write) -> None:
    """The caller must name it; a new reference is found either way."""
    write("a", references__x_md="one")
    shelf = shelf_of(tmp_path)
    reference = tmp_path / "a/references/x.md"
    reference.write_text("two")
    assert names(shelf.reload(changed=[reference])) == ((), ("a",), ())
    (tmp_path / "a/references/y.md").write_text("new")
    assert names(shelf.reload()) == ((), ("a",), ())
    assert shelf.catalog["a"].references == ("references/x.md", "references/y.md")


def test_a_file_that_is_not_a_reference_does_not_change_its_skill(tmp_path: Path, write: Write) -> None:
    """A file that a script leaves in its folder is an example, however often a watcher reports it."""
    write("a", references__x_md="one")
    shelf = shelf_of(tmp_path)
    before = shelf.catalog
    for path in ("a/__pycache__/x.pyc", "a/.cache.db"):
        left = tmp_path / path
        left.parent.mkdir(exist_ok=True)
        left.write_text("left behind")
        assert not shelf.reload(changed=[left])
    assert shelf.catalog is before
    assert names(shelf.reload(changed=[tmp_path / "a/references"])) == ((), ("a",), ())


def test_folders_become_skills_and_skills_become_folders(tmp_path: Path, write: Write) -> None:
    """A SKILL.md that appears above other skills absorbs them; when it goes, they are back."""
    write("kit/a")
    shelf = shelf_of(tmp_path)
    outer = write("kit")
    assert names(shelf.reload()) == (("kit",), (), ("a",))
    outer.unlink()
    assert names(shelf.reload()) == (("a",), (), ("kit",))


def test_a_renamed_folder_moves_its_skill(tmp_path: Path, write: Write) -> None:
    """Its name stays and its location is new."""
    write("old/pdf")
    shelf = shelf_of(tmp_path)
    (tmp_path / "old").rename(tmp_path / "new")
    assert names(shelf.reload()) == ((), ("pdf",), ())
    assert shelf.catalog["pdf"].location == str(tmp_path / "new/pdf/SKILL.md")


def test_a_broken_file_keeps_its_last_good_version(tmp_path: Path, write: Write) -> None:
    """Descriptor and instructions stay in use, with a warning, until the file is repaired."""
    path = write("a", "Good.", "Good text.\n")
    shelf = shelf_of(tmp_path)
    for broken in (b"", b"---\nname: a\ndescr", b"\xff\xfe\x00", b"---\nname: a\ndescription: x\xe2\x80\x8b\n---\n"):
        path.write_bytes(broken)
        assert not shelf.reload()
        assert shelf.catalog["a"].description == "Good."
        assert "kept-last-good" in {note.code for note in shelf.catalog.diagnostics}
        with shelf.turn() as turn:
            assert turn.load("a").text == "Good text.\n"
    write("a", "Mended.", "New text.\n")
    assert names(shelf.reload()) == ((), ("a",), ())
    assert shelf.catalog["a"].description == "Mended."
    assert shelf.catalog.diagnostics == ()


def test_a_description_and_instructions_are_of_one_version(tmp_path: Path, write: Write) -> None:
    """Until the next scan both are of the version that the last scan found."""
    write("a", "One.", body="First.\n")
    shelf = shelf_of(tmp_path)
    write("a", "Two.", body="Second.\n")
    [entry] = parse(shelf.listing().text)
    assert (entry.description, entry.instructions) == ("One.", "First.\n")
    shelf.reload()
    [entry] = parse(shelf.listing().text)
    assert (entry.description, entry.instructions) == ("Two.", "Second.\n")


def test_one_broken_file_does_not_hide_the_others(tmp_path: Path, write: Write) -> None:
    """It is reported, and its neighbours load."""
    write("a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/SKILL.md").write_bytes(b"\xff\xfe")
    shelf = shelf_of(tmp_path)
    assert list(shelf.catalog) == ["a"]
    assert [(note.severity, note.code, note.path) for note in shelf.catalog.diagnostics] == [
        ("error", "not-utf8", str(tmp_path / "b/SKILL.md"))
    ]


def test_a_turn_sees_changes_made_before_it(tmp_path: Path, write: Write) -> None:
    """Within the turn, a loaded text stays the same, whatever changes on disk."""
    write("a", body="one\n", references__x_md="one")
    shelf = shelf_of(tmp_path)
    with shelf.turn() as turn:
        assert turn.load("a").text == "one\n"
        assert turn.load("a", "x.md").text == "one"
        write("a", "Changed.", "two\n", references__x_md="two")
        assert turn.load("a").text == "one\n"
        assert turn.load("a", "references/x.md").text == "one"
        assert turn.hits == 2
    with shelf.turn() as turn:
        assert (turn.load("a").text, turn.load("a", "x.md").text, turn.hits) == ("two\n", "two", 0)
        assert shelf.catalog["a"].description == "Changed."


def test_a_write_through_the_agent_is_seen_at_once(tmp_path: Path, write: Write) -> None:
    """turn.wrote drops the loaded texts of that skill, reloads it, and returns what changed."""
    write("a", references__x_md="one")
    shelf = shelf_of(tmp_path)
    with shelf.turn() as turn:
        assert turn.load("a", "x.md").text == "one"
        (tmp_path / "a/references/x.md").write_text("two")
        assert turn.wrote(tmp_path / "a/references/x.md").changed == ("a",)
        assert turn.load("a", "x.md").text == "two"
        assert turn.wrote(write("b")).added == ("b",)
        assert turn.load("b").text == "Do it.\n"


def test_a_turn_records_each_loaded_text_once(tmp_path: Path, write: Write) -> None:
    """An activation says who asked for the text; a repeated load adds none."""
    write("a", references__x_md="one")
    with shelf_of(tmp_path).turn() as turn:
        turn.load("a", by="user")
        turn.load("a")
        turn.load("a", "x.md")
    assert [(one.skill, one.reference, one.by) for one in turn.activations] == [
        ("a", "", "user"),
        ("a", "references/x.md", "model"),
    ]


def test_a_second_start_reads_nothing_that_did_not_change(tmp_path: Path, write: Write) -> None:
    """The scan cache gives the same catalog, and changes made between two processes are noticed."""
    for number in range(600):
        write(f"skills/s{number}", references__x_md="x")
    first = shelf_of(tmp_path)
    cache = Path(os.environ["HOME"]) / ".cache/skillshelf/index"
    assert [path.suffix for path in cache.iterdir()] == [".json"]
    again = shelf_of(tmp_path)
    assert dict(again.catalog) == dict(first.catalog)
    write("skills/s7", "Changed.")
    write("skills/new")
    (tmp_path / "skills/s8/SKILL.md").unlink()
    third = shelf_of(tmp_path)
    assert third.catalog["s7"].description == "Changed."
    assert set(first.catalog) ^ set(third.catalog) == {"new", "s8"}


def test_a_second_start_opens_no_skill_that_did_not_change(tmp_path: Path, write: Write) -> None:
    """A warm start does not read: it misses bytes that were swapped under an unchanged stamp."""
    for number in range(600):
        write(f"skills/s{number}", "Before.")
    time.sleep(2.1)  # what was just written is always read again
    shelf_of(tmp_path)
    opened: list[str] = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" and watching else None)
    watching.append(True)
    try:
        again = shelf_of(tmp_path)
    finally:
        watching.clear()
    assert len(again.catalog) == 600
    assert [path for path in opened if "SKILL.md" in path] == []
    with pytest.raises(TypeError, match="read-only"):  # the skills share it
        again.catalog["s1"].metadata["by"] = "me"  # type: ignore[index]


def test_readers_always_see_a_whole_catalog(tmp_path: Path, write: Write) -> None:
    """While one thread adds and removes pairs of skills, no reader sees half a pair."""
    write("a1")
    write("a2")
    shelf = shelf_of(tmp_path)
    done = threading.Event()
    seen: list[bool] = []

    def look() -> None:
        while not done.is_set():
            catalog = shelf.catalog
            seen.append(("b1" in catalog) == ("b2" in catalog))

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(30):
        paths = [write("b1"), write("b2")]
        shelf.reload()
        for path in paths:
            path.unlink()
        shelf.reload()
    done.set()
    reader.join()
    assert seen
    assert all(seen)


def test_watching_reloads_by_itself(tmp_path: Path, write: Write) -> None:
    """An edit by another program is noticed without a call, and the callback gets the Delta."""
    pytest.importorskip("watchfiles")
    write("a")
    shelf = shelf_of(tmp_path)
    deltas: list[Delta] = []
    with shelf.watch(deltas.append):
        deadline = time.monotonic() + 20
        number = 0
        while not deltas and time.monotonic() < deadline:
            number += 1
            write("a", f"Edit {number}.")
            time.sleep(0.3)
    assert deltas
    assert deltas[0].changed == ("a",)
    assert shelf.catalog["a"].description.startswith("Edit")


def test_watching_without_the_extra_is_an_error_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is typed and contains the command."""
    monkeypatch.setitem(__import__("sys").modules, "watchfiles", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[watch\]'"):
        shelf_of(tmp_path).watch()
