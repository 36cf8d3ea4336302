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
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from skillshelf.sandbox import worker as inner_side
from skillshelf.sandbox._processes import kill_descendants
from skillshelf.sandbox._program import Program
from skillshelf.sandbox._sandbox import Sandbox, find_sandbox, open_command
from skillshelf.text import truncate

_CHUNK = 64 * 1024
_INHERITED = ("PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH")
_UNSANDBOXED = Sandbox("none", "this worker needs none")
_MAX_REASON = 300
_SECONDS_FOR_LAST_WORDS = 2.0
_SECONDS_TO_END = 0.2
_OUT_OF_TIME = (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM, signal.SIGVTALRM)


class WorkerLimits(NamedTuple):
    """How much a worker may take."""

    memory_mb: int = 512
    """Its address space."""
    cpu_seconds: int = 60
    """Of one process, for all its answers together."""
    file_mb: int = 0
    """The size of a file that it writes. If it may write any, it gets a temporary folder."""
    answer_bytes: int = 8_000_000
    """The longest answer."""


class WorkerError(Exception):
    """A worker gave no answer that can be used. Its process has ended."""

    def __init__(self, message: str, kind: Literal["time", "memory", "size", "crash"]) -> None:
        """`kind`: the limit that it exceeded (`size` is that of an answer), or it ended or answered something else."""
        super().__init__(message)
        self.kind = kind


class Worker:
    """A program of ours that runs in a sandboxed process and answers requests, one after the other.

    The process starts with the first request, and a new one with the first request after an error. Use the worker in a
    `with` statement, or close it.
    """

    def __init__(
        self,
        program: str,
        limits: WorkerLimits,
        *,
        readable: Sequence[str] = (),
        writable: Sequence[str] = (),
        descriptors: Sequence[int] = (),
        network: bool = False,
        sandboxed: bool = True,
    ) -> None:
        """Start nothing yet. `program` is the path of a Python file that defines `answer`: see `worker.Answer`.

        It gets no secret of the environment, but the `descriptors`, and the network if it is allowed. It may write in
        the folders `writable` only; name what it reads in `readable`, because a sandbox can hide temporary files.
        Without a sandbox, only the limits hold.
        """
        self._program = Program(
            [sys.executable, "-I", "-B", inner_side.__file__, program],
            folder="/",
            environment=_make_environment(),
            readable=[*readable, _find_import_folder(program)],
            writable=writable,
            network=network,
            descriptors=descriptors,
        )
        self._limits = limits
        self._is_sandboxed = sandboxed
        self._process: _Process | None = None
        self._is_killed = False

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and everything that it started."""
        process = self._process
        if process is not None:
            self._process = None
            process.close()

    def kill(self) -> None:
        """Let the request in progress fail, and every later one. This may be called from another thread."""
        self._is_killed = True
        process = self._process
        if process is not None:
            process.kill()

    def ask(self, request: Mapping[str, Any], data: Sequence[bytes] = (), *, seconds: float) -> Any:
        """Return the answer to a request. `data` goes with it as it is. Raises WorkerError and OSError."""
        deadline = time.monotonic() + seconds
        message = _write_line({**request, "sizes": [len(piece) for piece in data]})
        try:
            if self._process is None:
                self._process = _Process(self._program, self._limits, is_sandboxed=self._is_sandboxed)
                if self._is_killed:
                    self._process.kill()
            return self._process.ask(b"".join([message, *data]), deadline)
        except TimeoutError:
            self.close()
            raise WorkerError(f"it took longer than {seconds:g} seconds", "time") from None
        except BaseException:  # an interrupt, too: the next request must not get the answer to this one
            self.close()
            raise


def _find_import_folder(module: str) -> str:
    """Return the folder that the package of a module is imported from: what the module imports must be readable."""
    folder = os.path.dirname(os.path.abspath(module))
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


class _Process:
    """The process of a worker, from its start to its first error."""

    def __init__(self, program: Program, limits: WorkerLimits, *, is_sandboxed: bool) -> None:
        self._limits = limits
        self._unread = bytearray()
        self._greeting = _write_line(
            {"memory_mb": limits.memory_mb, "cpu_seconds": limits.cpu_seconds, "file_mb": limits.file_mb}
        )
        with ExitStack() as stack:
            if limits.file_mb:
                folder = tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)
                program = replace(program, scratch=os.path.realpath(stack.enter_context(folder)))
            sandbox = find_sandbox() if is_sandboxed else _UNSANDBOXED
            self._command = stack.enter_context(open_command(program, sandbox))
            self._process = subprocess.Popen(
                self._command.words,
                cwd="/",
                env=self._command.environment,
                pass_fds=self._command.descriptors,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,  # what Python says if it can't start
                bufsize=0,
                start_new_session=True,  # Ctrl+C is for the agent
            )
            stack.callback(self._end)
            self._stack = stack.pop_all()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._writer = self._process.stdin.fileno()
        self._reader = self._process.stdout.fileno()
        os.set_blocking(self._writer, False)

    def ask(self, message: bytes, deadline: float) -> Any:
        """Return the answer to a request. Raises WorkerError and TimeoutError."""
        answer = self._exchange(self._greeting + message, deadline)
        self._greeting = b""
        if answer is None:
            raise self._explain_end()
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            # Python's own last words, or the sandbox's: the reason is in their last line.
            deadline = time.monotonic() + _SECONDS_FOR_LAST_WORDS
            with suppress(TimeoutError):
                while (more := self._exchange(b"", deadline)) is not None:
                    answer = more
            self._unread = self._unread or answer
            raise self._explain_end() from None

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._stack.close()

    def _exchange(self, message: bytes, deadline: float) -> bytearray | None:
        """Send a message and return the line that comes back; None if the process ended. Raises TimeoutError."""
        unsent = memoryview(message)
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        if unsent:
            poll.register(self._writer, select.POLLOUT)

        has_line = b"\n" in self._unread
        while not has_line:
            seconds = deadline - time.monotonic()
            ready = dict(poll.poll(max(0.0, seconds) * 1000))
            if not ready:
                raise TimeoutError
            if self._writer in ready:
                try:
                    unsent = unsent[os.write(self._writer, unsent[:_CHUNK]) :]
                except BrokenPipeError:  # it ended before it read everything; its output says why
                    unsent = unsent[:0]
                if not unsent:
                    poll.unregister(self._writer)
            if self._reader in ready:
                chunk = os.read(self._reader, _CHUNK)
                if not chunk:
                    return None
                has_line = b"\n" in chunk
                self._unread += chunk
                if len(self._unread) > self._limits.answer_bytes:
                    raise WorkerError(f"it answered with more than {self._limits.answer_bytes:,} bytes", "size")

        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _explain_end(self) -> WorkerError:
        """Return the error for a process that ended, or failed, instead of giving an answer."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS_FOR_LAST_WORDS)
        code = self._process.returncode
        lines = self._unread.decode(errors="replace").strip().splitlines()
        reason = truncate(lines[-1], _MAX_REASON) if lines else "it gave no reason"
        if code is None:
            return WorkerError(f"its answer can't be used: {reason}", "crash")

        number = -code if code < 0 else code - 128
        if number in _OUT_OF_TIME:
            return WorkerError("it took too much processor time", "time")
        if code == inner_side.OUT_OF_MEMORY:
            return WorkerError(f"it needs more than {self._limits.memory_mb:,} MB of memory", "memory")
        if not self._command.was_started():
            return WorkerError(f"its sandbox can't be set up: {reason}", "crash")
        if number > 0:
            return WorkerError(f"it was ended by {_name_signal(number)}", "crash")
        return WorkerError(f"it ended with status {code}: {reason}", "crash")

    def _end(self) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        # Without further requests a worker ends by itself, which takes 3 ms. To find and kill it takes 12.
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
        # A sandbox ends by itself once nothing is left in it.
        while process.poll() is None and kill_descendants(process.pid):
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_END)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


async def call_worker(
    program: str,
    request: Mapping[str, Any],
    limits: WorkerLimits,
    *,
    seconds: float,
    data: Sequence[bytes] = (),
    readable: Sequence[str] = (),
    descriptors: Sequence[int] = (),
) -> Any:
    """Run a program for one request, and return its answer. Raises WorkerError and OSError. See `Worker`.

    When this returns or is cancelled, the process and those that it started have ended.
    """
    worker = Worker(program, limits, readable=readable, descriptors=descriptors)

    def ask() -> Any:
        with worker:
            return worker.ask(request, data, seconds=seconds)

    asking = asyncio.ensure_future(asyncio.to_thread(ask))
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        worker.kill()
        await asyncio.wait([asking])
        asking.exception()  # it is of no interest, which asyncio has to know
        raise


def _write_line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _make_environment() -> dict[str, str]:
    """Return the environment of a worker: no secrets, and one thread for libraries that would start many."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, "LANG": "C.UTF-8", "OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1"}


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
