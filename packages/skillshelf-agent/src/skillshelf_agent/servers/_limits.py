"""What is taken from an MCP server, checked on its bytes before they are parsed. The code behind trusts it."""

import re
from collections.abc import AsyncIterator
from itertools import islice

import httpx2

MAX_MESSAGE = 32 * 1024 * 1024
"""Bytes of a message."""
MAX_VALUES = 100_000
"""Values in a message: lists, objects and what is in them. Parsed, they take up to 50 MiB.

The bytes alone are no limit: parsed, 32 MiB of empty lists take 6 GiB.
"""
MAX_TOOL_LIST = 4 * 1024 * 1024
"""Bytes of all pages of a tool list."""
MAX_TOOLS = 128
MAX_NAME = 64
MAX_DESCRIPTION = 1_024
MAX_SCHEMA = 16 * 1024
MAX_SCHEMA_TEXT = 400
"""Characters of a description in a schema."""
MAX_DEPTH = 16
MAX_RESULT = 50_000
"""Characters of a result."""
MAX_PARTS = 100
MAX_PROBLEM = 300
MAX_ERRORS = 2_000
"""Bytes of a program's last errors."""
MAX_NOTICES = 20

TOO_LONG = f"a message over {MAX_MESSAGE // 1024**2} MiB"
TOO_MANY_VALUES = f"a message with over {MAX_VALUES:,} values"

_UP_TO_MARK = re.compile(rb'(?:[^"\[{,]++|"(?:[^"\\\r\n]++|\\.)*+"?)*+[\[{,]?')
"""Everything up to the next bracket or comma that is not in a string. It never backtracks."""
_EVENT_END = re.compile(rb"\n\r?\n")


def has_too_many_values(message: bytes) -> bool:
    """Count the brackets and commas outside the strings of JSON or of server-sent events."""
    if message.count(b"[") + message.count(b"{") + message.count(b",") <= MAX_VALUES:
        return False
    matches = islice(_UP_TO_MARK.finditer(message), MAX_VALUES + 2)
    return sum(1 for _ in matches) > MAX_VALUES + 1  # one match is the end of the message


async def limit_response(response: httpx2.Response) -> None:
    """Limit the body of a response: a hook for an HTTP client."""
    response.encoding = "utf-8"  # one that the server names could hide brackets from the count
    response.stream = _LimitedBody(response)


class _LimitedBody(httpx2.AsyncByteStream):
    """The body of a response, passed on message by message. Beyond the limits, it ends with an error.

    The error is one that the SDK's client turns into an error of this call.
    """

    def __init__(self, response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream = response.stream
        self._encoding = response.headers.get("content-encoding", "").strip().lower()
        # The SDK reads the bodies of redirects, and of answers to a DELETE, as a whole.
        self._is_event_stream = (
            response.is_success
            and response.request.method != "DELETE"
            and response.headers.get("content-type", "").lower().startswith("text/event-stream")
        )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding not in ("", "identity"):
            raise self._error("a compressed message, which was not asked for")

        buffer = bytearray()
        async for data in self._stream:
            searched = max(0, len(buffer) - 2)
            buffer += data
            if self._is_event_stream:
                end = 0
                for match in _EVENT_END.finditer(buffer, searched):
                    end = match.end()
                if end:
                    yield self._check(bytes(buffer[:end]))
                    del buffer[:end]
            if len(buffer) > MAX_MESSAGE:
                raise self._error(TOO_LONG)
        yield self._check(bytes(buffer))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _check(self, message: bytes) -> bytes:
        if has_too_many_values(message):
            raise self._error(TOO_MANY_VALUES)
        return message

    def _error(self, excess: str) -> Exception:
        text = f"the server sent {excess}"
        return httpx2.SSEError(text) if self._is_event_stream else httpx2.StreamError(text)
