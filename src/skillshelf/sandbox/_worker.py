"""Worker processes: they parse what others wrote, sandboxed and within limits, and answer in JSON.

A parser can be made to crash, to unpack a gigabyte, or to run for ever. In a process of its own that costs one answer.
`skillshelf.sandbox.worker` is the other side.
"""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Literal, NamedTuple

from skillshelf.sandbox._processes import kill_descendants
from skillshelf.sandbox._program import Program
from skillshelf.sandbox._sandbox import Command, find_sandbox, open_command
from skillshelf.text import truncate

_CHUNK = 64 * 1024
_INHERITED = ("PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH")
_MAX_REASON = 300
_SECONDS_TO_END = 5.0
_SECONDS_BETWEEN_KILLS = 0.2
_OUT_OF_TIME = (signal.SIGXCPU, signal.SIGKILL)


class WorkerLimits(NamedTuple):
    """How much a worker may take."""

    memory_mb: int = 512
    """Its address space."""
    cpu_seconds: int = 60
    """For all its answers together."""
    file_mb: int = 0
    """The size of a file that it writes."""
    answer_bytes: int = 8_000_000
    """The longest answer."""


class WorkerError(Exception):
    """A worker gave no answer that can be used, and has ended."""

    def __init__(self, message: str, kind: Literal["time", "size", "crash"]) -> None:
        """`kind`: it took too long, it answered too much, or it ended or answered something else."""
        super().__init__(message)
        self.kind = kind


class Worker:
    """A module that runs in a sandboxed process and answers requests, one after the other.

    It gets no network and no secret of the environment, and can write only below `writable`. Use it in a `with`
    statement, or close it.
    """

    def __init__(
        self,
        module: str,
        limits: WorkerLimits,
        *,
        writable: Sequence[str] = (),
        descriptors: Sequence[int] = (),
    ) -> None:
        """Start the module, which must call `worker.serve`. It inherits the `descriptors`. Raises OSError."""
        self._limits = limits
        self._unread = b""
        self._stack = ExitStack()
        program = Program(
            [sys.executable, "-I", "-B", "-m", module],
            folder="/",
            environment=_make_environment(),
            writable=writable,
            descriptors=descriptors,
        )
        try:
            self._command = self._stack.enter_context(open_command(program, find_sandbox()))
            self._process = _start(self._command)
        except BaseException:
            self._stack.close()
            raise
        self._stack.callback(self._end)
        self._greeting: dict[str, int] | None = {
            "memory_mb": limits.memory_mb,
            "cpu_seconds": limits.cpu_seconds,
            "file_mb": limits.file_mb,
        }

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and everything that it started."""
        self._stack.close()

    def kill(self) -> None:
        """End the process from another thread: the request in progress fails."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def ask(self, request: Mapping[str, Any], data: Sequence[bytes] = (), *, seconds: float) -> Any:
        """Return the answer to a request. `data` goes with it as it is. Raises WorkerError."""
        lines = [{**request, "sizes": [len(piece) for piece in data]}]
        if self._greeting is not None:
            lines.insert(0, self._greeting)
            self._greeting = None
        message = b"".join([*(json.dumps(line).encode() + b"\n" for line in lines), *data])
        try:
            answer = self._exchange(message, time.monotonic() + seconds)
        except TimeoutError:
            self.close()
            raise WorkerError(f"it took longer than {seconds:g} seconds", "time") from None
        if answer is None:
            raise self._explain_end()
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            # Python's own last words, or the sandbox's: the reason is in their last line.
            with suppress(TimeoutError):
                while (more := self._exchange(b"", time.monotonic() + 1.0)) is not None:
                    answer = more
            self._unread = self._unread or answer
            raise self._explain_end() from None

    def _exchange(self, message: bytes, deadline: float) -> bytes | None:
        """Send a message and return the line that comes back; None if the process ended. Raises TimeoutError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        writer = self._process.stdin.fileno()
        reader = self._process.stdout.fileno()
        unsent = memoryview(message)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        poll.register(writer, select.POLLOUT)

        while b"\n" not in self._unread:
            seconds = deadline - time.monotonic()
            ready = dict(poll.poll(max(0.0, seconds) * 1000))
            if not ready:
                raise TimeoutError
            if writer in ready:
                try:
                    unsent = unsent[os.write(writer, unsent[:_CHUNK]) :]
                except BrokenPipeError:  # it ended before it read everything; its output says why
                    unsent = unsent[:0]
                if not unsent:
                    poll.unregister(writer)
            if reader in ready:
                chunk = os.read(reader, _CHUNK)
                if not chunk:
                    return None
                self._unread += chunk
                if len(self._unread) > self._limits.answer_bytes:
                    self.close()
                    raise WorkerError(f"it answered with more than {self._limits.answer_bytes:,} bytes", "size")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _explain_end(self) -> WorkerError:
        """Return the error for a process that ended, or failed, instead of giving an answer."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS_TO_END)
        code = self._process.returncode or 0
        was_started = self._command.was_started()
        lines = self._unread.decode(errors="replace").strip().splitlines()
        text = truncate(lines[-1], _MAX_REASON) if lines else ""
        self.close()

        number = -code if code < 0 else code - 128
        if number in _OUT_OF_TIME:
            return WorkerError("it took too much processor time or memory", "time")
        if not was_started:
            return WorkerError(f"its sandbox could not be set up: {text or 'no reason was given'}", "crash")
        if number > 0:
            return WorkerError(f"it was ended by {_name_signal(number)}", "crash")
        return WorkerError(f"it ended with status {code}{f': {text}' if text else ''}", "crash")

    def _end(self) -> None:
        process = self._process
        # A sandbox ends by itself once nothing is left in it.
        while process.poll() is None and kill_descendants(process.pid):
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SECONDS_BETWEEN_KILLS)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        process.wait()


async def call_worker(
    module: str,
    request: Mapping[str, Any],
    limits: WorkerLimits,
    *,
    seconds: float,
    data: Sequence[bytes] = (),
    writable: Sequence[str] = (),
    descriptors: Sequence[int] = (),
) -> Any:
    """Run a module for one request, and return its answer. Raises WorkerError.

    When this returns or is cancelled, the process and those that it started have ended.
    """
    worker = await asyncio.to_thread(Worker, module, limits, writable=writable, descriptors=descriptors)
    asking = asyncio.ensure_future(asyncio.to_thread(worker.ask, request, data, seconds=seconds))
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        worker.kill()
        await asyncio.wait([asking])
        raise
    finally:
        await asyncio.to_thread(worker.close)


def _start(command: Command) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        command.words,
        cwd="/",
        env=command.environment,
        pass_fds=command.descriptors,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # what Python says if it can't start
        bufsize=0,
        start_new_session=True,  # Ctrl+C is for the agent
    )
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    return process


def _make_environment() -> dict[str, str]:
    """Return the environment of a worker: no secrets, and one thread for libraries that would start many."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, "LANG": "C.UTF-8", "OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1"}


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
