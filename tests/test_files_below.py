"""Reading, writing, walking and searching below a root, by descriptor."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillshelf.files import (
    ABSENT,
    FileChanged,
    NotPlainFile,
    PatternError,
    find_link,
    hash_content,
    open_file_below,
    open_folder_below,
    read_version,
    replace_below,
    search_lines,
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


FILES = [("a.txt", b"one\ntwo words\n"), ("b.txt", b"Two\r\nthree")]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("two", [("a.txt", 2, "two words")]),
        ("(?i)^two", [("a.txt", 2, "two words"), ("b.txt", 1, "Two")]),
        ("o$|ree$", [("b.txt", 1, "Two"), ("b.txt", 2, "three")]),
        ("nothing", []),
    ],
)
def test_a_search_gives_the_lines_that_match(pattern: str, lines: list[tuple[str, int, str]]) -> None:
    assert search_lines(FILES, pattern, limit=10, seconds=60).lines == lines


@pytest.mark.parametrize("pattern", ["o", "o+"])
def test_a_search_stops_at_its_limit_and_says_so(pattern: str) -> None:
    result = search_lines(FILES, pattern, limit=2, seconds=60)
    assert len(result.lines) == 2
    assert result.more
    assert not search_lines(FILES, pattern, limit=3, seconds=60).more


@pytest.mark.parametrize("pattern", ["(", "[a", "a" * 2000])
def test_a_pattern_that_cannot_be_used_is_an_error(pattern: str) -> None:
    with pytest.raises(PatternError):
        search_lines(FILES, pattern, limit=2, seconds=60)


def test_a_file_on_which_a_pattern_explodes_is_left_out_and_named() -> None:
    files = [("good", b"aaa\n"), ("evil", b"a" * 60 + b"!\n"), ("also good", b"aaaa\n")]
    result = search_lines(files, "^(a+)+$", limit=10, seconds=600, file_seconds=0.1)
    assert [path for path, _, _ in result.lines] == ["good", "also good"]
    assert result.slow == ["evil"]


def test_a_pattern_that_explodes_again_and_again_is_refused() -> None:
    files = [(str(number), b"a" * 60 + b"!\n") for number in range(100)]
    with pytest.raises(PatternError, match="too long"):
        search_lines(files, "^(a+)+$", limit=10, seconds=600, file_seconds=0.1)


@pytest.mark.parametrize("pattern", ["plain", "reg.lar"])
def test_a_search_whose_time_is_up_gives_what_it_found(pattern: str) -> None:
    def endless() -> Iterator[tuple[str, bytes]]:
        while True:
            yield "a.txt", b"nothing here\n"

    assert search_lines(endless(), pattern, limit=10, seconds=0.3).timed_out


def test_only_the_beginning_of_a_very_long_line_is_searched_with_a_regular_expression() -> None:
    line = b"x" * 20_000 + b"end\n"
    result = search_lines([("a", line)], "e.d", limit=10, seconds=60)
    assert (result.lines, result.long_lines) == ([], 1)
    (found,) = search_lines([("a", line)], "end", limit=10, seconds=60).lines
    assert found[2].endswith("xend")
    assert len(found[2]) < 600
