"""Run the command as a process: on a terminal, in a pipe, with hostile text."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import prepared
from prepared import SKILLSHELF, start_on_terminal
from terminals import read_terminal

# Colours, bold and dim: the only styles that rich writes for these commands.
STYLE = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://evil\x1b\\x\x9b31m\rover\x08\x7f\u2028"


def run_on_terminal(*arguments: str, cwd: Path, columns: int = 100, **environment: str) -> str:
    """Return the output on a terminal of that width, with plain line endings."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    variables = {**inherited, "TERM": "xterm-256color", **environment}
    process, terminal = start_on_terminal(arguments, variables, cwd=cwd, columns=columns, rows=50)
    received = b""
    while data := read_terminal(terminal):
        received += data
    os.close(terminal)
    process.wait(60)
    return received.decode().replace("\r\n", "\n")


def run_in_pipe(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return prepared.run(arguments, cwd=cwd)


def find_controls(text: str) -> set[str]:
    return set(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", text))


@pytest.fixture
def hostile(tmp_path: Path, write: Callable[..., Path]) -> Path:
    """Create a workspace in which every text tries to take over the terminal."""
    body = (
        f"# Steps {HOSTILE}\n\n&#27;[2J &#8238;evil &#13;over <!-- unseen -->\n\n[//]: # (unseen too)\n\n![a](b.png)\n"
    )
    path = write("tame", f"Does {HOSTILE} it", body)
    path.write_text(path.read_text().replace("---\n\n", f"license: MIT {HOSTILE}\nmetadata:\n  a{HOSTILE}: b\n---\n\n"))
    (path.parent / "references").mkdir()
    (path.parent / "references" / f"x{HOSTILE.replace('/', '')}.md").write_text("x")
    (path.parent / "references" / "text.md").write_text(f"# Text {HOSTILE}\n\n&#8238;evil\n")
    (path.parent / "references" / "text.txt").write_text(f"Text {HOSTILE}\n")
    odd_folder = tmp_path / f"odd{HOSTILE.replace('/', '')}"
    odd_folder.mkdir()
    (odd_folder / "SKILL.md").write_text(f"---\nname: n{HOSTILE}\ndescription: d\n---\nDo it.\n")
    return tmp_path


COMMANDS = [
    ("list",),
    ("show", "tame"),
    ("show", "tame", "text.md"),
    ("show", "tame", "text.txt"),
    ("show", HOSTILE),
    ("show", "tame", HOSTILE),
    ("search", "does", "over"),
    ("search", HOSTILE),
    ("search", "--explain", "does", "over", HOSTILE),
    ("check", "--overlap"),
    ("check", "--overlap", HOSTILE),
    ("check",),
    ("check", "--format", "github"),
    ("check", "--json"),
    ("check", HOSTILE),
    ("check", "--ignore", HOSTILE),
    ("show", "--prompt"),
    ("cost",),
    ("why", "tame"),
    ("why", HOSTILE),
    ("why", "tame", "--for", f"does over {HOSTILE}"),
    ("why", HOSTILE, "--for", "does over"),
    ("why", f"odd{HOSTILE.replace('/', '')}"),
    ("new", HOSTILE),
    ("add", HOSTILE),
    ("add", ".", "--dry-run"),
    ("remove", HOSTILE),
    ("nonsense", HOSTILE),
    ("list", HOSTILE),
]


@pytest.mark.parametrize(
    "arguments", COMMANDS, ids=lambda arguments: " ".join(arguments)[:24].encode("unicode_escape").decode()
)
def test_no_control_character_reaches_a_terminal(hostile: Path, arguments: tuple[str, ...]) -> None:
    """For any skill, path or argument, a terminal gets printable text and rich's own colours."""
    assert find_controls(STYLE.sub("", run_on_terminal(*arguments, cwd=hostile))) == set()


@pytest.mark.parametrize(
    "arguments", COMMANDS[:13], ids=lambda arguments: " ".join(arguments)[:24].encode("unicode_escape").decode()
)
def test_no_control_character_reaches_a_pipe(hostile: Path, arguments: tuple[str, ...]) -> None:
    """A pipe often ends in a terminal."""
    completed = run_in_pipe(*arguments, cwd=hostile)
    assert find_controls(completed.stdout + completed.stderr) == set()


def test_json_contains_the_original_text(hostile: Path) -> None:
    """A program gets the text itself, escaped."""
    completed = run_in_pipe("show", "--json", "tame", "text.txt", cwd=hostile)
    assert "\\u001b[2J" in completed.stdout
    assert "\\u007f" in completed.stdout


def test_a_terminal_shows_everything_a_model_reads(hostile: Path) -> None:
    """Comments, link definitions and image targets are not rendered away."""
    output = STYLE.sub("", run_on_terminal("show", "tame", cwd=hostile))
    for text in ("<!-- unseen -->", "unseen too", "b.png", "<U+202E>evil"):
        assert text in output


def test_a_description_cannot_add_lines(write: Callable[..., Path], tmp_path: Path) -> None:
    """Text from a skill must not look like a statement of skillshelf."""
    path = write("pdf")
    path.write_text(path.read_text().replace("Does it.", '"Does it.\\nsource         bundled"'))
    assert "Does it. source bundled" in run_in_pipe("show", "pdf", cwd=tmp_path).stdout
    assert run_in_pipe("list", cwd=tmp_path).stdout.count("\npdf ") == 1


def test_only_a_terminal_gets_colours(write: Callable[..., Path], tmp_path: Path) -> None:
    """A pipe, NO_COLOR and a dumb terminal have none."""
    write("pdf")
    assert "\x1b[36m" in run_on_terminal("list", cwd=tmp_path)
    assert "\x1b[36m" not in run_on_terminal("list", cwd=tmp_path, NO_COLOR="1")
    assert "\x1b[" not in run_on_terminal("list", cwd=tmp_path, TERM="dumb")
    assert "\x1b[" not in run_in_pipe("list", cwd=tmp_path).stdout


@pytest.mark.parametrize("columns", [40, 100])
def test_wide_text_stays_on_the_screen(write: Callable[..., Path], tmp_path: Path, columns: int) -> None:
    """Characters two cells wide count double, and a list takes one line per skill."""
    from rich.cells import cell_len

    write("wide", "技能" * 200)
    write("rtl", "שלום " * 200)
    write("long-" + "x" * 59)
    for command in ("list", "cost"):
        lines = STYLE.sub("", run_on_terminal(command, cwd=tmp_path, columns=columns)).splitlines()
        assert max(map(cell_len, lines)) <= columns


@pytest.mark.parametrize("columns", [40, 70, 100])
def test_a_name_is_never_cut(write: Callable[..., Path], tmp_path: Path, columns: int) -> None:
    """On a narrow screen, the description gives way, and then the numbers."""
    names = ["a-name-of-thirty-six-letters-in-words", "pdf"]
    for name in names:
        write(name, "Explains at length what it is for, and when to use it. " * 3, "Load `a.md`.\n", a_md="A page.\n")
    lines = STYLE.sub("", run_on_terminal("list", cwd=tmp_path, columns=columns)).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == names
    assert ("descr" in lines[0]) == (columns >= 70)


def test_a_paged_list_has_whole_names_and_numbers(write: Callable[..., Path], tmp_path: Path) -> None:
    """A column without room is left out, as in a short list."""
    for number in range(60):
        write(f"skill-{number:02}-with-a-name", body="All of these words count as tokens somewhere. " * 2_000)
    long_name = "long-" + "x" * 59
    for columns, expected in ((40, "skill-00-with-a-name  project  18,500"), (36, "skill-00-with-a-name  project")):
        output = STYLE.sub("", run_on_terminal("list", cwd=tmp_path, columns=columns, PAGER="cat"))
        assert expected in output.splitlines()

    write(long_name)
    output = STYLE.sub("", run_on_terminal("list", cwd=tmp_path, columns=40, PAGER="cat"))
    assert f"{long_name[:40]}\n{long_name[40:]}\n" in output
    assert "…" not in output


def test_a_list_longer_than_the_screen_goes_to_the_pager(write: Callable[..., Path], tmp_path: Path) -> None:
    """The counts stay on the screen."""
    for number in range(60):
        write(f"skill-{number:02}")
    pager = tmp_path / "pager.sh"
    pager.write_text(f"#!/bin/sh\nwc -l > {tmp_path}/paged\n")
    pager.chmod(0o755)
    output = STYLE.sub("", run_on_terminal("list", cwd=tmp_path, PAGER=str(pager)))
    assert int((tmp_path / "paged").read_text()) == 62
    assert output.startswith("61 skills: 60 project, 1 bundled.")
    assert "skill-30" not in output


def test_bars_show_the_length_of_instructions(write: Callable[..., Path], tmp_path: Path) -> None:
    """The longest instructions have the longest bar, and a bar over the limit is yellow."""
    write("long", body="All of these words count as tokens somewhere. " * 700)
    write("half", body="All of these words count as tokens somewhere. " * 350)
    output = run_on_terminal("cost", cwd=tmp_path)
    bars = {line.split()[0]: line.count("█") for line in STYLE.sub("", output).splitlines() if "█" in line}
    assert bars["long"] == 2 * bars["half"] == 24
    assert "\x1b[33m█" in output
    assert "\x1b[32m█" in output


def test_the_listing_on_a_terminal_is_followed_by_its_cost(write: Callable[..., Path], tmp_path: Path) -> None:
    """The cost is on stderr, so a pipe carries only the section."""
    write("pdf")
    assert re.search(
        r"\n[\d,]+ tokens in every call; \d+ skills in full\n$", run_on_terminal("show", "--prompt", cwd=tmp_path)
    )


def test_the_process_returns_the_exit_code_of_the_command(write: Callable[..., Path], tmp_path: Path) -> None:
    write("pdf")
    codes = [
        run_in_pipe(*arguments, cwd=tmp_path).returncode for arguments in (("list",), ("why", "x"), ("x",), ("--help",))
    ]
    assert codes == [0, 1, 2, 0]


def test_a_reader_that_leaves_early_ends_the_command(tmp_path: Path, write: Callable[..., Path]) -> None:
    """`| head -1` causes no error message."""
    for number in range(300):
        write(f"skill-{number}", "x" * 1000)
    with subprocess.Popen(
        [*SKILLSHELF, "list"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().startswith(b"name")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_ctrl_c_ends_the_command_without_a_traceback(tmp_path: Path, write: Callable[..., Path]) -> None:
    write("pdf", references__long_md="x" * 10_000_000)
    command = [*SKILLSHELF, "show", "pdf", "long.md"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A background process of a script ignores interrupts, and its children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    ) as process:
        assert process.stdout
        process.stdout.read(1)  # it writes, and blocks until the pipe is read
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 130


def test_a_terminal_of_another_encoding_gets_escapes(write: Callable[..., Path], tmp_path: Path) -> None:
    """Output that it cannot encode causes no traceback."""
    write("pdf", "技能 …")
    completed = subprocess.run(
        [*SKILLSHELF, "list"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
        check=False,
    )
    assert (completed.returncode, completed.stderr) == (0, b"")
    assert b"\\u6280" in completed.stdout


def test_a_pipe_needs_no_rich(write: Callable[..., Path], tmp_path: Path) -> None:
    """Start-up is quick because only commands on a terminal import libraries that draw."""
    write("pdf")
    script = (
        "import sys; from skillshelf.cli import main; code = main(sys.argv[1:]);"
        "sys.exit(code or any(name in sys.modules for name in ('rich', 'markdown_it', 'difflib')))"
    )
    for arguments in (("list",), ("show", "pdf"), ("show", "--prompt")):
        completed = subprocess.run(
            [sys.executable, "-c", script, *arguments], cwd=tmp_path, capture_output=True, check=False
        )
        assert (completed.returncode, completed.stderr) == (0, b"")
