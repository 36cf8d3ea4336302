"""Undo, diff, fork and the choice of a session, with the keys that a user presses."""

import os
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from chats import OnTerminal, chat, script, tool
from skillshelf_agent.sessions import Sessions

DOWN = "\x1b[B"


def wait_for_prompt(terminal: OnTerminal) -> None:
    """Wait for the status line: the mark of the prompt is also before replayed messages."""
    terminal.expect(" · ask · ")


def leave(terminal: OnTerminal) -> None:
    wait_for_prompt(terminal)
    terminal.send("/exit\r")
    assert terminal.end() == 0


def save_session(folder: Path, *questions: str) -> str:
    """Store a session in which these questions were answered."""
    with Sessions(str(folder)).create("openai:tiny") as session:
        for question in questions:
            messages: list[ModelMessage] = [
                ModelRequest(parts=[UserPromptPart(question)]),
                ModelResponse(parts=[TextPart(f"The answer to {question}.")]),
            ]
            session.append(messages)
    return session.id


def run_a_command(folder: Path) -> tuple[OnTerminal, Path]:
    """Let a command change a.txt and make b.txt. Return the terminal, and the workspace."""
    work = folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("old line\n")
    model = script(folder, tool("run_command", command="echo new line > a.txt; echo b > b.txt"), "Done.")
    terminal = OnTerminal("--model", model, cwd=work)
    wait_for_prompt(terminal)
    terminal.send("change it\r")
    terminal.expect("Allow run_command?")
    terminal.send("y")
    terminal.expect("Done.")
    wait_for_prompt(terminal)
    return terminal, work


def test_a_turn_is_shown_as_a_diff_and_taken_back(tmp_path: Path) -> None:
    """A command has changed a file, the user changes another one, and only the first goes back."""
    terminal, work = run_a_command(tmp_path)
    terminal.send("/diff\r")
    terminal.expect("-old line")
    terminal.expect("+new line")
    wait_for_prompt(terminal)

    (work / "b.txt").write_text("mine\n")
    terminal.send("/undo\r")
    terminal.expect("These changed while a command ran, by the command or by you:")
    terminal.expect("a.txt")
    terminal.expect("Take these back too?")
    terminal.send("y")
    terminal.expect('Took back "change it": 1 path.')
    terminal.expect("b.txt: it was changed since")
    leave(terminal)
    assert (work / "a.txt").read_text() == "old line\n"
    assert (work / "b.txt").read_text() == "mine\n"


def test_files_that_changed_during_a_command_stay_unless_the_user_agrees(tmp_path: Path) -> None:
    """Ctrl+C takes nothing back, and after a no each file can be named. Without a terminal to ask in, they stay."""
    terminal, work = run_a_command(tmp_path)
    terminal.send("/undo\r")
    terminal.expect("Take these back too?")
    terminal.send("\x03")
    terminal.expect("stopped")
    wait_for_prompt(terminal)
    terminal.send("/undo\r")
    terminal.expect("Take these back too?")
    terminal.send("n")
    terminal.expect('Took back "change it": 0 paths.')
    terminal.expect("a.txt: it changed while a command ran")
    wait_for_prompt(terminal)
    terminal.send("/undo b.txt\r")
    terminal.expect('Took back "change it": 1 path.')
    wait_for_prompt(terminal)
    terminal.send("/redo\r")
    terminal.expect('Brought back "change it": 1 path.')
    leave(terminal)

    undone = chat("--model", script(tmp_path), "--continue", "-p", "/undo", cwd=work)
    assert "b.txt: it changed while a command ran" in undone.stdout
    assert (work / "a.txt").read_text() == "new line\n"
    assert (work / "b.txt").read_text() == "b\n"


def test_nothing_to_take_back_is_an_error_with_a_reason(tmp_path: Path) -> None:
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path)
    wait_for_prompt(terminal)
    terminal.send("/undo\r")
    terminal.expect("There is nothing to take back")
    leave(terminal)


def test_a_session_is_chosen_from_the_menu(tmp_path: Path) -> None:
    """Typing filters by its first message, Enter resumes, and the end of the conversation is shown as it looked."""
    apples = save_session(tmp_path, "apples?", "pears?", "plums?", "figs?")
    save_session(tmp_path, "lions?")
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path)
    wait_for_prompt(terminal)
    terminal.send("/sessions\r")
    terminal.see("lions?")
    terminal.see("› /resume")
    terminal.send("apples")
    terminal.see_no("lions?")
    terminal.send(DOWN)
    terminal.see(f"› /resume {apples}")
    terminal.send("\r")
    terminal.expect("showing the last 3 of 4 messages")
    terminal.expect("› pears?")
    terminal.expect("The answer to figs?.")
    leave(terminal)


def test_a_session_that_cannot_be_opened_is_named_and_not_offered(tmp_path: Path) -> None:
    broken = save_session(tmp_path, "apples?")
    whole = save_session(tmp_path, "lions?")
    Path(Sessions(str(tmp_path)).folder or "", f"{broken}.jsonl").write_text("no session\n")
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path)
    wait_for_prompt(terminal)
    terminal.send("/sessions\r")
    terminal.expect(f"{broken}:")
    terminal.see("lions?")
    terminal.send(DOWN)
    terminal.see(f"› /resume {whole}")
    terminal.send(DOWN + DOWN)
    terminal.see(f"› /resume {whole}")
    terminal.send("\x15")
    leave(terminal)


def test_resume_without_an_id_offers_the_menu_at_the_start(tmp_path: Path) -> None:
    """The arrow keys move, and leaving prints the command that resumes this session."""
    older = save_session(tmp_path, "apples?")
    save_session(tmp_path, "lions?")
    os.utime(Path(Sessions(str(tmp_path)).folder or "", f"{older}.jsonl"), (1, 1))
    terminal = OnTerminal("--model", script(tmp_path), "--resume", cwd=tmp_path)
    terminal.see("apples?")
    terminal.send(DOWN + DOWN)
    terminal.see(f"› /resume {older}")
    terminal.send("\r")
    terminal.expect("The answer to apples?.")
    wait_for_prompt(terminal)
    terminal.send("/exit\r")
    terminal.expect(f"skillshelf chat --resume {older}")
    assert terminal.end() == 0


def test_continue_takes_the_last_session(tmp_path: Path) -> None:
    save_session(tmp_path, "apples?")
    save_session(tmp_path, "lions?")
    terminal = OnTerminal("--model", script(tmp_path), "--continue", cwd=tmp_path)
    terminal.expect("The answer to lions?.")
    leave(terminal)


def test_fork_leaves_the_original_as_it_is(tmp_path: Path) -> None:
    original = save_session(tmp_path, "apples?")
    terminal = OnTerminal("--model", script(tmp_path, "Hello."), "--continue", cwd=tmp_path)
    wait_for_prompt(terminal)
    terminal.send("/fork\r")
    terminal.expect("a copy of this session")
    terminal.expect(original)
    wait_for_prompt(terminal)
    terminal.send("hi\r")
    terminal.expect("Hello.")
    leave(terminal)
    infos = {info.id: info for info in Sessions(str(tmp_path)).list()}
    assert infos.pop(original).messages == 2
    (fork,) = infos.values()
    assert (fork.title, fork.messages) == ("apples?", 4)


def test_a_skill_is_replayed_as_it_was_typed(tmp_path: Path) -> None:
    """Neither the conversation nor the list shows the text of the skill."""
    skill = tmp_path / "skills/pdf/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: pdf\ndescription: Fill in forms.\n---\n\nFill in every field.\n")
    options = ("--model", script(tmp_path, "Filled in."), "--trust-workspace")
    assert chat(*options, "-p", "/skills:pdf tax.pdf", cwd=tmp_path).returncode == 0
    assert [info.title for info in Sessions(str(tmp_path)).list()] == ["/skills:pdf tax.pdf"]

    terminal = OnTerminal(*options, "--continue", cwd=tmp_path)
    shown = terminal.expect("Filled in.")
    assert "› /skills:pdf tax.pdf" in shown
    assert "skill_instructions" not in shown
    leave(terminal)


def test_an_export_without_a_name_does_not_land_in_the_workspace(tmp_path: Path) -> None:
    """And a page that a browser would run is not written at all."""
    work = tmp_path / "work"
    work.mkdir()
    session = save_session(work, "apples?")
    terminal = OnTerminal("--model", script(tmp_path), "--continue", cwd=work)
    wait_for_prompt(terminal)
    terminal.send("/export page.html\r")
    terminal.see("written as Markdown or JSON")
    terminal.send("/export\r")
    terminal.expect("Written to")
    leave(terminal)
    assert list(work.iterdir()) == []
    exported = Path(os.environ["HOME"], f".local/state/skillshelf/exports/{session}.md")
    assert "apples?" in exported.read_text()
    assert exported.stat().st_mode & 0o077 == 0
