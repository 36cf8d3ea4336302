"""What a killed process leaves is removed at the next start, and nothing else is."""

import os
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from chats import chat, script
from killed import die_at
from skillshelf.cli import main
from skillshelf.files import remove_stale_scratch, replace_below, system


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    return folder


def kill_a_write(work: Path) -> Path:
    """Leave a scratch file in src, and return it."""
    code = "from skillshelf.files import replace_below\nreplace_below('.', ['src', 'a'], b'x', expected=None, limit=9)"
    die_at("rename", code, work)
    (left,) = (work / "src").iterdir()
    assert left.name.startswith(".skillshelf-")
    return left


def start_chat(work: Path) -> None:
    model = script(work.parent, "Hello.")
    assert chat("--model", model, "-p", "hi", cwd=work).returncode == 0


def test_a_start_removes_what_killed_processes_left(work: Path) -> None:
    """The file of a write, and the folder of a `new` with what was in it; a start somewhere else leaves them."""
    left = kill_a_write(work)
    die_at("rename", "from skillshelf.cli import main; main(['new', 'pdf', '--in', 'drafts'])", work)
    assert (work / "drafts/.skillshelf-new").exists()
    other = work.parent / "other"
    other.mkdir()
    start_chat(other)
    assert left.exists()

    start_chat(work)
    assert list(work.rglob(".skillshelf-*")) == []
    assert list(Path(os.environ["HOME"], ".local/state/skillshelf/scratch").iterdir()) == []


def test_files_with_such_names_that_came_with_a_clone_stay(work: Path) -> None:
    """A name proves nothing: only what our own process noted is removed."""
    left = kill_a_write(work)
    names = ["src/.skillshelf-0123456789abcdef", ".skillshelf/skills/.skillshelf-new/.skillshelf-0123456789abcdef"]
    for name in names:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("theirs")
    start_chat(work)
    assert main(["new", "pdf", "-C", str(work)]) == 0
    assert not left.exists()
    assert [(work / name).read_text() for name in names] == ["theirs", "theirs"]


def test_a_write_in_progress_is_left(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another chat starts in the middle of it."""
    rename = system.rename

    def rename_later(source: str, target: str, **folders: int) -> None:
        remove_stale_scratch(str(work))
        rename(source, target, **folders)

    monkeypatch.setattr(system, "rename", rename_later)
    replace_below(str(work), ["src", "a"], b"new", expected=None, limit=9)
    assert [(path.name, path.read_text()) for path in (work / "src").iterdir()] == [("a", "new")]
    assert main(["new", "pdf", "-C", str(work)]) == 0


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_a_link_in_place_of_what_was_left_is_not_followed(work: Path, swapped: str) -> None:
    """A clone that is updated in between cannot have a file or folder elsewhere removed."""
    left = kill_a_write(work)
    outside = work.parent / "outside"
    outside.mkdir()
    (outside / left.name).mkdir()
    (outside / left.name / "precious").write_text("mine")
    left.unlink()
    if swapped == "folder":
        left.parent.rmdir()
        left.parent.symlink_to(outside)
    else:
        left.symlink_to(outside / left.name)
    start_chat(work)
    assert (outside / left.name / "precious").read_text() == "mine"
