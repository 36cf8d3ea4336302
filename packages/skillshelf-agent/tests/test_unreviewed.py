"""The question for a command names the skills' files in it that the user has not approved as they are now."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_kit import User, agent, of, say
from skillshelf.trust import Trust
from skillshelf_agent import AgentCore
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.testing import call

Write = Callable[..., Path]


@pytest.fixture
def skill(write: Write) -> Path:
    """A skill with scripts, in a workspace."""
    path = write(".agents/skills/pdf", scripts__run_py="print('good')", scripts__other_py="print('other')")
    (path.parent / "scripts/tool").write_text("#!/bin/sh\n")
    return path.parent


def started(root: Path, user: User, *commands: str, approve: bool = True) -> AgentCore:
    """Return an agent whose user has approved the workspace's skills, or has not."""
    script = [call("run_command", command=command) for command in commands]
    core = agent(root, *script, "ok", mode="ask", user=user, trust=Trust.open())
    if approve:
        core.skills.approve(core.skills.pending)
        core.skills.reload()
    return core


def named(user: User) -> list[list[str]]:
    return [[f"{file.skill}: {file.path} {file.status}" for file in question.unreviewed] for question in user.questions]


@pytest.mark.parametrize(
    "command",
    [
        "python .agents/skills/pdf/scripts/run.py",
        "python ./.agents/skills/pdf/scripts/run.py --fast",
        "cd .agents/skills/pdf && python scripts/run.py",
        "cd .agents/skills/pdf/scripts; python run.py>log",
        "cd .agents/skills/pdf/scripts; python -m run",
        "python -c 'import sys; sys.path.append(\"x\"); import run'",
        "cd .agents/skills/pdf; python 'scripts/run.py'",
        "python .agents/skills/pdf/scripts/r'u'n.py",
        "for f in .agents/skills/*/scripts/r*.py; do python $f; done",
        "ABS=$(pwd)/.agents/skills/pdf/scripts; python $ABS/run.py",
        "make -C .agents/skills/pdf",
    ],
)
def test_a_changed_script_is_named_however_it_is_written(tmp_path: Path, skill: Path, command: str) -> None:
    """Any path, a change of folder, quotes, a module, a pattern or the skill's folder leads to the file."""
    user = User("no")
    core = started(tmp_path, user, command)
    (skill / "scripts/run.py").write_text("print('evil')")
    say(core, "go")
    assert named(user) == [["pdf: scripts/run.py changed"]]
    assert str(user.questions[0].unreviewed[0]) == "scripts/run.py changed since you approved the skill 'pdf'."


def test_a_script_that_is_as_it_was_approved_is_not_named(tmp_path: Path, skill: Path) -> None:
    """A change of another file in the skill does not matter."""
    user = User("no", "no")
    core = started(tmp_path, user, "python scripts/run.py", "npm run build")
    (skill / "scripts/other.py").write_text("print('evil')")
    say(core, "go")
    assert named(user) == [[], []]


def test_a_script_of_a_skill_that_was_never_approved_is_named(tmp_path: Path, skill: Path) -> None:
    """Its status is `new`."""
    user = User("no")
    core = started(tmp_path, user, "./.agents/skills/pdf/scripts/tool", approve=False)
    say(core, "go")
    assert "pdf: scripts/tool new" in named(user)[0]
    texts = [str(file) for file in user.questions[0].unreviewed]
    assert "scripts/tool belongs to the skill 'pdf', which you have not approved." in texts


def test_a_script_that_the_agents_own_command_changed_is_named(tmp_path: Path, skill: Path) -> None:
    """The change happens in the same turn, after the last scan."""
    user = User("yes", "no")
    change = "echo \"print('evil')\" > .agents/skills/pdf/scripts/run.py"
    core = started(tmp_path, user, change, "python .agents/skills/pdf/scripts/run.py")
    say(core, "go")
    assert named(user)[1] == ["pdf: scripts/run.py changed"]


def test_a_command_that_was_always_allowed_is_asked_about_when_its_script_changes(tmp_path: Path, skill: Path) -> None:
    """The user's answer was for the script as it was then."""
    user = User("always", "yes", "no")
    run = "python3 .agents/skills/pdf/scripts/run.py"
    change = "echo \"print('evil')\" > .agents/skills/pdf/scripts/run.py"
    core = started(tmp_path, user, run, run, change, run)
    texts = [event.text for event in of(say(core, "go"), ToolReturned)]
    assert ["good" in texts[0], "good" in texts[1], "evil" in texts[3]] == [True, True, False]
    assert [question.arguments["command"] for question in user.questions] == [run, change, run]
    assert named(user)[2] == ["pdf: scripts/run.py changed"]


def test_a_program_gets_the_question_as_values(tmp_path: Path, skill: Path) -> None:
    """Programs read from fields what a command can do and which files are not approved."""
    user = User("no")
    core = started(tmp_path, user, "python scripts/run.py")
    (skill / "scripts/run.py").write_text("print('evil')")
    say(core, "go")
    question = user.questions[0].as_json()
    assert question["unreviewed"] == [
        {"skill": "pdf", "folder": ".agents/skills/pdf", "path": "scripts/run.py", "status": "changed"}
    ]
    assert question["sandbox"]["level"] == core.sandbox.level
    assert question["sandbox"]["stays_open"] == list(core.sandbox.stays_open)
