"""Reading, writing and walking below a root, by descriptor."""

import os
import stat
from pathlib import Path

import pytest

from skillshelf.files import (
    ABSENT,
    FileChanged,
    LockTimeout,
    NotPlainFile,
    find_link,
    hash_content,
    hold_lock,
    open_file_below,
    open_folder_below,
    read_version,
    replace_below,
    split_below,
    system,
    walk,
)

LIMIT = 1_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace beside a folder that must stay as it is."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("SECRET")
    root = tmp_path / "root"
    root.mkdir()
    return root


def write(root: Path, path: str, text: str, expected: str = ABSENT) -> None:
    replace_below(str(root), path.split("/"), text.encode(), expected=expected, limit=LIMIT)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_new_file_is_written_with_its_folders(root: Path) -> None:
    write(root, "a/b/c.txt", "text")
    assert (root / "a/b/c.txt").read_text() == "text"
    assert names(root) == ["a", "a/b", "a/b/c.txt"]


def test_a_file_is_replaced_if_it_is_the_expected_version_and_keeps_its_mode(root: Path) -> None:
    path = root / "run.sh"
    path.write_text("old")
    path.chmod(0o750)
    write(root, "run.sh", "new", hash_content(b"old"))
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


@pytest.mark.parametrize(("content", "expected"), [("other", hash_content(b"old")), ("there", ABSENT)])
def test_another_version_than_the_expected_one_is_not_replaced(root: Path, content: str, expected: str) -> None:
    (root / "a.txt").write_text(content)
    with pytest.raises(FileChanged):
        write(root, "a.txt", "new", expected)
    assert (root / "a.txt").read_text() == content
    assert names(root) == ["a.txt"]


def test_a_file_that_is_gone_is_not_written_again(root: Path) -> None:
    with pytest.raises(FileChanged):
        write(root, "sub/a.txt", "new", hash_content(b"old"))
    assert names(root) == []


def make_link(root: Path) -> None:
    (root / "target").symlink_to("../outside/secret.txt")


def make_folder(root: Path) -> None:
    (root / "target").mkdir()


def make_fifo(root: Path) -> None:
    os.mkfifo(root / "target")


@pytest.mark.parametrize("make", [make_link, make_folder, make_fifo])
def test_nothing_but_a_plain_file_is_written_over(root: Path, make: object) -> None:
    make(root)  # type: ignore[operator]
    with pytest.raises(NotPlainFile):
        write(root, "target", "new", hash_content(b"SECRET"))
    assert names(root) == ["target"]
    assert (root / "../outside/secret.txt").read_text() == "SECRET"


def test_a_linked_folder_is_not_written_through(root: Path) -> None:
    (root / "link").symlink_to("../outside")
    with pytest.raises(NotPlainFile):
        write(root, "link/new.txt", "new")
    assert names(root.parent / "outside") == ["secret.txt"]


def test_a_hard_link_elsewhere_keeps_the_old_content(root: Path) -> None:
    os.link(root / "../outside/secret.txt", root / "mine.txt")
    write(root, "mine.txt", "new", hash_content(b"SECRET"))
    assert (root / "../outside/secret.txt").read_text() == "SECRET"
    assert (root / "mine.txt").read_text() == "new"


def test_a_read_only_file_is_not_replaced(root: Path) -> None:
    (root / "a.txt").write_text("old")
    (root / "a.txt").chmod(0o444)
    with pytest.raises(PermissionError):
        write(root, "a.txt", "new", hash_content(b"old"))
    assert (root / "a.txt").read_text() == "old"


@pytest.mark.parametrize("call", ["mkdir", "open", "write", "fsync", "fchmod", "rename"])
def test_a_write_that_fails_leaves_nothing_behind(root: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "old.txt").write_text("old")
    real = getattr(system, call)

    def fail(path: object, flags: int = 0, *rest: object, **options: object) -> object:
        if call == "open" and not flags & os.O_CREAT:
            return real(path, flags, *rest, **options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(system, call, fail)
    path = "old.txt" if call == "fchmod" else "new/deep/file.txt"
    with pytest.raises(OSError, match="No space left"):
        write(root, path, "new", hash_content(b"old") if call == "fchmod" else ABSENT)
    assert names(root) == ["old.txt"]


def test_a_version_is_the_content_and_its_hash(root: Path) -> None:
    (root / "a.txt").write_text("abc")
    assert read_version(str(root), ["a.txt"], LIMIT) == (b"abc", hash_content(b"abc"))
    assert read_version(str(root), ["no", "b.txt"], LIMIT).sha256 == ABSENT
    with pytest.raises(OSError, match="more than 2 bytes"):
        read_version(str(root), ["a.txt"], 2)


def test_the_link_that_is_in_the_way_is_named(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub/link").symlink_to("../../outside")
    assert find_link(str(root), ["sub", "link", "secret.txt"]) == ("sub/link", "../../outside")
    with pytest.raises(NotPlainFile), open_file_below(str(root), ["sub", "link", "secret.txt"]):
        pass


def walked(root: Path, **options: object) -> list[tuple[str, str]]:
    with open_folder_below(str(root), ()) as top:
        return [(entry.path, entry.kind) for entry in walk(top, **options)]  # type: ignore[arg-type]


def test_a_walk_yields_everything_in_order_and_follows_no_link(root: Path) -> None:
    (root / "b").mkdir()
    (root / "b/2.txt").touch()
    (root / "b/1.txt").touch()
    (root / "a.txt").touch()
    (root / "out").symlink_to("../outside")
    (root / "b/up").symlink_to("..")
    os.mkfifo(root / "pipe")
    assert walked(root) == [
        ("a.txt", "file"),
        ("b", "folder"),
        ("b/1.txt", "file"),
        ("b/2.txt", "file"),
        ("b/up", "link"),
        ("out", "link"),
        ("pipe", "other"),
    ]


def test_a_walk_enters_what_it_may_and_reports_what_it_cannot(root: Path) -> None:
    for path in ("skip/a", "deep/1/2/3", "plain/a"):
        (root / path).mkdir(parents=True)
    reported: list[tuple[str, str]] = []
    found = walked(
        root,
        enter=lambda entry: entry.name != "skip",
        report=lambda path, reason: reported.append((path, reason)),
        max_depth=3,
    )
    assert [path for path, _ in found] == ["deep", "deep/1", "deep/1/2", "plain", "plain/a", "skip"]
    assert [path for path, _ in reported] == ["deep/1/2"]


def test_a_walk_that_is_given_up_closes_its_descriptors(root: Path) -> None:
    (root / "a/b/c").mkdir(parents=True)
    with open_folder_below(str(root), ()) as top:
        before = len(os.listdir("/dev/fd"))
        entries = walk(top)
        for entry in entries:
            if entry.path == "a/b/c":
                break
        entries.close()  # type: ignore[attr-defined]
        assert len(os.listdir("/dev/fd")) == before


def test_a_lock_is_held_by_one_at_a_time_and_released_at_the_end(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with hold_lock(path), pytest.raises(LockTimeout, match="holds"), hold_lock(path):
        pass
    with hold_lock(path):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), hold_lock(str(tmp_path / "lock")):
        pass
    assert not (tmp_path / "elsewhere").exists()


# --- the names that lead to a path ---


def test_a_path_is_split_below_its_root(root: Path) -> None:
    """The root has no names below it. A path outside it has no answer, even if its name begins alike."""
    assert split_below(str(root), root / "a" / "SKILL.md") == ["a", "SKILL.md"]
    assert split_below(str(root), root) == []
    assert split_below(str(root), root.parent) is None
    assert split_below(str(root), f"{root}-too/SKILL.md") is None


def test_a_path_is_split_below_the_root_of_the_file_system() -> None:
    assert split_below("/", "/no-such-folder/SKILL.md") == ["no-such-folder", "SKILL.md"]
    assert split_below("/", "/") == []


def test_links_on_the_way_are_resolved_before_a_path_is_split(root: Path) -> None:
    """A link at the end of the path stays: it may be the link itself that changed."""
    (root / "skills").mkdir()
    (root / "alias").symlink_to("skills")
    (root / "away").symlink_to(root.parent / "outside")

    assert split_below(str(root), root / "alias" / "SKILL.md") == ["skills", "SKILL.md"]
    assert split_below(str(root), root / "alias") == ["alias"]
    assert split_below(str(root), root / "away") == ["away"]
    assert split_below(str(root), root / "away" / "secret.txt") is None
