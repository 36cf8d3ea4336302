"""WORKSPACE: what other users of the machine can plant around the user's folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf.workspace import find_workspace

Run = Callable[..., tuple[int, str, str]]

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
    assert "it waits for your review" in out
