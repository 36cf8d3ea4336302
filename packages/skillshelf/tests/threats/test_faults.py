"""FAULTS: files that are written, lost and restored while they are read, and machines that run out of space."""

import gc
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from skillshelf import Delta, DirectorySource, MissingExtraError, Shelf, SkillError, Turn
from skillshelf.sources._scan_cache import _SHARED_FIELDS, VERSION
from threats.workspace import GOOD, PLAIN, Workspace, assert_neighbour, assert_standard, load, write_skill

SETTLED = 2.2
"""Seconds after which a change is no longer so fresh that its file is read again anyway."""


def run(script: str, *arguments: object, **environment: str) -> str:
    """Return what a new Python process prints."""
    completed = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


# -- many at once -----------------------------------------------------------------------------------------------------


def _version(tag: int) -> str:
    """Return a text in which a torn read shows."""
    return f"version {tag}\n" * 2000 + f"end {tag}\n"


def _is_whole(text: str) -> bool:
    *lines, end = text.splitlines()
    return set(lines) == {f"version {end.removeprefix('end ')}"} and len(lines) == 2000


class Crowd:
    """Threads that each repeat one action until they are stopped."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.failures: list[BaseException] = []
        self.counts: dict[str, int] = {}
        self._threads: list[threading.Thread] = []

    def add(self, name: str, act: Callable[[], object]) -> None:
        def repeat() -> None:
            while not self.stop.is_set():
                try:
                    act()
                except Exception as error:
                    self.failures.append(error)
                    return
                self.counts[name] = self.counts.get(name, 0) + 1

        self._threads.append(threading.Thread(target=repeat))

    def run(self, seconds: float) -> None:
        for thread in self._threads:
            thread.start()
        time.sleep(seconds)
        self.stop.set()
        for thread in self._threads:
            thread.join()


def test_every_load_is_one_whole_version(workspace: Workspace) -> None:
    """K05: while skills are rewritten, deleted, re-created and reloaded, a load is one version or a typed error."""
    names = [f"skill-{number}" for number in range(4)]
    for name in names:
        workspace.skill(name, body=_version(0), files={"references/a.md": _version(0)})
    shelf = workspace.shelf()
    torn: list[str] = []
    errors: set[type] = set()

    def rewrite() -> None:
        folder, tag = workspace.root / random.choice(names), random.randrange(10**6)
        for name, text in (
            ("SKILL.md", PLAIN.format(name=folder.name, description=f"d{tag}", body=_version(tag))),
            ("references/a.md", _version(tag)),
        ):
            scratch = workspace.outside / f"{tag}.tmp"
            scratch.write_text(text)
            try:
                scratch.replace(folder / name)
            except FileNotFoundError:
                scratch.unlink()  # deleted meanwhile

    def recreate() -> None:
        key = random.choice(names)
        trash = workspace.outside / f"trash-{random.randrange(10**9)}"
        (workspace.root / key).rename(trash)
        shutil.rmtree(trash, ignore_errors=True)  # a concurrent rewrite may still write into it
        skill_folder = write_skill(workspace.outside / "made" / key, "d", _version(1), {"references/a.md": _version(1)})
        skill_folder.rename(workspace.root / key)

    def read() -> None:
        turn = Turn(shelf)
        for name in names:
            for reference in ("", "references/a.md"):
                outcome = load(turn, name, reference)
                if isinstance(outcome, SkillError):
                    errors.add(type(outcome))
                elif not _is_whole(outcome):
                    torn.append(outcome[-100:])

    def show() -> None:
        shelf.listing("full")
        shelf.search("version")
        tuple(shelf.catalog.diagnostics)

    crowd = Crowd()
    for act in (rewrite, recreate, read, read, shelf.reload, show):
        crowd.add(act.__name__, act)
    crowd.run(3)
    assert crowd.failures == []
    assert torn == []
    assert all(crowd.counts[name] > 5 for name in ("rewrite", "recreate", "read", "reload", "show")), crowd.counts
    turn = shelf.turn()
    assert all(_is_whole(turn.load(name).text) for name in names)
    assert_neighbour(shelf)


def test_a_reload_and_a_listing_see_one_catalog(workspace: Workspace) -> None:
    """K05: a listing made during reloads shows one snapshot, never halves of two."""
    shelf = workspace.shelf()
    counts = []

    def flip() -> None:
        write_skill(workspace.root / "flip-a", "Both.", "", {})
        write_skill(workspace.root / "flip-b", "Both.", "", {})
        shelf.reload()
        for name in ("flip-a", "flip-b"):
            shutil.rmtree(workspace.root / name)
        shelf.reload()

    def list_skills() -> None:
        text = shelf.listing("catalog").text
        counts.append(("flip-a" in text) + ("flip-b" in text))

    crowd = Crowd()
    crowd.add("flip", flip)
    crowd.add("look", list_skills)
    crowd.run(1)
    assert crowd.failures == []
    assert set(counts) <= {0, 2}


# -- watching ---------------------------------------------------------------------------------------------------------


def test_an_edit_is_seen_without_a_watcher(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """K07: without the extra, asking for a watcher is a typed error, and the next turn sees the edit."""
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    shelf = workspace.shelf()
    with pytest.raises(MissingExtraError, match="watch"):
        shelf.watch()
    workspace.skill(GOOD, body="Edited.\n")
    assert shelf.turn().load(GOOD).text == "Edited.\n"


def test_an_edit_is_seen_after_the_watcher_is_closed(workspace: Workspace) -> None:
    """K07: after the watcher is closed, the next turn still sees the edit."""
    pytest.importorskip("watchfiles")
    shelf = workspace.shelf()
    with shelf.watch():
        pass
    workspace.skill(GOOD, body="Edited.\n")
    assert shelf.turn().load(GOOD).text == "Edited.\n"


def test_a_watcher_sees_an_edit_by_itself(workspace: Workspace) -> None:
    """K07: with a watcher, the catalog follows edits, new skills and removals without a call."""
    pytest.importorskip("watchfiles")
    shelf = workspace.shelf()
    deltas: list[Delta] = []
    with shelf.watch(deltas.append) as watch:
        tries = 0

        def touched() -> bool:
            nonlocal tries
            tries += 1
            workspace.skill("fresh", description=f"Try {tries}.")  # again: the first may come before the watch
            return "fresh" in shelf.catalog

        assert wait_for(touched)
        shutil.rmtree(workspace.root / "fresh")
        assert wait_for(lambda: "fresh" not in shelf.catalog)
        assert watch.failure is None
    assert [delta for delta in deltas if "fresh" in delta.added]
    assert [delta for delta in deltas if "fresh" in delta.removed]


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


NO_WATCHES = """
import os, resource, sys, time
import watchfiles, skillshelf.shelf.watch
from skillshelf import DirectorySource, Shelf
root = sys.argv[1]
shelf = Shelf([DirectorySource(root, cache=False)])
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
watch = shelf.watch()
deadline = time.monotonic() + 20
while watch.failure is None and time.monotonic() < deadline:
    time.sleep(0.01)
for fd in held:
    os.close(fd)
open(f"{root}/good/SKILL.md", "w").write("---\\nname: good\\ndescription: d\\n---\\nEdited.\\n")
watch.close()
print(watch.failure is not None, shelf.turn().load("good").text, end="")
"""


def test_a_watcher_that_cannot_start_reports_it_and_turns_still_work(workspace: Workspace) -> None:
    """K07: if the system has no watches left, the failure is available as a value, and the next turn sees the edit."""
    pytest.importorskip("watchfiles")
    assert run(NO_WATCHES, workspace.root) == "True Edited.\n"


# -- how editors save -------------------------------------------------------------------------------------------------

OLD = PLAIN.format(name="bad", description="Old.", body="Old text.\n")
NEW = PLAIN.format(name="bad", description="New and longer.", body="New text.\n")


@pytest.fixture
def edited(workspace: Workspace) -> tuple[Workspace, Shelf, Path]:
    """Return a shelf that knows the old version, and the file to edit."""
    file = workspace.raw("bad", OLD) / "SKILL.md"
    return workspace, workspace.shelf(), file


def assert_old(workspace: Workspace, shelf: Shelf) -> None:
    """Check that loads, catalog and listing have the last good version, with a warning."""
    assert shelf.turn().load("bad").text == "Old text.\n"
    assert shelf.catalog["bad"].description == "Old."
    assert "Old text." in shelf.listing("full").text
    assert "kept-last-good" in [code for code, _ in workspace.faults(shelf)]
    assert_neighbour(shelf)


def assert_new(workspace: Workspace, shelf: Shelf) -> None:
    assert shelf.turn().load("bad").text == "New text.\n"
    assert shelf.catalog["bad"].description == "New and longer."
    assert "New text." in shelf.listing("full").text
    assert_standard(workspace, shelf, [])


HEAD = NEW.index("New text")
CUTS = [0, *range(3, HEAD - 5)]
"""Every length at which the frontmatter is not whole yet. One or two dashes alone could be anybody's text."""


@pytest.mark.parametrize("cut", CUTS)
def test_a_file_written_in_two_halves_keeps_the_old_text_in_between(
    cut: int, edited: tuple[Workspace, Shelf, Path]
) -> None:
    """K08: a file cut off inside its frontmatter is broken, so the last good version stays until the rest is there."""
    workspace, shelf, file = edited
    with open(file, "w") as half:
        half.write(NEW[:cut])
        half.flush()
        assert_old(workspace, shelf)
        half.write(NEW[cut:])
    assert_new(workspace, shelf)


def test_a_truncated_file_keeps_the_old_text(edited: tuple[Workspace, Shelf, Path]) -> None:
    """K08: while the file is empty, between truncation and writing, the last good version is served."""
    workspace, shelf, file = edited
    file.write_bytes(b"")
    assert_old(workspace, shelf)
    assert_old(workspace, shelf)
    file.write_text(NEW)
    assert_new(workspace, shelf)


def test_a_file_replaced_by_a_rename_is_new_at_the_next_turn(edited: tuple[Workspace, Shelf, Path]) -> None:
    """K08: a rename is one step from old to new, whatever scratch files lie beside the file."""
    workspace, shelf, file = edited
    for scratch in (".SKILL.md.swp", "SKILL.md~", "4913", ".#SKILL.md"):
        (file.parent / scratch).write_text("scratch")
    new = file.with_name(".SKILL.md.tmp")
    new.write_text(NEW)
    assert shelf.turn().load("bad").text == "Old text.\n"
    new.rename(file)
    assert_new(workspace, shelf)


def test_a_file_that_is_deleted_and_created_is_new_at_the_next_turn(edited: tuple[Workspace, Shelf, Path]) -> None:
    """K08: in between, a load gets the old text and a new turn has no such skill; the next turn has the new text."""
    workspace, shelf, file = edited
    turn = shelf.turn()
    file.unlink()
    assert turn.load("bad").text == "Old text.\n"
    assert "bad" not in shelf.turn().shelf.catalog
    assert_neighbour(shelf)
    file.write_text(NEW)
    assert_new(workspace, shelf)


def test_a_change_of_mode_alone_changes_nothing(edited: tuple[Workspace, Shelf, Path]) -> None:
    """K08: after chmod, listing and loaded text are the same."""
    workspace, shelf, file = edited
    before = shelf.listing("full").text
    file.chmod(0o600)
    assert shelf.turn().load("bad").text == "Old text.\n"
    assert shelf.listing("full").text == before
    assert_standard(workspace, shelf, [])


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"\xff\xfe", "not-utf8"), (b"\0", "nul-byte"), (b"", "empty"), (OLD[:20].encode(), "frontmatter-unclosed")],
)
def test_the_last_good_text_lasts_as_long_as_the_fault(
    data: bytes, code: str, edited: tuple[Workspace, Shelf, Path]
) -> None:
    """K08: this holds over several turns and kinds of fault, and the diagnostics name the fault and the substitute."""
    workspace, shelf, file = edited
    file.write_bytes(data)
    for _ in range(3):
        assert_old(workspace, shelf)
        assert_standard(workspace, shelf, [(code, "bad/SKILL.md"), ("kept-last-good", "bad/SKILL.md")])
    file.write_text(NEW)
    assert_new(workspace, shelf)


def test_a_turn_keeps_what_it_loaded(edited: tuple[Workspace, Shelf, Path]) -> None:
    """K08: a second load within a turn returns the text of the first, whatever happened on disk."""
    _, shelf, file = edited
    turn = shelf.turn()
    assert turn.load("bad").text == "Old text.\n"
    file.write_text(NEW)
    assert turn.load("bad").text == "Old text.\n"
    assert shelf.turn().load("bad").text == "New text.\n"


# -- clocks -----------------------------------------------------------------------------------------------------------


def _same_times(path: Path, write: Callable[[Path], None]) -> None:
    before = path.stat()
    write(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def _in_place(path: Path) -> None:
    path.write_text(path.read_text().replace("Old", "New"))


def _by_rename(path: Path) -> None:
    scratch = path.with_name(".scratch")
    scratch.write_text(path.read_text().replace("Old", "New"))
    shutil.copystat(path, scratch)
    scratch.rename(path)


def test_an_edit_that_hides_its_time_is_seen(workspace: Workspace) -> None:
    """K09: the same size and time, times in 1970 and 2099, or a clock set back do not hide an edit."""
    names = ["in-place", "by-rename", "in-1970", "in-2099", "set-back"]
    files = {name: workspace.skill(name, description="Old.", body="Old.\n") / "SKILL.md" for name in names}
    for name, year in (("in-1970", 0), ("in-2099", 4_070_908_800)):
        os.utime(files[name], (year, year))
    time.sleep(SETTLED)
    shelf = workspace.shelf()
    assert {shelf.turn().load(name).text for name in names} == {"Old.\n"}
    for name in ("in-place", "in-1970", "in-2099"):
        _same_times(files[name], _in_place)
    _same_times(files["by-rename"], _by_rename)
    _in_place(files["set-back"])
    os.utime(files["set-back"], (1, 1))
    turn = shelf.turn()
    assert {name: turn.load(name).text for name in names} == dict.fromkeys(names, "New.\n")
    assert {shelf.catalog[name].description for name in names} == {"New."}
    assert_standard(workspace, shelf, [])


def test_two_edits_within_a_tick_are_both_seen(workspace: Workspace) -> None:
    """K09: each of a hundred fast edits is seen by the turn after it."""
    file = workspace.skill("bad") / "SKILL.md"
    shelf = workspace.shelf()
    for number in range(100, 200):
        file.write_text(PLAIN.format(name="bad", description=f"Edit {number}.", body=f"{number}\n"))
        assert shelf.turn().load("bad").text == f"{number}\n"
        assert shelf.catalog["bad"].description == f"Edit {number}."


# -- the scan cache ---------------------------------------------------------------------------------------------------

COUNT = 600


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with enough old skills for a scan cache."""
    root = tmp_path_factory.mktemp("many")
    for number in range(COUNT):
        write_skill(root / f"skill-{number:03}", f"Number {number}.", f"Text {number}.\n", {})
    (root / "skill-000/SKILL.md").write_bytes(b"\xff")
    time.sleep(SETTLED)
    return root


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def index_of(cache: Path) -> Path:
    (file,) = (cache / "skillshelf/index").glob("*.json")
    return file


def assert_all_there(root: Path) -> Shelf:
    """Check that a new shelf has every skill with its texts, and the one diagnostic."""
    shelf = Shelf([DirectorySource(root, "project")])
    assert {name: skill.description for name, skill in shelf.catalog.items()} == {
        f"skill-{number:03}": f"Number {number}." for number in range(1, COUNT)
    }
    assert [note.code for note in shelf.catalog.diagnostics] == ["not-utf8"]
    assert shelf.turn().load("skill-599").text == "Text 599.\n"
    return shelf


def _with_checksum(payload: bytes, version: int = VERSION) -> bytes:
    return b"%d %d\n" % (version, zlib.crc32(payload)) + payload


def _with_other(data: bytes, **parts: object) -> bytes:
    return _with_checksum(json.dumps({**json.loads(data.partition(b"\n")[2]), **parts}).encode())


def _with_fields(data: bytes, **values: object) -> bytes:
    [fields] = json.loads(data.partition(b"\n")[2])["fields"]
    changed = [values.get(name, value) for name, value in zip(_SHARED_FIELDS, fields, strict=True)]
    return _with_other(data, fields=[changed])


CORRUPT: dict[str, Callable[[bytes], bytes]] = {
    "cut-short": lambda data: data[: len(data) // 2],
    "cut-in-the-header": lambda data: data[:3],
    "empty": lambda data: b"",
    "zeroed": lambda data: bytes(len(data)),
    "end-zeroed": lambda data: data[:-4096] + bytes(4096),
    "garbage": lambda data: random.Random(7).randbytes(len(data)),
    "one-bit": lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
    "text": lambda data: b"not a cache\n",
    "a-number": lambda data: b"1\n",
    "many-digits": lambda data: b"9" * 10_000 + b"\n",
    "older": lambda data: _with_checksum(data.partition(b"\n")[2], 0),
    "null": lambda data: _with_checksum(b"null"),
    "list": lambda data: _with_checksum(b"[]"),
    "no-keys": lambda data: _with_checksum(b"{}"),
    "wrong-shapes": lambda data: _with_other(data, skills=[["a"]], fields=[["", "", 1, "x"]]),
    "wrong-metadata": lambda data: _with_fields(data, metadata="x"),
    "wrong-tools": lambda data: _with_fields(data, allowed_tools=[1]),
    "deep": lambda data: _with_checksum(b"[" * 100_000),
}


@pytest.mark.parametrize("spoil", CORRUPT.values(), ids=CORRUPT.keys())
def test_a_corrupt_cache_is_set_aside_and_made_anew(spoil: Callable[[bytes], bytes], many: Path, cache: Path) -> None:
    """K10: whatever the file contains, the result is right, the file is kept as .bad, and a good one replaces it."""
    assert_all_there(many)
    index = index_of(cache)
    good = index.read_bytes()
    bad = spoil(good)
    index.write_bytes(bad)
    assert_all_there(many)
    assert index.with_name(index.name + ".bad").read_bytes() == bad
    assert json.loads(index.read_bytes().partition(b"\n")[2]).keys() == json.loads(good.partition(b"\n")[2]).keys()
    assert_all_there(many)
    assert sorted(path.name for path in index.parent.iterdir()) == [index.name, index.name + ".bad"]


@pytest.mark.parametrize("header", [b"%d 0\n" % (VERSION + 1), b"99 abc xyz\n", b"1000 {}\n", b"%d\n" % (VERSION + 1)])
def test_a_cache_of_a_newer_version_is_left_alone(header: bytes, many: Path, cache: Path) -> None:
    """K10: a file of a newer skillshelf is neither read nor replaced nor set aside."""
    assert_all_there(many)
    index = index_of(cache)
    newer = header + b"what only a newer version understands"
    index.write_bytes(newer)
    before = index.stat()
    for _ in range(2):
        assert_all_there(many)
    assert index.read_bytes() == newer
    assert (index.stat().st_ino, index.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [path.name for path in index.parent.iterdir()] == [index.name]


def test_a_cache_does_not_hide_changes(many: Path, cache: Path, tmp_path: Path) -> None:
    """K09, K10: edits, additions and removals between two starts are all seen, even with forged times."""
    root = tmp_path / "copy"
    shutil.copytree(many, root)
    time.sleep(SETTLED)
    Shelf([DirectorySource(root, "project")])
    edited = root / "skill-100/SKILL.md"
    before = edited.stat()
    edited.write_text(edited.read_text().replace("Number", "Nombre"))
    os.utime(edited, ns=(before.st_atime_ns, before.st_mtime_ns))
    shutil.rmtree(root / "skill-101")
    write_skill(root / "skill-new", "New.", "New.\n", {})
    (root / "skill-102/references").mkdir()
    (root / "skill-102/references/a.md").write_text("A.")
    (root / "skill-000/SKILL.md").write_text(PLAIN.format(name="skill-000", description="Mended.", body=""))
    (root / "skill-103/SKILL.md").write_bytes(b"\xff")
    shelf = Shelf([DirectorySource(root, "project")])
    assert shelf.catalog["skill-100"].description == "Nombre 100."
    assert "skill-101" not in shelf.catalog
    assert shelf.turn().load("skill-new").text == "New.\n"
    assert shelf.turn().load("skill-102", "a.md").text == "A."
    assert shelf.catalog["skill-000"].description == "Mended."
    assert [note.path for note in shelf.catalog.diagnostics if note.code == "not-utf8"] == [
        str(root / "skill-103/SKILL.md")
    ]


OPEN = """
import hashlib, sys
from skillshelf import DirectorySource, Shelf
shelf = Shelf([DirectorySource(sys.argv[1], "project")])
shelf.turn()
print(hashlib.sha256(repr(sorted(shelf.catalog.values(), key=str)).encode()).hexdigest(), len(shelf.catalog))
"""


@pytest.mark.parametrize("start", ["without", "corrupt"])
def test_processes_that_start_at_the_same_time_do_not_disturb_each_other(start: str, many: Path, cache: Path) -> None:
    """K10, K05: eight processes without a cache, or with a corrupt one, agree and leave a good one."""
    expected = assert_all_there(many)
    index = index_of(cache)
    if start == "corrupt":
        index.write_bytes(b"garbage")
    else:
        shutil.rmtree(cache)
    processes = [
        subprocess.Popen([sys.executable, "-c", OPEN, str(many)], stdout=subprocess.PIPE, text=True) for _ in range(8)
    ]
    answers = {process.communicate(timeout=60)[0] for process in processes}
    digest = hashlib.sha256(repr(sorted(expected.catalog.values(), key=str)).encode()).hexdigest()
    assert answers == {f"{digest} {COUNT - 1}\n"}
    assert {process.returncode for process in processes} == {0}
    assert_all_there(many)
    assert {path.name for path in index.parent.iterdir()} <= {index.name, index.name + ".bad"}
    assert zlib.crc32(index.read_bytes().partition(b"\n")[2]) == int(index.read_bytes().split()[1])


def test_something_else_in_place_of_a_cache_costs_only_time(many: Path, cache: Path) -> None:
    """K10: a folder or a broken link in place of the file does not cause an error."""
    assert_all_there(many)
    index = index_of(cache)
    index.unlink()
    index.symlink_to(cache / "nowhere")
    assert_all_there(many)
    index.unlink()
    index.mkdir()
    shelf = Shelf([DirectorySource(many, "project")])
    assert len(shelf.catalog) == COUNT - 1
    assert {note.code for note in shelf.catalog.diagnostics} <= {"not-utf8", "index-unwritable"}


def test_a_pipe_in_place_of_a_cache_blocks_nothing(many: Path, cache: Path) -> None:
    """K10: a FIFO without a writer is skipped when the cache is read, and replaced when it is saved."""
    assert_all_there(many)
    index = index_of(cache)
    index.unlink()
    os.mkfifo(index)
    assert_all_there(many)
    assert index.is_file()


def test_a_cache_behind_a_link_is_not_read(many: Path, cache: Path, tmp_path: Path) -> None:
    """K10: a link to a cache with other content changes nothing, and its target stays as it was."""
    assert_all_there(many)
    index = index_of(cache)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes(index.read_bytes().replace(b"Number 599.", b"Forged 599."))
    forged = _with_checksum(elsewhere.read_bytes().partition(b"\n")[2])
    elsewhere.write_bytes(forged)
    index.unlink()
    index.symlink_to(elsewhere)
    assert_all_there(many)
    assert elsewhere.read_bytes() == forged


@pytest.mark.parametrize("loose", ["file", "folder"])
def test_a_cache_that_others_can_write_is_not_used(loose: str, many: Path, cache: Path) -> None:
    """K10: if others may write to the file or its folder, every skill is read from its own file."""
    assert_all_there(many)
    index = index_of(cache)
    index.write_bytes(_with_checksum(index.read_bytes().partition(b"\n")[2].replace(b"Number 599.", b"Forged 599.")))
    assert Shelf([DirectorySource(many, "project")]).catalog["skill-599"].description == "Forged 599."
    (index if loose == "file" else index.parent).chmod(0o777)
    shelf = Shelf([DirectorySource(many, "project")])
    assert shelf.catalog["skill-599"].description == "Number 599."
    notes = [note for note in shelf.catalog.diagnostics if note.code == "index-unwritable"]
    assert [("can write" in note.message, "chmod go-w" in note.fix) for note in notes] == [(True, True)]


# -- the user's home --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", [None, "", "missing", "relative"])
def test_a_missing_home_costs_nothing(
    home: str | None, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K11: with HOME unset, empty, missing or relative, all skills are there and nothing raises."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if home is None or home == "":
        # The user database names the real home of the user who runs the tests: keep out of it.
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", str(tmp_path / "no/such/home") if home == "missing" else home)
    assert_all_there(many)
    assert not (tmp_path / "relative").exists()
    assert len(Shelf.open(many).catalog) >= COUNT - 1


@pytest.mark.usefixtures("ordinary_user")
def test_a_home_that_cannot_be_written_gives_a_note(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K11: with a read-only home there is no cache and a note says so; every skill is there."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o555)
    monkeypatch.setenv("HOME", str(home))
    shelf = Shelf([DirectorySource(many, "project")])
    assert len(shelf.catalog) == COUNT - 1
    notes = {note.code: note for note in shelf.catalog.diagnostics}
    assert notes.keys() == {"not-utf8", "index-unwritable"}
    assert (notes["index-unwritable"].severity, bool(notes["index-unwritable"].fix)) == ("info", True)
    shelf.turn()
    assert {note.code for note in shelf.catalog.diagnostics} == {"not-utf8", "index-unwritable"}
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("ordinary_user")
def test_an_unreadable_cache_costs_only_time(many: Path, cache: Path) -> None:
    """K11: a cache file or folder without permission is replaced or not used."""
    assert_all_there(many)
    index = index_of(cache)
    index.chmod(0)
    assert_all_there(many)
    index.parent.chmod(0)
    try:
        assert len(Shelf([DirectorySource(many, "project")]).catalog) == COUNT - 1
    finally:
        index.parent.chmod(0o700)


def test_the_cache_is_private_to_the_user(many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K11: even with umask 000, every new folder is 0700 and every file 0600."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    old = os.umask(0)
    try:
        assert_all_there(many)
    finally:
        os.umask(old)
    modes = {path.relative_to(home): path.stat().st_mode & 0o777 for path in home.rglob("*")}
    assert len(modes) == 4
    assert {mode for path, mode in modes.items() if path.name.endswith(".json")} == {0o600}
    assert {mode for path, mode in modes.items() if not path.name.endswith(".json")} == {0o700}


# -- processes and descriptors ----------------------------------------------------------------------------------------

FORK = """
import os, signal, sys, threading, warnings
from skillshelf import DirectorySource, Shelf
warnings.simplefilter("ignore", DeprecationWarning)  # this test is about forking beside threads
root = sys.argv[1]
shelf = Shelf([DirectorySource(root, cache=False)])
held = shelf.turn()
held.load("good")
stop = threading.Event()
def reload():
    while not stop.is_set():
        shelf.reload()
thread = threading.Thread(target=reload)
thread.start()
codes = set()
for number in range(30):
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # the wait for a lost lock would never end
        open(f"{root}/good/SKILL.md.{number}", "w").write("---\\nname: good\\ndescription: d\\n---\\nForked.\\n")
        os.replace(f"{root}/good/SKILL.md.{number}", f"{root}/good/SKILL.md")
        same = held.load("good").text == "Do it.\\n"
        new = shelf.turn().load("good").text == "Forked.\\n"
        listed = "Forked." in shelf.listing("full").text
        os._exit(0 if same and new and listed else 1)
    codes.add(os.waitpid(child, 0)[1])
stop.set()
thread.join()
print(codes, shelf.turn().load("good").text, end="")
"""


def test_a_fork_has_a_shelf_of_its_own(workspace: Workspace) -> None:
    """K12: after a fork during a reload, the child loads, reloads and lists without waiting for a lost lock."""
    assert run(FORK, workspace.root) == "{0} Forked.\n"


FEW_DESCRIPTORS = """
import os, resource, sys
from skillshelf import DirectorySource, Shelf, SkillError, Turn
import skillshelf.listing, difflib, mimetypes
root = sys.argv[1]
shelf = Shelf([DirectorySource(root, cache=False)])
before = sorted(shelf.catalog)
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
seen = set()
for _ in range(8):
    try:
        shelf.reload()
    except Exception as error:
        seen.add(type(error).__name__)
    try:
        Turn(shelf).load("good", "guide.md")
    except SkillError:
        pass
    except Exception as error:
        seen.add(type(error).__name__)
    os.close(held.pop())
for fd in held:
    os.close(fd)
shelf.reload()
left = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
print(seen or "", sorted(shelf.catalog) == before, [note.code for note in shelf.catalog.diagnostics], left < 10)
"""


def test_running_out_of_descriptors_is_survived(workspace: Workspace) -> None:
    """K03, K13: without free descriptors a reload raises nothing, and everything is back once there are some."""
    for number in range(5):
        workspace.skill(f"many/skill-{number}", files={"references/deep/a.md": "x"})
    assert run(FEW_DESCRIPTORS, workspace.root) == " True [] True\n"


def test_loads_leave_no_descriptor_open(workspace: Workspace) -> None:
    """K05, L05: loads, refusals and reloads close everything they open."""
    folder = workspace.skill("bad", files={"references/a.md": "A."})
    (folder / "references/link.md").symlink_to(workspace.secret)
    os.mkfifo(folder / "references/pipe.md")
    shelf = workspace.shelf()
    place, descriptor = shelf.catalog.find("bad").place, shelf.catalog["bad"]
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for number in range(2000):
        for path in ("references/a.md", "references/link.md", "references/pipe.md", "references/gone.md", "none/x.md"):
            with suppress(SkillError):
                shelf.sources[0].reference(place.key, descriptor, path, 0, 100)
        if number % 20 == 0:
            shelf.reload()
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before


# -- the root ---------------------------------------------------------------------------------------------------------


def test_a_root_that_is_deleted_and_made_again_is_followed(workspace: Workspace) -> None:
    """K13: without the root there is one note and no skill; once it is back, every skill and no note."""
    shelf = workspace.shelf()
    shutil.rmtree(workspace.root)
    shelf.turn()
    assert list(shelf.catalog) == []
    assert workspace.faults(shelf) == [("root-missing", ".")]
    assert shelf.listing().text == ""
    workspace.skill("later", body="Later.\n")
    assert shelf.turn().load("later").text == "Later.\n"
    assert workspace.faults(shelf) == []


def test_a_root_that_comes_later_is_found(tmp_path: Path) -> None:
    """K13: the source of a folder that does not exist yet is empty until it does."""
    shelf = Shelf([DirectorySource(tmp_path / "later", cache=False)])
    assert [note.code for note in shelf.catalog.diagnostics] == ["root-missing"]
    write_skill(tmp_path / "later/skill", "d", "Later.\n", {})
    assert shelf.turn().load("skill").text == "Later.\n"
    assert shelf.catalog.diagnostics == ()


def test_a_root_that_becomes_a_file_is_one_fault(workspace: Workspace) -> None:
    """K13: a file in place of the root is one diagnostic; a load is a typed error or the last good text."""
    shelf = workspace.shelf()
    shutil.rmtree(workspace.root)
    workspace.root.write_text("no folder")
    assert load(Turn(shelf), GOOD) == "Do it.\n"
    assert isinstance(load(Turn(shelf), GOOD, "guide.md"), SkillError)
    shelf.turn()
    assert workspace.faults(shelf) == [("root-unreadable", ".")]
    workspace.root.unlink()
    workspace.skill(GOOD, files={"references/guide.md": "Good guide."})
    shelf.turn()
    assert_standard(workspace, shelf, [])


def test_a_root_that_is_swapped_for_another_folder_has_the_skills_of_the_other(workspace: Workspace) -> None:
    """K13: the next turn notices a folder renamed to the root's path, whatever its times are."""
    shelf = workspace.shelf()
    other = Workspace(workspace.root.with_name("other"))
    shutil.rmtree(other.root / GOOD)
    other.skill("theirs", body="Theirs.\n")
    workspace.root.rename(workspace.root.with_name("old"))
    other.root.rename(workspace.root)
    assert shelf.turn().load("theirs").text == "Theirs.\n"
    assert list(shelf.catalog) == ["theirs"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may strike before a `with`
def test_an_interrupt_is_not_swallowed(workspace: Workspace) -> None:
    """K14: Ctrl-C during a load is raised at once, and the shelf still works."""
    shelf = workspace.shelf()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with suppress(KeyboardInterrupt):
            while True:
                shelf.turn().load(GOOD)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    gc.collect()  # what the interrupt left open is closed here, not in another test
    shelf.reload()
    assert_neighbour(shelf)
