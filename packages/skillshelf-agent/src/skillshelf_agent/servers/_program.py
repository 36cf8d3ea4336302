"""A server that is a program: started in a process group of its own, spoken to in lines, and always ended."""

import os
import re
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
from pydantic_core import from_json

from skillshelf.errors import SettingsError
from skillshelf.sandbox import CleanPath
from skillshelf_agent._processes import signal_group
from skillshelf_agent.servers import _guard
from skillshelf_agent.servers._limits import MAX_ERRORS, MAX_MESSAGE, TOO_LONG, TOO_MANY_VALUES, has_too_many_values
from skillshelf_agent.servers._settings import ServerSettings

_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_SECONDS_TO_EXIT = 2.0
_SECONDS_AFTER_TERM = 1.0
_MESSAGE_START = re.compile(rb'\s*(?:\[\s*)?\{\s*"(?:jsonrpc|id|method|params|result|error)"')

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
        self._unanswered: set[types.RequestId] = set()
        self.ended = anyio.Event()
        """Set when the program has closed its output, or sent a line that is too long."""
        self.end_reason = "it ended"

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
                        await self._deliver(bytes(buffer), to_session)
                        buffer.clear()
                    buffer += rest
                    if len(buffer) > MAX_MESSAGE:
                        self.end_reason = f"it sent {TOO_LONG}"
                        await self._fail_calls(TOO_LONG, to_session)
                        return
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            pass
        finally:
            self.ended.set()

    async def _deliver(self, line: bytes, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Deliver a message. A damaged one fails all calls: which of them it answers is not known."""
        if has_too_many_values(line):
            await self._fail_calls(TOO_MANY_VALUES, to_session)
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if _is_damaged(line):
                await self._fail_calls("not a valid message", to_session)
            return
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._unanswered.discard(message.id)
        await to_session.send(SessionMessage(message))

    async def _fail_calls(self, reason: str, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        unanswered = self._unanswered
        self._unanswered = set()
        error = types.ErrorData(code=types.PARSE_ERROR, message=reason)
        for request in unanswered:
            await to_session.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request, error=error)))

    async def _write(self, process: Process, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert process.stdin is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async with from_session:
                async for message in from_session:
                    if isinstance(message.message, types.JSONRPCRequest):
                        self._unanswered.add(message.message.id)
                    line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(line.encode() + b"\n")

    async def _collect_errors(self, process: Process) -> None:
        stream: ByteReceiveStream | None = process.stderr
        assert stream is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async for data in stream:
                self._errors = (self._errors + data)[-MAX_ERRORS:]


def _is_damaged(line: bytes) -> bool:
    """Decide whether a line that is not a valid message was meant as one, and not as a log."""
    try:
        value = from_json(line)
    except ValueError:  # not `[INFO] …` or `{ port: 80 }`
        return _MESSAGE_START.match(line) is not None
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, dict) and ("jsonrpc" in item or "id" in item) for item in items)


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
