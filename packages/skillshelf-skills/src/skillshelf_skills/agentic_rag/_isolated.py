"""Ask the worker that parses web pages and queries graphs in files, and translate its errors."""

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from skillshelf.sandbox import Worker, WorkerError, WorkerLimits, call_worker
from skillshelf_skills.agentic_rag import _worker
from skillshelf_skills.agentic_rag._errors import RagError, WorkerEndedError
from skillshelf_skills.agentic_rag._limits import MAX_ANSWER

_MEMORY_MEGABYTES = 1_024
_START_SECONDS = 20.0
"""Beyond the time for the task: on a busy machine, starting Python and its libraries takes seconds."""
_PAGE_TIMEOUT = _START_SECONDS + _worker.PAGE_SECONDS
_UNUSABLE = "The parser gave an answer that can't be used."
_PAGES = WorkerLimits(_MEMORY_MEGABYTES, cpu_seconds=3_600, answer_bytes=MAX_ANSWER)
"""For all pages of a folder. The worker limits the time for each."""
_EXTRACT = {"action": "extract"}


class ReadablePage(NamedTuple):
    """The main text of a page, as Markdown."""

    title: str
    text: str


class PageParser:
    """Extracts the text of HTML pages. Use it in a `with` statement.

    A page that breaks the parser or takes for ever costs only itself: a new process goes on with the next one.
    """

    def __init__(self) -> None:
        self._worker = Worker(_worker.__file__, _PAGES)

    def __enter__(self) -> "PageParser":
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def extract(self, html: str) -> ReadablePage | None:
        """Return the title and the text of a page; None if it has no text. Raises RagError and OSError."""
        try:
            answer = self._worker.ask(_EXTRACT, [_worker.encode_page(html)], seconds=_PAGE_TIMEOUT)
        except WorkerError as error:
            raise _explain(error, _worker.PAGE_SECONDS) from None
        return _read_page(answer)


async def extract_page(html: str) -> ReadablePage | None:
    """Return the title and the text of one HTML page; None if it has no text. Raises RagError and OSError."""
    page = [_worker.encode_page(html)]
    try:
        answer = await call_worker(_worker.__file__, _EXTRACT, _PAGES, seconds=_PAGE_TIMEOUT, data=page)
    except WorkerError as error:
        raise _explain(error, _worker.PAGE_SECONDS) from None
    return _read_page(answer)


async def ask_graph_file(path: str, request: Mapping[str, Any], *, seconds: float, space_megabytes: int) -> Any:
    """Return what the graph in a file answers. Raises RagError and OSError."""
    path = os.path.realpath(path)
    request = {**request, "path": path, "seconds": seconds, "space_megabytes": space_megabytes}
    limits = WorkerLimits(
        _MEMORY_MEGABYTES + space_megabytes, math.ceil(seconds + _START_SECONDS), answer_bytes=MAX_ANSWER
    )
    try:
        answer = await call_worker(
            _worker.__file__, request, limits, seconds=seconds + _START_SECONDS, readable=[os.path.dirname(path)]
        )
    except WorkerError as error:
        raise _explain(error, seconds) from None
    return _read_result(answer)


def _explain(error: WorkerError, seconds: float) -> RagError:
    match error.kind:
        case "time":
            return WorkerEndedError(f"It took longer than {seconds:g} seconds, and was ended.")
        case "memory":
            return WorkerEndedError("It needs more memory than it may take.")
        case "size":
            return RagError("The answer is longer than it may be. Ask for less.")
        case "crash":
            return WorkerEndedError(f"The process for it failed: {error}.")


def _read_page(answer: Any) -> ReadablePage | None:
    """Return the page in an answer. Raises RagError."""
    found = _read_result(answer)
    if found is None:
        return None
    try:
        return ReadablePage(str(found["title"]), str(found["text"]))
    except (LookupError, TypeError):
        raise RagError(_UNUSABLE) from None


def _read_result(answer: Any) -> Any:
    """Return the result in an answer. Raises RagError."""
    try:
        if "error" not in answer:
            return answer["result"]
        error = RagError(str(answer["error"]), reference=str(answer["reference"]))
    except (LookupError, TypeError):
        raise RagError(_UNUSABLE) from None
    raise error
