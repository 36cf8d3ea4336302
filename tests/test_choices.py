"""The user's choices for single skills: in full, by name, hidden from the model, or off."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chats import chat, script
from skillshelf import BaseSkill, MemorySource, Shelf, SkillNotFoundError, tool
from skillshelf.errors import SettingsError
from skillshelf.explain import explain_unavailable
from skillshelf.listing import Entry, Shortened, parse
from skillshelf.settings import CHOICES, choices_file, load_choices, save_choice
from skillshelf.shelf import SkillDiscoverySkill
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.sources import ObjectSource

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]


def text(name: str, body: str = "Do it.\n", extra: str = "") -> str:
    return f"---\nname: {name}\ndescription: About {name}.\n{extra}---\n{body}"


def open_shelf(choices: dict[str, Any] | None = None) -> Shelf:
    return Shelf([MemorySource({name: text(name) for name in ("a", "b", "c")}, name="project")], choices=choices)


# -- on the shelf -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["auto", "catalog", "full"])
def test_each_choice_counts_in_every_form_of_the_listing(form: Any) -> None:
    """The user's choice for one skill is more specific than the form for all of them."""
    files = {name: text(name) for name in ("full", "name", "manual", "off", "plain")}
    shelf = Shelf([MemorySource(files)], choices={"full": "full", "name": "name", "manual": "manual", "off": "off"})
    listing = shelf.listing(form)
    entries = {entry.name: entry for entry in parse(listing.text)}
    assert set(entries) == {"full", "name", "plain"}
    assert entries["full"].instructions == "Do it.\n"
    assert entries["name"] == Entry("name", "")
    assert (entries["plain"].instructions is None) == (form == "catalog")
    assert listing.shortened == ()


def test_a_skill_that_is_off_is_nowhere_to_be_found() -> None:
    """Not in the catalog, the search, the listing or the tools; it cannot be loaded."""

    class Runner(BaseSkill):
        name = "runner"
        description = "Runs things."

        @tool
        def run(self) -> str:
            """Run it."""
            return ""

    shelf = Shelf([ObjectSource([Runner()]), MemorySource({"a": text("a")})], choices={"runner": "off", "a": "off"})
    assert (list(shelf.catalog), shelf.tools(), shelf.search("about runs"), shelf.listing().text) == ([], (), [], "")
    assert [candidate.found.name for candidate in shelf.chosen.off] == ["a", "runner"]
    with pytest.raises(SkillNotFoundError):
        shelf.turn().load("a", by="user")


def test_the_model_learns_that_the_user_turned_a_skill_off() -> None:
    """It goes on without the skill, instead of looking for another spelling of the name."""
    shelf = open_shelf({"a": "off"})
    with pytest.raises(SkillNotFoundError) as error:
        SkillDiscoverySkill(shelf).load_skill_instructions("a")
    assert str(error.value) == "The skill 'a' isn't available: the user turned it off. Go on without it."


def test_a_manual_skill_is_for_the_user_alone() -> None:
    """The model can neither find nor load it; the user invokes it."""
    shelf = open_shelf({"a": "manual"})
    assert "a" not in [match.descriptor.name for match in shelf.search("about")]
    with shelf.turn() as turn:
        with pytest.raises(SkillNotFoundError):
            SkillDiscoverySkill(shelf).load_skill_instructions("a")
        assert turn.load("a", by="user").text == "Do it.\n"


def test_the_user_overrules_the_author() -> None:
    """A skill that its author hides, or always shows, is as the user wants it."""
    files = {"shy": text("shy", extra="disclosure: manual\n"), "loud": text("loud", extra="disclosure: always\n")}
    shelf = Shelf([MemorySource(files)], choices={"shy": "full", "loud": "name"})
    listing = shelf.listing()
    assert (listing.full, listing.entries[-1]) == (("shy",), Entry("loud", ""))


def test_a_skill_set_to_full_comes_before_always_skills() -> None:
    """If one of them fits, it is the user's."""
    body = "Many words to follow. " * 30
    files = {"always": text("always", body, "disclosure: always\n"), "mine": text("mine", body)}
    both = Shelf([MemorySource(files)], choices={"mine": "full"})
    budget = both.listing("full").tokens - 1
    listing = both.listing(budget=budget)
    assert (listing.full, listing.shortened) == (("mine",), (Shortened("always", "instructions"),))


def test_a_choice_for_one_source_leaves_the_other_skill_of_the_name() -> None:
    """`name@source` counts before the name; what it switches off no longer shadows the other."""
    sources = [MemorySource({"a": text("a")}, name="project"), MemorySource({"a": text("a", "Mine.\n")}, name="user")]
    shelf = Shelf(sources, choices={"a@project": "off"})
    assert shelf.catalog["a"].source == "user"
    shelf.choose({"a": "off", "a@user": "full"})
    assert (shelf.catalog["a"].source, shelf.listing().full) == ("user", ("a",))
    shelf.choose({"a": "off"})
    assert (len(shelf.catalog), len(shelf.chosen.off)) == (0, 2)


def test_choices_can_change_on_an_open_shelf_and_survive_a_reload() -> None:
    """Each change is a delta, and without choices the shelf is as its sources are."""
    source = MemorySource({"a": text("a")})
    shelf = Shelf([source])
    before = shelf.catalog["a"]
    assert shelf.choose({"a": "off"}).removed == ("a",)
    source.put("a", text("a", "New.\n"))
    assert not shelf.reload()
    assert [candidate.descriptor.size for candidate in shelf.chosen.off] == [len("New.\n")]
    assert shelf.choose({"a": "manual"}).added == ("a",)
    assert shelf.choose({}).changed == ("a",)
    source.put("a", text("a"))
    shelf.reload()
    assert shelf.catalog["a"] == before
    source.remove("a")
    shelf.choose({"a": "off"})
    shelf.reload()
    assert shelf.chosen.off == ()


choice_tables = st.dictionaries(
    st.sampled_from(["a", "b", "c", "a@project", "b@project", "gone"]), st.sampled_from(CHOICES)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(choice_tables, min_size=1, max_size=4))
def test_a_shelf_after_any_changes_is_like_one_opened_with_the_last_choices(steps: list[Any]) -> None:
    """The way does not matter, only the choices in force."""
    shelf = open_shelf()
    for choices in steps:
        shelf.choose(choices)
    fresh = open_shelf(steps[-1])
    assert dict(shelf.catalog) == dict(fresh.catalog)
    assert shelf.listing().text == fresh.listing().text
    assert [candidate.found.name for candidate in shelf.chosen.off] == [
        candidate.found.name for candidate in fresh.chosen.off
    ]


# -- the file ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = choices_file()
    assert path is not None
    return Path(path)


def test_a_choice_is_stored_and_removed(file: Path) -> None:
    """Without a file there are no choices; the file is readable to its user alone."""
    assert load_choices() == {}
    assert save_choice("pdf", "full") == {"pdf": "full"}
    save_choice("sql@user", "off")
    assert load_choices() == {"pdf": "full", "sql@user": "off"}
    assert file.stat().st_mode & 0o777 == 0o600
    save_choice("pdf", None)
    assert load_choices() == {"sql@user": "off"}


def test_a_file_that_was_edited_by_hand_keeps_its_comments_and_order(file: Path) -> None:
    """Only the line of the choice changes."""
    file.parent.mkdir(parents=True)
    file.write_text('# mine\nzebra = "off"  # too long\n\n"pdf" = "full"\napple = "name"')
    save_choice("pdf", "manual")
    assert file.read_text() == '# mine\nzebra = "off"  # too long\n\napple = "name"\npdf = "manual"\n'
    save_choice("zebra", None)
    assert file.read_text() == '# mine\n\napple = "name"\npdf = "manual"\n'


def test_a_choice_over_several_lines_can_be_changed(file: Path) -> None:
    """The meaning counts more than the layout."""
    file.parent.mkdir(parents=True)
    file.write_text('pdf = """\\\n  full"""\nsql = "off"\n')
    save_choice("pdf", None)
    assert load_choices() == {"sql": "off"}


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from(CHOICES), max_size=5)
)
def test_any_name_comes_back(tmp_path_factory: pytest.TempPathFactory, choices: dict[str, Any]) -> None:
    """Names of any characters are written so that TOML reads them back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        for name, choice in choices.items():
            save_choice(name, choice)
        assert load_choices() == choices


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            'pdf = "full"\nsql = "sometimes"\n',
            "line 2: 'sql' is 'sometimes'; it must be one of full, name, manual, off.",
        ),
        ('\n[pdf]\nchoice = "full"\n', "line 2: 'pdf' is {'choice': 'full'}; it must be one of"),
        ("pdf = full\n", "line 1, column 7: not TOML"),
        ("pdf = 1\n", "line 1: 'pdf' is 1; it must be one of"),
    ],
)
def test_a_wrong_file_is_reported_with_the_line_and_left_alone(file: Path, content: str, message: str) -> None:
    """The message shows how a choice is written, and nothing overwrites the mistake."""
    file.parent.mkdir(parents=True)
    file.write_text(content)
    for act in (load_choices, lambda: save_choice("a", "off")):
        with pytest.raises(SettingsError) as caught:
            act()
        assert message in str(caught.value)
        assert 'A choice looks like this: pdf-forms = "full"' in str(caught.value)
    assert file.read_text() == content


def test_a_link_to_the_file_stays_a_link(file: Path, tmp_path: Path) -> None:
    """Dotfiles are often kept in another folder and linked."""
    file.parent.mkdir(parents=True)
    (tmp_path / "dotfiles.toml").write_text('pdf = "off"\n')
    file.symlink_to(tmp_path / "dotfiles.toml")
    save_choice("sql", "name")
    assert file.is_symlink()
    assert (tmp_path / "dotfiles.toml").read_text() == 'pdf = "off"\nsql = "name"\n'


def test_a_folder_that_cannot_be_written_is_a_typed_error(file: Path) -> None:
    """The message names the file."""
    file.parent.parent.mkdir(parents=True)
    file.parent.write_text("not a folder")
    with pytest.raises(SettingsError, match=r"skills\.toml cannot be written"):
        save_choice("a", "off")


# -- on the command line and in the chat ------------------------------------------------------------------------------


def test_set_is_obeyed_by_every_command(file: Path, run: Run, write: Write) -> None:
    """`list` and `why` name the choice; the skill is gone from search and the listing."""
    write("pdf", "Fill in forms.")
    write("sql", "Review queries.")
    assert run("set", "sql", "off") == (0, "sql is set to off: it isn't on the shelf.\n", "")
    run("set", "pdf", "name")
    code, out, _ = run("list")
    assert [line.split()[:2] for line in out.splitlines()[1:3]] == [["pdf", "set"], ["skill-authoring", "bundled"]]
    assert re.search(r"^sql +off +project", out, re.M)
    assert {skill["name"]: skill["marks"] for skill in json.loads(run("list", "--json")[1])["skills"]}["sql"] == ["off"]
    code, out, _ = run("why", "sql")
    assert (code, out.splitlines()[0]) == (1, "sql is off.")
    assert "you turned it off (`skillshelf set sql auto` turns it on)" in out
    assert "as you chose (`skillshelf set pdf auto` shows its description)" in run("why", "pdf")[1]
    assert "<skill_names>pdf</skill_names>" in run("show", "--prompt")[1]
    assert "sql" not in run("search", "review queries")[1]
    hidden = (
        1,
        "",
        "The skill 'sql' isn't available: you turned it off. Fix: `skillshelf set sql auto` turns it on.\n",
    )
    assert run("show", "sql") == hidden
    assert run("set", "sql", "auto")[1] == "Your choice for sql is removed: its author decides again how it is shown.\n"
    assert run("show", "sql")[0] == 0


def test_set_alone_shows_the_choices_also_those_for_absent_skills(file: Path, run: Run, write: Write) -> None:
    """A choice is kept while its skill is not here."""
    assert "You have made no choices" in run("set")[1]
    path = write("pdf")
    run("set", "pdf", "full")
    os.remove(path)
    assert "no such skill here now; your choice is kept" in run("set")[1]
    assert json.loads(run("set", "--json")[1]) == {"choices": {"pdf": "full"}}
    assert run("set", "pdf", "auto")[0] == 0
    assert load_choices() == {}


def test_set_refuses_names_that_lead_nowhere(file: Path, run: Run, write: Write) -> None:
    """A typo is answered with the closest name, and nothing is stored."""
    write("pdf-forms")
    code, _, error = run("set", "pdf-form", "off")
    assert (code, "Did you mean 'pdf-forms'?" in error) == (1, True)
    assert run("set", "pdf-forms")[0] == 2
    code, _, error = run("set", "pdf-forms@project:pdf-forms", "off")
    assert (code, "give 'pdf-forms@project' instead" in error) == (2, True)
    assert load_choices() == {}


def test_a_workspace_cannot_bring_choices(file: Path, run: Run, write: Write, tmp_path: Path) -> None:
    """A `skills.toml` in the project is a file like any other."""
    write("pdf")
    for folder in ("", ".skillshelf", ".config/skillshelf"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "skills.toml").write_text('pdf = "off"\n')
    assert "pdf is on the shelf." in run("why", "pdf")[1]


def test_a_broken_file_is_wrong_use(file: Path, run: Run) -> None:
    """Commands stop with the place of the mistake, as for the settings."""
    file.parent.mkdir(parents=True)
    file.write_text("oops\n")
    code, out, error = run("list")
    assert (code, out) == (2, "")
    assert "skills.toml, line 1" in error


def test_the_chat_sets_choices_and_obeys_them(file: Path, tmp_path: Path, write: Write) -> None:
    """`/skills set` stores a choice for this session and the next."""
    write("pdf", "Fill in forms.")
    options = ("--model", script(tmp_path, "ok"), "--trust-workspace")
    assert chat(*options, "-p", "/skills set pdf off", cwd=tmp_path).stdout == "pdf is set to off.\n"
    assert (
        "you turned pdf off (`/skills set NAME auto` turns it on)"
        in chat(*options, "-p", "/skills", cwd=tmp_path).stdout
    )
    off = chat(*options, "-p", "/skills:pdf the form", cwd=tmp_path)
    assert (off.returncode, off.stdout) == (1, "")
    assert off.stderr == (
        "skillshelf: The skill 'pdf' isn't available: you turned it off. Fix: `/skills set pdf auto` turns it on.\n"
    )
    assert chat(*options, "-p", "/skills set pdf auto", cwd=tmp_path).returncode == 0
    assert chat(*options, "-p", "/skills:pdf", cwd=tmp_path).returncode == 0
    wrong = chat(*options, "-p", "/skills set pdf sometimes", cwd=tmp_path)
    assert (wrong.returncode, "full, name, manual, off or auto" in wrong.stderr) == (1, True)


def test_a_skill_that_is_off_is_named_as_such_whichever_name_leads_to_it(tmp_path: Path, write: Write) -> None:
    """The advice has the name that the choice is kept by."""
    write("pdf")
    skills = WorkspaceSkills(str(tmp_path), choices={"pdf@project": "off"})
    for name in ("pdf", "pdf@project"):
        assert "/skills set pdf@project auto" in str(explain_unavailable(skills.shelf, name, command="/skills"))
    assert explain_unavailable(skills.shelf, "sql").reason == ""
