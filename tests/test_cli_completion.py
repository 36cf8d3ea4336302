"""Test `skillshelf completion` in the shells themselves."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
Complete = Callable[[str, str], set[str]]

# Each prints the completions of the command line in $LINE, one per line.
BASH = """
source "$SCRIPT"
COMP_WORDS=($LINE)
if [[ "$LINE" == *" " ]]; then COMP_WORDS+=(""); fi
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_shtab_skillshelf skillshelf "${COMP_WORDS[$COMP_CWORD]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'source "$SCRIPT"; complete --do-complete "$LINE" | string split --fields 1 \\t; true'


@pytest.fixture
def complete(run: Run, tmp_path: Path) -> Complete:
    """Return the completions that a shell offers for a command line."""
    command = tmp_path / "bin" / "skillshelf"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m skillshelf "$@"\n')
    command.chmod(0o755)

    def complete_line(shell: str, line: str) -> set[str]:
        program = shutil.which(shell)
        if program is None:
            pytest.skip(f"{shell} is not installed")
        code, script, _ = run("completion", shell)
        assert code == 0
        (tmp_path / "script").write_text(script)
        environment = {
            "PATH": f"{command.parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "SCRIPT": str(tmp_path / "script"),
            "LINE": line,
        }
        shell_command = [program, "-c", FISH if shell == "fish" else BASH]
        completed = subprocess.run(
            shell_command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return set(completed.stdout.split())

    return complete_line


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("skillshelf ch", {"check", "chat"}),
        ("skillshelf completion ", {"bash", "zsh", "fish"}),
        ("skillshelf check --form", {"--format"}),
        ("skillshelf check --format ", {"text", "sarif", "github"}),
        ("skillshelf eval ", {"run", "list", "compare", "view", "judge-check", "worker"}),
        ("skillshelf eval run --base", {"--baseline", "--base-url"}),
        ("skillshelf eval list --base", set()),
        ("skillshelf show pdf", {"pdf-forms", "pdf-merge"}),
        ("skillshelf trust --show pdf", {"pdf-forms", "pdf-merge"}),
    ],
)
def test_a_shell_completes(complete: Complete, write: Write, shell: str, line: str, offered: set[str]) -> None:
    write("pdf-forms")
    write("pdf-merge")
    assert complete(shell, line) == offered


def test_folders_are_completed(complete: Complete, write: Write) -> None:
    """In fish, its bundled functions do this."""
    write("pdf-forms")
    assert {word.rstrip("/") for word in complete("bash", "skillshelf new x --in pdf-")} == {"pdf-forms"}
    assert {word.rstrip("/") for word in complete("bash", "skillshelf eval run --record pdf-")} == {"pdf-forms"}


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_skills_name_is_never_executed(complete: Complete, write: Write, tmp_path: Path, shell: str) -> None:
    """Shells expand the words they complete, and a cloned repository chooses the names of its skills."""
    path = write("harmless")
    path.write_text("---\nname: $(touch${IFS}owned)\ndescription: Does it.\n---\n\nDo it.\n")
    write("`touch owned`")
    assert "harmless" in complete(shell, "skillshelf show ") or shell == "fish"
    assert "$" not in "".join(complete(shell, "skillshelf show "))
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid(run: Run, tmp_path: Path, shell: str) -> None:
    code, script, stderr = run("completion", shell)
    assert (code, stderr) == (0, "")
    for word in ("doctor", "trust-workspace", "overlap"):
        assert word in script
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script)
    subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


def test_a_shell_must_be_named(run: Run) -> None:
    assert run("completion")[0] == 2
    assert run("completion", "tcsh")[0] == 2
