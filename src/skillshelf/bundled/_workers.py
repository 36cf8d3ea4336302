"""Processes that skills start to read what others wrote. Each answers one request, within limits, and is ended.

A parser can be made to crash, to unpack a gigabyte, or to run for ever. In a process of its own that costs one answer.
`_worker` is the other side.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any, NamedTuple

from skillshelf.agent import find_confinement
from skillshelf.agent.launcher import launch_command, open_plan
from skillshelf.processes import end_group

_CHUNK = 64 * 1024
_INHERITED = ("PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH")


class WorkerAnswer(NamedTuple):
    """What a process wrote, and how it ended."""

    output: bytes
    exit_code: int

    @property
    def ending(self) -> str:
        """How the process ended, in words: `by SIGSEGV`, `with status 1`."""
        if self.exit_code < 0:
            return f"by {signal.Signals(-self.exit_code).name}"
        return f"with status {self.exit_code}"


class AnswerTooLong(Exception):
    """A process wrote more than it may, and was ended."""


def can_confine() -> bool:
    """Return True if this machine keeps a process from changing files."""
    return bool(find_confinement())


async def run_worker(
    module: str, request: Mapping[str, Any], *, seconds: float, max_answer: int, descriptors: Sequence[int] = ()
) -> WorkerAnswer:
    """Run a module with a request, and return its answer. Raises TimeoutError and AnswerTooLong.

    The process inherits the `descriptors`, and no secret of the environment. It is confined as far as the system
    allows: it cannot write anything, and gets no network. When this returns or is cancelled, the process and those that
    it started have ended.
    """
    async with _start(module, max_answer, descriptors) as process, asyncio.timeout(seconds):
        await _send(process, request)
        output = await _read(process, max_answer)
        return WorkerAnswer(output, await process.wait())


async def stream_worker(
    module: str, request: Mapping[str, Any], *, seconds: float, line_seconds: float, max_answer: int
) -> AsyncGenerator[bytes, None]:
    """Run a module as `run_worker` does, and yield each line of its answer as it comes.

    The first line may take these `seconds`, and each further one `line_seconds`. Raises TimeoutError and AnswerTooLong.
    A last line without its end is not yielded. Close the iterator (`contextlib.aclosing`) to have the process ended.
    """
    room = max_answer
    async with _start(module, max_answer, ()) as process:
        assert process.stdout is not None
        async with asyncio.timeout(seconds):
            await _send(process, request)
        while True:
            try:
                async with asyncio.timeout(seconds):
                    line = await process.stdout.readline()
            except ValueError:
                raise AnswerTooLong from None
            room -= len(line)
            if room < 0:
                raise AnswerTooLong
            if not line.endswith(b"\n"):
                return
            yield line
            seconds = line_seconds


@asynccontextmanager
async def _start(module: str, max_line: int, descriptors: Sequence[int]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a module in a process of its own, and end the process when the block ends."""
    confinement = (await asyncio.to_thread(find_confinement)).without_network()
    command = [sys.executable, "-I", "-m", module]
    with ExitStack() as stack:
        if confinement:
            plan = stack.enter_context(
                open_plan(confinement.level, writable=[], network=confinement.network, leaves_processes=False)
            )
            command = launch_command(command, plan)
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd="/",
            env=_environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=descriptors,
            start_new_session=True,
            limit=max_line,
        )
        try:
            yield process
        finally:
            await end_group(process)


async def _send(process: asyncio.subprocess.Process, request: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it ended before it read; its output says why
        process.stdin.write(json.dumps(request).encode())
        await process.stdin.drain()
    process.stdin.close()


async def _read(process: asyncio.subprocess.Process, max_answer: int) -> bytes:
    """Return everything that the process writes."""
    assert process.stdout is not None
    data = bytearray()
    while chunk := await process.stdout.read(_CHUNK):
        data += chunk
        if len(data) > max_answer:
            raise AnswerTooLong
    return bytes(data)


def _environment() -> dict[str, str]:
    """Return the environment of the process: no secrets, and one thread for libraries that would start many."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, "LANG": "C.UTF-8", "OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1"}
