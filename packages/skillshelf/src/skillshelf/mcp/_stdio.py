"""Serve one client over standard input and output, until it leaves."""

import fcntl
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from pydantic import ValidationError

from skillshelf.adapters.threads import OwnThread
from skillshelf.mcp._server import SkillsServer

GRACE_SECONDS = 1.0
"""Time for the last answer once the client has closed its end: it may have stopped reading before it stopped asking."""


async def serve_stdio(server: SkillsServer) -> None:
    """Serve one client over standard input and output, until it leaves.

    The SDK's transport is not used because it leaves a request that it cannot parse without an answer, so that its
    sender waits for ever; because it waits for a client that has left to read its answers; and because only its latest
    versions keep the output of tools out of the protocol.
    """
    incoming_sender, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing_sender, outgoing = anyio.create_memory_object_stream[SessionMessage]()
    with _take_standard_streams() as (source, sink):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_messages, source, incoming_sender, outgoing_sender.clone())
            tasks.start_soon(_write_messages, sink, outgoing, tasks.cancel_scope)
            await server.run(incoming, outgoing_sender, server.create_initialization_options())
            tasks.cancel_scope.deadline = anyio.current_time() + GRACE_SECONDS


@contextmanager
def _take_standard_streams() -> Iterator[tuple[int, int]]:
    """Yield the client's two pipes. Meanwhile tools and their child processes read nothing, and print to standard
    error."""
    # Numbers above 2, since any of the standard ones may be closed. Never closed: a thread may be blocked on them.
    source = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    sink = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(null, 1)
    os.close(null)

    try:
        yield source, sink
    finally:
        os.dup2(source, 0)
        os.dup2(sink, 1)


async def _read_messages(
    source: int,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: MemoryObjectSendStream[SessionMessage],
) -> None:
    thread = OwnThread()
    pipe = open(source, "rb", closefd=False)  # noqa: SIM115  # a thread may be blocked on it
    async with incoming, outgoing:
        while line := await thread.run(pipe.readline):
            # Some hosts write a byte order mark or blank lines.
            text = line.decode(errors="replace").removeprefix("\ufeff").strip()
            if not text:
                continue
            try:
                message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValidationError:
                refusal = _refuse(text)
                if refusal is not None:
                    await outgoing.send(SessionMessage(refusal))
            else:
                await incoming.send(SessionMessage(message))


async def _write_messages(
    sink: int, outgoing: MemoryObjectReceiveStream[SessionMessage], everything: anyio.CancelScope
) -> None:
    thread = OwnThread()
    pipe = io.FileIO(sink, "wb", closefd=False)
    async with outgoing:
        async for answer in outgoing:
            line = answer.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
            try:
                await thread.run(partial(_write_all, pipe, line.encode()))
            except OSError:  # the client does not read any more: it has left, even if its other end is open
                everything.cancel()
                return


def _write_all(pipe: io.FileIO, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        written = pipe.write(remaining)
        remaining = remaining[written or 0 :]


def _refuse(line: str) -> types.JSONRPCError | None:
    """Return the answer to a line that is not a valid message. None if its sender does not wait for an answer."""
    try:
        message = json.loads(line)
    except RecursionError:
        return _make_error(None, INVALID_REQUEST, "This JSON is nested too deeply")
    except ValueError:
        return _make_error(None, PARSE_ERROR, "This is not JSON")

    request_id = None
    if isinstance(message, dict):
        is_answer = "result" in message or "error" in message
        is_notification = isinstance(message.get("method"), str) and "id" not in message
        if is_answer or is_notification:
            return None
        request_id = message.get("id")
    if not _is_valid_id(request_id):
        request_id = None
    return _make_error(request_id, INVALID_REQUEST, "This is not a valid JSON-RPC request")


def _is_valid_id(request_id: Any) -> bool:
    if isinstance(request_id, str):
        # Half of a surrogate pair cannot be sent back.
        return request_id == request_id.encode(errors="replace").decode()
    return isinstance(request_id, int) and not isinstance(request_id, bool)


def _make_error(request_id: types.RequestId | None, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))
