"""The store of approvals: where it is, who may write it, and what happens if it cannot be read."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import DirectorySource
from skillshelf.errors import TrustError
from skillshelf.trust import Trust, TrustedSource

Write = Callable[..., Path]


def looking(root: Path, trust: Trust | None = None) -> TrustedSource:
    source = TrustedSource(DirectorySource(root, "project", cache=False), trust or Trust.open())
    source.refresh()
    return source


@pytest.fixture
def approved(tmp_path: Path, write: Write) -> Path:
    """Return the record of approvals for a workspace with one approved skill."""
    write("ws/pdf", "d", "Approved.\n", references__a_md="A.")
    source = looking(tmp_path / "ws")
    source.approve(source.pending)
    assert looking(tmp_path / "ws").served.keys() == {"pdf"}
    return Path(source.trust.path, "approvals.json")


def test_an_open_umask_gives_nothing_away(tmp_path: Path, write: Write) -> None:
    """K11: even with umask 000, every folder and file is private to this user."""
    path = write("ws/pdf", "d", "Approved.\n", scripts__run_py="x", references__deep__a_md="A.")
    (path.parent / "scripts/run.py").chmod(0o777)
    before = os.umask(0)
    try:
        source = looking(tmp_path / "ws")
        source.approve(source.pending)
    finally:
        os.umask(before)
    home = Path(source.trust.path)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (home.parent, home, *home.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file() and path.name != "run.py"} == {0o600}
    assert [mode for path, mode in modes.items() if path.name == "run.py"] == [0o700]


def test_nothing_is_written_before_the_first_approval(tmp_path: Path, write: Write) -> None:
    """Reading a workspace leaves no trace."""
    write("ws/pdf")
    assert not Path(looking(tmp_path / "ws").trust.path).exists()


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut-short": lambda data: data[: len(data) // 2],
    "zeroed": lambda data: bytes(len(data)),
    "garbage": lambda data: b"\xff\xfe not json",
    "null": lambda data: b"null",
    "list": lambda data: b"[]",
    "no-keys": lambda data: b"{}",
    "deep": lambda data: b"[" * 100_000,
    "older": lambda data: data.replace(b'"version": 2', b'"version": 0'),
    "odd-version": lambda data: data.replace(b'"version": 2', b'"version": "9"'),
    "renamed": lambda data: data.replace(b'"pdf"', b'"sql"'),
    "other-tree": lambda data: data.replace(json.loads(data)["sha256"].encode(), b"0" * 64),
    "added-tree": lambda data: data.replace(b'"trees": {', b'"trees": {"' + b"1" * 64 + b'": ["x", ""],'),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_damaged_record_fails_closed(spoil: Callable[[bytes], bytes], approved: Path, tmp_path: Path) -> None:
    """W13, K10: nothing is trusted, even in running processes; the record is set aside and a new one begins."""
    running = looking(tmp_path / "ws")
    bad = spoil(approved.read_bytes())
    approved.write_bytes(bad)
    running.refresh()
    source = looking(tmp_path / "ws")
    for one in (running, source):
        assert one.served == {}
        assert [pending.status for pending in one.pending] == ["new"]
        assert "damaged" in one.trust.problem
        assert str(approved) + ".bad" in one.trust.problem
    assert approved.with_name("approvals.json.bad").read_bytes() == bad
    source.approve(source.pending)
    assert Trust.open().problems == ()
    assert looking(tmp_path / "ws").served.keys() == {"pdf"}


@pytest.mark.parametrize("newer", [b'{"version": 3}', b'{"version": 99, "anything": []}'])
def test_a_record_of_a_newer_version_is_left_alone(newer: bytes, approved: Path, tmp_path: Path) -> None:
    """K10: the record is never written; opening it is a typed error, and a running process trusts nothing."""
    running = looking(tmp_path / "ws")
    pending = running.pending
    approved.write_bytes(newer)
    with pytest.raises(TrustError, match="newer skillshelf"):
        Trust.open()
    running.refresh()
    assert running.served == {}
    acts: tuple[Callable[[], object], ...] = (
        lambda: running.approve(pending or running.pending),
        lambda: running.trust.revoke(["x"]),
    )
    for act in acts:
        with pytest.raises(TrustError, match="newer skillshelf"):
            act()
    assert approved.read_bytes() == newer
    assert not approved.with_name("approvals.json.bad").exists()


@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_record_that_others_can_write_is_not_used(mode: int, approved: Path, tmp_path: Path) -> None:
    """Nothing is trusted, and the problem names the file."""
    approved.chmod(mode)
    source = looking(tmp_path / "ws")
    assert source.served == {}
    assert str(approved.parent) in source.trust.problem
    approved.chmod(0o600)
    source.refresh()
    assert source.served.keys() == {"pdf"}


def test_a_record_that_is_a_link_is_not_used(approved: Path, tmp_path: Path) -> None:
    """Nothing is trusted if a link lies in place of the record."""
    approved.rename(tmp_path / "elsewhere.json")
    approved.symlink_to(tmp_path / "elsewhere.json")
    assert looking(tmp_path / "ws").served == {}


def test_without_a_home_reading_works_and_approving_is_a_typed_error(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K11: the error says that there is no home, and what to set instead."""
    write("ws/pdf")
    monkeypatch.setenv("HOME", "not-an-absolute-path")
    source = looking(tmp_path / "ws")
    [pending] = source.pending
    assert "XDG_STATE_HOME" in pending.blocked
    with pytest.raises(TrustError, match="XDG_STATE_HOME"):
        source.approve([pending])
    with pytest.raises(TrustError, match="XDG_STATE_HOME"):
        source.trust.revoke(["x"])


def test_a_home_that_is_a_file_is_a_typed_error(tmp_path: Path, write: Write) -> None:
    """K11: the error says what to set instead."""
    write("ws/pdf")
    (tmp_path / "file").write_text("")
    source = looking(tmp_path / "ws", Trust.open(tmp_path / "file"))
    with pytest.raises(TrustError, match=r"cannot be written .*XDG_STATE_HOME"):
        source.approve(source.pending)


def test_copies_that_are_not_approved_are_removed(approved: Path, tmp_path: Path, write: Write) -> None:
    """The next change removes copies of revoked trees and leftovers of killed processes."""
    trees = approved.parent / "trees"
    (trees / ".new-left").mkdir()
    (trees / ("0" * 64) / "files").mkdir(parents=True)
    (approved.parent / "approvals.json.left").write_text("x")
    write("ws/sql")
    source = looking(tmp_path / "ws")
    source.approve(source.pending)
    assert sorted(path.name for path in trees.iterdir()) == sorted(source.trust.approvals.trees)
    source.refresh()
    source.revoke("pdf")
    assert [path.name for path in trees.iterdir()] == [source.served["sql"].tree]
    assert sorted(path.name for path in approved.parent.iterdir()) == ["approvals.json", "lock", "trees"]


def test_a_lost_copy_is_made_again_from_the_same_content(approved: Path, tmp_path: Path) -> None:
    """The approval is for content, so files with this content are enough."""
    for path in sorted((approved.parent / "trees").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert looking(tmp_path / "ws").served.keys() == {"pdf"}


def test_two_skills_are_approved_together_or_not_at_all(tmp_path: Path, write: Write) -> None:
    """If one of them has changed, neither is approved."""
    write("ws/a")
    write("ws/b")
    source = looking(tmp_path / "ws")
    shown = source.pending
    write("ws/b", "Changed.")
    with pytest.raises(TrustError):
        source.approve(shown)
    assert Trust.open().approvals.trees == {}
    assert looking(tmp_path / "ws").served == {}


def test_the_copies_to_keep_are_gathered_once(approved: Path) -> None:
    """Each copy that is served asks for them. They follow a revocation."""
    trust = Trust.open()
    kept = trust.approvals.kept_trees
    assert trust.approvals.kept_trees is kept
    trust.revoke(kept)
    assert trust.approvals.kept_trees == frozenset()
