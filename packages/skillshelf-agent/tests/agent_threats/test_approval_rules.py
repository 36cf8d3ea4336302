"""No command that a rule allows runs a second one, whatever it is made of: real shells are the judges."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_kit import agent, of, say
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.rules import RuleBook, split_command
from skillshelf_agent.testing import call

SHELLS = [shell for shell in map(shutil.which, ("sh", "dash", "bash", "ksh", "zsh")) if shell]
# `show` prints its arguments; every call of `evil`, and every second call of `show`, leaves a trace.
SHOW = '#!/bin/sh\necho run >> "$TRACE"\nfor word in "$@"; do printf "%s\\0" "$word"; done\n'
EVIL = '#!/bin/sh\necho evil >> "$TRACE"\n'
PIECES = st.sampled_from(
    [
        *" \t\n\r;&|<>()${}[]*?~#!`'\"\\=^%-+:,./@",
        *["evil", "show", "a", "$(evil)", "`evil`", "<(evil)", ";evil", "&&evil", "||evil", "|evil", "\nevil", "$X"],
        *[
            "${X}",
            "$'evil'",
            '$"evil"',
            "A=1",
            "2>&1",
            ">f",
            "<<E",
            "'",
            '"',
            "\\'",
            "\\\n",
            "{a,b}",
            "\u00a0",
            "ä",
            "\u200b",
        ],
        *["'a b'", '"a b"', "''", "--", "-x", "~root", "!!", "coproc", "time", "exec", "eval", "\x00", "\x1b", "\x85"],
    ]
)
# Most text of such pieces is refused. Quotes around them, and plain words, make commands that are run.
INSIDE = st.lists(PIECES.filter(lambda piece: not set(piece) & set("'\"")), max_size=4).map("".join)
QUOTED = INSIDE.map(lambda text: f"'{text}'") | INSIDE.map(lambda text: f'"{text}"')
PLAIN = st.sampled_from(["evil", "a=b", "-x", "--y=z", "a:b", "@1", "%", "+", ",", "./a", "=", "time", "if"])
COMMANDS = st.lists(PIECES, max_size=12).map("".join) | st.lists(
    st.one_of(QUOTED, PLAIN, st.sampled_from([" ", "  ", "\t"])), max_size=10
).map("".join)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stage")
    for name, text in (("show", SHOW), ("evil", EVIL)):
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (folder / "work").mkdir()
    (folder / "work" / "a").touch()
    (folder / "work" / "b").touch()
    return folder


def run(shell: str, command: str, stage: Path) -> tuple[list[str], list[str]]:
    """Run the command, and return the arguments that `show` got and the traces."""
    trace = stage / "trace"
    trace.write_text("")
    done = subprocess.run(
        [shell, "-c", command],
        cwd=stage / "work",
        env={"PATH": str(stage / "bin"), "TRACE": str(trace), "X": "; evil", "HOME": "/", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    words = [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]
    return words, trace.read_text().split()


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=150, deadline=None)
@given(rest=COMMANDS)
@example(rest=" 'a;evil' \"b|evil\" c")
@example(rest=" --x=y z")
def test_a_shell_gives_the_program_exactly_the_words_that_rules_compare(shell: str, stage: Path, rest: str) -> None:
    """Text that no rule can cover is asked about, so it is not run here."""
    command = f"show{rest}"
    words = split_command(command)
    if words is None or words[0] != "show":
        return
    assert run(shell, command, stage) == (list(words[1:]), ["run"])


@pytest.mark.parametrize("folder", [".skillshelf", ".config/skillshelf", "."])
def test_a_workspace_cannot_bring_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """A file of the same name in a repository is a file like any other."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    root = tmp_path / "w"
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / "rules.toml").write_text("[[rule]]\ndecision = 'allow'\ntool = 'run_command'\ncommand = 'evil'\n")
    monkeypatch.chdir(root)
    assert RuleBook(str(root)).list() == []


@pytest.mark.parametrize("name", ["rules.toml", "config.toml"])
def test_the_file_tools_do_not_reach_the_users_files_through_dotfiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A user's file that is a link into the workspace stays out of the agent's hands in auto-edit, too."""
    dotfiles = tmp_path.resolve() / "dotfiles"
    config = tmp_path / "config" / "skillshelf"
    dotfiles.mkdir()
    config.mkdir(parents=True)
    (dotfiles / name).write_text("")
    (config / name).symlink_to(dotfiles / name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    write = call("write_file", path=name, content='policy = "yolo"\n')
    core = agent(dotfiles, write, "Done.", mode="auto-edit")
    (result,) = of(say(core, "go"), ToolReturned)
    assert not result.ok
    assert "belongs to skillshelf itself" in result.text
    assert (dotfiles / name).read_text() == ""
