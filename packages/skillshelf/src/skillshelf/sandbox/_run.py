"""Run a program in a sandbox, within limits, and end everything it started."""

import asyncio
import codecs
import errno
import hashlib
import math
import os
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Literal

from skillshelf.sandbox._git import GitGuard
from skillshelf.sandbox._processes import (
    HAS_PROC,
    count_threads_of_user,
    find_descendants,
    kill_descendants,
    measure_memory_mb,
    send_signal,
)
from skillshelf.sandbox._program import Limit, Program, ProgramLimits, ProgramResult, SandboxError
from skillshelf.sandbox._sandbox import Launch, Sandbox, last_line, open_command

TakeOutput = Callable[[str], None]

_MIB = 1024 * 1024
_CHUNK = 64 * 1024
_SECONDS_TO_END = 5.0
"""How long an ended program may take to go."""
_DRAIN_SECONDS = 2.0
"""How long to read on after the end of a program, if a process that outlived it holds on to its output."""
_SECONDS_BETWEEN_KILLS = 0.2
_SECONDS_FOR_TRACEBACKS = 0.5
_SECONDS_BETWEEN_TRIES = 0.05
_SECONDS_BETWEEN_CHECKS = 0.01
_SECONDS_BETWEEN_READS = 0.01
"""Between reads of an endless output. A program that prints without end would otherwise take all of our time."""
_FIRST_MEASURE_SECONDS = 0.05
_LAST_MEASURE_SECONDS = 0.5
_TASKS_PER_PROCESS = 10
"""The kernel refuses this many times the processes, in case measuring is too slow for a program that multiplies."""

RLimits = list[tuple[int, int]]


async def run_program(
    program: Program,
    sandbox: Sandbox,
    limits: ProgramLimits,
    *,
    take_output: TakeOutput | None = None,
    merge: bool = False,
) -> ProgramResult:
    """Run a program to its end. When this returns or is cancelled, the program and what it started have ended.

    It gets no input. `take_output` is called with each piece of output as it arrives. `merge`: both streams, in order,
    are `stdout`. Without a sandbox, a process that left the program's process group goes on.

    Programs in one workspace whose Git directories are mounted run one after the other, except that any number of
    background programs with the same GitGuard run beside them. For those of another one, a program waits no longer than
    it may run.

    Raises SandboxError if the program wasn't started, and OSError or ValueError if it can't be.
    """
    async with AsyncExitStack() as stack:
        turn = await stack.enter_async_context(AsyncExitStack())
        git_is_mounted = sandbox.level == "bubblewrap"
        if program.git and git_is_mounted:
            await turn.enter_async_context(_waiting_for_others(program.git, limits.seconds, take_output))
        started = time.monotonic()
        command = stack.enter_context(open_command(program, sandbox))
        run = _Execution(limits, take_output, merge=merge, is_endless=program.background)
        try:
            process = await run.start(command, program.folder)
            try:
                if program.background:
                    await _wait_until_mounted(process, command)
                    if program.git and git_is_mounted:
                        stack.enter_context(program.git.beside_job(process.pid))
                    await turn.aclose()
                exit_code = await run.watch(process, command)
            finally:
                await _end(process)
            await run.drain()
        finally:
            run.close()
            notices = await asyncio.to_thread(program.git.clean_up) if program.git else []

        if not command.was_started() and run.limit is None:
            raise SandboxError(last_line(run.error_text()) or "the sandbox ended before the program began")
        return ProgramResult(
            exit_code=None if run.limit else exit_code,
            stdout=run.out.text(limits.output_bytes),
            stderr="" if merge else run.error.text(limits.output_bytes),
            limit=run.limit,
            seconds=time.monotonic() - started,
            peak_memory_mb=run.peak_memory_mb,
            notices=tuple(notices),
        )


@asynccontextmanager
async def _waiting_for_others(git: GitGuard, max_seconds: float, take_output: TakeOutput | None) -> AsyncIterator[None]:
    """Be the only program in a workspace whose Git directories are mounted, beside background programs of this guard.

    Another program could swap one for a link while it is mounted, and what the link leads to would become writable. The
    guard mounts only what its own background programs can't swap; those of others are waited for. As a server among
    them never ends, that has a limit, unless it is 0. The locks are addresses that no sandboxed program can have, and
    the kernel frees them however this process ends.
    """
    name = f"\0skillshelf-{os.getuid()}-{hashlib.sha256(os.fsencode(git.root)).hexdigest()}"
    deadline = time.monotonic() + max_seconds if max_seconds else math.inf
    is_announced = False
    while True:
        with ExitStack() as locks:
            turn = _bind(name)
            jobs = None
            if turn:
                locks.enter_context(turn)
                jobs = git.jobs_lock or _bind(f"{name}-jobs")
            if jobs:
                git.hold(jobs)
                locks.callback(git.release)
                yield
                return
        if turn and time.monotonic() > deadline:
            raise SandboxError("another agent or skill has a command in the background in this workspace")
        if take_output and not is_announced:
            take_output("(waiting for another command or job in this workspace)\n")
            is_announced = True
        await asyncio.sleep(_SECONDS_BETWEEN_TRIES)


def _bind(name: str) -> socket.socket | None:
    """Return a socket that holds an address until it is closed, or None if it is taken."""
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(name)
    except OSError as error:
        lock.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return lock


async def _wait_until_mounted(process: asyncio.subprocess.Process, command: Launch) -> None:
    while process.returncode is None and not command.is_mounted():
        await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)


class _Execution:
    """A program that runs: its output, and what it takes."""

    def __init__(self, limits: ProgramLimits, take_output: TakeOutput | None, *, merge: bool, is_endless: bool) -> None:
        """`is_endless`: only the end of the output is kept, however much there is."""
        self.limit: Limit | None = None
        self.peak_memory_mb = 0.0
        self._limits = limits
        self._take_output = take_output or (lambda text: None)
        self._too_much = asyncio.Event()
        kept = limits.output_bytes if is_endless else 0
        self.out = _Stream(self._take, kept)
        self.error = self.out if merge else _Stream(self._take, kept)

    async def start(self, command: Launch, folder: str) -> asyncio.subprocess.Process:
        """Start a command. Cancelling ends it."""
        rlimits = list_rlimits(self._limits)
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command.words,
                cwd=folder,
                env=command.environment,
                pass_fds=command.descriptors,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self.out.writer,
                stderr=self.error.writer,
                start_new_session=True,
                preexec_fn=partial(apply_rlimits, rlimits) if rlimits else None,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _end(await starting)  # it would go on unseen
            raise
        finally:
            self.out.close_writer()
            self.error.close_writer()

    async def watch(self, process: asyncio.subprocess.Process, command: Launch) -> int:
        """Wait until the program ends or exceeds a limit, and return its exit code, as shells give it."""

        def find_processes() -> list[int]:
            own = [process.pid] if command.is_program else []
            return [*own, *find_descendants(process.pid)]

        tasks = [
            asyncio.ensure_future(process.wait()),
            asyncio.ensure_future(self._wait_for_output()),
            asyncio.ensure_future(self._measure(find_processes)),
        ]
        try:
            seconds = self._limits.seconds or None
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0] not in done:
                self.limit = next(iter(done)).result() if done else "seconds"  # type: ignore[assignment]
            if self.limit == "seconds":
                await _ask_for_tracebacks(process, find_processes())
        finally:
            for task in tasks:
                task.cancel()
        code = process.returncode or 0
        return code if code >= 0 else 128 - code

    async def drain(self) -> None:
        """Read the rest of the output."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                await self.out.ended.wait()
                await self.error.ended.wait()
        if self._too_much.is_set() and self.limit is None:
            self.limit = "output"

    def error_text(self) -> str:
        return self.error.text(_CHUNK)

    def close(self) -> None:
        self.out.close()
        self.error.close()

    def _take(self, text: str) -> None:
        self._take_output(text)
        size = len(self.out.data)
        if self.error is not self.out:
            size += len(self.error.data)
        if size > self._limits.output_bytes:
            self._too_much.set()

    async def _wait_for_output(self) -> Literal["output"]:
        """Return when there is too much output."""
        await self._too_much.wait()
        return "output"

    async def _measure(self, find_processes: Callable[[], list[int]]) -> Limit:
        """Return when the processes together exceed a limit."""
        limits = self._limits
        if not HAS_PROC or not (limits.memory_mb or limits.processes):
            await asyncio.Event().wait()
        pause = _FIRST_MEASURE_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, _LAST_MEASURE_SECONDS)
            processes = find_processes()
            if limits.processes and len(processes) > limits.processes:
                return "processes"
            memory = measure_memory_mb(processes, limits.memory_mb)
            self.peak_memory_mb = max(self.peak_memory_mb, memory)
            if limits.memory_mb and memory > limits.memory_mb:
                return "memory"


class _Stream:
    """A pipe that is read as data arrives."""

    def __init__(self, take: TakeOutput, kept: int) -> None:
        """`kept`: how many bytes to keep, the last ones; 0 for all of them."""
        self._kept = kept
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.data = bytearray()
        self.ended = asyncio.Event()
        self._take = take
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_writer_open = True
        self._is_open = True
        asyncio.get_running_loop().add_reader(self._reader, self._read)

    def text(self, limit: int) -> str:
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
        if self._kept:
            del self.data[: -self._kept]
            self._pause()
        self._take(self._decoder.decode(chunk))

    def _pause(self) -> None:
        """Read on in a moment."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._reader)
        loop.call_later(_SECONDS_BETWEEN_READS, self._resume)

    def _resume(self) -> None:
        if self._is_open:
            asyncio.get_running_loop().add_reader(self._reader, self._read)


async def _ask_for_tracebacks(process: asyncio.subprocess.Process, pids: list[int]) -> None:
    """Give programs the time to print where they are, as Python's faulthandler does on SIGABRT."""
    for pid in pids:
        send_signal(pid, signal.SIGABRT)
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_FOR_TRACEBACKS):
            await process.wait()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of a program, and wait for its end."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            # A sandbox ends by itself once nothing is left in it. Then all of it is gone, and not only told to go.
            while process.returncode is None and kill_descendants(process.pid):
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(process.wait()), _SECONDS_BETWEEN_KILLS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            await process.wait()


def list_rlimits(limits: ProgramLimits) -> RLimits:
    """Return the limits that the kernel holds by itself."""
    found: RLimits = []
    if limits.memory_mb:
        # Not RLIMIT_AS: Node, Go and Java reserve far more addresses than they use.
        found += [(resource.RLIMIT_DATA, limits.memory_mb * _MIB), (resource.RLIMIT_CORE, 0)]
    if limits.file_mb:
        found.append((resource.RLIMIT_FSIZE, limits.file_mb * _MIB))
    if limits.processes and HAS_PROC and os.getuid() != 0:  # root has no such limit
        found.append((resource.RLIMIT_NPROC, count_threads_of_user() + _TASKS_PER_PROCESS * limits.processes))
    return found


def apply_rlimits(rlimits: RLimits) -> None:
    """Set limits on this process. It has just been forked: do no more than this here."""
    for kind, size in rlimits:
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            size = min(size, hard)
        resource.setrlimit(kind, (size, size))
