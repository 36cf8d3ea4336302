"""Run a program, and report its output while it runs."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from pydantic_ai.workspaces import CommandResult, WorkspaceOutputLimitError, WorkspaceTimeoutError

from skillshelf.processes import end_group, signal_group

ReportOutput = Callable[[str], None]

_MAX_OUTPUT_BYTES = 10 * 1024 * 1024
_MAX_PREVIEW_BYTES = 64 * 1024
_DRAIN_SECONDS = 2.0
"""How long to read on after the end of a command, if a process in the background holds on to its output."""
_CHUNK = 64 * 1024
_REPORT_SECONDS = 0.1
_MAX_REPORT_CHARACTERS = 8_000


async def run_process(
    program: Sequence[str], folder: str, environment: Mapping[str, str], seconds: float, report: ReportOutput
) -> CommandResult:
    """Run a program to its end. What it leaves in the background goes on; if it is ended early, its group ends, too.

    Raises WorkspaceTimeoutError and WorkspaceOutputLimitError with the output so far.
    """
    reporter = OutputReporter(report)
    streams = _Streams(reporter)
    process: asyncio.subprocess.Process | None = None
    try:
        process = await _start(program, folder, environment, streams)
        streams.end_process = partial(signal_group, process.pid, signal.SIGKILL)
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
        except TimeoutError:
            message = f"command timed out after {seconds:g}s and was killed"
            raise WorkspaceTimeoutError(message, stdout=streams.out.text(), stderr=streams.error.text()) from None

        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                await streams.wait_for_end()
        streams.check_size()
        exit_code = process.returncode or 0
        if exit_code < 0:  # ended by a signal, which shells report this way
            exit_code = 128 - exit_code
        return CommandResult(exit_code=exit_code, stdout=streams.out.text(), stderr=streams.error.text())
    except BaseException:
        if process is not None:
            await end_group(process)
        raise
    finally:
        streams.close()
        reporter.close()


async def _start(
    program: Sequence[str], folder: str, environment: Mapping[str, str], streams: _Streams
) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *program,
            cwd=folder,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=streams.out.writer,
            stderr=streams.error.writer,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        started = await starting
        signal_group(started.pid, signal.SIGKILL)  # it would go on unseen
        raise
    finally:
        streams.close_writers()


class _Streams:
    """Standard output and standard error of a process."""

    def __init__(self, reporter: OutputReporter) -> None:
        self.end_process: Callable[[], None] = lambda: None
        self.out = _Stream(self._take_piece)
        self.error = _Stream(self._take_piece)
        self._reporter = reporter

    async def wait_for_end(self) -> None:
        await self.out.ended.wait()
        await self.error.ended.wait()

    def check_size(self) -> None:
        """Raise an error if there was too much output."""
        if self._is_too_much():
            raise WorkspaceOutputLimitError(
                "the output exceeded 10 MiB; redirect the command's output to a file and read part of it instead",
                limit=_MAX_OUTPUT_BYTES,
                stdout=self.out.text(_MAX_PREVIEW_BYTES),
                stderr=self.error.text(_MAX_PREVIEW_BYTES),
            )

    def close_writers(self) -> None:
        self.out.close_writer()
        self.error.close_writer()

    def close(self) -> None:
        self.out.close()
        self.error.close()

    def _take_piece(self, text: str) -> None:
        self._reporter.add(text)
        if self._is_too_much():
            self.end_process()

    def _is_too_much(self) -> bool:
        return len(self.out.data) + len(self.error.data) > _MAX_OUTPUT_BYTES


class _Stream:
    """A pipe that is read as data arrives."""

    def __init__(self, take_piece: Callable[[str], None]) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.data = bytearray()
        self.ended = asyncio.Event()
        self._take_piece = take_piece
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_writer_open = True
        self._is_open = True
        asyncio.get_running_loop().add_reader(self._reader, self._read)

    def text(self, limit: int | None = None) -> str:
        return self.data[:limit].decode("utf-8", errors="replace")

    def close_writer(self) -> None:
        if self._is_writer_open:
            self._is_writer_open = False
            os.close(self.writer)

    def close(self) -> None:
        self.close_writer()
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)

    def _read(self) -> None:
        try:
            chunk = os.read(self._reader, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self.close()
            self.ended.set()
            return
        self.data += chunk
        self._take_piece(self._decoder.decode(chunk))


class OutputReporter:
    """Reports output in pieces: at most ten a second, and of much output only the end."""

    def __init__(self, report: ReportOutput) -> None:
        self._report = report
        self._waiting = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        self._waiting = (self._waiting + text)[-_MAX_REPORT_CHARACTERS:]
        if self._timer is None and text:
            self._timer = asyncio.get_running_loop().call_later(_REPORT_SECONDS, self._send)

    def close(self) -> None:
        """Report the rest."""
        if self._timer:
            self._timer.cancel()
        self._send()

    def _send(self) -> None:
        self._timer = None
        if self._waiting:
            self._report(self._waiting)
            self._waiting = ""
