"""The command line on a core install: `pip install skillshelf`, without any extra."""

import os
import re
import subprocess
import venv
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

import skillshelf
from skillshelf.cli._main import COMMANDS

INSTALL = "Run: pip install 'skillshelf[{}]'"
# The words of each command, its exit code, and what it prints.
EXPECTED = [
    ("", 0, "1 skill in .skillshelf/skills"),
    ("list", 0, "pdf-forms"),
    ("show pdf-forms", 0, "Fill in forms."),
    ("search fill in a form", 0, "1. pdf-forms"),
    ("why pdf-forms", 0, "pdf-forms is on the shelf."),
    ("why pdf-forms --for forms", 1, "pdf-forms"),
    ("cost", 0, "total"),
    ("cost --exact", 1, INSTALL.format("tokens")),
    ("new release-notes", 0, "SKILL.md"),
    ("new --package my_skills", 0, "pyproject.toml"),
    ("check", 0, "1 skill checked"),
    ("add ./.skillshelf --dry-run", 0, "1 skill in .skillshelf"),
    ("verify", 2, "There is no skills.lock"),
    ("sync", 2, "There is no skills.lock"),
    ("outdated", 2, "There is no skills.lock"),
    ("update", 2, "There is no skills.lock"),
    ("tree", 2, "There is no skills.lock"),
    ("remove pdf-forms", 1, "is not in"),
    ("show --prompt", 0, "Fill in forms."),
    ("check --hosts", 1, "pdf-forms"),
    ("check --overlap", 0, "skillshelf[evals]"),
    ("trust", 1, "1 pending skill"),
    ("trust --list", 1, "1 pending"),
    ("trust --yes pdf-forms", 0, "approved pdf-forms"),
    ("trust --mine", 0, "your own from now on"),
    ("set", 0, "no choices"),
    ("set pdf-forms full", 0, "is set to full"),
    ("chat", 1, INSTALL.format("chat")),
    ("chat -p hello", 1, INSTALL.format("chat")),
    ("eval", 1, INSTALL.format("evals")),
    ("eval list", 1, INSTALL.format("evals")),
    ("eval compare a b", 1, INSTALL.format("evals")),
    ("serve", 1, INSTALL.format("mcp")),
    ("serve --http", 1, INSTALL.format("mcp")),
    ("demo", 0, "pip install 'skillshelf[chat]'"),
    ("doctor", 0, "the extra chat is not installed"),
    ("completion bash", 0, "complete -o"),
    ("list --with weather", 2, "pip install 'skillshelf[weather]'"),
]


def find_core() -> Iterator[Distribution]:
    """Yield skillshelf and everything that it requires without an extra."""
    names = ["skillshelf"]
    for name in names:
        found = distribution(name)
        yield found
        for requirement in found.requires or ():
            required = re.match(r"[\w.-]+", requirement)
            assert required is not None
            if "extra ==" not in requirement and required[0] not in names:
                names.append(required[0])


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python of an environment with the core's distributions, as they are installed here."""
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for found in find_core():
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not name.endswith(".pth"):
                (packages / name).symlink_to(Path(str(found.locate_file(name))))
    if not (packages / "skillshelf").exists():  # it is installed as editable
        (packages / "skillshelf").symlink_to(Path(skillshelf.__file__).parent)
    return str(folder / "bin" / "python")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a repository with a skill that waits for review and has an eval case."""
    folder = tmp_path / "workspace" / ".skillshelf/skills/pdf-forms"
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf-forms\ndescription: Use for forms.\n---\n\nFill in forms.\n")
    (folder / "evals/cases.yaml").write_text("cases:\n  - prompt: Fill in this form.\n")
    (tmp_path / "workspace/.git").mkdir()
    return tmp_path / "workspace"


def run(python: str, workspace: Path, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}
    command = [python, "-B", *words]
    return subprocess.run(
        command, cwd=workspace, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_every_command_is_tried() -> None:
    assert set(COMMANDS) <= {words.partition(" ")[0] for words, _, _ in EXPECTED}


@pytest.mark.parametrize(("words", "code", "text"), EXPECTED)
def test_a_command_works_or_names_what_to_install(
    words: str, code: int, text: str, python: str, workspace: Path
) -> None:
    done = run(python, workspace, ["-m", "skillshelf", *words.split()])
    assert "Traceback" not in done.stderr
    assert text in done.stdout + done.stderr
    assert done.returncode == code


def test_listing_skills_loads_neither_the_linter_nor_markdown(python: str, workspace: Path) -> None:
    """Not even if a skill has faults that `check` would describe."""
    faulty = workspace / ".skillshelf/skills/broken/SKILL.md"
    faulty.parent.mkdir()
    faulty.write_text("---\nname: broken\ndescription: Use when: asked\nname: twice\n---\n\nSee [here](gone.md).\n")
    program = "import sys; from skillshelf.cli import main; main(['list']); print(*sorted(sys.modules))"
    done = run(python, workspace, ["-c", program])
    loaded = done.stdout.splitlines()[-1].split()
    assert "skillshelf check" in done.stdout
    unwanted = ("skillshelf.lint", "skillshelf_evals", "skillshelf_agent", "markdown_it", "rich")
    assert [name for name in loaded if name.startswith(unwanted)] == []
