"""Test `skillshelf new`: new skills pass every check, and nothing is ever overwritten."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from importable import importable
from inline_snapshot import snapshot

from skillshelf.lint import check_path
from skillshelf.testing import check_package

Run = Callable[..., tuple[int, str, str]]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_new_skill_passes_the_check(run: Run, tmp_path: Path) -> None:
    """It is on the shelf immediately, and a check finds nothing."""
    assert run("new", "pdf-forms") == snapshot(
        (
            0,
            """\
.skillshelf/skills/pdf-forms/SKILL.md
.skillshelf/skills/pdf-forms/references/details.md

Write the description first: a model sees nothing else before it loads the skill. Then run
  skillshelf check .skillshelf/skills/pdf-forms
""",
            "",
        )
    )
    assert files(tmp_path) == [
        ".skillshelf/skills/pdf-forms/SKILL.md",
        ".skillshelf/skills/pdf-forms/references/details.md",
    ]
    assert check_path(tmp_path) == []
    assert run("check")[0] == 0
    assert run("why", "pdf-forms")[0] == 0


def test_a_new_skill_can_be_created_elsewhere(run: Run, tmp_path: Path) -> None:
    """The place is a given folder or another workspace."""
    assert run("new", "pdf", "--in", ".claude/skills")[0] == 0
    assert run("new", "pdf", "-C", "app")[0] == 0
    assert (tmp_path / ".claude/skills/pdf/SKILL.md").exists()
    assert (tmp_path / "app/.skillshelf/skills/pdf/SKILL.md").exists()


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("My Skill", "my-skill"),
        ("my_skill", "my-skill"),
        ("../escape", "escape"),
        ("/etc/x", "etc-x"),
        ("reload", "reload-skill"),
        ("", "my-skill"),
        ("  ", "my-skill"),
        ("рdf", "pdf"),
        ("a" * 65, "a" * 64),
    ],
)
def test_invalid_names_are_refused(run: Run, tmp_path: Path, name: str, right: str) -> None:
    """Nothing is created. The answer suggests a name, and that one works."""
    code, out, err = run("new", name)
    assert (code, out, files(tmp_path)) == (2, "", [])
    assert f"Try: skillshelf new {right}\n" in err
    assert run("new", right)[0] == 0


@pytest.mark.parametrize("existing", ["folder", "file", "link"])
def test_nothing_is_overwritten(run: Run, tmp_path: Path, existing: str) -> None:
    """An existing file or folder stays unchanged."""
    place = tmp_path / ".skillshelf/skills/pdf"
    place.parent.mkdir(parents=True)
    if existing == "folder":
        place.mkdir()
    elif existing == "file":
        place.write_text("mine")
    else:
        place.symlink_to("/nowhere")
    code, _, err = run("new", "pdf")
    assert code == 1
    assert ".skillshelf/skills/pdf already exists" in err
    assert files(tmp_path) == ([".skillshelf/skills/pdf"] if existing == "file" else [])


@pytest.mark.parametrize(
    ("name", "module"), [("graph-rag", "graph_rag"), ("3d", "skill_3d"), ("import", "skill_import")]
)
def test_a_new_code_skill_passes_the_package_check(run: Run, tmp_path: Path, name: str, module: str) -> None:
    """It is a subpackage that the project's own test accepts."""
    assert run("new", name, "--code", "fresh_skills")[0] == 0
    assert files(tmp_path) == [
        "fresh_skills/__init__.py",
        f"fresh_skills/{module}/__init__.py",
        f"fresh_skills/{module}/references/guide.md",
        f"fresh_skills/{module}/skill.py",
    ]
    with importable(tmp_path):
        check_package("fresh_skills")


def test_a_code_skill_can_join_an_existing_package(run: Run, tmp_path: Path) -> None:
    """The package's files stay unchanged, and two skills live side by side."""
    (tmp_path / "more_skills").mkdir()
    (tmp_path / "more_skills/__init__.py").write_text('"""Ours."""\n')
    assert [run("new", name, "--code", "more_skills")[0] for name in ("one", "two", "two")] == [0, 0, 1]
    assert (tmp_path / "more_skills/__init__.py").read_text() == '"""Ours."""\n'
    with importable(tmp_path):
        check_package("more_skills")


def test_an_unwritable_place_is_reported(run: Run, tmp_path: Path) -> None:
    """The message is one sentence without a traceback."""
    (tmp_path / "file").write_text("")
    code, _, err = run("new", "pdf", "--in", "file/below")
    assert code == 1
    assert "cannot be written" in err


def test_a_draft_left_by_a_killed_process_is_not_a_skill(run: Run, tmp_path: Path) -> None:
    """It is not listed and does not block the name, and the next `new` removes it once it is old."""
    draft = tmp_path / ".skillshelf/skills/.skillshelf-new/0123456789abcdef"
    draft.mkdir(parents=True)
    (draft / "SKILL.md").write_text("---\nname: pdf\ndescription: Half.\n---\n")
    assert "pdf" not in run("list")[1]
    assert run("new", "pdf")[0] == 0
    assert draft.exists()
    os.utime(draft, (0, 0))
    assert run("new", "csv")[0] == 0
    assert sorted(path.name for path in draft.parents[1].iterdir()) == ["csv", "pdf"]


def test_a_link_in_place_of_the_drafts_folder_is_not_followed(run: Run, tmp_path: Path) -> None:
    """A clone cannot make `new` write outside the folder."""
    (tmp_path / ".skillshelf/skills").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / ".skillshelf/skills/.skillshelf-new").symlink_to(tmp_path / "outside")
    code, _, err = run("new", "pdf")
    assert (code, "cannot be written" in err) == (1, True)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("link", [".skillshelf", ".skillshelf/skills"])
def test_a_link_out_of_the_workspace_is_not_followed(run: Run, tmp_path: Path, link: str) -> None:
    """A clone cannot choose where a new skill goes. A folder that the user names with --in may be anywhere."""
    outside = tmp_path / "outside"
    workspace = tmp_path / "clone"
    for folder in (outside, (workspace / link).parent):
        folder.mkdir(parents=True, exist_ok=True)
    (workspace / link).symlink_to(outside)
    code, out, err = run("new", "pdf", "-C", str(workspace))
    assert (code, out, "is a link out of the workspace" in err) == (1, "", True)
    assert list(outside.iterdir()) == []
    assert run("new", "pdf", "--in", str(outside))[0] == 0
