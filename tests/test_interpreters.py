"""Which interpreters continuous integration takes: those that run, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest

from repository import REPO

_SCRIPT = REPO / ".ci" / "interpreters"
_HERE = f"3.{sys.version_info.minor}"

pytestmark = pytest.mark.skipif(not _SCRIPT.exists(), reason="a source distribution comes without .ci")


def make_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def interpreters(home: Path) -> list[list[str]]:
    """Return the version and the path of each interpreter that is found from a home with `bin` on the PATH."""
    environment = {"PATH": str(home / "bin"), "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, _SCRIPT], env=environment, capture_output=True, text=True, check=True, cwd=home
    )
    return [line.split()[:2] for line in done.stdout.splitlines()]


def test_a_shim_that_runs_nothing_does_not_count(tmp_path: Path) -> None:
    make_program(tmp_path / "bin" / "python3.12", "#!/bin/sh\necho 'python3.12: command not found' >&2\nexit 127\n")
    make_program(tmp_path / "bin" / "python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert interpreters(tmp_path) == [[_HERE, sys.executable]]


def test_an_interpreter_counts_under_the_version_that_it_says_it_is(tmp_path: Path) -> None:
    make_program(tmp_path / "bin" / "python3.14", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert [version for version, _ in interpreters(tmp_path)] == [_HERE]


def test_the_versions_of_pyenv_are_found_without_being_on_the_path(tmp_path: Path) -> None:
    make_program(tmp_path / ".pyenv/versions/3.x/bin/python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert [version for version, _ in interpreters(tmp_path)] == [_HERE]
