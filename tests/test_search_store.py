"""The stored index: used again by the next process, rebuilt if it is unusable, and never the only way to an answer."""

import multiprocessing
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from skillshelf import DirectorySource, MemorySource, Shelf
from skillshelf.catalog import Candidate
from skillshelf.files import LockTimeout
from skillshelf.search import EngineName, Match, SkillSearch
from skillshelf.search._engine import Engine

COUNT = 120
ENGINES: tuple[EngineName, ...] = ("tantivy", "fts5")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> EngineName:
    name: EngineName = request.param
    if name == "tantivy":
        pytest.importorskip("tantivy")
    return name


def text(name: str, description: str, body: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}"


def write_skills(root: Path, count: int = COUNT) -> None:
    for number in range(count):
        folder = root / f"skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(text(folder.name, f"Handle matter number{number}.", f"Use tool{number}.\n"))


class Stored:
    """Searches of one source with an index in one folder, each as a new process would make it."""

    def __init__(self, source: DirectorySource | MemorySource, folder: Path, engine: EngineName) -> None:
        self.shelf = Shelf([source])
        self.folder = folder
        self.engine = engine
        self.read: list[str] = []
        self.current = self.open()

    def open(self) -> SkillSearch:
        self.current = SkillSearch(
            self._read, engine=self.engine, with_similarity=False, folder=str(self.folder / "index")
        )
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
def stored(source: MemorySource, tmp_path: Path, engine: EngineName) -> Stored:
    return Stored(source, tmp_path, engine)


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


def test_a_small_collection_is_not_stored(tmp_path: Path, engine: EngineName) -> None:
    stored = Stored(MemorySource({"one": text("one", "Paint walls.")}), tmp_path, engine)
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


def test_an_index_of_another_version_is_made_anew(stored: Stored) -> None:
    import sqlite3

    stored.search("tool3")
    [path] = stored.folder.rglob("index.db")
    database = sqlite3.connect(path)
    database.execute("UPDATE meta SET value = 'other' WHERE name = 'made_by'")
    database.execute("DELETE FROM skills")
    database.commit()
    database.close()
    stored.open()
    assert stored.search("tool3") == ["skill-3"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write anywhere")
def test_a_folder_that_cannot_be_written_to_is_not_used(stored: Stored) -> None:
    stored.folder.chmod(0o500)
    try:
        assert stored.search("tool3") == ["skill-3"]
    finally:
        stored.folder.chmod(0o700)


def test_a_folder_whose_parent_is_a_file_is_not_used(source: MemorySource, tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / "file").write_text("in the way")
    assert Stored(source, tmp_path / "file", engine).search("tool3") == ["skill-3"]


def test_a_folder_that_others_can_write_to_is_not_used(stored: Stored) -> None:
    """What another user may have put there never answers."""
    stored.search("tool3")
    [folder] = (stored.folder / "index").iterdir()
    folder.chmod(0o777)
    stored.open()
    assert stored.search("tool3") == ["skill-3"]


def test_an_edit_of_the_body_alone_is_indexed(tmp_path: Path, engine: EngineName) -> None:
    """Also if it happens while no process is running, and after an edit in the same instant."""
    write_skills(tmp_path / "skills")
    source = DirectorySource(tmp_path / "skills", cache=False)
    stored = Stored(source, tmp_path, engine)
    assert stored.search("tool5") == ["skill-5"]
    path = tmp_path / "skills/skill-5/SKILL.md"
    for word in ("wrench", "hammer", "pliers"):
        path.write_text(text("skill-5", "Handle matter number5.", f"Use the {word}.\n"))
        stored = Stored(DirectorySource(tmp_path / "skills", cache=False), tmp_path, engine)
        assert stored.search(word) == ["skill-5"]
        assert stored.search("tool5") == []


def test_unchanged_files_are_not_read_again_by_the_next_process(tmp_path: Path, engine: EngineName) -> None:
    write_skills(tmp_path / "skills")
    os.utime(tmp_path / "skills", (1, 1))
    first = Stored(DirectorySource(tmp_path / "skills", cache=False), tmp_path, engine)
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
    other = Stored(source, stored.folder, stored.engine)
    first = stored.current
    source.put("skill-3", text("skill-3", "Handle matter number3.", "Use the chisel.\n"))
    source.put("extra", text("extra", "A lathe.", "Turn wood.\n"))
    other.shelf = stored.shelf
    stored.shelf.reload()
    other.open()
    assert other.search("chisel") == ["skill-3"]
    assert names(first.search(stored.shelf.catalog, "lathe")) == ["extra"]
    assert names(first.search(stored.shelf.catalog, "chisel")) == ["skill-3"]


def _search_in_child(folder: str, root: str, engine: EngineName, results: "multiprocessing.Queue[list[str]]") -> None:
    stored = Stored(DirectorySource(root, cache=False), Path(folder), engine)
    results.put(stored.search("tool7"))


def test_processes_that_start_together_share_one_index(tmp_path: Path, engine: EngineName) -> None:
    write_skills(tmp_path / "skills")
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[list[str]] = context.Queue()
    arguments = (str(tmp_path), str(tmp_path / "skills"), engine, results)
    children = [context.Process(target=_search_in_child, args=arguments) for _ in range(3)]
    for child in children:
        child.start()
    assert [results.get(timeout=120) for _ in children] == [["skill-7"]] * 3
    for child in children:
        child.join()


@pytest.mark.parametrize("step", ["add", "commit", "after commit"])
def test_a_crash_at_any_step_of_a_change_leaves_a_usable_index(
    stored: Stored, source: MemorySource, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database and the files of tantivy are never taken for a pair that they are not."""
    stored.search("tool3")
    source.put("skill-3", text("skill-3", "Handle matter number3.", "Use the chisel.\n"))
    stored.shelf.reload()
    engine: Engine = stored.current._index.store.engine
    real_commit = engine.commit

    def crash(*_: object) -> None:
        if step == "after commit":
            real_commit()
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "add" if step == "add" else "commit", crash)
    with pytest.raises(KeyboardInterrupt):
        stored.search("chisel")
    stored.open()
    assert stored.search("chisel") == ["skill-3"]
    assert stored.search("tool3") == []


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


def test_damage_that_the_file_times_do_not_show_never_fails_a_search(stored: Stored) -> None:
    """tantivy panics over some such files, which is not an Exception. The index stays in its folder, made anew."""
    stored.search("tool3")
    [folder] = (stored.folder / "index").iterdir()
    shutil.copytree(folder, stored.folder / "intact")
    largest_files = sorted(
        (path for path in folder.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size
    )
    for name in [path.relative_to(folder) for path in largest_files[:6]]:
        size = (stored.folder / "intact" / name).stat().st_size
        for part in range(8):
            shutil.rmtree(folder)
            shutil.copytree(stored.folder / "intact", folder)
            flip(folder / name, size * part // 8)
            stored.open()
            assert stored.search("tool3") in (["skill-3"], []), (name, part)  # a changed number makes a lower score
            assert stored.current._index.is_stored, (name, part)


def test_rows_that_are_wrong_or_missing_lead_to_a_new_index(stored: Stored) -> None:
    import sqlite3

    for change in (
        "UPDATE skills SET key = NULL",
        "UPDATE skills SET key = 'text'",
        "UPDATE skills SET digest = 5, stamp = 'x'",
        "UPDATE texts SET words = x'00'",
        "UPDATE texts SET words = 'short'",
        "UPDATE pairs SET pairs = NULL",
        "UPDATE pairs SET in_name = 'x', exclusions = 7",
        "DELETE FROM texts",
        "DELETE FROM pairs",
    ):
        stored.open()
        stored.search("tool3")
        [path] = stored.folder.rglob("index.db")
        database = sqlite3.connect(path)
        database.execute(change)
        database.commit()
        database.close()
        stored.open()
        assert stored.search("tool3") == ["skill-3"], change


def test_a_link_in_place_of_the_folder_is_left_alone(stored: Stored) -> None:
    """Nothing is written or removed where it leads."""
    precious = stored.folder / "precious"
    precious.mkdir(mode=0o700)
    (precious / "index.db").write_text("not an index")
    (precious / "letters").mkdir()
    (stored.folder / "index").mkdir(mode=0o700)
    (stored.folder / "index" / stored.engine).symlink_to(precious)
    assert stored.search("tool3") == ["skill-3"]
    assert sorted(path.name for path in precious.iterdir()) == ["index.db", "letters"]
    assert (precious / "index.db").read_text() == "not an index"


def test_files_that_are_not_the_indexs_are_not_removed_with_it(stored: Stored) -> None:
    stored.search("tool3")
    [path] = stored.folder.rglob("index.db")
    path.write_bytes(b"not an index" * 500)
    (path.parent / "letters").mkdir()
    stored.open()
    assert stored.search("tool3") == ["skill-3"]
    assert (path.parent / "letters").is_dir()


@pytest.mark.parametrize("name", ["../../elsewhere", "/elsewhere"])
def test_a_database_cannot_send_tantivy_to_another_folder(stored: Stored, tmp_path: Path, name: str) -> None:
    import sqlite3

    name = name if name.startswith(".") else f"{tmp_path}{name}"
    stored.search("tool3")
    [path] = stored.folder.rglob("index.db")
    database = sqlite3.connect(path)
    database.execute("INSERT OR REPLACE INTO meta VALUES ('engine_folder', ?)", (name,))
    database.commit()
    database.close()
    stored.open()
    assert stored.search("tool3") == ["skill-3"]
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_that_another_process_keeps_is_waited_for_once(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []

    def give_up(path: str, *, timeout: float) -> None:
        waits.append(timeout)
        raise LockTimeout(path)

    monkeypatch.setattr("skillshelf.search._store.hold_lock", give_up)
    assert stored.search("tool3") == ["skill-3"]
    assert len(waits) == 1


@pytest.mark.parametrize(
    "planted",
    [
        ["ALTER TABLE texts RENAME TO others", "CREATE VIEW texts AS SELECT id, words FROM others"],
        ["CREATE TRIGGER planted AFTER INSERT ON texts BEGIN DELETE FROM texts; END"],
    ],
    ids=["view", "trigger"],
)
def test_sql_that_was_planted_in_the_database_does_not_run(stored: Stored, planted: list[str]) -> None:
    """A view can be endless."""
    import sqlite3

    stored.search("tool3")
    [path] = stored.folder.rglob("index.db")
    with closing(sqlite3.connect(path)) as database:
        for statement in planted:
            database.execute(statement)
    stored.open()
    assert stored.search("tool3") == ["skill-3"]
    with closing(sqlite3.connect(path)) as database:
        kinds = {row[0] for row in database.execute("SELECT type FROM sqlite_master")}
    assert kinds <= {"table", "index"}


def test_a_pipe_in_place_of_a_lock_of_tantivy_does_not_block(tmp_path: Path, source: MemorySource) -> None:
    pytest.importorskip("tantivy")
    stored = Stored(source, tmp_path, "tantivy")
    stored.search("tool3")
    [folder] = {path.parent for path in stored.folder.rglob("meta.json")}
    for name in (".tantivy-writer.lock", ".tantivy-meta.lock"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    source.put("extra", text("extra", "A lathe.", "Turn wood.\n"))
    stored.shelf.reload()
    stored.open()
    assert stored.search("lathe") == ["extra"]
