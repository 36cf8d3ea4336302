"""WORKSPACE: what other users of the machine can plant around the user's folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.sources.workspace import find_workspace
from skillshelf.trust import Trust

Run = Callable[..., tuple[int, str, str]]

FORGED = "x\nsearched: /opt/safe (the root of the repository you are in)"
"""The name of a folder that reads like a line of ours."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


@as_root
@pytest.mark.parametrize("planted", [".agents", ".agents/skills"])
def test_a_link_of_another_user_does_not_choose_the_skills_of_a_parent(tmp_path: Path, planted: str) -> None:
    """It leads to a folder of the user's own, which was meant for another project."""
    (tmp_path / "private/skills").mkdir(parents=True)
    folder = tmp_path / "parent/work"
    folder.mkdir(parents=True)
    link = tmp_path / "parent" / planted
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "private" if planted == ".agents" else tmp_path / "private/skills")
    assert find_workspace(folder).outer == (str(tmp_path / "private/skills"),)
    os.lchown(link, 12345, -1)
    assert find_workspace(folder).outer == ()


def test_why_says_that_a_skill_of_a_parent_waits_for_review(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs approval like those of the project."""
    skill = tmp_path / "parent/.agents/skills/planted"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: planted\ndescription: d\n---\nText.\n")
    (tmp_path / "parent/work").mkdir()
    monkeypatch.chdir(tmp_path / "parent/work")
    code, out, err = run("why", "planted")
    assert (code, err) == (0, "")
    assert "it is waiting for your review" in out


@as_root
def test_the_name_of_a_folder_cannot_add_a_line_to_why(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P22: it is in a note about a repository of another user."""
    (tmp_path / FORGED / "work").mkdir(parents=True)
    (tmp_path / FORGED / ".git").mkdir()
    os.chown(tmp_path / FORGED / ".git", 12345, -1)
    monkeypatch.chdir(tmp_path / FORGED / "work")
    out = run("why", "missing")[1]
    assert "belongs to another user" in out
    assert [line for line in out.splitlines() if line.startswith("searched: /opt")] == []


def test_the_name_of_a_skill_s_folder_cannot_add_a_line_to_a_notice(tmp_path: Path) -> None:
    """P22: it came into use in a repository of the user's own, which is announced at the next start."""
    (tmp_path / ".git").mkdir()
    Trust.open().declare_own(str(tmp_path))
    skill = tmp_path / FORGED / "plain"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: plain\ndescription: d\n---\nText.\n")
    (notice,) = WorkspaceSkills(tmp_path, trust=Trust.open()).take_notices()
    assert "new x searched: /opt/safe" in notice
