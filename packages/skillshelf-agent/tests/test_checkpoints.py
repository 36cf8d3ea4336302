"""Turns that are taken back: the files they changed, by tools and by commands, and nothing else."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from agent_kit import agent, of, requests, say
from skillshelf.errors import CheckpointError
from skillshelf_agent import AgentCore, Sessions
from skillshelf_agent.checkpoints import Checkpoints, _limits
from skillshelf_agent.events import Finished, Notice
from skillshelf_agent.filetools import FileAccess
from skillshelf_agent.testing import call


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def start(work: Path, *script: object) -> AgentCore:
    return agent(work, *script, sessions=Sessions(str(work)))


def run(command: str) -> object:
    return call("run_command", command=command)


def write(path: str, content: str) -> object:
    return call("write_file", path=path, content=content)


def snapshot(folder: Path) -> dict[str, object]:
    """Return everything below a folder: the text and mode of files, the targets of links."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = "folder"
        elif path.is_file():
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


def test_undo_takes_back_what_the_file_tools_wrote(work: Path) -> None:
    """An edited file has its old content and mode, and a new one is gone with the folders made for it."""
    (work / "a.sh").write_text("one\n")
    (work / "a.sh").chmod(0o755)
    before = snapshot(work)
    edit = call("edit_file", path="a.sh", old_text="one", new_text="two")
    core = start(work, edit, write("docs/new/b.md", "b\n"), "Done.")
    say(core, "change it")
    assert (work / "a.sh").read_text() == "two\n"

    undone = core.undo()
    assert undone.changed == ("a.sh", "docs", "docs/new", "docs/new/b.md")
    assert undone.left == ()
    assert undone.message == "change it"
    assert snapshot(work) == before


def test_undo_takes_back_what_a_command_did(work: Path) -> None:
    """Edited, created, deleted, renamed and replaced files, modes, links and folders are as they were."""
    (work / "src/deep").mkdir(parents=True)
    (work / "empty").mkdir()
    for name in ("edited", "deleted", "renamed", "src/deep/moved", "becomes-folder", "mode"):
        (work / name).write_text(f"{name} before\n")
    (work / "link").symlink_to("edited")
    before = snapshot(work)
    command = (
        "echo after > edited; rm deleted link; mv renamed other; mv src/deep elsewhere; rmdir empty; "
        "rm becomes-folder; mkdir becomes-folder; echo x > becomes-folder/x; chmod 600 mode; "
        "mkdir -p made/deeply; echo new > made/deeply/file; ln -s /etc/passwd made/link"
    )
    core = start(work, run(command), "Done.")
    say(core, "break everything")
    assert snapshot(work) != before

    assert core.undo(commands=True).left == ()
    assert snapshot(work) == before


def test_a_file_the_user_changed_since_is_left(work: Path) -> None:
    """It is named, and can be taken back by name; the user's version is not lost then either."""
    (work / "a.txt").write_text("a\n")
    (work / "b.txt").write_text("b\n")
    core = start(work, run("echo agent > a.txt; echo agent > b.txt; echo agent > new.txt"), "Done.")
    say(core, "go")
    (work / "a.txt").write_text("mine\n")
    (work / "new.txt").write_text("mine too\n")

    undone = core.undo(commands=True)
    assert undone.changed == ("b.txt",)
    assert [(file.path, file.reason) for file in undone.left] == [("a.txt", "changed"), ("new.txt", "changed")]
    assert (work / "a.txt").read_text() == "mine\n"
    assert (work / "new.txt").read_text() == "mine too\n"

    assert core.undo("a.txt").changed == ("a.txt",)
    assert (work / "a.txt").read_text() == "a\n"
    core.redo()
    assert (work / "a.txt").read_text() == "mine\n"
    assert (work / "b.txt").read_text() == "agent\n"


def test_several_undos_go_back_turn_by_turn(work: Path) -> None:
    """A turn that changed nothing is not counted, and redo goes forward again."""
    core = start(work, run("echo 1 > f"), "One.", "Nothing.", run("echo 2 > f"), "Two.")
    say(core, "first", "talk", "second")
    assert core.undo(commands=True).message == "second"
    assert (work / "f").read_text() == "1\n"
    assert core.undo(commands=True).message == "first"
    assert not (work / "f").exists()
    with pytest.raises(CheckpointError, match="nothing to take back"):
        core.undo(commands=True)

    assert core.redo().message == "first"
    assert core.redo().message == "second"
    assert (work / "f").read_text() == "2\n"
    with pytest.raises(CheckpointError, match="nothing to bring back"):
        core.redo()


def test_undo_works_in_a_resumed_session(work: Path) -> None:
    """Checkpoints are on disk, outside the workspace, and only the user can read them."""
    (work / "f").write_text("before\n")
    core = start(work, run("echo after > f"), "Done.")
    say(core, "go")
    core.conversation.close()

    later = start(work, "Hello.")
    later.resume()
    later.undo(commands=True)
    assert snapshot(work) == {"f": (b"before\n", 0o644)}
    state = Path(os.environ["HOME"], ".local/state/skillshelf/checkpoints")
    for path in state.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_model_learns_of_an_undo_with_the_next_message(work: Path) -> None:
    """Once, after the user's words, and not as one of them."""
    core = start(work, write("a.txt", "a\n"), "Done.", "I see.", "Yes.")
    say(core, "make a.txt")
    core.undo()
    say(core, "try again", "and again")
    first, second = (str(request.messages[-1]) for request in requests(core)[-2:])
    assert "took back your file changes" in first
    assert "took back" not in second
    assert core.sessions is not None
    assert core.sessions.list()[0].title == "make a.txt"


def test_an_edit_of_the_user_during_the_turn_is_not_taken_back(work: Path) -> None:
    """Between two calls of a turn, the user saves a file that the agent has changed, and the agent changes it again."""
    (work / "f").write_text("one\n")
    core = start(work, run("echo two > f"), call("read_file", path="f"), run("echo four >> f"), "Done.")

    async def converse() -> None:
        async for event in core.process_message("go"):
            if event.kind == "tool_call" and event.name == "read_file":
                (work / "f").write_text("three\n")

    asyncio.run(converse())
    assert (work / "f").read_text() == "three\nfour\n"
    core.undo(commands=True)
    assert (work / "f").read_text() == "three\n"


def edit_during_command(work: Path, edit: Callable[[], object]) -> str:
    """Return a command that runs until the user has made an edit in the workspace, and writes `made` then."""
    signals = work / "node_modules"  # not covered
    signals.mkdir()

    def wait_and_edit() -> None:
        while not (signals / "started").exists():
            time.sleep(0.01)
        edit()
        (signals / "edited").touch()

    threading.Thread(target=wait_and_edit, daemon=True).start()
    return "touch node_modules/started; until [ -e node_modules/edited ]; do sleep 0.01; done; echo made > made"


def test_an_edit_of_the_user_during_a_command_is_left_and_named(work: Path) -> None:
    """So is what the command changed, since nobody can tell them apart; what the file tools wrote is taken back."""
    (work / "notes.md").write_text("old\n")

    def edit() -> None:
        (work / "notes.md").write_text("mine\n")
        (work / "new.md").write_text("mine too\n")

    core = start(work, write("tool.md", "tool\n"), run(edit_during_command(work, edit)), "Done.")
    say(core, "go")
    undone = core.undo()
    assert undone.changed == ("tool.md",)
    assert [(file.path, file.reason) for file in undone.left] == [
        ("made", "command"),
        ("new.md", "command"),
        ("notes.md", "command"),
    ]
    assert (work / "notes.md").read_text() == "mine\n"
    assert (work / "new.md").read_text() == "mine too\n"

    assert core.undo("made").changed == ("made",)
    assert not (work / "made").exists()
    assert core.redo().changed == ("made", "tool.md")
    assert (work / "notes.md").read_text() == "mine\n"

    assert core.undo(commands=True).left == ()
    assert (work / "notes.md").read_text() == "old\n"
    core.redo()
    assert (work / "notes.md").read_text() == "mine\n"


def test_an_edit_during_a_command_of_what_a_file_tool_wrote_is_left(work: Path) -> None:
    """A tool writes the file again after that: the user's edit under it is not taken back either."""
    edit = lambda: (work / "tool.md").write_text("mine\n")  # noqa: E731
    steps = [write("tool.md", "tool\n"), run(edit_during_command(work, edit)), call("read_file", path="tool.md")]
    core = start(work, *steps, write("tool.md", "mine\ntool\n"), "Done.")
    say(core, "go")
    assert [file.path for file in core.undo().left] == ["made", "tool.md"]
    assert (work / "tool.md").read_text() == "mine\ntool\n"


def test_an_edit_between_two_commands_of_a_large_workspace_is_left(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is swept once in a turn, so every change since the first command may be one by a command."""
    monkeypatch.setattr(_limits, "SWEPT_TWICE", 0)
    (work / "f").write_text("old\n")
    core = start(work, run("echo 1 > a"), call("read_file", path="f"), run("echo 2 > b"), "Done.")

    async def converse() -> None:
        async for event in core.process_message("go"):
            if event.kind == "tool_call" and event.name == "read_file":
                (work / "f").write_text("mine\n")

    asyncio.run(converse())
    assert [file.path for file in core.undo().left] == ["a", "b", "f"]
    assert (work / "f").read_text() == "mine\n"


def test_files_that_cannot_be_kept_are_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file over the limit and one that may hold secrets stay as they are, and the end of the turn says so."""
    (work / "large.bin").write_bytes(b"x" * 2000)
    (work / ".env").write_text("KEY=1\n")
    (work / "small").write_text("s\n")
    monkeypatch.setattr(_limits, "FILE_BYTES", 1000)
    core = start(work, run("echo y >> large.bin; echo KEY=2 > .env; echo t > small; touch made.pem"), "Done.")
    events = say(core, "go")
    (notice,) = of(events, Notice)
    assert notice.text.startswith(".env, large.bin: cannot be taken back")
    assert isinstance(events[-1], Finished)

    undone = core.undo(commands=True)
    assert undone.changed == ("made.pem", "small")
    assert [(file.path, file.reason) for file in undone.left] == [(".env", "not-kept"), ("large.bin", "not-kept")]
    state = Path(os.environ["HOME"], ".local/state/skillshelf/checkpoints")
    assert not any(b"KEY=1" in path.read_bytes() for path in state.rglob("*") if path.is_file())


def test_the_users_version_of_a_secret_is_neither_kept_nor_lost(work: Path) -> None:
    """A command made the file, and the user has put a key in it: undoing that file alone is refused, too."""
    core = start(work, run("echo KEY= > .env"), "Done.")
    say(core, "go")
    (work / ".env").write_text("KEY=s3cr3t\n")
    assert [file.path for file in core.undo(commands=True).left] == [".env"]
    with pytest.raises(CheckpointError, match="may hold secrets"):
        core.undo(".env")
    assert (work / ".env").read_text() == "KEY=s3cr3t\n"
    state = Path(os.environ["HOME"], ".local/state/skillshelf/checkpoints")
    assert not any(b"s3cr3t" in file.read_bytes() for file in state.rglob("*") if file.is_file())


def test_version_control_dependencies_and_ignored_folders_are_not_covered(work: Path) -> None:
    """An undo touches neither the repository nor what a build has made."""
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (work / ".gitignore").write_text("build/\n")
    for name in ("node_modules", "build", "src"):
        (work / name).mkdir()
        (work / name / "f").write_text("before\n")
    command = "for d in node_modules build src; do echo after > $d/f; done; git add src .gitignore"
    core = start(work, run(command), "Done.")
    say(core, "go")
    assert core.undo(commands=True).changed == ("src/f",)
    staged = subprocess.run(["git", "ls-files"], cwd=work, capture_output=True, text=True, check=True).stdout
    assert staged.split() == [".gitignore", "src/f"]
    assert (work / "build/f").read_text() == (work / "node_modules/f").read_text() == "after\n"


def test_undo_never_writes_through_a_link(work: Path, tmp_path: Path) -> None:
    """A folder is swapped for a link after the turn: what it leads to is neither changed nor removed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "edited").write_text("after\n")
    (outside / "made").write_text("made\n")
    (work / "d").mkdir()
    (work / "d/edited").write_text("before\n")
    (work / "d/deleted").write_text("before\n")
    core = start(work, run("echo after > d/edited; echo made > d/made; rm d/deleted"), "Done.")
    say(core, "go")
    kept = snapshot(outside)
    (work / "d").rename(tmp_path / "moved")
    (work / "d").symlink_to(outside)

    undone = core.undo(commands=True)
    assert undone.changed == ()
    assert [file.path for file in undone.left] == ["d/deleted", "d/edited", "d/made"]
    assert snapshot(outside) == kept


def test_hostile_names_and_special_files_do_no_harm(work: Path) -> None:
    """A FIFO is not opened, and names of any bytes are brought back."""
    names = [b"new\nline", b"\xff\xfe", b"-rf", b"a\x1b[2Jb", "ü".encode()]
    for name in names:
        (Path(os.fsdecode(os.path.join(os.fsencode(work), name)))).write_text("before\n")
    os.mkfifo(work / "fifo")
    before = snapshot(work)
    core = start(work, run('for f in ./*; do [ -p "$f" ] || echo after > "$f"; done; mkfifo other'), "Done.")
    say(core, "go")
    assert len(core.list_changes()) == len(names)
    assert core.undo(commands=True).left == ()
    assert snapshot(work) == before
    assert (work / "fifo").is_fifo()


def test_a_workspace_with_too_many_files_is_said_once(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands cannot be taken back; its file tools can."""
    for number in range(20):
        (work / str(number)).write_text("x")
    monkeypatch.setattr(_limits, "ENTRIES", 10)
    core = start(work, run("echo y > 1"), write("2", "y"), run("echo y > 3"), "Done.")
    (notice,) = of(say(core, "go"), Notice)
    assert "more than 10 files" in notice.text
    assert core.undo(commands=True).changed == ("2",)


def test_a_large_workspace_is_copied_a_part_at_a_time(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command waits for a bounded number of files, the last modified first."""
    for number in range(30):
        (work / f"{number:02}").write_text("before\n")
        os.utime(work / f"{number:02}", (number + 1, number + 1))
    monkeypatch.setattr(_limits, "FILES_AT_ONCE", 20)
    core = start(work, run("echo after > 00; echo after > 29"), "One.", run("echo after > 01"), "Two.")
    (notice,) = of(say(core, "go", "again"), Notice)
    assert notice.text.startswith("00: cannot be taken back")
    assert core.undo(commands=True).changed == ("01",)
    assert core.undo(commands=True).changed == ("29",)


def test_old_checkpoints_are_removed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last turns can be taken back, and the first ones are gone from the disk."""
    monkeypatch.setattr(_limits, "KEPT_TURNS", 2)
    steps = [step for number in range(4) for step in (run(f"echo {number} > f"), "Done.")]
    core = start(work, *steps)
    say(core, "one", "two", "three", "four")
    state = Path(os.environ["HOME"], ".local/state/skillshelf/checkpoints")
    assert sorted(path.name for path in state.rglob("*.jsonl")) == ["0003.jsonl", "0004.jsonl"]
    core.undo(commands=True)
    core.undo(commands=True)
    assert (work / "f").read_text() == "1\n"
    assert [file.reason for file in core.undo(commands=True).left] == ["not-kept"]


def test_changes_are_listed_with_their_contents(work: Path) -> None:
    """For the last turn, or for all turns of the session together."""
    (work / "f").write_text("0\n")
    core = start(work, run("echo 1 > f; echo g > g"), "One.", run("echo 2 > f"), "Two.")
    say(core, "one", "two")
    (change,) = core.list_changes()
    assert (change.path, change.old, change.new) == ("f", b"1\n", b"2\n")
    both = core.list_changes(whole_session=True)
    assert [(change.path, change.old, change.new) for change in both] == [("f", b"0\n", b"2\n"), ("g", None, b"g\n")]


def test_without_sessions_there_are_no_checkpoints(work: Path) -> None:
    core = agent(work, run("echo 1 > f"), "Done.")
    say(core, "go")
    with pytest.raises(CheckpointError, match="not saved"):
        core.undo(commands=True)


def test_a_folder_that_comes_into_view_is_not_taken_for_new(work: Path) -> None:
    """A command removes the .gitignore: what it left out was there before, and an undo must not remove it."""
    (work / ".gitignore").write_text("data/\n")
    (work / "data").mkdir()
    (work / "data/precious").write_text("mine\n")
    core = start(work, run("rm .gitignore; echo x > made"), "Done.")
    say(core, "go")
    assert core.undo(commands=True).changed == (".gitignore", "made")
    assert (work / "data/precious").read_text() == "mine\n"


def test_a_folder_that_could_not_be_read_before_is_not_taken_for_new(work: Path) -> None:
    """It is made readable by the command."""
    (work / "closed").mkdir()
    (work / "closed/precious").write_text("mine\n")
    (work / "closed").chmod(0)
    core = start(work, run("chmod 755 closed; echo x > made"), "Done.")
    say(core, "go")
    core.undo(commands=True)
    (work / "closed").chmod(0o755)
    assert (work / "closed/precious").read_text() == "mine\n"
    assert not (work / "made").exists()


NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a"])
TEXTS = st.sampled_from(["one\n", "two\n", "three\n"])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, TEXTS),
        st.tuples(st.just("remove"), NAMES, st.just("")),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("mode"), NAMES, st.sampled_from(["600", "755"])),
        st.tuples(st.just("link"), NAMES, NAMES),
    ),
    max_size=8,
)


def apply(folder: Path, operations: list[tuple[str, str, str]]) -> None:
    """Do what a command could do. An operation that makes no sense is left out."""
    for kind, name, value in operations:
        path = folder / name
        with suppress(OSError):
            if kind == "remove":
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            elif kind == "rename":
                path.rename(folder / value)
            elif kind == "mode":
                if path.is_file() and not path.is_symlink():
                    path.chmod(int(value, 8))
            elif not path.is_symlink():
                path.parent.mkdir(parents=True, exist_ok=True)
                if kind == "link":
                    path.symlink_to(value)
                else:
                    path.write_text(value)


@given(first=OPERATIONS, turns=st.lists(OPERATIONS, min_size=1, max_size=3))
@settings(max_examples=40)
def test_undo_restores_every_state_and_redo_brings_it_back(
    first: list[tuple[str, str, str]], turns: list[list[tuple[str, str, str]]]
) -> None:
    """Whatever commands do in a number of turns, going back and forth leads through the same states."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place, "work").resolve()
        work.mkdir()
        apply(work, first)
        checkpoints = Checkpoints(FileAccess(str(work)), f"{place}/state/work")
        checkpoints.open_session("session")
        states = [snapshot(work)]
        for operations in turns:
            checkpoints.begin_turn("go")
            checkpoints.before_command()
            apply(work, operations)
            checkpoints.after_command()
            assert checkpoints.end_turn() == []
            if snapshot(work) != states[-1]:
                states.append(snapshot(work))

        for state in reversed(states[:-1]):
            assert checkpoints.undo(commands=True).left == ()
            assert snapshot(work) == state
        for state in states[1:]:
            assert checkpoints.redo().left == ()
            assert snapshot(work) == state
