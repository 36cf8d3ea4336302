"""COMMANDS: what `check --hosts` prints is pasted into a shell, and the names in it come from the workspace."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = ["-t", "--target-directory=evil", "=make", "$(touch ran)", "`touch ran`", "it's", "a b", "a\nb", "; touch ran"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    return folder


def add_skill(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: plain\ndescription: d\n---\nText.\n")


def test_commands_treat_every_name_as_the_name_of_a_folder(repository: Path) -> None:
    """A07: neither an option, nor a substitution, nor the end of a command."""
    for name in NAMES:
        add_skill(repository / name)
    words = [sys.executable, "-m", "skillshelf", "check", "--hosts", "--json"]
    done = subprocess.run(words, cwd=repository, capture_output=True, text=True, check=False)
    commands = [advice["command"] for advice in json.loads(done.stdout)["advice"] if advice["command"]]
    assert len(commands) > 1
    for command in commands:
        subprocess.run(["sh", "-c", command], cwd=repository, check=True)

    assert sorted(os.listdir(repository)) == [".agents", ".claude", ".git"]
    for folder in (".agents/skills", ".claude/skills"):
        assert sorted(os.listdir(repository / folder)) == sorted(NAMES)
        assert all((repository / folder / name / "SKILL.md").is_file() for name in NAMES)
    assert not any(" =" in command for command in commands), "zsh replaces =make by the path of make"


def test_a_command_is_not_broken_into_lines(repository: Path) -> None:
    """A07: in a narrow terminal, the second line of a pasted command would run the skill's name."""
    for name in ("make", "b" * 60, "a" * 60):
        add_skill(repository / name)
    screen, terminal = pty.openpty()
    words = [sys.executable, "-m", "skillshelf", "check", "--hosts"]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen(words, cwd=repository, stdout=terminal, stdin=terminal, env=environment):
        os.close(terminal)
        shown = b""
        while chunk := _read(screen):
            shown += chunk
    os.close(screen)
    moves = [line for line in shown.decode().splitlines() if " mv " in line]
    assert len(moves) == 1
    assert moves[0].endswith(f"mv {'a' * 60} {'b' * 60} make .agents/skills/")


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # the other end is closed
        return b""
