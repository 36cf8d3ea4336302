"""Code skills on the command line: packages that the user names, and installed entry points."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chats import chat, script, tool
from installed import install_shop

SKILLSHELF = [sys.executable, "-m", "skillshelf"]
SHOP = ["clock", "greeting", "orders", "shop-guide", "terminal"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed `shop_skills`, which announces nothing."""
    return install_shop(tmp_path_factory.mktemp("plain") / "site")


@pytest.fixture(scope="module")
def announcing_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with an entry point for the whole package."""
    return install_shop(tmp_path_factory.mktemp("announcing") / "site", {"shop": "shop_skills"})


def skillshelf(*words: str, cwd: Path, path: str | Path = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, with `path` as its PYTHONPATH."""
    environment = {**os.environ, **variables, "PYTHONPATH": str(path)}
    return subprocess.run(
        [*SKILLSHELF, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def listed(*words: str, cwd: Path, path: str | Path = "", **variables: str) -> dict[str, str]:
    """Return the sources of all skills but the bundled ones, by name."""
    done = skillshelf("list", "--json", *words, cwd=cwd, path=path, **variables)
    assert done.returncode == 0, done.stderr
    skills: list[dict[str, Any]] = json.loads(done.stdout)["skills"]
    return {skill["name"]: skill["source"] for skill in skills if skill["source"] != "bundled"}


# -- what counts ------------------------------------------------------------------------------------------------------


def test_the_skills_of_a_named_package_are_on_the_shelf(site: Path, tmp_path: Path) -> None:
    """The source has the package's name. Without the option, an installed package does not count."""
    assert listed("--package", "shop_skills", cwd=tmp_path, path=site) == dict.fromkeys(SHOP, "shop_skills")
    assert listed(cwd=tmp_path, path=site) == {}


def test_the_settings_and_the_environment_name_packages_too(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option adds to these, and a package that is named twice counts once."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = tmp_path / "config/skillshelf"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('packages = ["shop_skills"]\n')
    assert sorted(listed(cwd=tmp_path, path=site)) == SHOP
    assert sorted(listed("--package", "shop_skills", cwd=tmp_path, path=site)) == SHOP
    assert sorted(listed(cwd=tmp_path, path=site, SKILLSHELF_PACKAGES="shop_skills.greeting")) == ["greeting"]


def test_installed_entry_points_always_count(announcing_site: Path, tmp_path: Path) -> None:
    """Each skill counts once, also if the user names the package as well."""
    assert listed(cwd=tmp_path, path=announcing_site) == dict.fromkeys(SHOP, "entry-points")
    named = listed("--package", "shop_skills", cwd=tmp_path, path=announcing_site)
    assert named == dict.fromkeys(SHOP, "shop_skills")


def test_the_overview_and_doctor_name_the_packages_of_entry_points(announcing_site: Path, tmp_path: Path) -> None:
    assert f"{len(SHOP)} skills in the package shop_skills" in skillshelf(cwd=tmp_path, path=announcing_site).stdout
    done = skillshelf("doctor", cwd=tmp_path, path=announcing_site)
    assert f"{len(SHOP)} skills in the package shop_skills (entry-points)" in done.stdout


def test_list_names_a_package_without_skills(tmp_path: Path) -> None:
    done = skillshelf("list", "--package", "json", cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "The package json has no skills: run `skillshelf check --package json`"


def test_a_named_package_comes_before_the_project_and_an_entry_point_after_the_user(
    site: Path, announcing_site: Path, write: Callable[..., Path], tmp_path: Path
) -> None:
    """The user's choice on the command line outranks a repository; an installed package does not."""
    write("skills/greeting", "The project's own.")
    done = skillshelf("show", "greeting", "--json", "--package", "shop_skills", cwd=tmp_path, path=site)
    assert json.loads(done.stdout)["source"] == "shop_skills"
    done = skillshelf("show", "greeting", "--json", cwd=tmp_path, path=announcing_site)
    assert json.loads(done.stdout)["source"] == "project"


# -- wrong use --------------------------------------------------------------------------------------------------------


def test_a_package_that_is_not_installed_is_an_error_with_advice(tmp_path: Path) -> None:
    """The package may well lie in the current folder, which does not count."""
    (tmp_path / "my_skills").mkdir()
    (tmp_path / "my_skills/__init__.py").write_text("raise SystemExit('imported')")
    done = skillshelf("list", "--package", "my_skills", cwd=tmp_path)
    assert done.returncode == 2
    assert "There is no package 'my_skills'" in done.stderr
    assert "pip install -e FOLDER" in done.stderr


@pytest.mark.parametrize("name", ["./skills", "../site/shop_skills", "/x/y", "shop-skills", "", "a..b", "skills/"])
def test_a_path_is_not_a_package(name: str, tmp_path: Path) -> None:
    """The error says what to give instead."""
    done = skillshelf("list", f"--package={name}", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not the name of a package" in done.stderr


def test_a_module_that_fails_is_reported_and_the_others_load(tmp_path: Path) -> None:
    """One broken skill.py does not take the package off the shelf."""
    folder = tmp_path / "site/half_skills"
    for name, text in (("good", _SKILL), ("bad", "import library_that_nobody_has")):
        (folder / name).mkdir(parents=True)
        (folder / name / "skill.py").write_text(text)
    done = skillshelf("list", "--json", "--package", "half_skills", cwd=tmp_path, path=tmp_path / "site")
    facts = json.loads(done.stdout)
    assert "good" in [skill["name"] for skill in facts["skills"]]
    assert [note["code"] for note in facts["diagnostics"]] == ["import-failed"]


def test_output_of_the_skills_own_code_does_not_mix_with_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a module, a constructor or a tool prints goes to standard error, so that --json stays JSON."""
    folder = tmp_path / "site/loud_skills"
    folder.mkdir(parents=True)
    (folder / "skill.py").write_text(_LOUD_SKILL)
    for command in ("list", "check"):
        done = skillshelf(command, "--json", "--package", "loud_skills", cwd=tmp_path, path=tmp_path / "site")
        json.loads(done.stdout)
        assert "printed at import" in done.stderr

    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    model = script(tmp_path, tool("shout"), "Done.")
    done = chat("--package", "loud_skills", "--model", model, "-p", "hello", cwd=tmp_path)
    assert done.stdout == "Done.\n"
    for event in ("import", "construction", "call"):
        assert f"printed at {event}" in done.stderr


_LOUD_SKILL = """
from skillshelf import BaseSkill, tool

print("printed at import")

class LoudSkill(BaseSkill):
    name = "loud"
    description = "Shouts. Use when asked to shout."
    instructions = "Call `shout`."

    def __init__(self) -> None:
        print("printed at construction")

    @tool
    def shout(self) -> str:
        \"\"\"Shout.\"\"\"
        print("printed at call")
        return "done"
"""
_SKILL = """
from skillshelf import BaseSkill

class GoodSkill(BaseSkill):
    name = "good"
    description = "Is good. Use when good."
    instructions = "Be good."
"""


# -- how each command shows a code skill ------------------------------------------------------------------------------


def shop(site: Path, cwd: Path, *words: str) -> str:
    """Run a command with the shop's package and return its output."""
    command, *others = words
    done = skillshelf(command, "--package", "shop_skills", *others, cwd=cwd, path=site)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_list_marks_skills_without_their_tools(site: Path, tmp_path: Path) -> None:
    output = shop(site, tmp_path, "list")
    marked = [line.split()[0] for line in output.splitlines() if "  tools missing  " in line]
    assert marked == ["clock", "orders", "terminal"]


def test_show_gives_the_class_and_the_permission_of_each_tool(site: Path, tmp_path: Path) -> None:
    """References are read from the installed package."""
    output = shop(site, tmp_path, "show", "greeting")
    assert "location       shop_skills.greeting.skill:GreetingSkill\n" in output
    assert "tools          greet (safe)\n" in output
    assert shop(site, tmp_path, "show", "greeting", "tone.md") == "Be brief and kind.\n"
    output = shop(site, tmp_path, "show", "orders")
    assert "tools          find_order (not available)\n" in output
    assert "Note: these tools are not available here: `find_order`." in output
    assert json.loads(shop(site, tmp_path, "show", "greeting", "--json"))["permissions"] == {"greet": "safe"}


def test_why_says_what_to_do_about_missing_tools(site: Path, tmp_path: Path) -> None:
    output = shop(site, tmp_path, "why", "orders")
    assert "taken: shop_skills.orders.skill:OrdersSkill (shop_skills)" in output
    assert "its constructor needs 'database'" in output
    assert "Shelf.open(skills=[OrdersSkill(database=…)])" in output


def test_search_cost_and_listing_have_code_skills(site: Path, tmp_path: Path) -> None:
    assert shop(site, tmp_path, "search", "customer says hello").startswith("1. greeting  (shop_skills)")
    skills = {skill["name"]: skill for skill in json.loads(shop(site, tmp_path, "cost", "--json"))["skills"]}
    assert skills["greeting"]["tool_tokens"] > 0  # its definition is in every call
    assert skills["orders"]["tool_tokens"] == 0  # the model does not have it
    assert '<skill name="greeting"' in shop(site, tmp_path, "show", "--prompt")


# -- the agent and the server -----------------------------------------------------------------------------------------


def test_the_agent_has_the_tools_of_a_package(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run under the policy, with the permission that the skill declares: a standard skill's are safe."""
    monkeypatch.setenv("PYTHONPATH", str(site))
    model = script(tmp_path, {"tool": "greet", "arguments": {"name": "Ada"}}, tool("find_order", number="7"), "Done.")
    done = chat("--package", "shop_skills", "--model", model, "-p", "hello", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "tool_result"]
    assert results[0]["text"] == "Good morning, Ada."
    assert not results[1]["ok"]  # the skill needs a database, so the model does not have its tool


def test_the_server_serves_the_tools_of_a_package(site: Path, tmp_path: Path) -> None:
    """Over standard input and output, as a host starts it."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    words = ["-m", "skillshelf", "serve", "--package", "shop_skills"]
    server = StdioServerParameters(
        command=sys.executable, args=words, env={**os.environ, "PYTHONPATH": str(site)}, cwd=str(tmp_path)
    )

    async def use() -> tuple[set[str], str]:
        async with Client(stdio_client(server)) as client:
            names = {each.name for each in (await client.list_tools()).tools}
            result = await client.call_tool("greet", {"name": "Ada"})
            return names, result.content[0].text  # type: ignore[union-attr]

    names, greeting = asyncio.run(use())
    assert names == {"list_skills", "search_skills", "load_skill_instructions", "greet"}
    assert greeting == "Good morning, Ada."


# -- a hostile workspace ----------------------------------------------------------------------------------------------

TRAP = "import pathlib\npathlib.Path('{0}').write_text('imported')\n"
SHADOWED = ("yaml", "rich", "my_skills", "dataclasses", "tomllib", "shop_skills", "sitecustom_skills", "pathspec")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A workspace full of modules that report when they are imported, and a distribution that announces one."""
    workspace = tmp_path / "clone"
    for name in SHADOWED:
        (workspace / name).mkdir(parents=True)
        (workspace / name / "__init__.py").write_text(TRAP.format(tmp_path / f"trap-{name}") + _SKILL)
        (workspace / "src" / name).mkdir(parents=True)
        (workspace / "src" / name / "__init__.py").write_text(TRAP.format(tmp_path / f"trap-src-{name}") + _SKILL)
    for place in (workspace, workspace / "src"):
        info = place / "evil-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[skillshelf.skills]\nevil = my_skills\n")
    skill = workspace / "skills/plain"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: plain\ndescription: 'A plain one. &a'\n---\nText.\n")
    return workspace


def find_traps(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("trap-*"))


@pytest.mark.parametrize("words", [["list"], ["show", "plain"], ["check"]], ids=lambda words: words[0])
def test_nothing_in_the_current_folder_is_imported(hostile: Path, tmp_path: Path, words: list[str]) -> None:
    """Not even modules that hide those of the standard library, which `python -m` looks for there first."""
    done = skillshelf(*words, cwd=hostile)
    assert find_traps(tmp_path) == []
    assert "Traceback" not in done.stderr
    assert "entry-points" not in done.stdout


def test_the_installed_command_does_not_take_a_workspace_s_skillshelf_for_itself(hostile: Path, tmp_path: Path) -> None:
    """With `python -m skillshelf`, Python runs the package of that name in the current folder before any other."""
    (hostile / "skillshelf").mkdir()
    (hostile / "skillshelf/__init__.py").write_text(TRAP.format(tmp_path / "trap-skillshelf"))
    command = str(Path(sys.executable).with_name("skillshelf"))
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run([command, "list"], cwd=hostile, env=environment, capture_output=True, text=True, check=False)
    assert find_traps(tmp_path) == []
    assert "Traceback" not in done.stderr
    assert "entry-points" not in done.stdout


@pytest.mark.parametrize("path", [":", "src", ".", "src:", "{site}:src"])
def test_a_relative_pythonpath_does_not_bring_the_workspace_in(
    hostile: Path, tmp_path: Path, site: Path, path: str
) -> None:
    """Folders that depend on where the command is started do not count, whoever named them.

    Modules of the standard library are another matter: Python has imported some before any line of ours runs.
    """
    for folder in (hostile, hostile / "src"):
        for name in ("dataclasses", "tomllib"):
            (folder / name / "__init__.py").unlink()
            (folder / name).rmdir()
    done = skillshelf("list", "--package", "my_skills", cwd=hostile, path=path.format(site=site))
    assert find_traps(tmp_path) == []
    assert "There is no package 'my_skills'" in done.stderr
    assert listed(cwd=hostile, path=path.format(site=site)) == {"plain": "project"}


@pytest.mark.parametrize("path", ["{folder}", ":{folder}", ".:{folder}"])
def test_a_folder_that_pythonpath_names_by_its_whole_path_counts_in_that_folder_too(tmp_path: Path, path: str) -> None:
    """The user named it: what it holds must not depend on where the command is started."""
    package = tmp_path / "mine_skills/good"
    package.mkdir(parents=True)
    (package / "skill.py").write_text(_SKILL)
    done = skillshelf("list", "--package", "mine_skills", cwd=tmp_path, path=path.format(folder=tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "mine_skills" in done.stdout


def test_the_workspace_s_own_settings_are_not_read(hostile: Path, tmp_path: Path) -> None:
    """A configuration file that is in a repository names no packages."""
    for folder in ("skillshelf", ".config/skillshelf", ".skillshelf"):
        (hostile / folder).mkdir(parents=True, exist_ok=True)
        (hostile / folder / "config.toml").write_text('packages = ["my_skills"]\n')
    assert listed(cwd=hostile) == {"plain": "project"}
    assert find_traps(tmp_path) == []


def test_an_editable_install_whose_sources_are_here_counts(tmp_path: Path) -> None:
    """The user installed it: a .pth file in site-packages leads to the current folder."""
    package = tmp_path / "mine_skills/good"
    package.mkdir(parents=True)
    (package / "skill.py").write_text(_SKILL)
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "mine.pth").write_text(f"{tmp_path}\n")
    start = (
        f"import site, sys; site.addsitedir({str(folder)!r}); sys.argv = ['skillshelf', 'list', '--package', "
        "'mine_skills']; from skillshelf.cli import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", start], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mine_skills" in done.stdout
