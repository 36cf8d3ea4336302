"""Test `skillshelf why`: every reason that a skill is, or is not, on the shelf."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from inline_snapshot import snapshot

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]


def verdicts(run: Run, name: str) -> dict[str, str]:
    """Return the verdict on each place, by its relative path."""
    read = json.loads(run("why", "--json", name)[1])
    return {os.path.relpath(finding["path"]): finding["status"] for finding in read["occurrences"]}


def reasons(run: Run, name: str) -> str:
    return "\n".join(run("why", name)[1].splitlines()[1:])


def test_why_describes_a_skill_on_the_shelf(run: Run, write: Write) -> None:
    """It names the place, the source, and the part that the model sees."""
    write("skills/pdf")
    assert run("why", "pdf") == snapshot(
        (
            0,
            """\
pdf is on the shelf.

taken: skills/pdf/SKILL.md (project)
  - the listing shows its instructions
  - it is waiting for your review, and can't be used until then \
(`skillshelf trust` shows it and asks)

searched: . (the folder you are in, which is not part of a repository)
""",
            "",
        )
    )


def test_why_suggests_names_for_an_unknown_skill(run: Run, write: Write) -> None:
    """The exit code is 1."""
    write("skills/pdf")
    assert run("-C", ".", "why", "pfd") == snapshot(
        (
            1,
            """\
pfd is not on the shelf.

missing: there is no skill named 'pfd'
  fix: did you mean 'pdf'?

searched: . (the folder that was given)
""",
            "",
        )
    )
    assert run("why", "xylophone")[0] == 1


def test_why_gives_a_reason_for_each_place_of_a_name(run: Run, write: Write, tmp_path: Path) -> None:
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
    for expected in (
        "reach it as 'pdf@project:a/b/c/pdf'",
        "reach it as 'pdf@user'",
        "inside the folder of another skill, 'deploy' (skills/deploy)",
        "never looks into folders named 'node_modules'",
        "line 2 of .skillshelfignore ignores it: vendor/",
        "link-outside",
    ):
        assert expected in text


def test_why_takes_a_qualified_name(run: Run, write: Write) -> None:
    """It answers for the name, whichever of the skills is meant."""
    write("a/pdf"), write("a/b/pdf")
    assert run("why", "pdf@project:a/b/pdf")[:2] == run("why", "pdf")[:2]


def test_why_shows_a_folder_without_its_file(run: Run, write: Write, tmp_path: Path) -> None:
    """It says what the file must be called."""
    write("skills/pdf").rename(tmp_path / "skills/pdf/Skill.md")
    (tmp_path / "skills/word").mkdir()
    assert "has 'Skill.md', but the file must be called SKILL.md" in reasons(run, "pdf")
    assert "the folder has no SKILL.md" in reasons(run, "word")


def test_why_names_a_code_skill_that_is_not_on_the_shelf(run: Run, tmp_path: Path) -> None:
    """It has no SKILL.md to miss, and the skill of that name that comes with skillshelf is another one."""
    (tmp_path / "src/ours/agentic_rag").mkdir(parents=True)
    (tmp_path / "src/ours/agentic_rag/skill.py").write_text("raise SystemExit('imported')\n")
    assert verdicts(run, "agentic-rag") == {"src/ours/agentic_rag/skill.py": "code skill"}
    text = reasons(run, "agentic-rag")
    assert "with --package" in text
    assert "SKILL.md" not in text
    assert "not-attached" not in text


def test_why_reports_a_skill_whose_name_differs_from_its_folder(run: Run, write: Write) -> None:
    path = write("skills/pdf")
    path.write_text(path.read_text().replace("name: pdf", "name: paper"))
    assert "its SKILL.md names it 'paper'" in reasons(run, "pdf")
    assert verdicts(run, "paper") == {"skills/pdf/SKILL.md": "taken"}


def test_why_finds_a_skill_by_its_frontmatter(run: Run, write: Write) -> None:
    """The file's own name counts if the folder has another."""
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
def test_why_gives_the_diagnostic_of_a_refused_skill(run: Run, write: Write, text: str, code: str) -> None:
    write("skills/pdf").write_text(text)
    assert verdicts(run, "pdf") == {"skills/pdf/SKILL.md": "refused"}
    assert f"- {code}: " in reasons(run, "pdf")


def test_why_lists_the_repairs_of_a_skill(run: Run, write: Write) -> None:
    """The skill is on the shelf."""
    write("skills/pdf", "Forms: fill them in")
    assert "line 3, yaml-repaired: " in reasons(run, "pdf")


def test_why_reports_a_skill_hidden_from_the_model(run: Run, write: Write) -> None:
    """Manual disclosure hides it."""
    path = write("skills/pdf")
    path.write_text(path.read_text().replace("description", "disclosure: manual\ndescription"))
    assert "its disclosure is manual: the model doesn't see it" in reasons(run, "pdf")


def test_why_reports_a_skill_too_long_for_full_disclosure(run: Run, write: Write) -> None:
    """Its author requested full disclosure, so the answer gives the reason."""
    path = write("skills/pdf", body="many words here " * 4000)
    path.write_text(path.read_text().replace("description", "disclosure: always\ndescription"))
    assert "should be shown because its disclosure is `always`, but don't fit into the budget of 4,000" in reasons(
        run, "pdf"
    )


def test_why_reports_the_effect_of_the_budget(run: Run, write: Write) -> None:
    """The budget shortens descriptions first, then leaves skills out."""
    for number in range(60):
        write(f"skill-{number}", "Explains at length what it is for, and when to use it. " * 15)
    text = reasons(run, "skill-7")
    assert "the budget of 4,000 tokens has room for the beginning of its description only" in text
    for number in range(60, 1500):
        write(f"skill-{number}")
    assert "the listing leaves it out: the budget of 4,000 tokens has no room for its name" in reasons(run, "skill-999")


def test_why_follows_the_settings(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's budget and form of the listing decide what the model sees of a skill, not the defaults."""
    for number in range(20):
        write(f"skill-{number}", "Explains at length what it is for, and when to use it. " * 3)
    assert "the listing shows its instructions" in reasons(run, "skill-7").splitlines()[2]
    monkeypatch.setenv("SKILLSHELF_BUDGET", "100")
    assert "the listing leaves it out: the budget of 100 tokens" in reasons(run, "skill-7")
    monkeypatch.setenv("SKILLSHELF_DISCLOSURE", "catalog")
    assert "the listing shows its description" in reasons(run, "skill-7")
    monkeypatch.setenv("SKILLSHELF_DISCLOSURE", "full")
    assert "the listing shows its instructions" in reasons(run, "skill-7")


def test_why_does_not_follow_a_link_out_of_the_workspace(
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


def test_why_handles_a_workspace_that_is_itself_a_skill(run: Run, write: Write, tmp_path: Path) -> None:
    """Its dot-folders hold skills of their own; its other folders belong to the skill."""
    write("."), write(".claude/skills/pdf"), write("docs/pdf")
    assert verdicts(run, "pdf") == {".claude/skills/pdf/SKILL.md": "taken", "docs/pdf/SKILL.md": "nested"}


def test_why_limits_its_walk_of_a_deep_workspace(run: Run, tmp_path: Path) -> None:
    """A hundred nested folders end the walk, not the program."""
    deep = tmp_path.joinpath(*["d"] * 100)
    deep.mkdir(parents=True)
    assert run("why", "pdf")[0] == 1
