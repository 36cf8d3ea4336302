"""The shelf: where skills are found, which one comes first, and which references can be loaded."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import (
    AmbiguousReferenceError,
    BaseSkill,
    DirectorySource,
    InvalidSkillError,
    MemorySource,
    PolicyError,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    Shelf,
    SkillDescriptor,
    SkillNotFoundError,
    SourceError,
    tool,
)
from skillshelf.adapters.openai import dispatch, openai_tools
from skillshelf.shelf.workspace_skills import WorkspaceSkills

Write = Callable[..., Path]


def shelf_of(path: Path, name: str = "project") -> Shelf:
    return Shelf([DirectorySource(path, name)])


def codes(shelf: Shelf) -> list[str]:
    return [note.code for note in shelf.catalog.diagnostics]


def test_skills_are_found_at_any_depth_and_in_dot_folders(tmp_path: Path, write: Write) -> None:
    """Every SKILL.md counts, and skill.md in a folder that has no other."""
    for folder in ("a", "deep/er/b", ".claude/skills/c", ".agents/skills/d", ".skillshelf/skills/e"):
        write(folder)
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "skill.md").write_text("---\nname: f\ndescription: Lower case.\n---\n")
    assert list(shelf_of(tmp_path).catalog) == ["a", "b", "c", "d", "e", "f"]


def test_a_file_named_almost_skill_md_is_reported(tmp_path: Path) -> None:
    """The file is reported, and becomes a skill once it is renamed."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/Skill.md").write_text("---\nname: a\ndescription: x\n---\n")
    shelf = shelf_of(tmp_path)
    assert [(note.code, note.path) for note in shelf.catalog.diagnostics] == [
        ("skill-file-case", str(tmp_path / "a/Skill.md"))
    ]
    (tmp_path / "a/Skill.md").rename(tmp_path / "a/SKILL.md")
    assert shelf.reload().added == ("a",)
    assert codes(shelf) == []


def test_dependency_folders_are_skipped(tmp_path: Path, write: Write) -> None:
    """Version control, virtual environments, caches and node_modules are not searched."""
    for folder in (".git/hooks/a", "node_modules/p/b", ".venv/lib/c", "__pycache__/d", "kept"):
        write(folder)
    assert list(shelf_of(tmp_path).catalog) == ["kept"]


def test_a_skill_may_be_named_like_a_skipped_folder(tmp_path: Path, write: Write) -> None:
    """A folder called env is skipped unless it holds a SKILL.md itself."""
    write("skills/env")
    write("venv/lib/inner")
    assert list(shelf_of(tmp_path).catalog) == ["env"]


def test_the_ignore_file_is_honoured_and_read_again(tmp_path: Path, write: Write) -> None:
    """Rules are gitignore's; a changed ignore file counts at the next reload."""
    write("drafts/a")
    write("b")
    (tmp_path / ".skillshelfignore").write_text("drafts/\n")
    shelf = shelf_of(tmp_path)
    assert list(shelf.catalog) == ["b"]
    (tmp_path / ".skillshelfignore").write_text("/b\n")
    assert shelf.reload().added == ("a",)
    assert list(shelf.catalog) == ["a"]


def test_a_skill_inside_a_skill_is_reported_not_loaded(tmp_path: Path, write: Write) -> None:
    """A nested SKILL.md belongs to the skill around it."""
    write("outer")
    write("outer/assets/template")
    shelf = shelf_of(tmp_path)
    assert list(shelf.catalog) == ["outer"]
    assert codes(shelf) == ["nested-skill"]


def test_a_workspace_that_is_a_skill_still_has_its_dot_folders(tmp_path: Path, write: Write) -> None:
    """A SKILL.md at the root does not hide .claude/skills."""
    (tmp_path / "SKILL.md").write_text("---\nname: root\ndescription: The whole.\n---\n")
    write(".claude/skills/inner")
    write("docs/nested")
    assert list(shelf_of(tmp_path).catalog) == ["inner", "root"]


def test_links_inside_the_root_are_followed_once(tmp_path: Path, write: Write) -> None:
    """A link from .claude/skills to .agents/skills gives one skill, at its real place; a loop ends."""
    real = write(".agents/skills/pdf")
    (tmp_path / ".claude/skills").mkdir(parents=True)
    (tmp_path / ".claude/skills/pdf").symlink_to("../../.agents/skills/pdf")
    (tmp_path / ".claude/loop").symlink_to("..")
    shelf = shelf_of(tmp_path)
    assert [skill.location for skill in shelf.catalog.values()] == [str(real)]
    assert codes(shelf) == []


def test_a_link_brings_in_what_the_walk_skips(tmp_path: Path, write: Write) -> None:
    """A link to a skill in node_modules shows that the user wants it."""
    write("node_modules/kit/skills/tables")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/tables").symlink_to("../node_modules/kit/skills/tables")
    assert list(shelf_of(tmp_path).catalog) == ["tables"]


def test_links_that_leave_the_root_are_reported(tmp_path: Path, write: Write) -> None:
    """Nothing outside is read, and the message names the link, not its target."""
    write("outside/secret")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/x").symlink_to(tmp_path / "outside/secret")
    (tmp_path / "inside/y").symlink_to("nowhere")
    shelf = shelf_of(tmp_path / "inside")
    assert list(shelf.catalog) == []
    assert [(note.code, note.path) for note in shelf.catalog.diagnostics] == [
        ("link-outside", str(tmp_path / "inside/x")),
        ("link-broken", str(tmp_path / "inside/y")),
    ]
    assert not any("outside/secret" in note.message + note.fix for note in shelf.catalog.diagnostics)


def test_limits_are_reported_when_they_are_hit(tmp_path: Path, write: Write) -> None:
    """Too many or too deeply nested folders are left out, and a diagnostic says so."""
    for number in range(5):
        write(f"s{number}")
    few = Shelf([DirectorySource(tmp_path, max_folders=3)])
    assert len(few.catalog) == 2
    assert codes(few) == ["too-many-folders"]
    few.reload()
    assert codes(few) == ["too-many-folders"]
    write("/".join("d" * 1 for _ in range(40)) + "/deep")
    assert codes(shelf_of(tmp_path)) == ["too-deep"]


def test_an_earlier_source_comes_first_and_the_other_can_be_reached(tmp_path: Path, write: Write) -> None:
    """Precedence is the order of the sources; the shadowed skill is reported and answers to name@source."""
    write("project/pdf", "The project's.")
    write("user/pdf", "The user's.")
    shelf = Shelf([DirectorySource(tmp_path / "project", "project"), DirectorySource(tmp_path / "user", "user")])
    assert shelf.catalog["pdf"].description == "The project's."
    assert shelf.catalog["pdf@user"].description == "The user's."
    assert [skill.source for skill in shelf.catalog.shadowed] == ["user"]
    assert codes(shelf) == ["shadowed"]
    (tmp_path / "project/pdf/SKILL.md").unlink()
    assert shelf.reload().changed == ("pdf",)
    assert shelf.catalog["pdf"].description == "The user's."
    assert codes(shelf) == []


def test_namesakes_in_one_source_are_ordered_by_their_folder(tmp_path: Path, write: Write) -> None:
    """The less deep folder comes first; an exact copy is a note, another text a warning."""
    write("pdf", "Same.")
    write("plugins/pdf", "Same.")
    write("zoo/pdf", "Different words.")
    shelf = shelf_of(tmp_path)
    assert shelf.catalog["pdf"].location == str(tmp_path / "pdf/SKILL.md")
    assert shelf.catalog["pdf@project:zoo/pdf"].description == "Different words."
    assert [(note.severity, note.code) for note in shelf.catalog.diagnostics] == [
        ("info", "shadowed"),
        ("warning", "shadowed"),
    ]


def test_every_namesake_can_be_reached(tmp_path: Path, write: Write) -> None:
    """Two sources of one name hold the same folder: the second answers to its place."""
    first, second = write("one/pdf", "First."), write("two/pdf", "Second.")
    shelf = Shelf([DirectorySource(tmp_path / "one", "user"), DirectorySource(tmp_path / "two", "user")])
    assert shelf.catalog["pdf@user"].location == str(first)
    assert shelf.catalog[f"pdf@{second.parent}"].location == str(second)
    assert f"reach it as 'pdf@{second.parent}'" in shelf.catalog.diagnostics[0].message


def test_open_takes_project_then_user(tmp_path: Path, write: Write) -> None:
    """A workspace's shelf has the two sources in that order, and code skills of the caller before them."""
    write("ws/from-home", "Mine.")
    home = Path(os.environ["HOME"]) / ".claude/skills/from-home"
    home.mkdir(parents=True)
    (home / "SKILL.md").write_text("---\nname: from-home\ndescription: The user's.\n---\n")
    shelf = Shelf.open(tmp_path / "ws", skills=[Greeter()])
    assert {name: skill.source for name, skill in shelf.catalog.items()} == {
        "from-home": "project",
        "greeter": "app",
    }
    assert shelf.catalog["from-home@user"].description == "The user's."


def test_an_empty_folder_has_no_skills(tmp_path: Path) -> None:
    """The skill about writing skills is for the chat and the command line: every call of a program would pay for it."""
    shelf = Shelf.open(tmp_path)
    assert (list(shelf.catalog), shelf.listing().text) == ([], "")
    assert list(WorkspaceSkills(tmp_path).shelf.catalog) == ["skill-authoring"]


def test_a_file_is_not_a_folder_of_skills(tmp_path: Path, write: Write) -> None:
    """A path to a file is refused at once; a missing folder is an empty source, since it may appear later."""
    with pytest.raises(SourceError, match="Not a directory"):
        DirectorySource(write("a"))
    shelf = shelf_of(tmp_path / "later")
    assert codes(shelf) == ["root-missing"]
    write("later/b")
    assert shelf.reload().added == ("b",)
    assert codes(shelf) == []


def test_references_are_the_files_that_the_folder_offers(tmp_path: Path, write: Write) -> None:
    """Every file but eval cases. The main ones, below the three folders or named in any case, come first."""
    write(
        "kit",
        body="See [forms](forms.md), `templates/a.md` and ./notes.txt.\n",
        references__guide_md="x",
        references__deep__er_md="x",
        scripts__run_py="x",
        assets__logo_md="x",
        FORMS_md="x",
        templates__a_md="x",
        templates__b_md="x",
        secret_md="x",
        __hidden_md="x",
        evals__cases_yaml="x",
    )
    kit = shelf_of(tmp_path).catalog["kit"]
    assert kit.references == (*kit.main_references, "secret.md", "templates/b.md")
    assert kit.more_references == 2
    assert kit.main_references == (
        "FORMS.md",
        "assets/logo.md",
        "references/deep/er.md",
        "references/guide.md",
        "scripts/run.py",
        "templates/a.md",
    )


def test_a_list_in_the_frontmatter_is_the_allowlist(tmp_path: Path, write: Write) -> None:
    """Only listed files can be loaded; a path that leaves the folder is refused and reported."""
    path = write("kit", references__a_md="A", references__b_md="B")
    path.write_text(
        "---\nname: kit\ndescription: d\n"
        "references: [references/a.md, references/gone.md, ../x/SKILL.md]\n---\nSee a.md.\n"
    )
    shelf = shelf_of(tmp_path)
    assert shelf.catalog["kit"].references == ("references/a.md", "references/gone.md")
    assert codes(shelf) == ["reference-refused"]
    with shelf.turn() as turn:
        assert turn.load("kit", "a.md").text == "A"
        with pytest.raises(ReferenceNotAllowedError):
            turn.load("kit", "references/b.md")
        with pytest.raises(ReferenceNotFoundError) as gone:
            turn.load("kit", "references/gone.md")
    assert gone.value.listed == ("references/a.md", "references/gone.md")


def test_references_answer_to_path_and_unambiguous_name(tmp_path: Path, write: Write) -> None:
    """A bare name that two references share is an error that lists both."""
    write("kit", references__a_md="A", references__x__same_md="1", references__y__same_md="2")
    with shelf_of(tmp_path).turn() as turn:
        assert turn.load("kit", "references/a.md").text == turn.load("kit", "a.md").text == "A"
        assert turn.load("kit", "x/same.md").text == "1"
        with pytest.raises(AmbiguousReferenceError) as error:
            turn.load("kit", "same.md")
    assert error.value.candidates == ("references/x/same.md", "references/y/same.md")
    assert "'references/x/same.md', 'references/y/same.md'" in str(error.value)


def test_a_file_that_appears_later_waits_for_the_next_reload(tmp_path: Path, write: Write) -> None:
    """The allowlist is made when the folder is scanned."""
    write("kit", references__a_md="A")
    shelf = shelf_of(tmp_path)
    with shelf.turn() as turn:
        (tmp_path / "kit/references/b.md").write_text("B")
        with pytest.raises(ReferenceNotAllowedError, match=r"Listed references: 'references/a\.md'"):
            turn.load("kit", "b.md")
    with shelf.turn() as turn:
        assert turn.load("kit", "b.md").text == "B"


def test_an_unknown_skill_is_answered_with_the_closest(tmp_path: Path, write: Write) -> None:
    """The message names skills to try instead."""
    write("pdf-forms")
    shelf = shelf_of(tmp_path)
    with pytest.raises(SkillNotFoundError) as error:
        shelf.catalog["pdf-form"]
    assert error.value.closest == ("pdf-forms",)
    assert str(error.value) == "There is no skill named 'pdf-form'. Did you mean 'pdf-forms'?"
    assert "nothing" not in shelf.catalog
    assert shelf.catalog.get("nothing") is None


def test_a_descriptor_is_frozen_and_hashable() -> None:
    """A descriptor can be a key; a list or a bare string for references is refused."""
    one = SkillDescriptor("a", "b", references=("c.md",))
    assert {one: 1}[SkillDescriptor("a", "b", references=("c.md",))] == 1
    with pytest.raises(AttributeError):
        one.name = "x"  # type: ignore[misc]
    for references in (["c.md"], "c.md", (1,)):
        with pytest.raises(InvalidSkillError, match="tuple"):
            SkillDescriptor("a", "b", references=references)  # type: ignore[arg-type]


class Greeter(BaseSkill):
    name = "greeter"
    description = "Greets."
    instructions = "Call `greet`."

    @tool
    def greet(self, who: str) -> str:
        """Greet somebody."""
        return f"Hello {who}"


class Runner(BaseSkill):
    name = "runner"
    description = "Runs."
    category = "raw"
    instructions = "Call `run`, or `wipe` to remove everything."

    @tool
    def run(self, command: str) -> str:
        """Run a command."""
        return command

    @tool
    def wipe(self) -> None:
        """Remove everything."""


def test_code_skills_join_the_shelf_with_their_tools() -> None:
    """One descriptor, one way to load, and the tools under their permissions."""
    shelf = Shelf.open(skills=[Greeter(), Runner().with_policy({"run": "ask"})])
    assert shelf.catalog["greeter"].tools == ("greet",)
    assert {one.name: one.permission for one in shelf.tools()} == {"greet": "safe", "run": "ask"}
    with shelf.turn() as turn:
        assert turn.load("greeter").text == "Call `greet`."


def test_a_blocked_tool_is_not_offered_and_the_instructions_say_so() -> None:
    """A model that calls it all the same learns that the policy blocks it."""
    shelf = Shelf.open(skills=[Runner().with_policy({"run": "ask"})])
    assert [one.name for one in shelf.tools()] == ["run"]
    assert [one.name for one in shelf.blocked_tools()] == ["wipe"]
    assert shelf.permissions_of("runner") == {"run": "ask", "wipe": "blocked"}
    names = [definition["function"]["name"] for definition in openai_tools(shelf, "chat")]
    assert "run" in names
    assert "wipe" not in names
    assert shelf.instructions("runner").startswith("Note: these tools are not available here: `wipe`.")
    assert "is blocked by the policy of its skill" in dispatch(shelf, "wipe", {})


def test_a_skill_without_blocked_tools_has_no_note() -> None:
    """Its instructions are as the author wrote them."""
    shelf = Shelf.open(skills=[Greeter()])
    assert shelf.instructions("greeter") == "Call `greet`."
    assert shelf.blocked_tools() == ()


def test_a_raw_skill_without_a_policy_is_refused() -> None:
    """Creating the shelf fails."""
    with pytest.raises(PolicyError, match="with_policy"):
        Shelf.open(skills=[Runner()])


def test_memory_skills_change_with_a_reload() -> None:
    """The next reload picks up put and remove, as it does for files."""
    source = MemorySource({"a": "---\nname: a\ndescription: One.\n---\nDo it.\n"})
    shelf = Shelf([source])
    source.put("b", {"SKILL.md": "---\nname: b\ndescription: Two.\n---\n", "references/x.md": "X"})
    source.remove("a")
    delta = shelf.reload()
    assert (delta.added, delta.removed) == (("b",), ("a",))
    with shelf.turn() as turn:
        assert turn.load("b", "x.md").text == "X"
