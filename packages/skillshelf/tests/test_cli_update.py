"""Test `skillshelf outdated` and `skillshelf update`: newer versions come in, and edits stay."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from git_server import commit_files, git, make_repository
from skillshelf.trust import Trust

Run = Callable[..., tuple[int, str, str]]
HEAD = "---\nname: pdf\ndescription: Does it.\n---\n"
TEXT = HEAD + "\nFirst.\n\nMiddle.\n\nLast.\n"


@pytest.fixture
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("srv") / "skills"
    files = {"pdf/SKILL.md": TEXT, "pdf/run.py": "print(1)\n", "pdf/notes.md": "Notes.\n"}
    make_repository(folder, {**files, "sql/SKILL.md": TEXT.replace("pdf", "sql")})
    return folder


@pytest.fixture
def installed(run: Run, repository: Path, tmp_path: Path) -> Path:
    """The folder of the skill `pdf`, installed in the workspace together with `sql`."""
    assert run("add", f"file://{repository}", "--skill", "*", "--yes")[0] == 0
    return tmp_path / ".agents/skills/pdf"


def release(repository: Path, **changes: str) -> str:
    return commit_files(repository, {f"pdf/{name.replace('_', '.')}": text for name, text in changes.items()})[:12]


def is_approved(skill: str) -> bool:
    """Return True if the skill is approved as its lock pins it."""
    lock = Path("skills.lock").read_text()
    tree = lock.partition(f"[skills.{skill}]")[2].partition('\ntree = "')[2].partition('"')[0]
    return Trust.open().is_approved(tree)


def test_outdated_lists_what_is_newer_and_changes_nothing(run: Run, repository: Path, installed: Path) -> None:
    """A commit that leaves a skill as it is does not make it outdated."""
    assert run("outdated") == (0, "0 of 2 skills can be updated\n", "")
    lock = Path("skills.lock").read_bytes()
    commit = release(repository, SKILL_md=TEXT + "\nMore.\n")
    code, output, _ = run("outdated")
    assert code == 0
    rows = [line.split() for line in output.splitlines()]
    assert [row[0] for row in rows] == ["name", "pdf", "1"]
    assert rows[1][2] == commit
    facts = {skill["name"]: skill for skill in json.loads(run("outdated", "--json")[1])["skills"]}
    assert [facts[name]["newer"] for name in ("pdf", "sql")] == [True, False]
    assert Path("skills.lock").read_bytes() == lock
    assert (installed / "SKILL.md").read_text() == TEXT


def test_what_is_gone_or_unreachable_does_not_hide_the_others(run: Run, repository: Path, installed: Path) -> None:
    git(repository, "rm", "-r", "--quiet", "sql")
    release(repository, SKILL_md=TEXT + "\nMore.\n")
    code, output, complaint = run("outdated")
    assert code == 1
    assert [line.split()[0] for line in output.splitlines()] == ["name", "pdf", "1"]
    assert "sql: It is no longer in" in complaint
    code, output, complaint = run("update", "--yes")
    assert code == 1
    assert "sql: It is no longer in" in complaint
    assert (installed / "SKILL.md").read_text() == TEXT + "\nMore.\n"
    repository.rename(repository.with_name("moved"))
    code, _, complaint = run("outdated")
    assert code == 1
    assert "cannot be fetched" in complaint


def test_update_shows_the_difference_approves_and_pins(run: Run, repository: Path, installed: Path) -> None:
    commit = release(repository, SKILL_md=TEXT + "\nSee https://example.com/rules.\n")
    code, output, _ = run("update", "--dry-run")
    assert code == 0
    assert "+See https://example.com/rules." in output
    assert (installed / "SKILL.md").read_text() == TEXT
    assert run("update")[0] == 2, "without a terminal, nobody can be asked"
    code, output, _ = run("update", "--yes")
    assert (code, output.splitlines()[-1]) == (0, f"updated pdf to {commit}")
    assert run("verify")[:2] == (0, "2 as pinned\n")
    assert is_approved("pdf")
    assert run("update", "--yes") == (0, "There is nothing newer.\n", "")


def test_edits_are_merged_and_pinned_as_such(run: Run, repository: Path, installed: Path) -> None:
    """Line by line, file by file, with modes; once more, the base is what upstream had the last time."""
    (installed / "SKILL.md").write_text(TEXT.replace("First.", "Mine."))
    (installed / "own.md").write_text("Own.\n")
    (installed / "notes.md").unlink()
    (installed / "run.py").chmod(0o755)
    release(repository, SKILL_md=TEXT.replace("Last.", "Newer."), run_py="print(2)\n")
    code, output, _ = run("update", "--yes")
    assert (code, output.splitlines()[-1].endswith("with your edits")) == (0, True)
    merged = TEXT.replace("First.", "Mine.").replace("Last.", "Newer.")
    assert (installed / "SKILL.md").read_text() == merged
    assert sorted(os.listdir(installed)) == ["SKILL.md", "own.md", "run.py"]
    assert (installed / "run.py").read_text() == "print(2)\n"
    assert os.access(installed / "run.py", os.X_OK)
    assert run("verify")[0] == 0
    assert is_approved("pdf")
    assert "edited, pinned" in run("tree")[1]
    assert run("outdated")[1] == "0 of 2 skills can be updated\n"

    release(repository, SKILL_md=TEXT.replace("Last.", "Newer.").replace("Middle.", "Newest."))
    assert run("update", "--yes")[0] == 0
    assert (installed / "SKILL.md").read_text() == merged.replace("Middle.", "Newest.")


def test_edits_that_are_pinned_are_not_given_up_unasked(run: Run, repository: Path, installed: Path) -> None:
    (installed / "own.md").write_text("Own.\n")
    assert run("update", "--yes", "pdf")[0] == 0, "a name without a newer version pins the edits"
    assert run("verify")[0] == 0
    assert run("remove", "pdf")[0] == 1
    assert "merges the edits" in run("add", f"file://{repository}", "--skill", "pdf", "--yes")[2]
    (installed / "own.md").unlink()
    assert run("sync", "--yes")[0] == 0
    assert (installed / "own.md").read_text() == "Own.\n"
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "Nothing")
    (installed / "own.md").unlink()
    assert run("update", "--yes", "pdf")[0] == 0
    assert "upstream" not in Path("skills.lock").read_text()


def test_conflicts_are_in_the_file_and_in_words(run: Run, repository: Path, installed: Path) -> None:
    """What has conflicts is not approved, so the version before stays in use until they are settled."""
    (installed / "SKILL.md").write_text(TEXT.replace("First.", "Mine."))
    (installed / "notes.md").unlink()
    (installed / "run.py").write_bytes(b"\xff\x00mine")
    release(repository, SKILL_md=TEXT.replace("First.", "Theirs."), notes_md="Newer.\n", run_py="print(2)\n")
    code, output, complaint = run("update", "--yes")
    assert code == 1
    assert output.splitlines()[:3] == [
        "pdf/SKILL.md: 1 conflict between <<<<<<< and >>>>>>>",
        "pdf/notes.md: you removed it and upstream changed it, so it is back",
        "pdf/run.py: both changed it and it is not text, so yours stays",
    ]
    assert "has conflicts" in complaint
    text = (installed / "SKILL.md").read_text()
    assert "<<<<<<< yours\nMine.\n=======\nTheirs.\n>>>>>>> upstream\n" in text
    assert not is_approved("pdf")
    (installed / "SKILL.md").write_text(TEXT.replace("First.", "Both."))
    assert run("update", "--yes", "pdf")[0] == 0
    assert is_approved("pdf")
    assert run("verify")[0] == 0


def test_json_says_what_would_be_updated(run: Run, repository: Path, installed: Path) -> None:
    pinned = git(repository, "rev-parse", "HEAD").strip()
    (installed / "SKILL.md").write_text(TEXT.replace("First.", "Mine."))
    release(repository, SKILL_md=TEXT.replace("Last.", "Newer."))
    newest = git(repository, "rev-parse", "HEAD").strip()
    facts = json.loads(run("update", "--dry-run", "--json")[1])
    assert facts["skills"] == [{"name": "pdf", "pinned": pinned, "newest": newest, "edited": True}]
    assert facts["updated"] == []
    run("update", "--yes")
    states = json.loads(run("tree", "--json")[1])["skills"]
    assert [(skill["state"], skill["edited"]) for skill in states] == [("same", True), ("same", False)]


def test_undo_brings_the_version_before_back(run: Run, repository: Path, installed: Path) -> None:
    """With its edits; and once more, the update."""
    assert run("update", "--undo")[0] == 1
    mine = TEXT.replace("First.", "Mine.")
    (installed / "SKILL.md").write_text(mine)
    before = Path("skills.lock").read_bytes()
    release(repository, SKILL_md=TEXT.replace("Last.", "Newer."))
    run("update", "--yes")
    after = Path("skills.lock").read_bytes()
    commit = git(repository, "rev-parse", "HEAD~").strip()[:12]
    assert run("update", "--undo") == (0, f"pdf: the version before is back, {commit}\n", "")
    assert (installed / "SKILL.md").read_text() == mine
    assert Path("skills.lock").read_bytes() == before
    assert run("update", "--undo")[0] == 0
    assert (installed / "SKILL.md").read_text() == mine.replace("Last.", "Newer.")
    assert Path("skills.lock").read_bytes() == after
    assert "so there is nothing to undo" in run("update", "--undo", "sql")[2]


def test_edits_of_a_folder_are_merged_with_what_it_had(run: Run, tmp_path: Path) -> None:
    """A folder has no versions: the base comes from the cache. Without it, the edits stay as they are."""
    source = tmp_path / "vendor/pdf"
    source.mkdir(parents=True)
    (source / "SKILL.md").write_text(TEXT)
    assert run("add", "./vendor", "--user", "--yes")[0] == 0
    file = Path(os.environ["HOME"], ".agents/skills/pdf/SKILL.md")
    file.write_text(TEXT.replace("First.", "Mine."))
    (source / "SKILL.md").write_text(TEXT.replace("Last.", "Newer."))
    kept = list(Path(os.environ["HOME"]).rglob("*.zip"))
    names = [path.rename(path.with_suffix(".gone")) for path in kept]
    code, _, complaint = run("update", "--user", "--yes")
    assert code == 1
    assert "cannot be merged" in complaint
    assert "Mine." in file.read_text()
    for path in names:
        path.rename(path.with_suffix(".zip"))
    code, output, _ = run("update", "--user", "--yes")
    assert code == 0
    assert "+Newer." in output
    assert file.read_text() == TEXT.replace("First.", "Mine.").replace("Last.", "Newer.")
