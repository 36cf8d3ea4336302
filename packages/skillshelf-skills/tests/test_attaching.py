"""Bundled skills that a user attaches by name."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from calling import call
from chats import chat, script, tool
from repository import REPO
from shop_database import write_shop
from skillshelf import Shelf
from skillshelf.errors import GuidedError, MissingExtraError, SettingsError
from skillshelf.skills import BaseSkill
from skillshelf.sources.attachable import AttachableSkill, SystemProgram, attach_skill
from skillshelf.testing import check_package
from skillshelf_skills import ATTACHABLE
from skillshelf_skills.database.skill import DatabaseSkill
from skillshelf_skills.pdf_extraction.skill import PdfExtractionSkill

Run = Callable[..., tuple[int, str, str]]
EVALS = Path(__file__).parent / "evals"


def find_class(skill: AttachableSkill) -> type[BaseSkill]:
    module, _, name = skill.target.partition(":")
    return getattr(__import__(module, fromlist=[name]), name)  # type: ignore[no-any-return]


def test_the_bundled_skills_are_complete() -> None:
    """Every reference is there, is named in the instructions, and is valid."""
    check_package("skillshelf_skills")


@pytest.mark.parametrize("skill", ATTACHABLE, ids=lambda skill: skill.name)
def test_each_is_what_its_entry_says(skill: AttachableSkill) -> None:
    """It has the name, and an eval covers each of its references."""
    cls = find_class(skill)
    assert cls.name == skill.name
    cases = (EVALS / f"{skill.name}.yaml").read_text()
    assert [path for path in cls.references if f"reference_loaded: {Path(path).name}" not in cases] == []


@pytest.mark.parametrize("skill", ATTACHABLE, ids=lambda skill: skill.name)
def test_its_evals_pass(skill: AttachableSkill, run: Run) -> None:
    """A scripted model fails, loads the reference and recovers, with the real tools."""
    if skill.find_obstacle():
        pytest.skip(str(skill.find_obstacle()))
    code, out, _ = run("eval", str(EVALS / f"{skill.name}.yaml"), "--trust-workspace")
    assert code == 0, out


def list_requirements(extra: str, package: str = "skillshelf-skills") -> set[str]:
    """Return the names of the distributions that an extra asks for, itself or through another of our extras."""
    project = REPO / "packages" / package / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    names: set[str] = set()
    for requirement in extras[extra]:
        ours = re.match(r"(skillshelf(?:-skills)?)\[(.+)\]", requirement)
        if ours:
            names.update(*(list_requirements(included, ours[1]) for included in ours[2].split(",")))
        else:
            names.add(normalize(re.split(r"[^\w.-]", requirement)[0]))
    return names


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("skill", ATTACHABLE, ids=lambda skill: skill.name)
def test_its_extra_asks_for_each_of_its_libraries(skill: AttachableSkill) -> None:
    """A library that another one drags in may stay away with an older pip, or with that one's next version."""
    if skill.find_obstacle():
        pytest.skip(str(skill.find_obstacle()))
    distributions = packages_distributions()
    required = list_requirements(skill.extra)
    for library in skill.libraries:
        assert required.intersection(map(normalize, distributions[library])), library


def test_without_the_package_one_command_installs_a_skill(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core knows the extra of each, which brings the package and the libraries."""
    monkeypatch.setattr("skillshelf.sources.attachable.list_attachable", list)
    for skill in ATTACHABLE:
        with pytest.raises(SettingsError) as caught:
            attach_skill(skill.name)
        assert str(caught.value).endswith(f"is not installed: pip install 'skillshelf[{skill.extra}]'")
    with pytest.raises(SettingsError, match="Did you mean weather"):
        attach_skill("wether")


def test_a_shelf_has_only_what_was_attached(run: Run) -> None:
    """The others are named apart, with how to attach them."""
    _, plain, _ = run("list", "--json")
    listed = json.loads(plain)
    assert [skill["name"] for skill in listed["skills"]] == ["skill-authoring"]
    assert [skill["name"] for skill in listed["attachable"]] == [skill.name for skill in ATTACHABLE]

    _, attached, _ = run("list", "--json", "--with", "weather")
    listed = json.loads(attached)
    assert [skill["name"] for skill in listed["skills"]] == ["skill-authoring", "weather"]
    assert "weather" not in [skill["name"] for skill in listed["attachable"]]


def test_why_says_how_to_attach_a_skill(run: Run) -> None:
    """It is not on the shelf, and this is what to write."""
    code, out, _ = run("why", "weather")
    assert code == 1
    assert "not-attached" in out
    assert "Did you mean" not in out
    assert "--with weather" in out


def test_why_knows_the_names_of_skills_that_are_not_attached(run: Run) -> None:
    """A misspelled one is suggested, and a request has an answer, too."""
    assert "did you mean 'database'?" in run("why", "databse")[1]
    code, out, _ = run("why", "execution-debugging", "--for", "run the tests", "--json")
    assert code == 1
    [obstacle] = json.loads(out)["obstacles"]
    assert obstacle["code"] == "not-attached"
    assert obstacle["fix"] == "attach it with --with execution-debugging[=FOLDER]"
    [missing] = json.loads(run("why", "databse", "--for", "count orders", "--json")[1])["obstacles"]
    assert (missing["code"], missing["fix"]) == ("missing", "did you mean 'database'?")


def test_every_skill_that_comes_with_skillshelf_is_bundled(run: Run) -> None:
    """Whether it is always there or the user attached it."""
    skills = json.loads(run("list", "--json", "--with", "execution-debugging")[1])["skills"]
    assert {skill["name"]: skill["source"] for skill in skills} == {
        "execution-debugging": "bundled",
        "skill-authoring": "bundled",
    }


def test_a_chat_names_a_wrong_skill_before_a_missing_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line is corrected first."""
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    code, _, err = run("chat", "--with", "wether", "-p", "hi")
    assert code == 2
    assert "Did you mean weather?" in err


def test_a_command_about_a_skill_that_is_not_attached_says_how_to_attach_it(run: Run) -> None:
    """And `show` repeats the option in the command for a reference, which needs it again."""
    code, _, err = run("show", "weather")
    assert (code, err.strip()) == (
        1,
        "The skill 'weather' isn't available: it comes with skillshelf, and isn't attached here. "
        "Fix: attach it with --with weather.",
    )
    assert "it comes with skillshelf, and isn't attached here" in run("why", "weather")[1]
    _, out, _ = run("show", "weather", "--with", "weather")
    assert "References (skillshelf show weather REFERENCE --with weather)" in out


def test_a_database_in_a_file_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server needs the driver, and says so when the skill is attached."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "skillshelf_skills.database._postgres", raising=False)
    shop = attach_skill(f"database={write_shop(tmp_path)}")
    assert "orders" in [table["name"] for table in call(shop, "list_tables")]
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[database\]'"):
        attach_skill("database=postgresql://reader@localhost/shop")


@pytest.mark.parametrize("name", ["database", "agentic-rag"])
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@host/shop",
        "postgres://me@host/shop?password=hunter2",
        "postgresql://me@host/shop?p%61ssword=hunter2",
        "postgresql://me@host/shop?sslpassword=hunter2",
    ],
)
def test_a_password_in_the_address_of_a_server_is_refused(name: str, address: str) -> None:
    """The message says where it belongs, and does not repeat it."""
    pytest.importorskip("psycopg", reason="PostgreSQL needs skillshelf[database]")
    table = "#passages" if name == "agentic-rag" else ""
    with pytest.raises(SettingsError, match=r"a password in an address.*PGPASSWORD or ~/\.pgpass") as caught:
        attach_skill(f"{name}={address}{table}")
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_a_database_is_refused_at_once(tmp_path: Path) -> None:
    """An empty file is a database without tables."""
    (tmp_path / "app.json").write_text("{}")
    with pytest.raises(SettingsError, match=r"'app\.json' is not an SQLite database"):
        attach_skill(f"database={tmp_path / 'app.json'}")
    (tmp_path / "empty.db").touch()
    assert attach_skill(f"database={tmp_path / 'empty.db'}").name == "database"


def test_a_skill_that_is_not_available_says_what_to_install() -> None:
    """A library comes first, then a program; neither is imported or run to find out."""
    without_library = AttachableSkill("a", "a:A", "extra-a", ("json", "no_such_library"))
    assert str(without_library.find_obstacle()) == (
        "the library no_such_library is not installed: pip install 'skillshelf[extra-a]'"
    )
    program = SystemProgram(("no-such-program", "nor-this"), "apt install no-such-program")
    without_program = AttachableSkill("a", "a:A", "extra-a", ("json",), programs=(program,))
    assert str(without_program.find_obstacle()) == (
        "there is no no-such-program on this machine: apt install no-such-program"
    )
    with pytest.raises(SettingsError, match="not available here: there is no no-such-program"):
        without_program.construct()


def test_a_program_is_found_outside_of_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As applications are on macOS, for all users or for one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    browser = tmp_path / "Applications" / "A Browser.app" / "browser"
    program = SystemProgram(("no-such-program",), "brew install it", ("~/Applications/A Browser.app/browser",))
    assert program.find() is None
    browser.parent.mkdir(parents=True)
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    assert program.find() == str(browser)
    assert AttachableSkill("a", "a:A", "extra-a", ("json",), programs=(program,)).find_obstacle() is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wether", "Did you mean weather?"),
        ("find-skills", "no need to attach.* on every shelf"),
        ("", "There are: .*weather"),
        ("weather=Porto", "takes no setting. Write: --with weather"),
    ],
)
def test_a_wrong_name_or_setting_is_explained(text: str, message: str) -> None:
    """With what would be right."""
    with pytest.raises(SettingsError, match=message):
        attach_skill(text)


def test_the_agent_has_the_tools_of_an_attached_skill(tmp_path: Path) -> None:
    """With one flag; the model can call them, and reads what went wrong."""
    model = script(tmp_path, tool("get_forecast", latitude=100, longitude=0), "There is no such place.")
    done = chat("--with", "weather", "-p", "How is the weather?", "--model", model, "--json", cwd=tmp_path)
    assert "is no place on Earth" in done.stdout
    assert "There is no such place." in done.stdout


@pytest.mark.parametrize("policy", ["ask", "read-only"])
def test_a_file_that_is_opened_read_only_is_asked_without_approval(tmp_path: Path, policy: str) -> None:
    """In a pipe, too, where nobody can be asked."""
    shop = write_shop(tmp_path)
    model = script(tmp_path, tool("run_query", sql="SELECT count(*) FROM orders"), "Three.")
    options = ["--with", f"database={shop}", "--policy", policy, "--model", model, "--json"]
    done = chat("-p", "How many orders?", *options, cwd=tmp_path)
    assert [line for line in done.stdout.splitlines() if '"tool_result"' in line and '"ok": true' in line]


NARROWED = {
    "agentic-rag={folder}": ("describe_graph", "query_graph", "Cypher", "cypher_templates.py", "Azure", "azure_search"),
    "database={folder}/shop.db": ("run_statement",),
}


@pytest.mark.parametrize("setting", NARROWED)
def test_instructions_mention_only_what_the_setting_offers(tmp_path: Path, setting: str) -> None:
    """Neither in the text, nor in a note about tools that are not there, nor among the references."""
    write_shop(tmp_path)
    skill = attach_skill(setting.format(folder=tmp_path))
    shelf = Shelf.open(tmp_path, skills=[skill])
    seen = shelf.instructions(skill.name) + str(shelf.catalog[skill.name].references) + shelf.listing().text
    assert "error_codes.md" in seen
    for word in NARROWED[setting]:
        assert word not in seen
    assert "run_statement" in attach_skill(f"database=write:{tmp_path}/shop.db").instructions


@pytest.mark.parametrize("cls", [DatabaseSkill, type("OrdersSkill", (DatabaseSkill,), {"name": "orders"})])
def test_an_error_names_the_skill_of_the_reference_that_helps(tmp_path: Path, cls: type[DatabaseSkill]) -> None:
    """Five skills have a reference of that name, and a company's skill may extend one of them."""
    skill = cls(str(write_shop(tmp_path))).with_policy({"run_query": "safe"})
    with pytest.raises(GuidedError) as caught:
        call(skill, "run_query", sql="SELECT nonsense FROM orders")
    assert f"Load the reference 'error_codes.md' of the skill {skill.name!r}" in str(caught.value)


LIST_ATTACHED = """
import sys
from skillshelf import Shelf
from skillshelf.sources.attachable import attach_skill
from skillshelf_skills import ATTACHABLE

Shelf.open(".").listing()
before = set(sys.modules)
for skill in ATTACHABLE:
    skill.find_obstacle()
shelf = Shelf.open(".", skills=[attach_skill(text) for text in sys.argv[1:]])
listing = shelf.listing().text
assert all(text.partition("=")[0] in listing for text in sys.argv[1:])
assert shelf.tools()
added = {name.partition(".")[0] for name in set(sys.modules) - before}
foreign = added - sys.stdlib_module_names - {"skillshelf", "skillshelf_skills"}
print(sorted(foreign), sorted(added & {"asyncio", "sqlite3", "subprocess"}))
"""


def test_a_shelf_with_every_skill_attached_imports_no_backend(tmp_path: Path) -> None:
    """Neither finding out what can be attached, nor attaching and listing it, imports a library or a database."""
    texts = [write_setting(skill, tmp_path) for skill in ATTACHABLE if skill.find_obstacle() is None]
    command = [sys.executable, "-c", LIST_ATTACHED, *texts]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


def write_setting(skill: AttachableSkill, folder: Path) -> str:
    """Return what to write after `--with`, with something to work on if the skill needs it."""
    if not skill.needs_setting:
        return skill.name
    target = write_shop(folder) if skill.takes == "FILE" else folder
    return f"{skill.name}={target}"


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also by a skill that a program constructs itself."""
    for library in ("psycopg", "pypdfium2"):
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "skillshelf_skills.database._postgres", raising=False)
    database = DatabaseSkill("postgresql://reader@localhost/shop").with_policy({"list_tables": "safe"})
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[database\]'"):
        call(database, "list_tables")
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[pdf-extraction\]'"):
        call(PdfExtractionSkill(str(tmp_path)), "describe_pdf", path="a.pdf")


def test_three_lines_put_a_skill_into_a_program() -> None:
    """Its tools are the shelf's."""
    shelf = Shelf.open(".", skills=[attach_skill("weather")])
    assert {tool.name for tool in shelf.tools()} == {"find_place", "get_forecast"}
