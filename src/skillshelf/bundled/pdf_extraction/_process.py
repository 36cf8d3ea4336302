"""Asks the process that reads a PDF file, and tells what went wrong with it."""

import asyncio
import json
import math
import signal
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from skillshelf.bundled._workers import AnswerTooLong, WorkerAnswer, run_worker
from skillshelf.bundled.pdf_extraction._errors import PasswordNeededError, PdfError
from skillshelf.bundled.pdf_extraction._limits import ReadLimits
from skillshelf.text import count_noun, truncate

_WORKER = "skillshelf.bundled.pdf_extraction._worker"
_MAX_ANSWER = 8_000_000
"""Bytes. A picture of a page is the largest answer; it has up to 4 MB."""

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def read_pdf(
    descriptor: int, action: str, arguments: Mapping[str, Any], password: str | None, limits: ReadLimits
) -> Any:
    """Return what the reading process answers about an open file. Raises PdfError."""
    request = {
        "action": action,
        "arguments": dict(arguments),
        "descriptor": descriptor,
        "password": password,
        "memory_megabytes": limits.memory_megabytes,
        "cpu_seconds": math.ceil(limits.seconds),
    }
    loop = asyncio.get_running_loop()
    slot = _slots.setdefault(loop, asyncio.Semaphore(limits.processes))
    async with slot:
        try:
            answer = await run_worker(
                _WORKER, request, seconds=limits.seconds, max_answer=_MAX_ANSWER, descriptors=[descriptor]
            )
        except TimeoutError:
            raise _too_slow(limits) from None
        except AnswerTooLong:
            raise PdfError("The process that reads the file answered with more than it may.") from None
    return _read_answer(answer, limits)


def _read_answer(answer: WorkerAnswer, limits: ReadLimits) -> Any:
    """Return the result in an answer. Raises PdfError."""
    if answer.exit_code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise _too_slow(limits)
    if answer.exit_code < 0 or not answer.output:
        raise PdfError(
            f"The process that reads the file ended {answer.ending}: the file is damaged, or needs more than the "
            f"{limits.memory_megabytes:,} MB of memory that reading may take."
        )
    try:
        content = json.loads(answer.output)
        if "error" not in content:
            return content["result"]
        kind = PasswordNeededError if content["needs_password"] else PdfError
        error = kind(str(content["error"]), reference=str(content["reference"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        lines = answer.output.decode("utf-8", "replace").strip().splitlines() or [""]
        raise PdfError(
            f"The process that reads the file failed with status {answer.exit_code}: {truncate(lines[-1], 200)}."
        ) from None
    raise error


def _too_slow(limits: ReadLimits) -> PdfError:
    return PdfError(f"Reading was ended after {count_noun(round(limits.seconds), 'second')}.")
