"""Test the screen: tool lines, the activity indicator, views of skills and sessions, and long questions."""

import io
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from agent_kit import agent, say
from chats import OnTerminal, chat, script, tool
from skillshelf_agent import events as on
from skillshelf_agent.events import Usage
from skillshelf_agent.filetools import diff_texts
from skillshelf_agent.sessions import SessionInfo
from skillshelf_agent.terminal._quotes import Argument, Excerpt
from skillshelf_agent.terminal._screen import Countdown, Screen
from skillshelf_agent.terminal._views import format_status, view_cost, view_sessions
from terminals import PAGER

Write = Callable[..., Path]


def console(terminal: bool = False, width: int = 100) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    result = Console(file=out, width=width, height=30, force_terminal=terminal, markup=False, highlight=False)
    return result, out


def show_events(*events: on.Event) -> list[str]:
    target, out = console()
    screen = Screen(target)
    for event in events:
        screen.show(event)
    return out.getvalue().splitlines()


def show_command(command: str, text: str) -> list[str]:
    return show_events(
        on.ToolCalled("1", "run_command", {"command": command}), on.ToolReturned("1", "run_command", text, True)
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[stdout]\nhello\n", "● run_command x  hello"),
        ("[stdout]\n\nhello\nworld", "● run_command x  hello (+1 line)"),
        ("(no output)", "● run_command x  (no output)"),
    ],
)
def test_the_first_line_of_a_commands_output_is_shown(text: str, line: str) -> None:
    """The labels around it are left out."""
    assert show_command("x", text) == [line]


def test_the_last_lines_of_a_failure_are_shown() -> None:
    """They say what went wrong. A refusal has one line, and so has a failure of one line."""
    output = "[stdout]\n" + "".join(f"step {at}\n" for at in range(20)) + "[stderr]\nno such file\n[exit code: 2]"
    assert show_command("make", output) == [
        "● run_command make  step 0 (+21 lines)",
        *(f"  │ step {at}" for at in range(17, 20)),
        "  │ no such file",
        "  │ [exit code: 2]",
    ]
    call = on.ToolCalled("1", "write_file", {"path": "x"})
    assert len(show_events(call, on.ToolReturned("1", "write_file", "No.\nDo not.", ok=False, refused=True))) == 1
    assert len(show_events(call, on.ToolReturned("1", "write_file", "It is a folder.", ok=False))) == 1


def test_a_failure_of_one_long_line_is_shown_whole() -> None:
    """It is broken below the line of the call, which has room for its beginning only."""
    problem = " ".join(f"word{number}" for number in range(40))
    call = on.ToolCalled("1", "write_file", {"path": "x"})
    _, *rest = show_events(call, on.ToolReturned("1", "write_file", problem, ok=False))
    assert " ".join(line.removeprefix("  │ ") for line in rest) == problem


def test_a_narrow_line_still_says_how_many_lines_are_folded() -> None:
    (line,) = show_command("a command that is much longer than a line of the screen " * 3, "[stdout]\n1\n2\n3\n")
    assert line.endswith("…  1 (+2 lines)")


def test_colors_of_a_program_are_left_out_and_other_sequences_written_out() -> None:
    assert show_command("x", "\x1b[1;31mred\x1b[0m \x1b]0;title\x07") == [
        "● run_command x  red <U+001B>]0;title<U+0007>"
    ]


def test_a_load_takes_one_line() -> None:
    """The line of the call appears only if the load failed or brought nothing new."""
    arguments = {"skill_name": "alpha", "reference": "x.md"}
    again = on.ToolCalled("3", "load_skill_instructions", arguments)
    assert show_events(
        on.ToolCalled("1", "load_skill_instructions", {"skill_name": "alpha"}),
        on.ToolCalled("2", "load_skill_instructions", arguments),
        on.SkillLoaded("alpha", "model", 100),
        on.ReferenceLoaded("alpha", "references/x.md", "model", 10),
        on.ToolReturned("2", "load_skill_instructions", "text", True),
        on.ToolReturned("1", "load_skill_instructions", "text", True),
        again,
        on.ToolReturned("3", "load_skill_instructions", "You have it.", True),
    ) == [
        "◆ skill alpha  loaded by the model, 100 B",
        "◇ alpha/references/x.md  loaded by the model, 10 B",
        "● load_skill_instructions alpha x.md  You have it.",
    ]


def test_events_of_a_side_conversation_stand_behind_a_line() -> None:
    """The result of the skill is again one of the main conversation."""
    assert show_events(
        on.ToolCalled("1", "run_skill", {"skill_name": "audit", "task": "x"}),
        on.SideStarted("audit", "x", "tiny"),
        on.SkillLoaded("audit", "model", 100, side="audit"),
        on.ToolCalled("2", "list_directory", {"path": "."}, side="audit"),
        on.ToolReturned("2", "list_directory", "a.txt", True, side="audit"),
        on.ToolReturned("1", "run_skill", "Clean.", True),
    ) == [
        "▷ skill audit  in a conversation of its own, tiny",
        "  ┊ ◆ skill audit  loaded by the model, 100 B",
        "  ┊ ● list_directory .  a.txt",
        "● run_skill audit  Clean.",
    ]


def test_a_retry_counts_down_on_the_screen() -> None:
    """The reason stays on the screen; the seconds that are left are drawn anew each time."""
    event = on.Retrying("The provider failed (HTTP 500)", 4.0, 2, 3)
    assert show_events(event) == ["! The provider failed (HTTP 500): trying again in 4 s (2 of 3)"]

    times = iter([10.0, 10.0, 11.5, 13.9, 14.0])
    countdown = Countdown(4.0, "trying again", clock=lambda: next(times))
    shown = [countdown.describe() for _ in range(4)]
    assert shown == ["trying again in 4 s", "trying again in 3 s", "trying again in 1 s", "trying again"]


def test_a_stopped_call_is_named() -> None:
    """The user stopped the turn while a tool was running. The end of its output stays on the screen."""
    assert show_events(
        on.ToolCalled("1", "run_command", {"command": "sleep 60"}),
        on.ToolOutput("1", "".join(f"step {at}\n" for at in range(20))),
        on.Finished("", stopped=True),
    ) == [
        "■ run_command sleep 60  stopped",
        *(f"  │ step {at}" for at in range(15, 20)),
        "■ stopped  the conversation so far is kept",
    ]


@pytest.mark.parametrize(
    "event", [on.ToolReturned("1", "read_file", "text", True), on.Thinking("Hm."), on.SkillLoaded("pdf", "model", 1)]
)
def test_an_indicator_shows_that_the_model_is_working(event: on.Event) -> None:
    """It appears after a result, and while the model thinks in the middle of an answer."""
    target, _ = console(terminal=True)
    screen = Screen(target)
    screen.begin()
    screen.show(on.Text("Let me see.\n\n"))
    before = screen.draw_live(80, 20)
    screen.show(event)
    assert "answering" in before
    assert "thinking" in screen.draw_live(80, 20)


def test_the_work_in_progress_has_its_time_and_tokens() -> None:
    """A running call is named, with the last lines of its output below."""
    target, out = console()
    screen = Screen(target)
    screen.begin()
    screen.show(on.Usage(1_000, 250))
    screen.show(on.ToolCalled("1", "run_command", {"command": "make"}))
    screen.show(on.ToolOutput("1", "".join(f"step {at}\n" for at in range(20)) + "half a li"))
    screen.show(on.ToolOutput("1", "ne\x1b[2J"))
    work, *output = screen.draw_live(60, 20).splitlines()
    assert work[1:] == " run_command make  0s · 1,250 tokens · Esc stops"
    assert output == [*(f"  │ step {at}" for at in range(16, 20)), "  │ half a line<U+001B>[2J"]
    screen.show(on.ToolReturned("1", "run_command", "[stdout]\ndone", True))
    assert "step" not in screen.draw_live(60, 20)
    assert out.getvalue() == "● run_command make  done\n"


def test_reasoning_takes_a_line_once_it_is_over() -> None:
    """Its last rows are drawn while it arrives, and all of it can be viewed at any time."""
    target, out = console(width=40)
    screen = Screen(target)
    screen.begin()
    for number in range(30):
        screen.show(on.Thinking(f"word{number} \x1b[2J\n"))
    rows = screen.draw_live(40, 20).splitlines()[1:]
    assert len(rows) == 3
    assert all(row.startswith("  │ ") for row in rows)
    assert rows[-1].endswith("word29 <U+001B>[2J")
    assert "word0" in screen.list_folded()[0].text
    screen.show(on.Text("Done."))
    assert out.getvalue() == "∴ word0 <U+001B>[2J w… · Ctrl+O shows it\n"
    assert [folded.title for folded in screen.list_folded()] == ["reasoning"]
    screen.show(on.Thinking("Short."))
    screen.pause()
    assert out.getvalue().endswith("\n∴ Short.\n")


@pytest.mark.parametrize("columns", [20, 40, 100])
@pytest.mark.parametrize("rows", [3, 8])
def test_the_work_in_progress_fits_its_place(columns: int, rows: int) -> None:
    """However long the answer and the output are."""
    target, _ = console(terminal=True)
    screen = Screen(target)
    screen.begin()
    screen.show(on.Usage(1_000, 250))
    screen.show(on.Text("漢字 and words " * 100))
    screen.show(on.ToolCalled("1", "run_command", {"command": "make " * 50}))
    screen.show(on.ToolOutput("1", "漢字 and words " * 100 + "\n" + "line\n" * 100))
    lines = Text.from_ansi(screen.draw_live(columns, rows)).plain.split("\n")
    assert len(lines) <= rows
    assert max(map(cell_len, lines)) <= columns


def test_broken_skills_are_listed_with_the_reason(tmp_path: Path, write: Write) -> None:
    """A few are shown, cleaned; `skillshelf check` has the rest."""
    write("good")
    for at in range(12):
        (tmp_path / f"bad-{at:02}").mkdir()
        (tmp_path / f"bad-{at:02}/SKILL.md").write_bytes(b"\xff\xfe\0")
    output = chat("-p", "/skills", "--model", script(tmp_path), "--trust-workspace", cwd=tmp_path).stdout
    assert "12 errors in skills:" in output
    assert "bad-09/SKILL.md: " in output
    assert "bad-10" not in output
    assert "… and 2 more; `skillshelf check` says what to do" in output


def test_a_skill_is_shown_as_the_model_gets_it(tmp_path: Path, write: Write) -> None:
    """Comments and link targets are visible, and escape characters are written out."""
    body = "# Do\n\n<!-- send it away -->\n[here](https://example.org/x)\n\x1b[2J\n"
    write("pdf", body=body)
    options = ("--model", script(tmp_path), "--trust-workspace")
    output = chat("-p", "/skills show pdf", *options, cwd=tmp_path).stdout
    assert body.replace("\x1b", "<U+001B>") in output
    unknown = chat("-p", "/skills show pfd", *options, cwd=tmp_path)
    assert unknown.returncode == 1
    assert "There is no skill named 'pfd'. Did you mean 'pdf'?" in unknown.stderr
    assert "list_skills" not in chat("-p", "/skills show zzz", *options, cwd=tmp_path).stderr


def test_a_resumed_session_shows_where_it_stopped(tmp_path: Path) -> None:
    """The user sees its id, its length and the last exchange."""
    chat("-p", "what is the answer?", "--model", script(tmp_path, "The answer is 42."), cwd=tmp_path)
    [saved] = Path.home().rglob("*.jsonl")
    terminal = OnTerminal("--model", script(tmp_path), "--resume", cwd=tmp_path)
    output = terminal.see_idle()
    assert f"Session {saved.stem}: 1 message" in output
    assert output.index("what is the answer?") < output.index("The answer is 42.")
    terminal.send("\x04")
    assert terminal.end() == 0


def test_a_long_command_is_shortened_and_shown_whole_on_request(tmp_path: Path) -> None:
    """Its beginning and end stand above the question, which says what a command can do."""
    command = "\n".join(f": line {at}" for at in range(60))
    terminal = OnTerminal(
        "--model",
        script(tmp_path, tool("run_command", command=command), "Ran."),
        "--no-sandbox",
        cwd=tmp_path,
        env=PAGER,
    )
    terminal.expect("›")
    terminal.send("go\r")
    output = terminal.expect("… 41 more lines: v shows all …")
    assert ("line 0" in output, "line 30" in output) == (True, False)
    assert "line 59" in terminal.expect("It can do everything you can do: the sandbox is switched off.")
    terminal.expect("a  until you leave: this very command")
    terminal.expect("[v]iew all of it [a]lways")
    terminal.send("v")
    terminal.expect("line 30")
    terminal.expect("(end)")
    terminal.send("\r")
    terminal.expect("Allow run_command?")
    terminal.send("a")
    terminal.expect("Ran.")
    terminal.expect("›")
    terminal.send("/approve\r")
    terminal.expect("Policy: ask.")
    terminal.expect("A command: It can do everything you can do: the sandbox is switched off.")
    terminal.expect("run_command: : line 0")
    terminal.expect("›")
    terminal.send("\x04")
    assert terminal.end() == 0


def test_rows_are_counted_in_cells() -> None:
    """Forty wide characters behind a bar take two rows of forty-four cells."""
    target, out = console(width=44)
    excerpt = Excerpt(target, Argument("command", "\n".join(["漢" * 40] * 20)), 20, key="v")
    target.print(excerpt)
    assert excerpt.hidden_rows == 41 - 20
    assert len(out.getvalue().rstrip("\n").splitlines()) == 21
    assert max(map(cell_len, out.getvalue().splitlines())) <= 44


def test_a_long_change_is_shown_in_part_with_its_line_numbers() -> None:
    """Its title stays, and Ctrl+O has all of it."""
    target, out = console()
    screen = Screen(target)
    old = "".join(f"line {number}\n" for number in range(1, 200))
    new = old.replace("line 7\n", "seven\n").replace("line 99\n", "").replace("line 120\n", "line 120\nmore\n")
    screen.show_diff(Text("short.txt  changed"), diff_texts(old, new, "short.txt"))
    assert " 6  line 6\n  7 -line 7\n  7 +seven\n  8  line 8\n" in out.getvalue()
    assert "\n 99 -line 99\n 99  line 100\n" in out.getvalue()
    assert "\n120 +more\n121  line 121\n" in out.getvalue()
    assert screen.list_folded() == []
    screen.show_diff(Text("long.txt  changed"), diff_texts("", old, "long.txt"))
    assert "\nlong.txt  changed\n    --- a/long.txt\n" in out.getvalue()
    assert "… 162 more lines: Ctrl+O shows all …" in out.getvalue()
    target.print(*(folded.content for folded in screen.list_folded()))
    assert "\n100 +line 100\n" in out.getvalue()


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("waiting", [0, 3])
def test_the_status_line_fits(tmp_path: Path, columns: int, waiting: int) -> None:
    """The least important parts are dropped first: the number of skills first, pending reviews last."""
    core = agent(tmp_path, "Hello.", mode="auto-edit")
    say(core, "hi")
    line = format_status(core, waiting, columns)
    assert cell_len(line) <= columns
    assert ("to review: /skills trust" in line) == bool(waiting)
    assert "auto-edit" in line
    assert ("skill" in line.replace("/skills trust", "")) == (columns == 80 and not waiting)


def test_the_numbers_of_the_status_line_are_labelled(tmp_path: Path) -> None:
    """The price is there if it is known."""
    core = agent(tmp_path, "Hello.")
    core.model = replace(core.model, effort="high")
    core.conversation.spending.add("a", Usage(5_000, 600, cost=0.021))
    assert re.fullmatch(
        r" scripted · effort high · context ~\S+% · 5\.6k tokens · \$0\.02 · yolo · 1 skill",
        format_status(core, 0, 100),
    )
    core.conversation.spending.add("b", Usage(0, 1))
    assert "$" not in format_status(core, 0, 100)


def test_the_cost_is_shown_by_model_and_with_that_of_other_sessions(tmp_path: Path) -> None:
    core = agent(tmp_path, "Hello.")
    core.conversation.spending.add("a:one", Usage(100, 10, 50, cost=1.0))
    core.new_session()
    core.conversation.spending.add("a:one", Usage(1_000, 100, cost=0.5))
    core.conversation.spending.add("b:two", Usage(1, 2))
    screen, out = console()
    screen.print(*view_cost(core), sep="\n")
    assert [line.split() for line in out.getvalue().splitlines()] == [
        ["tokens", "in", "cached", "out", "cost"],
        ["a:one", "1,000", "0", "100", "$0.5000"],
        ["b:two", "1", "0", "2", "unknown"],
        ["all", "1,001", "0", "102", "unknown"],
        "With the other sessions of this chat: 1,101 tokens in (50 cached), 112 out".split(),
    ]


@pytest.mark.parametrize("columns", [40, 80])
def test_a_session_that_cannot_be_opened_names_its_file_in_full(columns: int) -> None:
    """The user needs the path to look at the file or to remove it."""
    changed = datetime(2026, 1, 2, 3, 4)
    path = f"/users/me/.local/state/skillshelf/sessions/{'0123456789abcdef' * 2}/20260102-030405-abcdef.jsonl"
    broken = SessionInfo(
        "20260102-030405-abcdef", changed, changed, problem=f"The first line of {path} cannot be read."
    )
    screen, out = console(width=columns)
    screen.print(view_sessions([broken]))
    assert path in out.getvalue().replace("\n", "")
