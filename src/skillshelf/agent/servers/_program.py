"""A server that is a program: started in a process group of its own, spoken to in lines, and always ended."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage

from skillshelf.agent.scripts import CleanPath
from skillshelf.agent.servers import _guard
from skillshelf.agent.servers._settings import ServerSettings
from skillshelf.errors import SettingsError
from skillshelf.processes import signal_group

_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_MAX_LINE = 32 * 1024 * 1024
_MAX_ERRORS = 2_000
_SECONDS_TO_EXIT = 2.0
_SECONDS_AFTER_TERM = 1.0

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


class ServerProgram:
    """A transport for the SDK's client. It notices when the program ends, and leaves no process behind."""

    def __init__(self, settings: ServerSettings, workspace: str, root: str) -> None:
        """`workspace`: the folder that the agent works in. `root`: the root of its repository."""
        self._settings = settings
        self._workspace = workspace
        self._programs = CleanPath(root)
        self._errors = b""
        self.ended = anyio.Event()
        """Set when the program has closed its output, or sent a line that is damaged or too long."""

    @property
    def last_error(self) -> str:
        """The last line that the program wrote to standard error."""
        lines = self._errors.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[tuple[Incoming, Outgoing], None]:
        """Start the program, and provide its messages. Raises OSError or SettingsError if it cannot be started."""
        process = await self._start()
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        with _guarding(process.pid):
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read, process, to_session)
                    tasks.start_soon(self._write, process, from_session)
                    tasks.start_soon(self._collect_errors, process)
                    try:
                        yield incoming, outgoing
                    finally:
                        tasks.cancel_scope.cancel()
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                for stream in (to_session, incoming, outgoing, from_session):
                    stream.close()

    async def _start(self) -> Process:
        settings = self._settings
        if "/" in settings.command:
            program = shutil.which(os.path.expanduser(settings.command))
        else:
            program = self._programs.find(settings.command)
        if program is None:
            raise SettingsError(
                f"the program {settings.command!r:.80} is not on your PATH, or only in the workspace. Install it "
                "elsewhere, or give its path"
            )
        # Servers are not confined. So whatever the agent can write, such as the bin folder of the workspace's active
        # virtual environment, is not on their path.
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment["PATH"] = self._programs.text
        return await anyio.open_process(
            [program, *settings.expand_args(self._workspace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Not in the workspace: there, `python -m` and `npx` would take modules and programs from it.
            cwd=os.path.expanduser("~"),
            env={**environment, **settings.expand_env()},
            start_new_session=True,
        )

    async def _read(self, process: Process, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        assert process.stdout is not None
        buffer = bytearray()
        try:
            async with to_session:
                async for data in process.stdout:
                    *lines, rest = bytes(data).split(b"\n")
                    for line in lines:
                        buffer += line
                        if not await _deliver(bytes(buffer), to_session):
                            return
                        buffer.clear()
                    buffer += rest
                    if len(buffer) > _MAX_LINE:
                        return
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            pass
        finally:
            self.ended.set()

    async def _write(self, process: Process, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert process.stdin is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async with from_session:
                async for message in from_session:
                    line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(line.encode() + b"\n")

    async def _collect_errors(self, process: Process) -> None:
        stream: ByteReceiveStream | None = process.stderr
        assert stream is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async for data in stream:
                self._errors = (self._errors + data)[-_MAX_ERRORS:]


async def _deliver(line: bytes, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> bool:
    """Deliver a line if it is a message. Return False for a damaged one, whose call would wait in vain."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:  # otherwise, the program prints something on the way
        return not line.lstrip().startswith(b'{"jsonrpc"')
    await to_session.send(SessionMessage(message))
    return True


@contextmanager
def _guarding(group: int) -> Iterator[None]:
    """Have a process group ended at the end of the block, or of this process if that is first."""
    # -I -S: the environment does not choose what Python imports.
    command = [sys.executable, "-I", "-S", _guard.__file__, str(group)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    ):
        yield


async def _end(process: Process) -> None:
    """Close the program's input, and end what is left of its group. Every wait has an end."""
    if process.stdin is not None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await process.stdin.aclose()
    await _wait(process, _SECONDS_TO_EXIT)
    if process.returncode is None:
        signal_group(process.pid, signal.SIGTERM)
        await _wait(process, _SECONDS_AFTER_TERM)
    signal_group(process.pid, signal.SIGKILL)  # also what an ended program has left behind
    await _wait(process, _SECONDS_AFTER_TERM)
    with suppress(Exception):
        await process.aclose()


async def _wait(process: Process, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await process.wait()
