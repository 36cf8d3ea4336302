"""Ask the worker that reads a PDF file, and translate its errors."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from skillshelf.sandbox import WorkerError, WorkerLimits, call_worker
from skillshelf.text import count_noun
from skillshelf_skills.pdf_extraction import _worker
from skillshelf_skills.pdf_extraction._errors import PasswordNeededError, PdfError
from skillshelf_skills.pdf_extraction._limits import ReadLimits

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def read_pdf(
    descriptor: int, action: str, arguments: Mapping[str, Any], password: str | None, limits: ReadLimits
) -> Any:
    """Return what the worker answers about an open file. Raises PdfError."""
    request = {"action": action, "arguments": dict(arguments), "descriptor": descriptor, "password": password}
    worker_limits = WorkerLimits(limits.memory_megabytes, math.ceil(limits.seconds))
    loop = asyncio.get_running_loop()
    slot = _slots.setdefault(loop, asyncio.Semaphore(limits.processes))
    async with slot:
        try:
            answer = await call_worker(
                _worker.__file__, request, worker_limits, seconds=limits.seconds, descriptors=[descriptor]
            )
        except WorkerError as error:
            raise PdfError(_explain(error, limits)) from None
    return _read_answer(answer)


def _explain(error: WorkerError, limits: ReadLimits) -> str:
    memory = f"{limits.memory_megabytes:,} MB of memory"
    match error.kind:
        case "time":
            return f"Reading was ended after {count_noun(round(limits.seconds), 'second')}."
        case "memory":
            return f"Reading this needs more than the {memory} that it may take."
        case "size":
            return "The process that reads the file answered with more than it may."
        case "crash":
            return f"The process that reads the file failed: {error}. The file is damaged, or needs more than {memory}."


def _read_answer(answer: Any) -> Any:
    """Return the result in an answer. Raises PdfError."""
    try:
        if "error" not in answer:
            return answer["result"]
        kind = PasswordNeededError if answer["needs_password"] else PdfError
        error = kind(str(answer["error"]), reference=str(answer["reference"]))
    except (LookupError, TypeError):
        raise PdfError("The process that reads the file gave an answer that can't be used.") from None
    raise error
