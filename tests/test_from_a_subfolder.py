"""Commands and the agent in a subfolder: the skills of the whole repository, the reach of one folder."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit import User, agent, of, requests, say
from skillshelf.sources.workspace import Workspace, find_workspace
from skillshelf.trust import Trust
from skillshelf_agent import AgentCore
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.sessions import Sessions
from skillshelf_agent.testing import call

Write = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]
NEW = "---\nname: greet\ndescription: Say hello.\n---\n\nSay hello in Latin.\n"


@pytest.fixture
def package(tmp_path: Path, write: Write) -> Path:
    """A folder deep in a repository whose root has a skill."""
    write(
        "proj/.agents/skills/deploy",
        "Deploy the service.",
        "Do it. Use `scripts/run.py`.\n",
        scripts__run_py="print(1)\n",
    )
    (tmp_path / "proj/.git").mkdir()
    folder = Path(os.path.realpath(tmp_path)) / "proj/src/pkg"
    folder.mkdir(parents=True)
    return folder


# -- commands ---------------------------------------------------------------------------------------------------------


def test_every_command_finds_the_skills_of_the_repository(
    run: Run, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(package)
    for command in (
        ["list"],
        ["show", "deploy"],
        ["search", "deploy"],
        ["why", "deploy"],
        ["cost"],
        ["show", "--prompt"],
    ):
        code, out, err = run(*command)
        assert (code, err) == (0, ""), command
        assert "deploy" in out, command
    assert run("check") == (0, "1 skill checked: no problems\n", "")
    code, out, _ = run("trust", "--list")
    assert code == 1
    assert "deploy  new               ../../.agents/skills/deploy" in out


def test_why_names_the_folders_it_searched(run: Run, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    assert "searched: ../.. (the root of the repository you are in)" in run("why", "deploy")[1]
    report = json.loads(run("why", "deploy", "--json")[1])
    root = str(package.parents[1])
    assert report["searched"] == [{"path": root, "reason": "the root of the repository you are in"}]


def test_why_says_where_the_search_ended_if_it_found_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(os.path.realpath(tmp_path)) / "home"
    (home / "notes").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "notes")
    code, out, _ = run("why", "deploy")
    assert code == 1
    assert f"Note: {home} and the folders above it do not count: it is your home folder." in out


def test_why_explains_that_the_nearest_skill_wins(
    run: Run, package: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("proj/src/pkg/skills/deploy", "Deploy the package.")
    monkeypatch.chdir(package)
    out = run("why", "deploy")[1]
    assert "taken: skills/deploy/SKILL.md (project)" in out
    assert "shadowed: ../../.agents/skills/deploy/SKILL.md (project)" in out
    assert "another skill of the same name comes first: it is nearer to the folder you are in" in out
    assert "../../.agents/skills/deploy/SKILL.md:1: shadowed" in run("check")[1]


def test_a_folder_given_with_C_is_taken_as_it_is(run: Run, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    assert "deploy" not in run("list", "-C", ".")[1]
    assert "deploy" in run("list", "-C", "../..")[1]
    code, _, err = run("list", "-C", "missing")
    assert (code, err) == (2, "skillshelf: There is no folder 'missing' to use as the workspace.\n")


def test_new_creates_the_skill_at_the_root(run: Run, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    assert run("new", "fresh")[1].startswith("../../.agents/skills/fresh/SKILL.md\n")
    assert (package.parents[1] / ".agents/skills/fresh/SKILL.md").exists()


def test_annotations_for_a_service_name_paths_in_the_repository(
    run: Run, package: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub knows the repository, not the folder that the check ran in."""
    write("proj/src/pkg/skills/deploy", "Deploy the package.")
    monkeypatch.chdir(package)
    assert "file=.agents/skills/deploy/SKILL.md" in run("check", "--format", "github")[1]
    assert '"uri": ".agents/skills/deploy/SKILL.md"' in run("check", "--format", "sarif")[1]


def test_skills_of_parents_are_checked_and_trusted_outside_a_repository(
    run: Run, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("work/.agents/skills/team")
    folder = tmp_path / "work/notes"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run("check") == (0, "1 skill checked: no problems\n", "")
    assert run("trust", "--yes", "team")[0] == 0
    assert "1 approved, 0 pending" in run("trust", "--list")[1]
    assert run("trust", "--revoke", "team")[1] == "revoked team (1 version)\n"


def test_one_approval_counts_in_every_folder_of_the_repository(
    run: Run, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(package)
    assert run("trust", "--yes", "deploy")[0] == 0
    for folder in (package.parents[1], package.parent, package):
        monkeypatch.chdir(folder)
        assert "1 approved, 0 pending" in run("trust", "--list")[1]
        assert "deploy" in agent(find_workspace(), trust=Trust.open()).shelf.catalog


# -- the agent --------------------------------------------------------------------------------------------------------


def open_agent(folder: Path, *script: object, **options: Any) -> AgentCore:
    return agent(find_workspace(folder), *script, **options)


def approve_all(core: AgentCore) -> None:
    core.skills.approve(core.skills.pending)
    core.reload_skills()


def test_the_agent_uses_a_skill_of_the_root_and_stays_in_its_folder(package: Path) -> None:
    skill = package.parents[1] / ".agents/skills/deploy/SKILL.md"
    before = skill.read_text()
    (package / "notes.txt").write_text("near\n")
    core = open_agent(
        package,
        call("load_skill_instructions", skill_name="deploy"),
        call("read_file", path="notes.txt"),
        call("write_file", path="../../.agents/skills/deploy/SKILL.md", content=NEW),
        call("write_file", path=str(skill), content=NEW),
        call("read_file", path="../../.git/config"),
        call("run_command", command="pwd"),
        "ok",
        trust=Trust.open(),
    )
    approve_all(core)
    texts = [event.text for event in of(say(core, "go"), ToolReturned)]
    assert "Do it." in texts[0]
    assert "near" in texts[1]
    assert "outside" in texts[2]
    assert "outside" in texts[3]
    assert "outside" in texts[4]
    assert str(package) in texts[5]
    assert skill.read_text() == before
    assert core.skills.folder == str(package)
    assert core.skills.root == str(package.parents[1])


def test_a_skill_that_the_agent_writes_in_its_folder_is_live_at_once(package: Path) -> None:
    """The write is reported relative to the folder, the skill belongs to the repository."""
    core = open_agent(
        package,
        call("write_file", path="skills/greet/SKILL.md", content=NEW),
        call("load_skill_instructions", skill_name="greet"),
        "Salve!",
        mode="ask",
        user=User("reviewed"),
        trust=Trust.open(),
    )
    events = say(core, "make a skill and use it")
    assert "Say hello in Latin." in of(events, ToolReturned)[1].text
    assert "greet" in core.shelf.catalog


def test_instructions_come_from_the_root_down_to_the_folder(package: Path) -> None:
    """Each AGENTS.md is approved on its own."""
    root = package.parents[1]
    (root / "AGENTS.md").write_text("Use tabs.")
    (package / "AGENTS.md").write_text("Use spaces.")
    (root / "docs").mkdir()
    (root / "docs/AGENTS.md").write_text("ELSEWHERE")
    core = open_agent(package, "one", "two", trust=Trust.open())
    assert {pending.name for pending in core.skills.pending} == {"AGENTS.md", "src/pkg/AGENTS.md", "deploy"}

    core.skills.approve([pending for pending in core.skills.pending if pending.name == "src/pkg/AGENTS.md"])
    core.reload_skills()
    say(core, "go")
    assert "Use spaces." in requests(core)[0].system
    assert "Use tabs." not in requests(core)[0].system

    approve_all(core)
    say(core, "again")
    system = requests(core)[1].system
    assert system.index("Use tabs.") < system.index("Use spaces.")
    assert 'For the folder "src/pkg" below its root:' in system
    assert "ELSEWHERE" not in system


def test_skills_of_parents_need_approval_like_the_projects(tmp_path: Path, write: Write) -> None:
    write("work/.agents/skills/team", "TEAM-BYTES")
    folder = tmp_path / "work/notes"
    folder.mkdir()
    core = open_agent(folder, "one", "two", trust=Trust.open())
    say(core, "go")
    assert "TEAM-BYTES" not in requests(core)[0].system
    assert [pending.name for pending in core.skills.pending] == ["team"]
    assert core.skills.drift == ("team",)
    approve_all(core)
    say(core, "again")
    assert "TEAM-BYTES" in requests(core)[1].system
    assert core.skills.pending == ()


@pytest.mark.parametrize(
    "command", ["python ../../.agents/skills/deploy/scripts/run.py", "make -C ../../.agents/skills/deploy"]
)
def test_a_command_that_mentions_an_unreviewed_skill_of_the_root_is_marked(package: Path, command: str) -> None:
    core = open_agent(package, trust=Trust.open())
    assert {file.skill for file in core.skills.unreviewed_files(command)} == {"deploy"}


def test_a_mention_relative_to_the_folder_is_noticed(package: Path, write: Write) -> None:
    write("proj/src/pkg/tools/build", Makefile="all:\n")
    core = open_agent(package, trust=Trust.open())
    assert {file.skill for file in core.skills.unreviewed_files("make -C tools/build")} == {"build"}


def test_sessions_belong_to_the_folder(package: Path) -> None:
    core = open_agent(package, "ok", sessions=Sessions(str(package)))
    say(core, "go")
    assert Sessions(str(package)).ids()
    assert not Sessions(str(package.parents[1])).ids()


def test_a_given_folder_is_the_whole_workspace_of_the_agent(package: Path) -> None:
    core = agent(package, "ok")
    assert core.skills.workspace == Workspace.exactly(package)
    assert "deploy" not in core.shelf.catalog
