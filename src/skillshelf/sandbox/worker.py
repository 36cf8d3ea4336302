"""The inner side of a worker process: a module that answers requests calls `serve`.

Its answers deserve no more trust than what it read.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

_MIB = 1024 * 1024

Answer = Callable[[dict[str, Any], Sequence[bytes]], Any]


def serve(answer: Answer) -> NoReturn:
    """Answer requests until there are no more, and end the process.

    `answer` gets a request and the data that came with it, and returns a value that JSON can hold.
    """
    requests = sys.stdin.buffer
    _limit_process(**json.loads(requests.readline()))

    # Libraries print warnings, which must not get between us and the reader of our answers.
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)

    while line := requests.readline():
        request = json.loads(line)
        data = [requests.read(size) for size in request.pop("sizes")]
        answers.write(json.dumps(answer(request, data)).encode() + b"\n")
        answers.flush()
    os._exit(0)  # the libraries need not clean up, which can take long or fail for a damaged file


def forbid_opening() -> None:
    """Keep this process from opening anything from now on: a file, a folder, a connection, a library.

    What is open stays open. No kernel feature is needed for that, and no library can undo it unless it means to.
    """
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def _limit_process(memory_mb: int, cpu_seconds: int, file_mb: int) -> None:
    limits = {
        resource.RLIMIT_AS: memory_mb * _MIB,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: file_mb * _MIB,
    }
    for kind, limit in limits.items():
        with suppress(OSError, ValueError):  # a system that does not know it, or has a lower one already
            resource.setrlimit(kind, (limit, limit))
