"""NAMES: every collision of names has one winner, is reported, and ends with its cause."""

import ast
import re
import shutil
from pathlib import Path

import pytest

from skillshelf import DirectorySource, MemorySource, Shelf
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from threats.workspace import GOOD, PLAIN, Workspace, assert_standard, collect_output, write_skill

REACH = re.compile(r"reach it as (.+)$")


def assert_reachable(shelf: Shelf) -> None:
    """Check that every shadowed skill is reported once, under a name that leads to it."""
    notes = [note for note in shelf.catalog.diagnostics if note.code == "shadowed"]
    assert sorted(note.path for note in notes) == sorted(skill.location for skill in shelf.catalog.shadowed)
    for note in notes:
        assert note.fix
        match = REACH.search(note.message)
        assert match, note.message
        assert shelf.catalog[ast.literal_eval(match[1])].location == note.path


def test_a_folder_that_claims_anothers_name_is_reported(workspace: Workspace) -> None:
    """N01: of two folders in one source with the same name, one gets the name and the other a longer one."""
    workspace.raw("impostor", PLAIN.format(name=GOOD, description="Not so good.", body="Impostor.\n"))
    shelf = workspace.shelf()
    assert shelf.turn().load(GOOD).text == "Do it.\n"
    assert [skill.description for skill in shelf.catalog.shadowed] == ["Not so good."]
    assert_reachable(shelf)
    assert shelf.turn().load(f"{GOOD}@project:impostor").text == "Impostor.\n"


def test_the_less_deep_folder_wins(workspace: Workspace) -> None:
    """N02: a copy deeper in the tree never takes the name of the skill above it, whatever its folder is called."""
    workspace.skill("a/a/a/good", body="Deep.\n")
    workspace.skill(".agents/skills/good", body="Deep too.\n")
    shelf = workspace.shelf()
    assert shelf.turn().load(GOOD).text == "Do it.\n"
    assert len(shelf.catalog.shadowed) == 2
    assert_reachable(shelf)


def test_a_skill_inside_a_skill_is_not_a_second_one(workspace: Workspace) -> None:
    """N03: a nested SKILL.md is reported and answers to no name, not even through a reference folder."""
    for below in ("inner", "references/inner", "scripts/a/b"):
        workspace.skill(f"outer/{below}", body="Nested.\n")
    workspace.skill("outer")
    shelf = workspace.shelf()
    assert list(shelf.catalog) == [GOOD, "outer"]
    nested = [("nested-skill", f"outer/{below}/SKILL.md") for below in ("inner", "references/inner", "scripts/a/b")]
    assert_standard(workspace, shelf, nested)


@pytest.mark.parametrize(
    "name",
    ["reload", "list", "help", "new", "__proto__", "constructor", "con", "nul", "none", "true", "0", "end", "skill"],
)
def test_reserved_words_of_other_systems_are_ordinary_names(name: str, workspace: Workspace) -> None:
    """N04: commands, device names and reserved words load, list and are found under their own name."""
    workspace.skill(name, description="Does something reserved.", body="Reserved.\n")
    shelf = workspace.shelf()
    assert shelf.turn().load(name).text == "Reserved.\n"
    assert shelf.search("reserved")[0].descriptor.name == name
    assert set(shelf.catalog) == {GOOD, name}
    assert_standard(workspace, shelf, [])


@pytest.mark.parametrize("line", ["name:", "name: ''", "name: '  '", "name: []", "name: {}", "# no name"])
def test_an_empty_name_is_replaced_by_the_folders(line: str, workspace: Workspace) -> None:
    """N05: the skill also gets a diagnostic."""
    workspace.raw("bad", f"---\n{line}\ndescription: d\n---\nDo it.\n")
    shelf = workspace.shelf()
    assert list(shelf.catalog) == ["bad", GOOD]
    (note,) = shelf.catalog.diagnostics
    assert note.code in ("name-missing", "name-refused")
    assert note.fix == "write `name: bad`"


def test_the_file_name_in_capitals_wins(workspace: Workspace) -> None:
    """N06: beside SKILL.md its variants are reported. Alone, skill.md is read, and SKILL.MD is only reported."""
    both = workspace.skill("both", body="Capitals.\n")
    for twin in ("skill.md", "SKILL.MD", "Skill.md"):
        (both / twin).write_text(PLAIN.format(name="evil", description="d", body="Evil.\n"))
    small = workspace.root / "small"
    small.mkdir()
    (small / "skill.md").write_text(PLAIN.format(name="small", description="d", body="Small.\n"))
    shouted = workspace.root / "shouted"
    shouted.mkdir()
    (shouted / "SKILL.MD").write_text(PLAIN.format(name="shouted", description="d", body="Shouted.\n"))
    shelf = workspace.shelf()
    assert list(shelf.catalog) == ["both", GOOD, "small"]
    turn = shelf.turn()
    assert (turn.load("both").text, turn.load("small").text) == ("Capitals.\n", "Small.\n")
    twins = [("skill-file-twin", f"both/{twin}") for twin in ("SKILL.MD", "Skill.md", "skill.md")]
    assert_standard(workspace, shelf, [*twins, ("skill-file-case", "shouted/SKILL.MD")])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_project_comes_before_user_before_bundled(home: Path, workspace: Workspace) -> None:
    """N07: the project's skill gets a shared name, and each of the others answers to name@source."""
    workspace.skill("skill-authoring", body="The project's.\n")
    write_skill(home / ".agents/skills/skill-authoring", "d", "The user's.\n", {})
    shelf = WorkspaceSkills(workspace.root).shelf
    turn = shelf.turn()
    assert turn.load("skill-authoring").text == "The project's.\n"
    assert turn.load("skill-authoring@project").text == "The project's.\n"
    assert turn.load("skill-authoring@user").text == "The user's.\n"
    assert shelf.catalog["skill-authoring@bundled"].source == "bundled"
    assert [skill.source for skill in shelf.catalog.shadowed] == ["user", "bundled"]
    assert_reachable(shelf)


def test_removing_the_winner_restores_the_next(home: Path, workspace: Workspace) -> None:
    """N09: one turn after a shadowing skill is gone, the one behind it answers, and the report is gone."""
    mine = workspace.skill("twice", body="The project's.\n")
    theirs = write_skill(home / ".claude/skills/twice", "d", "The user's.\n", {})
    shelf = Shelf.open(workspace.root)
    assert shelf.turn().load("twice").text == "The project's.\n"
    shutil.rmtree(mine)
    assert shelf.turn().load("twice").text == "The user's.\n"
    assert_reachable(shelf)
    assert not shelf.catalog.shadowed
    workspace.skill("twice", body="Back again.\n")
    assert shelf.turn().load("twice").text == "Back again.\n"
    shutil.rmtree(theirs)
    assert shelf.turn().load("twice").text == "Back again.\n"
    assert not shelf.catalog.shadowed


def test_a_broken_skill_does_not_give_up_its_name(home: Path, workspace: Workspace) -> None:
    """N07, K08: while the project's file is half written, its last good text answers, not the user's skill."""
    mine = workspace.skill("twice", body="The project's.\n")
    write_skill(home / ".claude/skills/twice", "d", "The user's.\n", {})
    shelf = Shelf.open(workspace.root)
    (mine / "SKILL.md").write_text("")
    assert shelf.turn().load("twice").text == "The project's.\n"


def test_a_thousand_skills_of_one_name_are_all_reachable(tmp_path: Path) -> None:
    """N10: one gets the name; each of the others answers to the name in its diagnostic."""
    for number in range(1000):
        write_skill(tmp_path / f"{number:04}/same", f"Number {number}.", f"{number}\n", {})
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])
    assert list(shelf.catalog) == ["same"]
    assert len(shelf.catalog.shadowed) == 999
    assert shelf.turn().load("same").text == "0\n"
    assert_reachable(shelf)
    assert len(shelf.listing("full").text) < 2000


def test_every_report_of_a_collision_leads_to_its_skill(tmp_path: Path) -> None:
    """N01, N07, N10: this covers several sources, some with the same name, and folder names with @ and :."""
    roots = [("project", "p"), ("user", "u1"), ("user", "u2"), ("", "bare")]
    for _, root in roots:
        for key in ("same", "a@b/same", "x:y/same", "deep/er/same", "same@user/same", "other"):
            folder = write_skill(tmp_path / root / key, f"In {root}/{key}.", f"{root}/{key}\n", {})
            (folder / "SKILL.md").write_text(PLAIN.format(name="same", description=f"In {root}/{key}.", body=key))
    shelf = Shelf([DirectorySource(tmp_path / root, name, cache=False) for name, root in roots])
    assert len(shelf.catalog.shadowed) == 23
    assert_reachable(shelf)


def test_a_name_cannot_be_taken_by_spelling_a_qualified_one(workspace: Workspace) -> None:
    """N07: a skill cannot be called `good@user`, because names must not contain @."""
    workspace.raw("sly", PLAIN.format(name=f"{GOOD}@user", description="Sly.", body="Sly.\n"))
    memory = MemorySource({GOOD: PLAIN.format(name=GOOD, description="User's.", body="User's.\n")}, name="user")
    shelf = Shelf([DirectorySource(workspace.root, "project", cache=False), memory])
    assert shelf.turn().load(f"{GOOD}@user").text == "User's.\n"
    assert "sly" in shelf.catalog
    assert "name-refused" in collect_output(shelf)
