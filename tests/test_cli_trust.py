"""`skillshelf trust`: in a pipe, for a program, and with a person at a terminal."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from terminals import read_terminal, start_on_terminal, wait_for_reader

from skillshelf.trust import Trust

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def _skills(write: Write) -> None:
    write("a/pdf", "Fills forms.", "Fill it.\n")
    write("b/sql", "Reviews SQL.", "Review it.\n")


def approved() -> list[str]:
    return sorted(one.name for one in Trust.open().approvals.trees.values())


def test_without_a_terminal_it_lists_and_says_how_to_go_on(run: Run) -> None:
    """W01: nobody is asked, nothing is approved, and the exit code says that something waits."""
    code, shown, complaint = run("trust")
    assert code == 1
    assert shown.splitlines() == [
        "2 pending skills in .:",
        "  pdf (new): 1 file, 54 bytes",
        "  sql (new): 1 file, 56 bytes",
    ]
    assert "skillshelf trust --yes NAME" in complaint
    assert approved() == []


def test_yes_approves_exactly_what_is_there_and_says_its_hash(run: Run) -> None:
    """The hash that is printed is that of the record, and the exit code tells what still waits."""
    code, shown, _ = run("trust", "--yes", "pdf")
    [tree] = Trust.open().approvals.trees
    assert (code, shown) == (0, f"approved pdf {tree}\n")
    assert run("trust", "--list")[0] == 1
    assert run("trust", "--yes", "pdf", "sql")[0] == 0
    assert run("trust", "--list")[0] == 0
    assert run("trust") == (
        0,
        "Nothing is pending: every skill of this workspace is as you approved it, or there is none.\n",
        "",
    )


def test_the_list_tells_what_is_approved_changed_and_new(run: Run, write: Write) -> None:
    """One line for each, and the same for a program."""
    run("trust", "--yes", "pdf")
    assert run("trust", "--list")[1].splitlines()[1].split()[:2] == ["pdf", "approved"]
    write("a/pdf", "Changed.")
    code, shown, _ = run("trust", "--list")
    rows = [line.split() for line in shown.splitlines()]
    assert code == 1
    assert [rows[1][:2], rows[2][:2], rows[-1]] == [["pdf", "changed"], ["sql", "new"], "0 approved, 2 pending".split()]
    skills = json.loads(run("trust", "--json")[1])["skills"]
    [tree] = Trust.open().approvals.trees
    assert [(one["name"], one["status"], one["approved"]) for one in skills] == [
        ("pdf", "changed", tree),
        ("sql", "new", None),
    ]


def test_show_prints_the_review(run: Run, write: Write) -> None:
    """Everything in a pending skill; of an approved one, that it is."""
    code, shown, _ = run("trust", "--show", "pdf")
    assert code == 0
    assert "  │ Fill it." in shown
    assert "  │ Fill it." in json.loads(run("trust", "--show", "pdf", "--json")[1])["review"]
    run("trust", "--yes", "pdf")
    assert run("trust", "--show", "pdf")[1].startswith("pdf is approved as it is: ")


def test_revoke_takes_back_every_version(run: Run, write: Write) -> None:
    """By name or all of the workspace, also of a skill that is not there now."""
    run("trust", "--yes", "pdf", "sql")
    write("a/pdf", "Changed.")
    run("trust", "--yes", "pdf")
    assert run("trust", "--revoke", "pdf")[:2] == (0, "revoked pdf (2 versions)\n")
    assert approved() == ["sql"]
    write("b/sql").unlink()
    assert "sql" in run("trust", "--list")[1]
    assert run("trust", "--revoke", "--all")[:2] == (0, "revoked sql (1 version)\n")
    assert approved() == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--yes",), 2),
        (("--revoke",), 2),
        (("--all",), 2),
        (("--revoke", "pdf", "--all"), 2),
        (("--list", "--yes", "pdf"), 2),
        (("--yes", "nope"), 1),
        (("--show", "nope"), 1),
        (("--revoke", "nope"), 1),
        (("-C", "nowhere"), 2),
    ],
)
def test_wrong_use_and_unknown_names(words: tuple[str, ...], code: int, run: Run) -> None:
    """Nothing is approved by a command that is not understood, and the message says why."""
    done, _, complaint = run("trust", *words)
    assert done == code
    assert complaint
    assert approved() == []


def test_a_name_that_two_skills_have_needs_the_path(run: Run, write: Write) -> None:
    """The message names both places, and each of them is understood."""
    write("c/pdf", "Another.")
    code, _, complaint = run("trust", "--yes", "pdf")
    assert code == 1
    assert "a/pdf, c/pdf" in complaint
    assert run("trust", "--yes", "c/pdf")[0] == 0
    assert approved() == ["pdf"]


def test_project_instructions_are_pending_too(run: Run, tmp_path: Path) -> None:
    """AGENTS.md is listed, shown, approved and revoked by its name."""
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    assert "AGENTS.md (new)" in run("trust")[1]
    assert "│ Be kind." in run("trust", "--show", "AGENTS.md")[1]
    assert run("trust", "--yes", "AGENTS.md")[0] == 0
    assert [row.split()[:2] for row in run("trust", "--list")[1].splitlines()][1] == ["AGENTS.md", "approved"]
    assert run("trust", "--revoke", "AGENTS.md")[1] == "revoked AGENTS.md (1 version)\n"


def test_a_damaged_record_is_said(run: Run) -> None:
    """W13: the person hears that nothing counts as approved, and where the record went."""
    run("trust", "--yes", "pdf")
    Path(Trust.open().path, "approvals.json").write_bytes(b"{")
    code, _, complaint = run("trust", "--list")
    assert code == 1
    assert "approvals.json.bad" in complaint


# -- a person at a terminal -------------------------------------------------------------------------------------------


def at_terminal(cwd: Path, *answers: str) -> tuple[int, str]:
    """Runs `skillshelf trust` on a terminal and types each answer when it is asked for: exit code and screen."""
    words = [sys.executable, "-m", "skillshelf", "trust", "--no-color"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    pid, terminal = start_on_terminal(words, environment, cwd=cwd)
    received, left = b"", list(answers)
    while data := read_terminal(terminal):
        received += data
        if received.count(b"[q]uit (no): ") > len(answers) - len(left) and left:
            wait_for_reader(pid)
            os.write(terminal, left.pop(0).encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), received.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("answers", "code", "kept"),
    [
        (("y\n", "n\n"), 1, ["pdf"]),
        (("\n", "\n"), 1, []),
        (("what\n", "yes\n"), 1, ["sql"]),
        (("a\n",), 0, ["pdf", "sql"]),
        (("n\n", "a\n"), 1, ["sql"]),
        (("q\n",), 1, []),
        (("y\n", "q\n"), 1, ["pdf"]),
        (("y\n", "\x04"), 1, ["pdf"]),
        (("y\n", "y\n"), 0, ["pdf", "sql"]),
    ],
)
def test_the_person_decides_skill_by_skill(
    answers: tuple[str, ...], code: int, kept: list[str], tmp_path: Path
) -> None:
    """W14: one listing, one question each, and whatever is no clear yes is a no."""
    done, screen = at_terminal(tmp_path, *answers)
    assert (done, approved()) == (code, kept)
    assert screen.startswith("2 pending skills in .:")
    assert screen.index("  │ Fill it.") < screen.index("(1/2) Approve pdf as it is now?")


def test_what_was_typed_before_the_question_is_no_answer(tmp_path: Path) -> None:
    """A yes that was typed or pasted ahead approves nothing."""
    words = [sys.executable, "-m", "skillshelf", "trust"]
    pid, terminal = start_on_terminal(words, {**os.environ, "TERM": "dumb"}, cwd=tmp_path)
    os.write(terminal, b"y\na\n")
    screen = b""
    while b"[q]uit (no): " not in screen:
        screen += os.read(terminal, 65536)
    wait_for_reader(pid)
    os.write(terminal, b"q\n")
    while read_terminal(terminal):
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert approved() == []


def test_a_hostile_skill_cannot_paint_over_the_question(tmp_path: Path, write: Write) -> None:
    """T01: no control character of a skill reaches the terminal, and its text cannot pass for the page's own lines."""
    write("evil", "d", "\x1b[2J\x1b[H\x9b31m\rFiles:\n  none\n(3/3) Approve? \u202e\n")
    _, screen = at_terminal(tmp_path, "n\n", "q\n")
    assert not [char for char in screen if char < " " and char != "\n"]
    assert not {"\x9b", "\u202e"} & set(screen)
    assert "\nFiles:\n  none" not in screen
