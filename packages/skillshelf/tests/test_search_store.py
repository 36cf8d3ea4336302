"""The stored index: used again by the next process, rebuilt if it is unusable, and never the only way to an answer."""

import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from skillshelf import DirectorySource, MemorySource, Shelf
from skillshelf.search import Match, SkillSearch
from skillshelf.search._database import SkillDatabase, StoredEntry
from skillshelf.skills import Candidate

COUNT = 120


def text(name: str, description: str, body: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}"


def write_skills(root: Path, count: int = COUNT) -> None:
    for number in range(count):
        folder = root / f"skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(text(folder.name, f"Handle matter number{number}.", f"Use tool{number}.\n"))


class Stored:
    """Searches of one source with an index in one folder, each as a new process would make it."""

    def __init__(self, source: DirectorySource | MemorySource, folder: Path) -> None:
        self.shelf = Shelf([source])
        self.folder = folder
        self.path = folder / "index" / "skills.db"
        self.read: list[str] = []
        self.current = self.open()

    def open(self) -> SkillSearch:
        self.current = SkillSearch(self._read, with_similarity=False, path=str(self.path))
        return self.current

    def _read(self, candidate: Candidate) -> str:
        self.read.append(candidate.place.key)
        source = self.shelf.sources[candidate.place.source]
        return source.instructions(candidate.place.key, candidate.descriptor)

    def search(self, query: str) -> list[str]:
        return names(self.current.search(self.shelf.catalog, query))

    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())


def names(matches: list[Match]) -> list[str]:
    return [match.name for match in matches]


@pytest.fixture
def source() -> MemorySource:
    skills = {}
    for number in range(COUNT):
        name = f"skill-{number}"
        skills[name] = text(name, f"Handle matter number{number}.", f"Use tool{number}.\n")
    return MemorySource(skills)


@pytest.fixture
def stored(source: MemorySource, tmp_path: Path) -> Stored:
    return Stored(source, tmp_path)


def test_a_new_process_finds_the_same_in_the_stored_index(stored: Stored) -> None:
    """Nobody but the user can read it."""
    before = [stored.search(f"tool{number}") for number in (3, 77)]
    assert before == [["skill-3"], ["skill-77"]]
    sizes = {path: path.stat().st_size for path in stored.files()}
    assert sizes
    assert all(path.stat().st_mode & 0o077 == 0 for path in (stored.folder / "index").rglob("*") if path.is_dir())
    stored.open()
    assert [stored.search(f"tool{number}") for number in (3, 77)] == before
    assert {path: path.stat().st_size for path in stored.files()} == sizes


def test_a_small_collection_is_not_stored(tmp_path: Path) -> None:
    stored = Stored(MemorySource({"one": text("one", "Paint walls.")}), tmp_path)
    assert stored.search("paint walls") == ["one"]
    assert stored.files() == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not an index" * 500),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["empty", "foreign", "half", "zeros", "missing", "folder"],
)
def test_each_damaged_file_leads_to_a_new_index(stored: Stored, damage: Callable[[Path], object]) -> None:
    """Whichever file it is, the answer is right and nothing is raised."""
    stored.search("tool3")
    for name in [path.relative_to(stored.folder) for path in stored.files()]:
        path = stored.folder / name
        if not path.is_file():
            continue
        damage(path)
        stored.open()
        assert stored.search("tool3") == ["skill-3"], name
        if path.is_dir():
            path.rmdir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write anywhere")
def test_a_folder_that_cannot_be_written_to_is_not_used(stored: Stored) -> None:
    stored.folder.chmod(0o500)
    try:
        assert stored.search("tool3") == ["skill-3"]
    finally:
        stored.folder.chmod(0o700)


def test_a_folder_whose_parent_is_a_file_is_not_used(source: MemorySource, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert Stored(source, tmp_path / "file").search("tool3") == ["skill-3"]


def test_an_edit_of_the_body_alone_is_indexed(tmp_path: Path) -> None:
    """Also if it happens while no process is running, and after an edit in the same instant."""
    write_skills(tmp_path / "skills")
    source = DirectorySource(tmp_path / "skills", cache=False)
    stored = Stored(source, tmp_path)
    assert stored.search("tool5") == ["skill-5"]
    path = tmp_path / "skills/skill-5/SKILL.md"
    for word in ("wrench", "hammer", "pliers"):
        path.write_text(text("skill-5", "Handle matter number5.", f"Use the {word}.\n"))
        stored = Stored(DirectorySource(tmp_path / "skills", cache=False), tmp_path)
        assert stored.search(word) == ["skill-5"]
        assert stored.search("tool5") == []


def test_unchanged_files_are_not_read_again_by_the_next_process(tmp_path: Path) -> None:
    write_skills(tmp_path / "skills")
    os.utime(tmp_path / "skills", (1, 1))
    first = Stored(DirectorySource(tmp_path / "skills", cache=False), tmp_path)
    first.search("tool5")
    # The first process saw fresh files, whose times cannot tell. It records them as soon as they can.
    for found in first.shelf.catalog.found.values():
        found.stamp = 7
    first.open()
    first.search("tool5")
    first.read.clear()
    first.open()
    assert first.search("tool5") == ["skill-5"]
    assert first.read == []


def test_a_process_notices_what_another_one_indexed(stored: Stored, source: MemorySource) -> None:
    stored.search("tool3")
    other = Stored(source, stored.folder)
    first = stored.current
    source.put("skill-3", text("skill-3", "Handle matter number3.", "Use the chisel.\n"))
    source.put("extra", text("extra", "A lathe.", "Turn wood.\n"))
    other.shelf = stored.shelf
    stored.shelf.reload()
    other.open()
    assert other.search("chisel") == ["skill-3"]
    assert names(first.search(stored.shelf.catalog, "lathe")) == ["extra"]
    assert names(first.search(stored.shelf.catalog, "chisel")) == ["skill-3"]


def _search_in_child(folder: str, root: str, results: "multiprocessing.Queue[list[str]]") -> None:
    stored = Stored(DirectorySource(root, cache=False), Path(folder))
    results.put(stored.search("tool7"))


def test_processes_that_start_together_share_one_index(tmp_path: Path) -> None:
    write_skills(tmp_path / "skills")
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[list[str]] = context.Queue()
    arguments = (str(tmp_path), str(tmp_path / "skills"), results)
    children = [context.Process(target=_search_in_child, args=arguments) for _ in range(3)]
    for child in children:
        child.start()
    assert [results.get(timeout=120) for _ in children] == [["skill-7"]] * 3
    for child in children:
        child.join()


def test_a_removed_cache_does_no_harm_to_a_running_process(stored: Stored, source: MemorySource) -> None:
    stored.search("tool3")
    shutil.rmtree(stored.folder / "index")
    source.put("extra", text("extra", "A lathe.", "Turn wood.\n"))
    stored.shelf.reload()
    assert stored.search("lathe") == ["extra"]


def test_a_forked_child_searches_and_leaves_the_parent_alone(stored: Stored) -> None:
    stored.search("tool3")
    child = os.fork()
    if child == 0:
        os._exit(0 if stored.search("tool3") == ["skill-3"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert stored.search("tool4") == ["skill-4"]


# -- a store that was tampered with -----------------------------------------------------------------------------------


def flip(path: Path, at: int) -> None:
    """Damage a file as a failing disk does: its size and times stay as they are."""
    info = path.stat()
    data = bytearray(path.read_bytes())
    for offset in range(at, min(at + 8, len(data))):
        data[offset] ^= 0xFF
    path.write_bytes(data)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def test_damage_in_the_middle_of_the_file_never_fails_a_search(stored: Stored) -> None:
    """The index stays in its file, made anew if necessary."""
    stored.search("tool3")
    stored.current = None  # type: ignore[assignment]
    intact = stored.path.read_bytes()
    for part in range(16):
        stored.path.write_bytes(intact)
        flip(stored.path, len(intact) * part // 16)
        stored.open()
        assert stored.search("tool3") in (["skill-3"], []), part  # a changed number makes a lower score


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET place = NULL",
        "UPDATE entries SET place = 'text' || id",
        "UPDATE entries SET digest = 5, stamp = 'x'",
        "UPDATE words SET description = x'ff'",
        "DELETE FROM words",
        "DELETE FROM entries",
        "DROP TABLE counts",
        "PRAGMA user_version = 7",
        "ALTER TABLE counts RENAME TO others; CREATE VIEW counts AS SELECT word, entries FROM others",
        "CREATE TRIGGER planted AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
    ],
)
def test_a_file_that_another_program_changed_is_made_anew(stored: Stored, change: str) -> None:
    """Neither wrong rows nor planted SQL, which need not even end, are used."""
    stored.search("tool3")
    with closing(sqlite3.connect(stored.path)) as database:
        database.executescript(change)
    stored.open()
    assert stored.search("tool3") == ["skill-3"]
    with closing(sqlite3.connect(stored.path)) as database:
        kinds = {row[0] for row in database.execute("SELECT type FROM sqlite_master")}
        count = database.execute("SELECT count(*) FROM words WHERE words MATCH 'tool3'").fetchone()[0]
    assert (kinds <= {"table", "index"}, count) == (True, 1)


def test_a_link_or_a_folder_in_place_of_the_file_is_left_alone(stored: Stored) -> None:
    precious = stored.folder / "precious"
    precious.write_text("not an index")
    stored.path.parent.mkdir(mode=0o700)
    stored.path.symlink_to(precious)
    assert stored.search("tool3") == ["skill-3"]
    assert precious.read_text() == "not an index"
    assert stored.path.is_symlink()


def test_a_folder_that_others_can_write_to_is_not_used(stored: Stored) -> None:
    """What another user may have put there never answers."""
    stored.path.parent.mkdir()
    stored.path.parent.chmod(0o777)
    assert stored.search("tool3") == ["skill-3"]
    assert not stored.path.exists() or not stored.path.stat().st_size


def test_a_file_that_another_process_keeps_locked_is_waited_for_once(
    stored: Stored, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the index is in memory, and the file stays as it is."""
    monkeypatch.setattr("skillshelf.search._database._LOCK_SECONDS", 0.1)
    stored.search("tool3")
    stored.open()
    source.put("extra", text("extra", "A lathe.", "Turn wood.\n"))
    stored.shelf.reload()
    with closing(sqlite3.connect(stored.path, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        assert stored.search("lathe") == ["extra"]
        assert stored.search("tool3") == ["skill-3"]
        database.execute("ROLLBACK")
        assert database.execute("SELECT count(*) FROM entries").fetchone() == (COUNT,)


def test_a_crash_during_a_change_leaves_the_index_as_it_was(
    stored: Stored, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.search("tool3")
    source.put("skill-3", text("skill-3", "Handle matter number3.", "Use the chisel.\n"))
    stored.shelf.reload()

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SkillDatabase, "_put_entry", crash)
        with pytest.raises(KeyboardInterrupt):
            stored.search("chisel")
    with closing(sqlite3.connect(stored.path)) as database:
        assert database.execute("SELECT count(*) FROM words WHERE words MATCH 'tool3'").fetchone() == (1,)
    assert stored.search("chisel") == ["skill-3"]
    assert stored.search("tool3") == []


def test_an_edit_changes_one_row(stored: Stored, source: MemorySource, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that grows with the collection is read or compared."""
    stored.search("tool3")
    source.put("skill-3", text("skill-3", "Handle matter number3.", "Use the chisel.\n"))
    stored.shelf.reload()
    asked: list[object] = []
    read_entries = SkillDatabase.read_entries

    def record(self: SkillDatabase, places: Iterable[bytes] | None = None) -> dict[bytes, StoredEntry]:
        known = None if places is None else list(places)
        asked.append(known)
        return read_entries(self, known)

    monkeypatch.setattr(SkillDatabase, "read_entries", record)
    stored.read.clear()
    assert stored.search("chisel") == ["skill-3"]
    assert asked == [[b"0\0skill-3"]]
    assert set(stored.read) == {"skill-3"}
