"""Standard input and output: one client, served until it leaves."""

import contextvars
import json
from types import TracebackType
from typing import Any

import anyio
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST
from pydantic import ValidationError

from skillshelf.mcp.server import SkillsServer


async def serve_stdio(server: SkillsServer) -> None:
    """Serve one client over standard input and output, until it leaves."""
    async with stdio_server() as (read_stream, write_stream):
        await server.run(Answering(read_stream, write_stream), write_stream, server.create_initialization_options())


class Answering:
    """The stream of messages, less the lines that are none. Of those the SDK says nothing at all, and whoever sent
    a request would wait for ever: one that has an id is told that it was refused."""

    def __init__(self, messages: Any, answers: Any) -> None:
        self._messages, self._answers = messages, answers

    async def receive(self) -> SessionMessage | Exception:
        while True:
            item: SessionMessage | Exception = await self._messages.receive()
            refused = refusal_of(item) if isinstance(item, ValidationError) else None
            if refused is None:
                return item
            await self._answers.send(SessionMessage(refused))

    @property
    def last_context(self) -> contextvars.Context | None:
        """Of the message that came last: the SDK asks for it."""
        context: contextvars.Context | None = self._messages.last_context
        return context

    async def aclose(self) -> None:
        await self._messages.aclose()

    def __aiter__(self) -> "Answering":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "Answering":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def refusal_of(fault: ValidationError) -> types.JSONRPCError | None:
    """The answer to a line that is no message; None where it is no request, or does not say which."""
    for error in fault.errors(include_url=False, include_context=False):
        request = error["input"]
        if error["type"] == "json_invalid":  # of a line that only the SDK's parser refuses: half an emoji, say
            try:
                request = json.loads(request)
            except (ValueError, RecursionError):
                return None
        if isinstance(request, dict) and isinstance(request.get("method"), str) and _is_id(request.get("id")):
            told = types.ErrorData(code=INVALID_REQUEST, message="This is no valid JSON-RPC request")
            return types.JSONRPCError(jsonrpc="2.0", id=request["id"], error=told)
    return None


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
