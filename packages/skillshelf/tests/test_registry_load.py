"""Installed skills are compared with skills.lock when they are read: by the library, under trust, and frozen."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.scenarios import make_new_skill
from skillshelf import Shelf
from skillshelf.errors import SkillUnreadableError
from skillshelf.registry import install, project_installation, user_installation
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.trust import Trust

Run = Callable[..., tuple[int, str, str]]
SKILL = "---\nname: pdf\ndescription: Fills forms.\n---\n\n{}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The SKILL.md of an installed skill."""
    install(project_installation(str(tmp_path)), [make_new_skill("pdf", SKILL.format("Do it."))])
    return tmp_path / ".agents/skills/pdf/SKILL.md"


def codes(shelf: Shelf) -> list[str]:
    return [note.code for note in shelf.catalog.diagnostics if note.code.startswith("lock-")]


def read(shelf: Shelf) -> str:
    with shelf.turn() as turn:
        return turn.load("pdf").text.strip()


def test_the_library_loads_an_edited_skill_with_a_diagnostic(file: Path, tmp_path: Path) -> None:
    """It is seen at the next look, also in a reference, and is over once the files are as pinned."""
    shelf = Shelf.open(tmp_path)
    assert codes(shelf) == []
    before = file.read_text()
    file.write_text(SKILL.format("Edited."))
    shelf.reload()
    assert (codes(shelf), read(shelf)) == (["lock-mismatch"], "Edited.")
    file.write_text(before)
    shelf.reload()
    assert codes(shelf) == []
    (file.parent / "scripts/run.py").write_text("evil()")
    shelf.reload()
    assert codes(shelf) == ["lock-mismatch"]
    (tmp_path / "skills.lock").unlink()
    shelf.reload()
    assert codes(shelf) == []


def test_a_shelf_opened_after_the_edit_reports_it_too(file: Path, tmp_path: Path, run: Run) -> None:
    file.write_text(SKILL.format("Edited."))
    assert codes(Shelf.open(tmp_path)) == ["lock-mismatch"]
    run("verify")
    assert codes(Shelf.open(tmp_path)) == ["lock-mismatch"]
    assert "1 not as skills.lock pins: run `skillshelf verify`." in run("list")[1]


def test_a_lock_that_cannot_be_used_hides_no_skill(file: Path, tmp_path: Path, run: Run) -> None:
    """`list` doesn't take it for a skill that was edited."""
    lock = tmp_path / "skills.lock"
    shelf = Shelf.open(tmp_path)
    whole = lock.read_text()
    lock.write_text("<<<<<<< HEAD\n" + whole)
    shelf.reload()
    assert (codes(shelf), read(shelf)) == (["lock-unusable"], "Do it.")
    counts = run("list")[1]
    assert "skills.lock can't be used: run `skillshelf verify`." in counts
    assert "not as skills.lock pins" not in counts
    lock.write_text(whole)
    shelf.reload()
    assert codes(shelf) == []


def test_under_trust_the_approved_copy_keeps_being_served(file: Path, tmp_path: Path) -> None:
    skills = WorkspaceSkills(tmp_path, trust=Trust.open())
    skills.approve(skills.pending)
    skills.reload()
    file.write_text(SKILL.format("Edited."))
    skills.reload()
    assert read(skills.shelf) == "Do it."
    assert [pending.name for pending in skills.pending] == ["pdf"]
    assert codes(skills.shelf) == ["lock-mismatch"]


def test_in_a_repository_of_ones_own_edits_apply_with_a_diagnostic(file: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    Trust.open().declare_own(str(tmp_path))
    skills = WorkspaceSkills(tmp_path, trust=Trust.open())
    file.write_text(SKILL.format("Edited."))
    skills.reload()
    assert (read(skills.shelf), codes(skills.shelf)) == ("Edited.", ["lock-mismatch"])


def test_frozen_skills_are_served_as_pinned_or_not_at_all(file: Path, tmp_path: Path) -> None:
    """Without trust, loading an edited one fails; in a repository of one's own, the pinned version stays in use."""
    live = WorkspaceSkills(tmp_path, trust=None, frozen=True)
    assert read(live.shelf) == "Do it."
    (tmp_path / ".git").mkdir()
    Trust.open().declare_own(str(tmp_path))
    own = WorkspaceSkills(tmp_path, trust=Trust.open(), frozen=True)
    file.write_text(SKILL.format("Edited."))
    with pytest.raises(SkillUnreadableError, match=r"not those that skills\.lock pins"):
        read(live.shelf)
    own.shelf.reload()
    assert read(own.shelf) == "Do it."


def test_serve_frozen_does_not_start_with_an_edited_skill(file: Path, tmp_path: Path, run: Run) -> None:
    """Neither with one of the workspace nor with the user's own."""
    file.write_text(SKILL.format("Edited."))
    code, _, complaint = run("serve", "--frozen")
    assert code == 1
    assert complaint == "skillshelf: pdf: not as skills.lock pins it. `skillshelf verify` names the files.\n"
    file.write_text(SKILL.format("Do it.").rstrip("\n") + "\n")
    install(user_installation(), [make_new_skill("sql", SKILL.format("Query."))])
    (Path(os.environ["HOME"]) / ".agents/skills/sql/SKILL.md").unlink()
    code, _, complaint = run("serve", "--frozen")
    assert code == 1
    assert "`skillshelf verify --user`" in complaint


def test_the_users_skills_are_compared_with_their_own_lock(tmp_path: Path) -> None:
    install(user_installation(), [make_new_skill("pdf", SKILL.format("Do it."))])
    assert codes(Shelf.open(tmp_path)) == []
    (Path(os.environ["HOME"]) / ".agents/skills/pdf/SKILL.md").write_text(SKILL.format("Edited."))
    assert codes(Shelf.open(tmp_path)) == ["lock-mismatch"]
