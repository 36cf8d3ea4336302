"""Folders that an eval run works in, as a hostile repository brings them: nothing outside is written or removed."""

import hashlib
import json
import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra `evals` is not installed")

import prepared

_SKILL = "---\nname: tidy\ndescription: Tidy up.\n---\nTidy.\n"
_CASES = "cases:\n  - {name: one, prompt: hi, script: [Hello], checks: [{response_contains: Hello}]}\n"
_LIVE = "cases:\n  - {name: one, prompt: hi, checks: [{response_contains: Hello}]}\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a skill and a case."""
    skill = tmp_path / "clone" / ".claude" / "skills" / "tidy"
    (skill / "evals").mkdir(parents=True)
    (skill / "SKILL.md").write_text(_SKILL)
    (skill / "evals" / "cases.yaml").write_text(_CASES)
    run_git(tmp_path / "clone", "init", "-q")
    return tmp_path / "clone"


def skillshelf(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return prepared.run(["eval", "--trust-workspace", *arguments], cwd=folder)


def run_git(folder: Path, *arguments: str, data: bytes = b"") -> str:
    words = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
    return subprocess.run(words, input=data, capture_output=True, check=True).stdout.decode().strip()


def test_a_link_in_place_of_the_state_of_a_run_removes_nothing(clone: Path, tmp_path: Path) -> None:
    """The files of an earlier run are removed, and the link leads to files of the user."""
    (tmp_path / "notes.txt").write_text("precious")
    (clone / "out").mkdir()
    (clone / "out" / "state").symlink_to("../..")
    done = skillshelf(clone, "--report", "out")
    assert (done.returncode, "out/state is a link" in done.stderr) == (2, True)
    assert sorted(os.listdir(tmp_path)) == ["clone", "notes.txt"]


def test_only_files_of_a_run_are_removed_from_its_folder(clone: Path) -> None:
    """The folder of the report is named by the user, who may have something of the same name in there."""
    (clone / "out" / "state").mkdir(parents=True)
    (clone / "out" / "state" / "notes.txt").write_text("precious")
    assert skillshelf(clone, "--report", "out").returncode == 0
    assert (clone / "out" / "state" / "notes.txt").read_text() == "precious"


def test_an_interrupted_run_that_a_repository_brings_is_not_continued(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stored answers and outcomes would pass for the user's own."""
    for name in ("attacker", "user"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "attacker"))
    assert skillshelf(clone, "--report", "out").returncode == 0
    manifest = clone / "out" / "state" / "begun.json"
    run = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**run, "finished": True, "failed": True}))

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user"))
    done = skillshelf(clone, "--resume", "out")
    assert (done.returncode, "another user began it" in done.stderr) == (2, True)
    manifest.write_text(json.dumps({**run, "finished": False}))
    done = skillshelf(clone, "--report", "out")
    assert "continuing run" not in done.stderr
    assert json.loads(manifest.read_text())["id"] != run["id"]


def write_tree(repository: Path, entries: list[tuple[str, str, str]]) -> str:
    """Write a tree that git itself would not make, and return its id."""
    body = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(item) for mode, name, item in entries)
    data = b"tree %d\0" % len(body) + body
    name = hashlib.sha1(data).hexdigest()
    file = repository / ".git" / "objects" / name[:2] / name[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(data))
    return name


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_an_old_version_in_git_cannot_be_written_through_its_own_link(clone: Path, tmp_path: Path) -> None:
    """G01: a tree that has a link and a folder of one name would put the folder's files behind the link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    skill = run_git(clone, "hash-object", "-w", "--stdin", data=_SKILL.encode())
    link = run_git(clone, "hash-object", "-w", "--stdin", data=os.fsencode(outside))
    folder = write_tree(clone, [("100644", "planted", skill)])
    tree = write_tree(clone, [("100644", "SKILL.md", skill), ("120000", "x", link), ("40000", "x", folder)])
    for name in ("tidy", "skills", ".claude"):
        tree = write_tree(clone, [("40000", name, tree)])
    run_git(clone, "tag", "old", run_git(clone, "commit-tree", tree, "-m", "old"))

    (clone / ".claude" / "skills" / "tidy" / "evals" / "cases.yaml").write_text(_LIVE)
    (tmp_path / "model.json").write_text('["Hello"]')
    done = skillshelf(clone, "--baseline", "old", "--model", f"script:{tmp_path / 'model.json'}")
    assert (done.returncode, "the folder of the skill is damaged there" in done.stderr) == (2, True)
    assert os.listdir(outside) == []
