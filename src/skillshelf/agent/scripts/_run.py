"""Run a program without a shell, within limits on its time and output, and end everything it started."""

import asyncio
import codecs
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from skillshelf.agent.launcher import launch_command, open_plan
from skillshelf.processes import end_group
from skillshelf.text import count_noun

TakeOutput = Callable[[str], None]

_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How much a program may take."""

    seconds: float = 120.0
    output_bytes: int = 1024 * 1024
    """A program that prints more is ended."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its arguments, and everything it gets."""

    words: Sequence[str]
    folder: str
    """The folder it starts in."""
    environment: Mapping[str, str]
    """Its whole environment."""
    writable: Sequence[str]
    """The folders that it can change."""
    level: str
    """The level of its confinement, or `none`."""
    repositories: Sequence[str] = ()
    """Git directories whose hooks and configuration it cannot change."""
    network: bool = True


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended, and what it printed."""

    exit_code: int | None
    """None if it was ended from outside."""
    output: str
    """Both of its streams, in order."""
    stopped: str = ""
    """Why it was ended; empty if it ended by itself."""
    limit: Literal["seconds", "output"] | None = None
    """The limit for which it was ended."""


async def run_program(program: Program, limits: RunLimits, take_output: TakeOutput | None = None) -> ProgramResult:
    """Run a program to its end. Raises OSError if it cannot be started.

    `take_output` is called with each piece of the output as it arrives. The program gets no input. When it ends, or is
    ended, so do the processes that it started: above the lowest level of confinement all of them, otherwise those of
    its process group.
    """
    with ExitStack() as stack:
        words = list(program.words)
        if program.level != "none":
            can_filter = program.level != "landlock"
            plan = stack.enter_context(
                open_plan(
                    program.level,
                    writable=program.writable,
                    repositories=program.repositories,
                    network=program.network or not can_filter,
                    leaves_processes=False,
                )
            )
            words = launch_command(words, plan)
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=program.folder,
            env=dict(program.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return await _collect(process, limits, take_output)
        finally:
            await end_group(process)


async def _collect(
    process: asyncio.subprocess.Process, limits: RunLimits, take_output: TakeOutput | None
) -> ProgramResult:
    assert process.stdout is not None
    data = bytearray()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    stopped = ""
    limit: Literal["seconds", "output"] | None = None
    try:
        async with asyncio.timeout(limits.seconds):
            while chunk := await process.stdout.read(_CHUNK):
                data += chunk
                if take_output is not None:
                    take_output(decoder.decode(chunk))
                if len(data) > limits.output_bytes:
                    stopped = f"it was ended after {limits.output_bytes:,} bytes of output"
                    limit = "output"
                    break
            else:
                await process.wait()
    except TimeoutError:
        stopped = f"it was ended after {count_noun(round(limits.seconds), 'second')}"
        limit = "seconds"
    output = bytes(data[: limits.output_bytes]).decode("utf-8", "replace")
    return ProgramResult(None if stopped else process.returncode, output, stopped, limit)
