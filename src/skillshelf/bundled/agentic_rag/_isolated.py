"""Asks the process that parses what others wrote, and tells what went wrong with it."""

import json
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from skillshelf.bundled._workers import AnswerTooLong, run_worker
from skillshelf.bundled.agentic_rag._errors import ISOLATED_ERRORS, RagError, WorkerEndedError

_WORKER = "skillshelf.bundled.agentic_rag._worker"
_MAX_ANSWER = 20_000_000
_MEMORY_MEGABYTES = 1_024
EXTRACT_SECONDS = 30.0
"""For a batch of pages."""
_START_SECONDS = 20.0
"""Beyond the time for the task: on a busy machine, starting Python and its libraries takes seconds."""


_Result = TypeVar("_Result")


class ReadablePage(NamedTuple):
    """The main text of a page, as Markdown."""

    title: str
    text: str


async def extract_pages(pages: Sequence[str], *, seconds: float = EXTRACT_SECONDS) -> list[ReadablePage | None]:
    """Return the title and the text of HTML pages; None for one that has no text. Raises RagError.

    It is a WorkerEndedError if a page took too much time or memory.
    """

    def read_result(found: Any) -> list[ReadablePage | None]:
        if len(found) != len(pages):
            raise ValueError("an answer for each page is missing")
        return [None if page is None else ReadablePage(str(page["title"]), str(page["text"])) for page in found]

    request = {"action": "extract", "pages": list(pages)}
    return await _ask(request, read_result, seconds=seconds, memory_megabytes=_MEMORY_MEGABYTES)


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
        error = ISOLATED_ERRORS[content["error"]](str(content["reason"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        raise RagError(f"The process that does this ended {answer.ending}, without an answer.") from None
    raise error
