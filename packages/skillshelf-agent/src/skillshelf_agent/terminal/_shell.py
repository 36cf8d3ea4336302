"""`!command`: a command of the user's, in their own shell, in the middle of a chat."""

import asyncio
import codecs
import os
import re
import signal
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from rich.text import Text

from skillshelf.errors import SkillError
from skillshelf.text import clean
from skillshelf_agent import attach_command
from skillshelf_agent._processes import signal_group
from skillshelf_agent.terminal._face import ChatFace

_MARK = "!"
_CHUNK_BYTES = 65_536
_MAX_KEPT = 20_000
"""Characters of the output that are kept for the model, from the beginning and again from the end."""
_SECONDS_AFTER_END = 0.2
"""How long output is awaited after the command has ended: something that it started may hold the other end open."""
_SECONDS_PER_SIGNAL = 2.0
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


class ShellLine(NamedTuple):
    """A line that runs a command of the user's."""

    command: str
    is_private: bool
    """True for `!!command`: the model does not hear of it."""


def parse_shell_line(text: str) -> ShellLine | None:
    """Read a line as `!command` or `!!command`. Return None if it does not begin like that."""
    if not text.startswith(_MARK):
        return None
    is_private = text.startswith(2 * _MARK)
    return ShellLine(text.lstrip(_MARK).strip(), is_private)


async def run_shell_line(face: ChatFace, line: ShellLine) -> None:
    """Run the command, show its output as it comes, and keep both for the next message. Raises SkillError."""
    if not line.command:
        raise SkillError("Type a command after the exclamation mark: !git status. !!git status is not for the model.")

    # A pipe of our own: asyncio's own pipe would make `wait` wait for everything that the command leaves behind.
    read_end, write_end = os.pipe()
    with open(read_end, "rb", buffering=0) as pipe:
        try:
            process = await _start(line.command, face.core.skills.folder, write_end)
        finally:
            os.close(write_end)
        output = _ShellOutput(face)
        outcome = "stopped by the user"
        try:
            await _copy_output(process, pipe, output)
            outcome = _describe_end(await process.wait())
        except asyncio.CancelledError:
            await _end_group(process)
            raise
        finally:
            output.finish()
            if not line.is_private:
                face.core.conversation.attach(attach_command(line.command, output.text, outcome))

    note = outcome if line.is_private else f"{outcome} · the model gets it with your next message"
    face.print(Text(note, "dim"))


async def _start(command: str, folder: str, output: int) -> Process:
    """Start the user's shell, with its output to this descriptor. Raises SkillError."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        return await asyncio.create_subprocess_exec(
            shell,
            "-c",
            command,
            cwd=folder,
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl+C reaches it through us, with everything that it started
        )
    except OSError as error:
        raise SkillError(f"{shell} cannot be started: {error.strerror}. SHELL names another shell.") from None


class _ShellOutput:
    """Shows output line by line, and keeps its beginning and its end."""

    def __init__(self, face: ChatFace) -> None:
        self._face = face
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._open_line = ""
        self._beginning = ""
        self._end = ""
        self._left_out = 0

    @property
    def text(self) -> str:
        if not self._left_out:
            return self._beginning + self._end
        return f"{self._beginning}\n… {self._left_out:,} characters are left out …\n{self._end}"

    def add(self, data: bytes) -> None:
        text = self._open_line + self._decoder.decode(data)
        whole, newline, self._open_line = text.rpartition("\n")
        if newline:
            self._show(whole)
        if len(self._open_line) > _CHUNK_BYTES:  # a line without an end
            self._show(self._open_line)
            self._open_line = ""

    def finish(self) -> None:
        rest = self._open_line + self._decoder.decode(b"", final=True)
        self._open_line = ""
        if rest:
            self._show(rest)

    def _show(self, lines: str) -> None:
        shown = "\n".join(_leave_progress_out(line) for line in _ESCAPES.sub("", lines).split("\n"))
        self._face.print(Text(clean(shown)))
        self._keep(f"{shown}\n")

    def _keep(self, text: str) -> None:
        room = _MAX_KEPT - len(self._beginning)
        self._beginning += text[:room]
        end = self._end + text[room:]
        self._left_out += max(0, len(end) - _MAX_KEPT)
        self._end = end[-_MAX_KEPT:]


def _leave_progress_out(line: str) -> str:
    """Return a line as it looks in the end: a carriage return begins it anew."""
    return line.rstrip("\r").rpartition("\r")[2]


async def _copy_output(process: Process, pipe: BinaryIO, output: _ShellOutput) -> None:
    """Show the output until it ends, or until the command has ended and nothing more comes."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    ended = asyncio.create_task(process.wait())
    try:
        while True:
            reading = asyncio.create_task(reader.read(_CHUNK_BYTES))
            try:
                await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    await asyncio.wait([reading], timeout=_SECONDS_AFTER_END)
                data = reading.result() if reading.done() else b""
            finally:
                reading.cancel()
            if not data:
                return
            output.add(data)
    finally:
        ended.cancel()
        transport.close()


async def _end_group(process: Process) -> None:
    """End the command, with more force each time, and then everything that it started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        signal_group(process.pid, number)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _SECONDS_PER_SIGNAL)
            break
    signal_group(process.pid, signal.SIGKILL)  # a shell's background processes ignore SIGINT


def _describe_end(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return f"ended by {signal.Signals(-code).name}"
