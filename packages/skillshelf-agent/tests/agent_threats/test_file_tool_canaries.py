"""The tools that read a workspace run no program from it.

Each trap plants a program in a place from which some tool is known to run it: git, ripgrep, an editor, a shell, Python.
The program writes a canary file.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_kit import agent, of, say
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.testing import call

READS = (
    {"tool": "read_file", "arguments": {"path": "README.md"}},
    {"tool": "list_directory", "arguments": {"path": "."}},
    {"tool": "list_directory", "arguments": {"path": "sub"}},
    {"tool": "find_files", "arguments": {"pattern": "**/*"}},
    {"tool": "find_files", "arguments": {"pattern": "**/.*"}},
    {"tool": "search_files", "arguments": {"pattern": "needle"}},
    {"tool": "search_files", "arguments": {"pattern": "need.e"}},
    {"tool": "search_files", "arguments": {"pattern": "need.e", "path": "sub"}},
    {"tool": "search_files", "arguments": {"pattern": "need.e", "path": ".git", "include_glob": ".*"}},
    {"tool": "search_files", "arguments": {"pattern": "need.e", "path": "README.md"}},
)


class Trapped:
    """A workspace with a trap, and the file that shows whether the trap was sprung."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.home = folder / "home"
        # It is in the workspace, because a confined program can write there, too.
        self.canary = self.root / "canary"
        self.write("README.md", "a needle in a haystack\n")
        self.write("sub/a.txt", "another needle\n")
        self.home.mkdir()
        self.program = self.write("trap.sh", f"#!/bin/sh\necho sprung > {self.canary}\n")
        self.program.chmod(0o755)

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def python(self, path: str) -> None:
        self.write(path, f"open({str(self.canary)!r}, 'w').write('sprung')\n")


def make_repository(trapped: Trapped, folder: str, *, bare: bool) -> None:
    """Make a repository whose config names the program in every way that git commands which only read obey."""
    target = trapped.root / folder
    subprocess.run(["git", "init", "-q", *(["--bare"] if bare else []), str(target)], check=True)
    config = target / "config" if bare else target / ".git/config"
    program = trapped.program
    config.write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {trapped.root}\n\tfsmonitor = {program}\n"
        f"\tpager = {program}\n\teditor = {program}\n\tsshCommand = {program}\n\thooksPath = {trapped.root}/hooks\n"
        f'[diff]\n\texternal = {program}\n[filter "x"]\n\tclean = {program}\n\tsmudge = {program}\n'
        f"[alias]\n\tls-files = !{program}\n\tgrep = !{program}\n"
    )
    trapped.write(".gitattributes", "* filter=x diff=x\n")


def plant_git_config(trapped: Trapped) -> None:
    make_repository(trapped, ".", bare=False)


def plant_bare_repository(trapped: Trapped) -> None:
    make_repository(trapped, "sub", bare=True)


def plant_git_hooks(trapped: Trapped) -> None:
    subprocess.run(["git", "init", "-q", str(trapped.root)], check=True)
    for hook in ("post-checkout", "pre-commit", "post-index-change", "fsmonitor-watchman", "reference-transaction"):
        for folder in (".git/hooks", "hooks"):
            trapped.write(f"{folder}/{hook}", trapped.program.read_text()).chmod(0o755)


def plant_ripgrep_config(trapped: Trapped) -> None:
    options = f"--pre={trapped.program}\n--hostname-bin={trapped.program}\n--search-zip\n"
    for path in (".ripgreprc", "ripgreprc", ".rgrc", ".config/ripgrep/config"):
        trapped.write(path, options)
    trapped.write("a.gz", "needle")


def plant_editor_config(trapped: Trapped) -> None:
    run = f"system('{trapped.program}')"
    trapped.write(".vimrc", f"call {run}\n")
    trapped.write(".exrc", f"!{trapped.program}\n")
    trapped.write(".nvim.lua", f"os.execute('{trapped.program}')\n")
    trapped.write(".dir-locals.el", f'((nil . ((eval . (shell-command "{trapped.program}")))))\n')
    task = {"label": "x", "type": "shell", "command": str(trapped.program), "runOptions": {"runOn": "folderOpen"}}
    trapped.write(".vscode/tasks.json", json.dumps({"version": "2.0.0", "tasks": [task]}))
    trapped.write("modeline.txt", f"needle vim: set modelineexpr foldexpr={run} :\n")


def plant_shell_start_files(trapped: Trapped) -> None:
    for name in (".bashrc", ".profile", ".bash_profile", ".zshenv", ".zshrc", ".envrc", ".env", "BASH_ENV"):
        trapped.write(name, trapped.program.read_text())


def plant_programs_of_known_names(trapped: Trapped) -> None:
    for name in ("rg", "git", "grep", "find", "sh", "python", "python3", "readlink", "realpath"):
        for folder in (".", "bin", "node_modules/.bin", ".venv/bin"):
            trapped.write(f"{folder}/{name}", trapped.program.read_text()).chmod(0o755)


def plant_python_start_files(trapped: Trapped) -> None:
    for name in (
        "sitecustomize",
        "usercustomize",
        "re",
        "json",
        "signal",
        "site",
        "encodings",
        "skillshelf",
        "_matcher",
    ):
        trapped.python(f"{name}.py")
        trapped.python(f"sub/{name}.py")
    trapped.python("__main__.py")
    trapped.python("conftest.py")


def plant_python_packages(trapped: Trapped) -> None:
    trapped.python("trap.py")
    code = f"import os; open({str(trapped.canary)!r}, 'w')"
    for folder in (".", "lib/python3.11/site-packages", ".venv/lib/python3.11/site-packages"):
        trapped.write(f"{folder}/trap.pth", f"{code}\n")
        trapped.write(
            f"{folder}/trap-1.dist-info/entry_points.txt", "[skillshelf]\ntrap = trap\n[pytest11]\ntrap = trap\n"
        )
    trapped.write("pyvenv.cfg", f"home = {trapped.root}/bin\n")
    trapped.write("pyproject.toml", '[project]\nname = "trap"\n[project.entry-points."skillshelf"]\ntrap = "trap"\n')
    trapped.write("setup.py", code)


TRAPS: list[Callable[[Trapped], None]] = [
    plant_git_config,
    plant_bare_repository,
    plant_git_hooks,
    plant_ripgrep_config,
    plant_editor_config,
    plant_shell_start_files,
    plant_programs_of_known_names,
    plant_python_start_files,
    plant_python_packages,
]


@pytest.fixture(params=TRAPS, ids=lambda plant: plant.__name__)
def trapped(request: pytest.FixtureRequest, tmp_path: Path) -> Trapped:
    trapped = Trapped(tmp_path)
    request.param(trapped)
    return trapped


def test_the_traps_can_be_sprung(tmp_path: Path) -> None:
    """Git runs the program of the config. Otherwise the other tests would pass on traps that do not work."""
    trapped = Trapped(tmp_path)
    plant_bare_repository(trapped)
    subprocess.run(["git", "ls-files", "--others"], cwd=trapped.root / "sub", capture_output=True, check=False)
    assert trapped.canary.exists()


def test_no_reading_tool_springs_a_trap(trapped: Trapped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trapped.root)
    for variable, value in _misleading_environment(trapped).items():
        monkeypatch.setenv(variable, value)
    calls = [call(str(step["tool"]), **step["arguments"]) for step in READS]  # type: ignore[arg-type]
    results = of(say(agent(trapped.root, *calls, "done", mode="read-only"), "go"), ToolReturned)
    assert len(results) == len(READS)
    assert sum("needle" in result.text for result in results) >= 4
    assert not trapped.canary.exists()


@pytest.mark.parametrize("with_ripgrep", [False, True])
def test_a_read_only_chat_springs_no_trap(with_ripgrep: bool, tmp_path: Path) -> None:
    """The whole program starts among all the traps, with and without a working `rg`."""
    trapped = Trapped(tmp_path)
    for plant in TRAPS:
        plant(trapped)
    trapped.canary.unlink(missing_ok=True)  # planting some traps runs git itself
    script = tmp_path / "script.json"
    script.write_text(json.dumps([*READS, "done"]))
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "grep", "env"):
        program = shutil.which(name)
        if program:
            (programs / name).symlink_to(program)
    if with_ripgrep:
        # It stands in for ripgrep, and shows if it was started.
        (programs / "rg").write_text(trapped.program.read_text())
        (programs / "rg").chmod(0o755)
    environment = {
        **_misleading_environment(trapped),
        "PATH": str(programs),
        "HOME": str(trapped.home),
        "LANG": "C.UTF-8",
    }
    completed = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "skillshelf",
            "chat",
            "-p",
            "go",
            "--policy",
            "read-only",
            "--model",
            f"script:{script}",
        ],
        cwd=trapped.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert "done" in completed.stdout
    assert not trapped.canary.exists()


def _misleading_environment(trapped: Trapped) -> dict[str, str]:
    """Return variables that point programs at the workspace, except for those that would change this test itself."""
    return {
        "RIPGREP_CONFIG_PATH": str(trapped.root / ".ripgreprc"),
        "GIT_DIR": str(trapped.root / ".git"),
        "BASH_ENV": str(trapped.root / "BASH_ENV"),
        "ENV": str(trapped.root / ".profile"),
        "EDITOR": str(trapped.program),
        "PAGER": str(trapped.program),
        "PYTHONSTARTUP": str(trapped.root / "trap.py"),
        "PYTHONSAFEPATH": "1",
    }


def test_the_search_process_imports_nothing_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter of the search process finds modules in the standard library only."""
    trapped = Trapped(tmp_path)
    plant_python_start_files(trapped)
    monkeypatch.chdir(trapped.root)
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(trapped.root))
    monkeypatch.setitem(os.environ, "PYTHONHOME", str(trapped.root))
    (result,) = of(say(agent(trapped.root, call("search_files", pattern="need.e"), "done"), "go"), ToolReturned)
    assert "README.md:1:" in result.text
    assert not trapped.canary.exists()
