"""`/learn` on a pseudo-terminal: the agent writes a skill and its eval case, with the user's approval."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")
pytest.importorskip("dbos", reason="needs the extra `evals`")

from pydantic_ai.messages import UserPromptPart

from chats import OnTerminal, chat, script, tool
from skillshelf.lint import check_skill
from skillshelf.shelf import Shelf
from skillshelf_agent.sessions import Sessions
from skillshelf_evals import list_cases

FOLDER = ".agents/skills/bump-version"
SKILL = """\
---
name: bump-version
description: "Raise the version of this project. Use it when a release is prepared or a version must go up."
---

# Bump the version

Change `version` in pyproject.toml, then run the tests.
"""
CASES = """\
cases:
  - name: raises the version
    prompt: Make this version 1.1.
    files:
      pyproject.toml: "version = '1.0'"
    checks:
      - skill_loaded
      - file_contains: {path: pyproject.toml, text: "1.1"}
"""


def write_skill(text: str = SKILL) -> dict[str, Any]:
    return tool("write_file", path=f"{FOLDER}/SKILL.md", content=text)


def write_cases(text: str = CASES) -> dict[str, Any]:
    return tool("write_file", path=f"{FOLDER}/evals/cases.yaml", content=text)


def begin(folder: Path, *steps: Any) -> OnTerminal:
    terminal = OnTerminal("--model", script(folder, "Done.", *steps), cwd=folder, columns=120)
    terminal.see_idle()
    terminal.send("raise the version\r")
    terminal.see("Done.")
    terminal.see_idle()
    return terminal


def leave(terminal: OnTerminal) -> None:
    terminal.see_idle()
    terminal.send("exit\r")
    assert terminal.end() == 0


def test_learn_writes_a_skill_that_is_used_at_once_and_a_case_that_loads(tmp_path: Path) -> None:
    terminal = begin(tmp_path, write_skill(), write_cases(), "It raises the version.")
    terminal.send("/learn bump-version\r")
    terminal.see("+# Bump the version")
    terminal.see("Allow write_file?")
    terminal.send("y")
    terminal.see("+  - name: raises the version")
    terminal.see("Allow write_file?")
    terminal.send("y")
    terminal.see("Written: bump-version")
    terminal.see("finds no fault")
    leave(terminal)

    folder = tmp_path / FOLDER
    assert check_skill(folder) == []
    cases, faults = list_cases([folder])
    assert ([case.name for case in cases], faults) == (["raises the version"], ())
    # Both files were approved with the whole change on the screen.
    ran = chat("--model", script(tmp_path, "Fine."), "-p", "hello", cwd=tmp_path)
    assert "not approved" not in ran.stderr


def test_a_no_writes_nothing(tmp_path: Path) -> None:
    terminal = begin(tmp_path, write_skill(), "Then not.")
    terminal.send("/learn\r")
    terminal.see("Allow write_file?")
    terminal.send("n")
    terminal.see("Then not.")
    terminal.see("No skill was written.")
    leave(terminal)
    assert not (tmp_path / FOLDER).exists()
    assert "bump-version" not in Shelf.open(tmp_path).catalog


def test_a_no_to_the_case_is_not_argued_with(tmp_path: Path) -> None:
    """The skill stays, the missing case is named, and the model is not asked for it again."""
    terminal = begin(tmp_path, write_skill(), write_cases(), "Without a case, then.")
    terminal.send("/learn bump-version\r")
    terminal.see("Allow write_file?")
    terminal.send("y")
    terminal.see("+  - name: raises the version")
    terminal.see("Allow write_file?")
    terminal.send("n")
    terminal.see("Written: bump-version")
    terminal.see("evals/cases.yaml was not written")
    leave(terminal)
    assert (tmp_path / FOLDER / "SKILL.md").exists()
    assert not (tmp_path / FOLDER / "evals").exists()


def test_faults_of_the_draft_go_back_to_the_model_once(tmp_path: Path) -> None:
    broken = CASES.replace("skill_loaded", "skill_lauded")
    steps = [write_skill(), write_cases(broken), "Written.", write_cases(), "Corrected."]
    terminal = begin(tmp_path, *steps)
    terminal.send("/approve auto-edit\r")
    terminal.see("Policy: auto-edit")
    terminal.send("/learn bump-version\r")
    terminal.see("Allow write_file?")
    terminal.send("y")
    terminal.see("skill_lauded")
    terminal.see("Corrected.")
    terminal.see("finds no fault")
    leave(terminal)
    assert list_cases([tmp_path / FOLDER])[1] == ()


@pytest.mark.parametrize(
    ("command", "message"),
    [("/learn", "Nothing has happened in this session yet"), ("/learn Bad Name", "Try: bad-name")],
)
def test_learn_needs_a_conversation_and_a_name_that_works(tmp_path: Path, command: str, message: str) -> None:
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path, columns=120)
    terminal.see_idle()
    terminal.send(f"{command}\r")
    terminal.see(message)
    leave(terminal)


def test_the_example_that_the_model_gets_is_a_case_that_loads(tmp_path: Path) -> None:
    terminal = begin(tmp_path, "Nothing to keep.")
    terminal.send("/learn\r")
    terminal.see("No skill was written.")
    leave(terminal)
    sessions = Sessions(str(tmp_path))
    with sessions.open(sessions.ids()[0]) as session:
        (prompt,) = session.messages[2].parts
    assert isinstance(prompt, UserPromptPart)
    _, _, rest = str(prompt.content).partition("cases:\n")
    example = "cases:\n" + rest.partition("`files`")[0]
    folder = tmp_path / FOLDER
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "evals/cases.yaml").write_text(example)
    cases, faults = list_cases([folder])
    assert (len(cases), faults) == (1, ())
    assert len(cases[0].checks) == 3
