"""Asks the process that parses what others wrote, and tells what went wrong with it."""

import json
import math
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple, TypeVar

from skillshelf.bundled._workers import AnswerTooLong, run_worker, stream_worker
from skillshelf.bundled.agentic_rag._errors import RagError, WorkerEndedError

_WORKER = "skillshelf.bundled.agentic_rag._worker"
_MAX_ANSWER = 20_000_000
_MEMORY_MEGABYTES = 1_024
_PAGE_SECONDS = 10.0
"""For one page."""
_START_SECONDS = 20.0
"""Beyond the time for the task: on a busy machine, starting Python and its libraries takes seconds."""


_Result = TypeVar("_Result")


class ReadablePage(NamedTuple):
    """The main text of a page, as Markdown."""

    title: str
    text: str


ExtractedPage = ReadablePage | RagError | None
"""What becomes of a page: its text, why it could not be read, or None if it has no text."""


async def extract_page(html: str) -> ReadablePage | None:
    """Return the title and the text of an HTML page; None if it has no text. Raises RagError."""
    async with aclosing(extract_pages([html])) as pages:
        page = await anext(pages)
    if isinstance(page, RagError):
        raise page
    return page


async def extract_pages(pages: Sequence[str]) -> AsyncGenerator[ExtractedPage, None]:
    """Yield what becomes of each HTML page, in order.

    A page that breaks the parser or takes for ever costs only itself: a new process goes on with the page after it.
    Such a page has a WorkerEndedError.
    """
    position = 0
    while position < len(pages):
        async with aclosing(_extract_in_one_process(pages[position:])) as found:
            async for page in found:
                position += 1
                yield page


async def _extract_in_one_process(pages: Sequence[str]) -> AsyncGenerator[ExtractedPage, None]:
    """Yield what becomes of these pages, as far as one process gets, and of the page at which it ended."""
    request = {
        "action": "extract",
        "pages": list(pages),
        "memory_megabytes": _MEMORY_MEGABYTES,
        "cpu_seconds": math.ceil(_START_SECONDS + len(pages) * _PAGE_SECONDS),
    }
    lines = stream_worker(_WORKER, request, seconds=_START_SECONDS, line_seconds=_PAGE_SECONDS, max_answer=_MAX_ANSWER)
    done = 0
    try:
        async with aclosing(lines):
            await anext(lines)  # the parser is there
            async for line in lines:
                page = _read_page(line)
                done += 1
                yield page
    except (TimeoutError, AnswerTooLong):
        yield WorkerEndedError(f"It took longer than {_PAGE_SECONDS:g} seconds, and was ended.")
        return
    except StopAsyncIteration:
        pass
    if done < len(pages):
        yield WorkerEndedError("It took too much memory or broke the parser, which was ended.")


def _read_page(line: bytes) -> ExtractedPage:
    """Return the answer for one page."""
    try:
        answer = json.loads(line)
        if "error" in answer:
            return RagError(str(answer["error"]), reference=str(answer["reference"]))
        found = answer["result"]
        if found is None:
            return None
        return ReadablePage(str(found["title"]), str(found["text"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        return RagError("The parser gave an answer that cannot be used.")


async def ask_graph_file(request: Mapping[str, Any], *, seconds: float, space_megabytes: int) -> Any:
    """Return what the graph in a file answers. Raises RagError."""
    request = {**request, "seconds": seconds, "space_megabytes": space_megabytes}
    return await _ask(request, dict, seconds=seconds, memory_megabytes=_MEMORY_MEGABYTES + space_megabytes)


async def _ask(
    request: Mapping[str, Any], read_result: Callable[[Any], _Result], *, seconds: float, memory_megabytes: int
) -> _Result:
    """Return the process's answer as `read_result` understands it. Raises RagError, also for one it does not."""
    limits = {"memory_megabytes": memory_megabytes, "cpu_seconds": math.ceil(seconds + _START_SECONDS)}
    try:
        answer = await run_worker(
            _WORKER, {**request, **limits}, seconds=seconds + _START_SECONDS, max_answer=_MAX_ANSWER
        )
    except TimeoutError:
        raise WorkerEndedError(f"It took longer than {seconds:g} seconds, and was ended.") from None
    except AnswerTooLong:
        raise RagError("The answer is longer than it may be. Ask for less.") from None
    if answer.exit_code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise WorkerEndedError("It took too much time or memory, and was ended.")
    try:
        content = json.loads(answer.output)
        if "error" not in content:
            return read_result(content["result"])
        error = RagError(str(content["error"]), reference=str(content["reference"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        raise RagError(f"The process that does this ended {answer.ending}, without an answer.") from None
    raise error
