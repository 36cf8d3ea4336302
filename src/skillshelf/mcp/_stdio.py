"""Standard input and output: one client, served until it leaves."""

import fcntl
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from skillshelf.mcp._refusals import refusal_of
from skillshelf.mcp._server import SkillsServer
from skillshelf.threads import OwnThread

GRACE_SECONDS = 1.0
"""For the last answer, when the client has closed its end: it may have stopped reading before it stopped asking."""

Incoming = MemoryObjectSendStream[SessionMessage | Exception]


async def serve_stdio(server: SkillsServer) -> None:
    """Serve one client over standard input and output, until it leaves.

    Not the SDK's transport: that one waits for a client that has left to read its answers, and says nothing to a line
    that is no message.
    """
    sending, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, outgoing = anyio.create_memory_object_stream[SessionMessage]()
    with _pipes() as (source, sink):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, source, sending, answers.clone())
            tasks.start_soon(_write, sink, outgoing, tasks.cancel_scope)
            await server.run(messages, answers, server.create_initialization_options())
            tasks.cancel_scope.deadline = anyio.current_time() + GRACE_SECONDS


@contextmanager
def _pipes() -> Iterator[tuple[int, int]]:
    """The client's ends, kept apart meanwhile: what a tool or its child process prints goes to standard error, and what
    it reads is empty."""
    # Above the standard ones, of which any may be closed; never closed, since a thread may be blocked on them.
    source, sink = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    try:
        yield source, sink
    finally:
        os.dup2(source, 0)
        os.dup2(sink, 1)


async def _read(source: int, messages: Incoming, answers: MemoryObjectSendStream[SessionMessage]) -> None:
    thread, lines = OwnThread(), open(source, "rb", closefd=False)  # noqa: SIM115  # a thread may be blocked on it
    async with messages, answers:
        while line := await thread.run(lines.readline):
            # Some hosts write a byte order mark; a blank line is nobody's request.
            text = line.decode(errors="replace").removeprefix("\ufeff").strip()
            if not text:
                continue
            try:
                message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValidationError:
                refusal = refusal_of(text)
                if refusal:
                    await answers.send(SessionMessage(refusal))
                continue
            await messages.send(SessionMessage(message))


async def _write(sink: int, answers: MemoryObjectReceiveStream[SessionMessage], everything: anyio.CancelScope) -> None:
    thread, pipe = OwnThread(), io.FileIO(sink, "wb", closefd=False)
    async with answers:
        async for answer in answers:
            line = answer.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
            try:
                await thread.run(partial(_write_all, pipe, line.encode()))
            except OSError:  # the client does not read any more: it has left, whether it closed the other end or not
                everything.cancel()
                return


def _write_all(pipe: io.FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[pipe.write(left) or 0 :]
