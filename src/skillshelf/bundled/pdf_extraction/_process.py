"""Starts the process that reads a PDF file, keeps it within its limits, and ends it."""

import asyncio
import json
import math
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any
from weakref import WeakKeyDictionary

from skillshelf.agent import find_confinement
from skillshelf.agent.launcher import launch_command, open_plan
from skillshelf.bundled.pdf_extraction._errors import ERRORS, ReaderCrashedError, TooSlowError
from skillshelf.bundled.pdf_extraction._limits import ReadLimits
from skillshelf.text import clip, count_noun

_WORKER = "skillshelf.bundled.pdf_extraction._worker"
_MAX_ANSWER = 8_000_000
"""Bytes. A picture of a page is the largest answer; it has up to 4 MB."""
_CHUNK = 64 * 1024
_SECONDS_TO_END = 5.0
_INHERITED = ("PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH")

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def read_pdf(
    descriptor: int, action: str, arguments: Mapping[str, Any], password: str | None, limits: ReadLimits
) -> Any:
    """Return what the reading process answers about an open file. Raises PdfError.

    The process is confined as far as the system allows: it cannot write anything, and gets no network. When this
    returns or is cancelled, the process and those that it started have ended.
    """
    request = {
        "action": action,
        "arguments": dict(arguments),
        "descriptor": descriptor,
        "password": password,
        "memory_megabytes": limits.memory_megabytes,
        "cpu_seconds": math.ceil(limits.seconds),
    }
    loop = asyncio.get_running_loop()
    slot = _slots.setdefault(loop, asyncio.Semaphore(limits.processes))
    async with slot:
        output, exit_code = await _run(json.dumps(request).encode(), descriptor, limits)
    return _read_answer(output, exit_code, limits)


async def _run(request: bytes, descriptor: int, limits: ReadLimits) -> tuple[bytes, int]:
    """Run the process to its end. Return its output and its exit code."""
    confinement = (await asyncio.to_thread(find_confinement)).without_network()
    command = [sys.executable, "-I", "-m", _WORKER]
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
            pass_fds=[descriptor],
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(limits.seconds):
                output = await _exchange(process, request)
                return output, await process.wait()
        except TimeoutError:
            raise _too_slow(limits) from None
        finally:
            await _end(process)


async def _exchange(process: asyncio.subprocess.Process, request: bytes) -> bytes:
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
        if len(data) > _MAX_ANSWER:
            raise ReaderCrashedError("The process that reads the file answered with more than it may.")
    return bytes(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and its group, also if it has ended and left something behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            await process.wait()


def _read_answer(output: bytes, exit_code: int, limits: ReadLimits) -> Any:
    """Return the result in an answer. Raises PdfError."""
    if exit_code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise _too_slow(limits)
    if exit_code < 0 or not output:
        how = f"by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"with status {exit_code}"
        raise ReaderCrashedError(
            f"The process that reads the file ended {how}: the file is damaged, or needs more than the "
            f"{limits.memory_megabytes:,} MB of memory that reading may take."
        )
    try:
        answer = json.loads(output)
        if "error" not in answer:
            return answer["result"]
        error = ERRORS[answer["error"]](str(answer["reason"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        lines = output.decode("utf-8", "replace").strip().splitlines() or [""]
        raise ReaderCrashedError(
            f"The process that reads the file failed with status {exit_code}: {clip(lines[-1], 200)}."
        ) from None
    raise error


def _too_slow(limits: ReadLimits) -> TooSlowError:
    return TooSlowError(f"Reading was ended after {count_noun(round(limits.seconds), 'second')}.")


def _environment() -> dict[str, str]:
    """Return the environment of the process: no secrets, and one thread for libraries that would start many."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, "LANG": "C.UTF-8", "OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1"}
