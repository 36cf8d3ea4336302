"""`skillshelf demo` shows a skill at work, in a recording of the real interface."""

import os
import re
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from demo_recorder import record_demo
from skillshelf.cli._recording import Frame, read_recording
from terminals import start_on_terminal

Run = Callable[..., tuple[int, str, str]]
DEMO = [sys.executable, "-m", "skillshelf", "demo"]
WITHOUT_CHAT = """
import sys
sys.modules["skillshelf_agent"] = None
from skillshelf.cli import main
sys.exit(main(sys.argv[1:]))
"""


def mask_numbers(frames: list[Frame]) -> list[Frame]:
    """Hide token counts and the bar made of them: they depend on the length of the path of the workspace."""
    return [Frame(frame.kind, re.sub(r"[█░]+|\d[\d,]*", "N", frame.text)) for frame in frames]


def watch(command: list[str], folder: Path, keys: bytes = b"", after: str = "") -> tuple[int, str]:
    """Run a command on a terminal to its end, press the keys once a text appeared, and return its code and output."""
    environment = {**os.environ, "TERM": "xterm-256color"}
    pid, terminal = start_on_terminal(command, environment, cwd=folder, columns=100, rows=50)
    output = b""
    while True:
        select.select([terminal], [], [], 60)
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the end of the program closed it
            break
        if not data:
            break
        output += data
        if keys and after in output.decode(errors="ignore"):
            os.write(terminal, keys)
            keys = b""
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output.decode(errors="ignore")


def test_the_recording_is_what_the_interface_shows_today() -> None:
    """After a change on purpose, `python tests/demo_recorder.py` records it again."""
    assert mask_numbers(record_demo()) == mask_numbers(read_recording())


def test_a_pipe_gets_the_conversation_as_plain_text(run: Run) -> None:
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    assert out.startswith("skillshelf demo: A recording of a scripted conversation\n")
    for text in (
        "› Write the release notes for v1.2.",
        "◆ skill notes  loaded by the model",
        "◇ notes/references/style.md  loaded by the model",
        "../.ssh/id_rsa  Skill 'notes' does not offer",
        "+- There is a dark mode now. (#41)",
        "Allow write_file? [y]es [n]o",
        "tokens (16%), by estimate",
    ):
        assert text in out
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines() if not line.startswith("Allow"))


def test_without_the_extra_it_plays_the_recording_and_names_the_command_that_installs_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_CHAT, "demo"]
    code, output = watch(command, tmp_path, keys=b" ", after="Any key skips the pauses")
    assert code == 0
    assert "A recording of a scripted conversation" in output
    assert "pip install 'skillshelf[chat]'" in output
    assert "There is a dark mode now." in output


@pytest.mark.parametrize(("key", "after"), [(b"q", ""), (b"q", "3 skills"), (b"\x03", "3 skills")])
def test_a_key_leaves(key: bytes, after: str, tmp_path: Path) -> None:
    """Even one that is pressed as soon as anything is on the screen."""
    code, output = watch(DEMO, tmp_path, keys=key, after=after)
    assert (code, "dark mode" in output) == (0 if key == b"q" else 130, False)


def test_the_core_alone_starts_it(tmp_path: Path) -> None:
    """Nothing but rich is imported for the recording."""
    program = (
        "import sys; from skillshelf.cli import main; main(['demo']); "
        "print(sorted({'pydantic_ai', 'prompt_toolkit', 'asyncio'} & set(sys.modules)))"
    )
    completed = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert completed.stdout.splitlines()[-1] == "[]"
