"""Models behind servers that speak Chat Completions, and whether such a server said that its answer was complete.

Other providers' answers have an end of their own, which pydantic-ai looks for.
"""

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
        return _join_classes(_ServedResponse, super()._streamed_response_cls)

    async def _process_streamed_response(
        self, response: AsyncStream[ChatCompletionChunk], *arguments: Any, **options: Any
    ) -> OpenAIStreamedResponse:
        watch = _LastLineWatch(response.response)
        served = await super()._process_streamed_response(response, *arguments, **options)
        assert isinstance(served, _ServedResponse)
        served.watch = watch
        return served


class _ServedResponse(OpenAIStreamedResponse):
    watch: "_LastLineWatch"

    def _missing_finish_reason(self) -> FinishReason:
        if not self.watch.has_last_line:
            return None  # type: ignore[return-value]  # the attribute that gets it may be None
        return super()._missing_finish_reason()


class _LastLineWatch:
    """Looks for the last line of an answer while it is read. It sees the text of a compressed answer, too."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.has_last_line = False
        self._read_answer = answer.aiter_bytes
        answer.aiter_bytes = self._read  # type: ignore[method-assign,assignment]

    async def _read(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        end = b"\n"
        async for piece in self._read_answer(chunk_size):
            seen = end + piece
            self.has_last_line = self.has_last_line or _LAST_LINE.search(seen) is not None
            end = seen[-_MAX_LAST_LINE:]
            yield piece


def watch_ends(model: OpenAIChatModel) -> ServedModel:
    """Return the same model, which also notices an answer without an end.

    Providers such as OpenRouter and Ollama have models of their own kinds, whose other behaviour stays.
    """
    kind: type[ServedModel] = _join_classes(ServedModel, type(model))
    provider = model.provider
    assert provider is not None
    return kind(model.model_name, provider=provider)


def _join_classes(ours: type[Any], theirs: type[Any]) -> type[Any]:
    """Return a class in which our methods come before those of a subclass of the same base."""
    if issubclass(ours, theirs):
        return ours
    return type(theirs.__name__, (ours, theirs), {})
