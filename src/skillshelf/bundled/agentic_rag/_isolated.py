"""Asks the process that parses what others wrote, and tells what went wrong with it."""

import json
import math
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skillshelf.bundled._workers import AnswerTooLong, run_worker
from skillshelf.bundled.agentic_rag._errors import ISOLATED_ERRORS, RagError

_WORKER = "skillshelf.bundled.agentic_rag._worker"
_MAX_ANSWER = 20_000_000
_MEMORY_MEGABYTES = 1_024
_EXTRACT_SECONDS = 30.0
_START_SECONDS = 20.0
"""Beyond the time for the task: on a busy machine, starting Python and its libraries takes seconds."""


class ReadablePage(NamedTuple):
    """The main text of a page, as Markdown."""

    title: str
    text: str


async def extract_pages(pages: Sequence[str]) -> list[ReadablePage | None]:
    """Return the title and the text of HTML pages; None for one that has no text. Raises RagError."""
    request = {"action": "extract", "pages": list(pages)}
    found = await _ask(request, seconds=_EXTRACT_SECONDS, memory_megabytes=_MEMORY_MEGABYTES)
    return [page and ReadablePage(str(page["title"]), str(page["text"])) for page in found]


async def ask_graph_file(request: Mapping[str, Any], *, seconds: float, space_megabytes: int) -> Any:
    """Return what the graph in a file answers. Raises RagError."""
    request = {**request, "seconds": seconds, "space_megabytes": space_megabytes}
    return await _ask(request, seconds=seconds, memory_megabytes=_MEMORY_MEGABYTES + space_megabytes)


async def _ask(request: Mapping[str, Any], *, seconds: float, memory_megabytes: int) -> Any:
    limits = {"memory_megabytes": memory_megabytes, "cpu_seconds": math.ceil(seconds + _START_SECONDS)}
    try:
        answer = await run_worker(
            _WORKER, {**request, **limits}, seconds=seconds + _START_SECONDS, max_answer=_MAX_ANSWER
        )
    except TimeoutError:
        raise RagError(f"It took longer than {seconds:g} seconds, and was ended.") from None
    except AnswerTooLong:
        raise RagError("The answer is longer than it may be. Ask for less.") from None
    if answer.exit_code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise RagError("It took too much time or memory, and was ended.")
    try:
        content = json.loads(answer.output)
        if "error" not in content:
            return content["result"]
        error = ISOLATED_ERRORS[content["error"]](str(content["reason"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        raise RagError(f"The process that does this ended {answer.ending}, without an answer.") from None
    raise error
