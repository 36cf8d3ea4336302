"""Models behind servers that speak Chat Completions, and whether such a server said that its answer was complete."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from openai import AsyncStream
from openai.types.chat import ChatCompletionChunk
from pydantic_ai.messages import FinishReason
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse

_LAST_LINE = re.compile(rb"[\r\n]data: ?\[DONE\]")
_MAX_LAST_LINE = 16


class ServedModel(OpenAIChatModel):
    """A model whose answers are complete only if its server says so.

    pydantic-ai takes each stream that ends for a complete answer, because some servers give no finish reason. They do
    end with the line `[DONE]`. A stream with neither was cut short, and its response has no finish reason.
    """

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _ServedResponse

    async def _process_streamed_response(
        self, response: AsyncStream[ChatCompletionChunk], *arguments: Any, **options: Any
    ) -> OpenAIStreamedResponse:
        answer = response.response
        # In a compressed stream the line cannot be seen.
        if isinstance(answer.stream, httpx2.AsyncByteStream) and "content-encoding" not in answer.headers:
            answer.stream = _WatchedStream(answer.stream)
        return await super()._process_streamed_response(response, *arguments, **options)


class _ServedResponse(OpenAIStreamedResponse):
    def _missing_finish_reason(self) -> FinishReason:
        stream = self._response.source.response.stream
        if isinstance(stream, _WatchedStream) and not stream.has_last_line:
            return None  # type: ignore[return-value]  # the attribute that gets it may be None
        return super()._missing_finish_reason()


class _WatchedStream(httpx2.AsyncByteStream):
    """The bytes of an answer, passed on as they come."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self.has_last_line = False
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        end = b"\n"
        async for piece in self._stream:
            seen = end + piece
            self.has_last_line = self.has_last_line or _LAST_LINE.search(seen) is not None
            end = seen[-_MAX_LAST_LINE:]
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
