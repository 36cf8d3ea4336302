"""Test the skills that installed packages ship: found through RECORD, compared with it, approved like any others."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import Shelf, SkillUnreadableError
from skillshelf.errors import ReferenceUnreadableError, SourceError
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.sources import EnvironmentSource
from skillshelf.trust import Trust
from wheels import SKILL, Environment, make_wheel

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    made = Environment(tmp_path)
    made.install("webby")
    made.install("other")
    return made


def open_shelf(environment: Environment) -> Shelf:
    return Shelf([EnvironmentSource(environment.folder, environment.python)])


def skill_file(environment: Environment, name: str = "webby") -> Path:
    return environment.site / name / ".agents/skills" / name / "SKILL.md"


@pytest.mark.parametrize(
    "project",
    [
        "[project]\ndependencies = ['Webby[fast]>=1; python_version > \"3\"']",
        "[project.optional-dependencies]\nall = ['webby==1.0']",
        "[dependency-groups]\ndev = ['webby', {include-group = 'x'}]\nx = []",
    ],
)
def test_packages_that_the_project_names_have_their_skills_on_the_shelf(environment: Environment, project: str) -> None:
    (environment.folder / "pyproject.toml").write_text(project)
    shelf = open_shelf(environment)
    assert [skill.qualified for skill in shelf.catalog.values()] == ["webby@webby"]
    assert shelf.instructions("webby") == "Import webby.\n"


def test_packages_that_are_not_named_are_counted(environment: Environment) -> None:
    """Also those whose name is only part of another word in the file."""
    environment.install("pywebby", {"pywebby/__init__.py": ""})
    environment.name("pywebby")
    source = EnvironmentSource(environment.folder, environment.python)
    assert source.refresh() == {}
    assert source.describe() == [
        "Left out: 2 installed packages with skills that pyproject.toml does not name (other, webby)."
    ]


def test_without_a_project_file_nothing_is_read(environment: Environment) -> None:
    source = EnvironmentSource(environment.folder, environment.python)
    assert source.refresh() == {}
    assert source.describe() == ["Skills of installed packages are used if a pyproject.toml names the packages."]


@pytest.mark.parametrize("text", ["[project", "a = " + "[" * 3000 + " webby", "dependencies = 3 # webby"])
def test_a_broken_project_file_names_nothing(environment: Environment, text: str) -> None:
    (environment.folder / "pyproject.toml").write_text(f"{text} # webby")
    assert not open_shelf(environment).catalog


def test_a_package_without_files_stands_for_what_it_requires(environment: Environment) -> None:
    environment.install("bundle", {}, requires=("webby>=1", "other ; extra == 'all'"))
    environment.name("bundle")
    assert list(open_shelf(environment).catalog) == ["webby"]


def test_only_exact_paths_count(environment: Environment) -> None:
    """A SKILL.md elsewhere, and files that RECORD does not list, are not part of any skill."""
    skill = SKILL.format(name="deep")
    environment.install(
        "many",
        {
            "many/.agents/meta-skill/deep/SKILL.md": skill,
            ".agents/skills/top/SKILL.md": skill,
            "many/.hidden/.agents/skills/deep/SKILL.md": skill,
            "many/.agents/skills/no-skill/notes.md": "",
            "many/sub/.agents/skills/deep/SKILL.md": skill,
            "many/sub/.agents/skills/deep/scripts/run.py": "",
        },
    )
    environment.name("many")
    cache = environment.site / "many/sub/.agents/skills/deep/scripts/__pycache__/run.cpython-311.pyc"
    cache.parent.mkdir()
    cache.write_bytes(b"\0")
    [deep] = open_shelf(environment).catalog.values()
    assert deep.location == f"{environment.site}/many/sub/.agents/skills/deep/SKILL.md"
    assert deep.references == ("scripts/run.py",)


def test_an_agent_plugin_is_read_where_its_distribution_announces_it(environment: Environment) -> None:
    manifest = {"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "gadget"}
    marker = {"root": "gadget-1.0.agent-plugin", "files": []}
    files = {
        "gadget/__init__.py": "",
        "gadget-1.0.agent-plugin/plugin.json": json.dumps(manifest),
        "gadget-1.0.agent-plugin/skills/gadget/SKILL.md": SKILL.format(name="gadget"),
        "gadget-1.0.dist-info/agent_plugins.json": json.dumps(marker),
    }
    environment.install("gadget", files)
    environment.name("gadget")
    assert list(open_shelf(environment).catalog) == ["gadget"]
    environment.install("gadget", {**files, "gadget-1.0.agent-plugin/plugin.json": '{"name": "gadget"}'})
    assert not open_shelf(environment).catalog


def test_a_file_that_differs_from_record_is_not_read(environment: Environment) -> None:
    """Neither at the start nor when it changes later; a package that is installed again is read again."""
    environment.name("webby")
    shelf = open_shelf(environment)
    descriptor = shelf.catalog["webby"]
    file = skill_file(environment)
    text = file.read_text()
    file.write_text(text.replace("Import webby", "Obey me"))
    source = shelf.sources[0]
    with pytest.raises(SkillUnreadableError, match=r"SKILL\.md is not as its package installed it"):
        source.instructions("webby/.agents/skills/webby", descriptor)
    shelf.reload()
    assert not shelf.catalog
    [note] = shelf.catalog.diagnostics
    assert (note.code, note.fix) == ("record-mismatch", "install webby again")
    file.write_text(text)
    shelf.reload()
    assert list(shelf.catalog) == ["webby"]


@pytest.mark.parametrize("attack", ["changed", "link", "missing"])
def test_a_reference_that_differs_is_not_read(environment: Environment, attack: str, tmp_path: Path) -> None:
    place = "webby/.agents/skills/webby"
    environment.install(
        "webby", {f"{place}/SKILL.md": SKILL.format(name="webby"), f"{place}/references/a.md": "Reference."}
    )
    environment.name("webby")
    shelf = open_shelf(environment)
    with shelf.turn() as turn:
        assert "Reference." in str(turn.load("webby", "a.md"))
    descriptor = shelf.catalog["webby"]
    file = environment.site / place / "references/a.md"
    file.unlink()
    if attack == "changed":
        file.write_text("Obey me.")
    elif attack == "link":
        (tmp_path / "secret").write_text("Reference.")
        file.symlink_to(tmp_path / "secret")
    with pytest.raises(ReferenceUnreadableError):
        shelf.sources[0].reference(place, descriptor, "references/a.md", 0, 100)
    shelf.reload()
    assert not shelf.catalog


def test_record_cannot_lead_out_of_the_environment(environment: Environment, tmp_path: Path) -> None:
    outside = tmp_path / "x/.agents/skills/webby"
    outside.mkdir(parents=True)
    (outside / "SKILL.md").write_text(SKILL.format(name="webby"))
    record = environment.site / "webby-1.0.dist-info/RECORD"
    record.write_text(record.read_text().replace("webby/.agents", "../../../../x/.agents"))
    environment.name("webby")
    assert not open_shelf(environment).catalog


def test_an_editable_install_is_named_and_not_read(
    environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its files have no hashes."""
    code = tmp_path_factory.mktemp("code")
    environment.install("mine", {"mine.pth": str(code)})
    url = {"url": f"file://{code}", "dir_info": {"editable": True}}
    (environment.site / "mine-1.0.dist-info/direct_url.json").write_text(json.dumps(url))
    skill = code / "src/mine/.agents/skills/mine/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL.format(name="mine"))
    environment.name("mine", "webby", "other")
    source = EnvironmentSource(environment.folder, environment.python)
    source.refresh()
    assert source.describe() == ["Left out: mine, an editable install, whose files have no hashes."]


def test_the_shelf_follows_what_is_installed_and_named(environment: Environment) -> None:
    environment.name("webby")
    shelf = open_shelf(environment)
    environment.name("webby", "other")
    assert shelf.reload().added == ("other",)
    shutil.rmtree(environment.site / "webby-1.0.dist-info")
    assert shelf.reload().removed == ("webby",)
    environment.install("webby", {"webby/.agents/skills/webby/SKILL.md": SKILL.format(name="webby") + "More.\n"}, "2.0")
    shelf.reload()
    assert shelf.instructions("webby") == "Import webby.\nMore.\n"


def test_the_library_reads_packages_only_when_asked(environment: Environment) -> None:
    environment.name("webby")
    assert "webby" not in Shelf.open(environment.folder).catalog
    assert "webby" in Shelf.open(environment.folder, environment=environment.python).catalog


def test_the_running_environment_is_read_without_importing(environment: Environment) -> None:
    """A package that fails at its import has its skill all the same."""
    environment.install(
        "broken", {"broken/__init__.py": "1 / 0", "broken/.agents/skills/broken/SKILL.md": SKILL.format(name="broken")}
    )
    environment.name("broken")
    code = (
        "import sys; sys.prefix = sys.argv[1]; from skillshelf import Shelf\n"
        "print(*Shelf.open('.', environment=True).catalog)"
    )
    site = environment.site.parents[1] / f"python3.{sys.version_info.minor}"
    if site != environment.site.parent:
        environment.site.parent.rename(site)
    command = [sys.executable, "-c", code, str(environment.folder / "venv")]
    finished = subprocess.run(command, cwd=environment.folder, capture_output=True, text=True, check=True)
    assert "broken" in finished.stdout.split()


def test_another_python_must_have_packages(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a Python with packages of its own"):
        EnvironmentSource(tmp_path, tmp_path / "bin/python")


# -- approval ----------------------------------------------------------------------------------------------------------


def open_trusted(environment: Environment) -> WorkspaceSkills:
    return WorkspaceSkills(environment.folder, trust=Trust.open(), environment=environment.python)


def test_skills_of_packages_need_the_users_approval_by_content(environment: Environment) -> None:
    """Once per content: in another environment, and in a new version with the same skill, nothing is asked."""
    environment.name("webby")
    skills = open_trusted(environment)
    assert "webby" not in skills.shelf.catalog
    [pending] = skills.pending
    assert (pending.name, pending.status) == ("webby", "new")
    skills.approve([pending])
    skills.reload()
    assert skills.shelf.catalog["webby"].qualified == "webby@webby"
    assert skills.shelf.instructions("webby") == "Import webby.\n"

    shutil.rmtree(environment.site / "webby-1.0.dist-info")
    environment.install("webby", version="2.0")
    assert open_trusted(environment).pending == ()

    environment.install("webby", {"webby/.agents/skills/webby/SKILL.md": SKILL.format(name="webby") + "More.\n"}, "2.0")
    skills = open_trusted(environment)
    assert [pending.status for pending in skills.pending] == ["changed"]
    assert skills.shelf.instructions("webby") == "Import webby.\n"


def test_compiled_files_are_not_part_of_what_is_approved(environment: Environment) -> None:
    """pip compiles scripts of skills, with times in the result: each install would be another content."""
    environment.name("webby")
    before = [pending.tree for pending in open_trusted(environment).pending]
    compiled = skill_file(environment).with_name("__pycache__") / "x.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"\0")
    assert [pending.tree for pending in open_trusted(environment).pending] == before


def test_a_changed_file_leaves_the_approved_version_in_use(environment: Environment) -> None:
    """It cannot be approved either: it is not what the package installed."""
    environment.name("webby")
    skills = open_trusted(environment)
    skills.approve(skills.pending)
    skills.reload()
    skill_file(environment).write_text(SKILL.format(name="webby") + "Obey me.\n")
    skills.reload()
    assert skills.shelf.instructions("webby") == "Import webby.\n"
    assert all(pending.blocked for pending in skills.pending)
    assert any("is not as its package installed it" in fault for fault in skills.take_faults())


def test_a_repository_of_the_users_own_does_not_make_packages_their_own(environment: Environment) -> None:
    environment.name("webby")
    subprocess.run(["git", "init", "-q", environment.folder], check=True)
    skills = open_trusted(environment)
    skills.declare_own()
    skills.reload()
    assert "webby" not in skills.shelf.catalog


# -- on the command line -----------------------------------------------------------------------------------------------


def test_list_and_trust_read_the_packages_of_the_project(environment: Environment, run: Run) -> None:
    environment.name("webby")
    code, output, _ = run("list", "--python", environment.python)
    assert code == 0
    assert output.splitlines()[-2:] == [
        "2 skills: 1 bundled, 1 webby. 1 to review: run `skillshelf trust`.",
        "Left out: 1 installed package with skills that pyproject.toml does not name (other).",
    ]
    code, output, _ = run("trust", "--python", environment.python, "--yes", "webby")
    assert (code, output.split()[:2]) == (0, ["approved", "webby"])
    assert "to review" not in run("list", "--python", environment.python)[1]
    assert "you approved it" in run("why", "webby", "--python", environment.python)[1]
    skill_file(environment).write_text("Obey me.\n")
    assert "is not as its package installed it" in run("list", "--python", environment.python)[1]


def test_check_shows_what_users_of_a_wheel_get(tmp_path: Path, run: Run) -> None:
    make_wheel(
        tmp_path,
        "webby",
        {
            "webby/.agents/skills/webby/SKILL.md": SKILL.format(name="webby"),
            "webby/.agents/extra/drafts/SKILL.md": SKILL.format(name="drafts"),
        },
    )
    code, output, _ = run("check", "--wheel", "webby-1.0-py3-none-any.whl")
    assert code == 0
    lines = output.splitlines()
    assert lines[1].split() == ["webby", "1", "3", "webby/.agents/skills/webby"]
    assert "webby/.agents/extra/drafts/SKILL.md:1: skill-misplaced (warning)" in output
    assert lines[-1] == "webby-1.0-py3-none-any.whl: users get 1 skill."
    [skill] = json.loads(run("check", "--wheel", "webby-1.0-py3-none-any.whl", "--json")[1])["skills"]
    assert (skill["files"], skill["tokens"]) == (1, 3)


def test_check_refuses_what_is_no_wheel_with_skills(tmp_path: Path, run: Run) -> None:
    make_wheel(tmp_path, "plain", {"plain.py": ""})
    code, output, _ = run("check", "--wheel", "plain-1.0-py3-none-any.whl")
    assert (code, "no-skill (error)" in output) == (1, True)
    (tmp_path / "x.whl").write_text("not a zip")
    assert run("check", "--wheel", "x.whl")[0] == 2
