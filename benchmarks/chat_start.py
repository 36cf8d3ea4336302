"""Measure the start of `skillshelf chat`: until its prompt appears, and until it says that no model was chosen.

    python -m benchmarks.chat_start

Both are held against importing prompt_toolkit and rich, in turn with it, with the bytecode of every module at hand.
"""

import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.clock import bytecode_environment
from benchmarks.report import HEADINGS, Row, aligned

_PROMPT = "chat: the prompt appears, CPU"
_NO_MODEL = "chat: no model was chosen, CPU"
ROWS = (_PROMPT, _NO_MODEL)
_MOST = 1.5
_LIBRARIES = [sys.executable, "-c", "import prompt_toolkit, rich.console"]


def measure(rounds: int) -> list[Row]:
    """Return a row for each of `ROWS`, from as many starts of each program in turn."""
    try:
        import prompt_toolkit  # noqa: F401
    except ImportError:
        return [Row(what, None, against="needs skillshelf[chat]") for what in ROWS]

    with tempfile.TemporaryDirectory(prefix="skillshelf-chat-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        script = workspace / "script.json"
        script.write_text(json.dumps(["Hello."]))
        chat = [sys.executable, "-m", "skillshelf", "chat"]
        environment = _without_keys(bytecode_environment(f"{folder}/bytecode")) | {
            "HOME": folder,
            "TERM": "xterm-256color",
            "XDG_STATE_HOME": f"{folder}/state",
        }
        programs: list[Callable[[], float]] = [
            lambda: _cpu_until_prompt([*chat, "--model", f"script:{script}"], str(workspace), environment),
            lambda: _cpu_until_end([*chat, "-p", "hi"], str(workspace), environment),
            lambda: _cpu_until_end(_LIBRARIES, str(workspace), environment),
        ]
        for program in programs:
            program()  # compiles everything
        taken = [[program() for program in programs] for _ in range(rounds)]

    prompt, no_model, libraries = (statistics.median(times) for times in zip(*taken, strict=True))
    against = "importing prompt_toolkit and rich"
    return [
        Row(_PROMPT, prompt, against=against, other=libraries, most_ratio=_MOST),
        Row(_NO_MODEL, no_model, against=against, other=libraries, most_ratio=_MOST),
    ]


def _without_keys(environment: dict[str, str]) -> dict[str, str]:
    names = ("_API_KEY", "SKILLSHELF_")
    return {name: value for name, value in environment.items() if not any(part in name for part in names)}


def _cpu_until_end(command: list[str], folder: str, environment: dict[str, str]) -> float:
    """Return the CPU seconds of a program that ends by itself."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # it was waited for
    return usage.ru_utime + usage.ru_stime


def _cpu_until_prompt(command: list[str], folder: str, environment: dict[str, str]) -> float:
    """Return the CPU seconds of a chat on a terminal until it shows its prompt."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(command[0], command, environment)
    shown = b""
    try:
        while "›".encode() not in shown:
            data = os.read(terminal, 65536)
            if b"\x1b[6n" in data:  # prompt_toolkit asks where the cursor is
                os.write(terminal, b"\x1b[1;1R")
            shown += data
        threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


if __name__ == "__main__":
    print(aligned(HEADINGS, [row.cells() for row in measure(7)]))
