"""`skillshelf why`: every reason a skill is on the shelf, or is not."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from inline_snapshot import snapshot

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]


def verdicts(run: Run, name: str) -> dict[str, str]:
    """The verdict on each place, by its path from here on."""
    read = json.loads(run("why", "--json", name)[1])
    return {os.path.relpath(finding["path"]): finding["verdict"] for finding in read["findings"]}


def reasons(run: Run, name: str) -> str:
    return "\n".join(run("why", name)[1].splitlines()[1:])


def test_a_skill_that_is_found(run: Run, write: Write) -> None:
    """Where, by which source, and what the model sees of it."""
    write("skills/pdf")
    assert run("why", "pdf") == snapshot(
        (
            0,
            """\
pdf is on the shelf.

taken: skills/pdf/SKILL.md (project)
  - in the listing in full
""",
            "",
        )
    )


def test_a_skill_that_is_not(run: Run, write: Write) -> None:
    """Exit code 1, and the names that were perhaps meant."""
    write("skills/pdf")
    assert run("why", "pfd") == snapshot(
        (
            1,
            """\
pfd is not on the shelf.
Did you mean pdf?
""",
            "",
        )
    )
    assert run("why", "xylophone")[0] == 1


def test_a_name_that_exists_many_times(run: Run, write: Write, tmp_path: Path) -> None:
    """Each place has its own reason."""
    write("skills/pdf", "The first.")
    write("skills/deploy/inner/pdf")
    write("skills/deploy")
    write("a/b/c/pdf", "Deeper.")
    write("node_modules/x/pdf")
    write("vendor/pdf")
    write("skills/word", "Another.").rename(tmp_path / "skills/word/Skill.md")
    (tmp_path / ".skillshelfignore").write_text("# not ours\nvendor/\n")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/pdf").symlink_to("/etc")
    home = Path(os.environ["HOME"], ".agents/skills/pdf")
    home.mkdir(parents=True)
    (home / "SKILL.md").write_text("---\nname: pdf\ndescription: The user's.\n---\nDo it.\n")
    assert verdicts(run, "pdf") == {
        "skills/pdf/SKILL.md": "taken",
        "a/b/c/pdf/SKILL.md": "shadowed",
        os.path.relpath(home / "SKILL.md"): "shadowed",
        "skills/deploy/inner/pdf/SKILL.md": "nested",
        "node_modules/x/pdf/SKILL.md": "skipped",
        "vendor/pdf/SKILL.md": "ignored",
        "links/pdf": "link",
    }
    text = reasons(run, "pdf")
    for said in (
        "reach it as 'pdf@project:a/b/c/pdf'",
        "reach it as 'pdf@user'",
        "inside the folder of another skill, 'deploy' (skills/deploy)",
        "never looks into folders named 'node_modules'",
        "line 2 of .skillshelfignore ignores it: vendor/",
        "link-outside",
    ):
        assert said in text


def test_a_qualified_name(run: Run, write: Write) -> None:
    """It asks about the name, whichever of the skills it means."""
    write("a/pdf"), write("a/b/pdf")
    assert run("why", "pdf@project:a/b/pdf")[:2] == run("why", "pdf")[:2]


def test_a_folder_without_its_file(run: Run, write: Write, tmp_path: Path) -> None:
    """A folder of that name is shown, with what its file must be called."""
    write("skills/pdf").rename(tmp_path / "skills/pdf/Skill.md")
    (tmp_path / "skills/word").mkdir()
    assert "has 'Skill.md', but the file must be called SKILL.md" in reasons(run, "pdf")
    assert "the folder has no SKILL.md" in reasons(run, "word")


def test_a_skill_of_another_name(run: Run, write: Write) -> None:
    """The folder bears the name, the skill does not."""
    path = write("skills/pdf")
    path.write_text(path.read_text().replace("name: pdf", "name: paper"))
    assert "its SKILL.md names it 'paper'" in reasons(run, "pdf")
    assert verdicts(run, "paper") == {"skills/pdf/SKILL.md": "taken"}


def test_a_skill_known_by_its_frontmatter_alone(run: Run, write: Write) -> None:
    """Where the folder has another name, the file's own name counts."""
    path = write("node_modules/thing")
    path.write_text(path.read_text().replace("name: thing", "name: pdf"))
    assert verdicts(run, "pdf") == {"node_modules/thing/SKILL.md": "skipped"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("---\nname: pdf\ndescription: a\u202eb\n---\nDo it.\n", "hidden-characters"),
        ("../x.md", "symlink-text"),
    ],
)
def test_a_skill_that_is_refused(run: Run, write: Write, text: str, code: str) -> None:
    """The reason is the diagnostic's."""
    write("skills/pdf").write_text(text)
    assert verdicts(run, "pdf") == {"skills/pdf/SKILL.md": "refused"}
    assert f"- {code}: " in reasons(run, "pdf")


def test_a_skill_that_was_repaired(run: Run, write: Write) -> None:
    """It is taken, with what was done to it."""
    write("skills/pdf", "Forms: fill them in")
    assert "line 3, yaml-repaired: " in reasons(run, "pdf")


def test_a_skill_that_the_model_does_not_see(run: Run, write: Write) -> None:
    """Manual disclosure hides it, and the answer says so."""
    path = write("skills/pdf")
    path.write_text(path.read_text().replace("description", "disclosure: manual\ndescription"))
    assert "hidden from the model: its disclosure is manual" in reasons(run, "pdf")


def test_a_skill_too_long_to_be_always_in_full(run: Run, write: Write) -> None:
    """It asked for it, so the answer says why it is not."""
    path = write("skills/pdf", body="many words here " * 4000)
    path.write_text(path.read_text().replace("description", "disclosure: always\ndescription"))
    assert "its instructions do not fit into the budget of 4,000 tokens" in reasons(run, "pdf")


def test_a_skill_in_a_crowd(run: Run, write: Write) -> None:
    """The budget shortens descriptions, then leaves skills out."""
    for number in range(60):
        write(f"skill-{number}", "Explains at length what it is for, and when to use it. " * 15)
    text = reasons(run, "skill-7")
    assert "in the listing with its description" in text
    assert "shortened there by the budget of 4,000 tokens" in text
    for number in range(60, 1500):
        write(f"skill-{number}")
    assert "left out of the listing by the budget of 4,000 tokens; search_skills finds it" in reasons(run, "skill-999")


def test_a_skill_behind_a_link_out_of_the_workspace(
    run: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing behind the link is read or named."""
    outside = tmp_path_factory.mktemp("outside") / "pdf"
    outside.mkdir()
    (outside / "SKILL.md").write_text("---\nname: pdf\ndescription: Sesame.\n---\nSesame.\n")
    (tmp_path / "linked").symlink_to(outside.parent)
    code, out, _ = run("why", "pdf")
    assert code == 1
    assert "Sesame" not in out
    assert str(outside) not in out


def test_a_workspace_that_is_itself_a_skill(run: Run, write: Write, tmp_path: Path) -> None:
    """Its dot-folders hold skills of their own; its other folders are part of it."""
    write("."), write(".claude/skills/pdf"), write("docs/pdf")
    assert verdicts(run, "pdf") == {".claude/skills/pdf/SKILL.md": "taken", "docs/pdf/SKILL.md": "nested"}


def test_a_deep_workspace_is_walked_with_bounds(run: Run, tmp_path: Path) -> None:
    """A hundred folders inside one another end the walk, not the program."""
    deep = tmp_path.joinpath(*["d"] * 100)
    deep.mkdir(parents=True)
    assert run("why", "pdf")[0] == 1
