"""Processes that skills start to read what others wrote. Each answers one request, within limits, and is ended.

A parser can be made to crash, to unpack a gigabyte, or to run for ever. In a process of its own that costs one answer.
`_worker` is the other side.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from skillshelf.agent import find_confinement
from skillshelf.agent.launcher import launch_command, open_plan

_CHUNK = 64 * 1024
_SECONDS_TO_END = 5.0
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
        )
        try:
            async with asyncio.timeout(seconds):
                output = await _exchange(process, json.dumps(request).encode(), max_answer)
                return WorkerAnswer(output, await process.wait())
        finally:
            await _end(process)


async def _exchange(process: asyncio.subprocess.Process, request: bytes, max_answer: int) -> bytes:
    """Send the request, and return everything that the process writes."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it ended before it read; its output says why
        process.stdin.write(request)
        await process.stdin.drain()
    process.stdin.close()

    data = bytearray()
    while chunk := await process.stdout.read(_CHUNK):
        data += chunk
        if len(data) > max_answer:
            raise AnswerTooLong
    return bytes(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and its group, also if it has ended and left something behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            await process.wait()


def _environment() -> dict[str, str]:
    """Return the environment of the process: no secrets, and one thread for libraries that would start many."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, "LANG": "C.UTF-8", "OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1"}
