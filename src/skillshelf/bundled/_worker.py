"""The inner side of a process that `_workers` started.

It gets a request as JSON on its standard input, limits itself, and writes JSON objects, most often one. Its answer
deserves no more trust than what it read.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

_MEGABYTE = 1024 * 1024


def serve_request(answer: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    """Read one request from the standard input, write the answer to it, and end the process. See `serve_stream`."""
    serve_stream(lambda request: [answer(request)])


def serve_stream(answer: Callable[[Mapping[str, Any]], Iterable[dict[str, Any]]]) -> None:
    """Read one request from the standard input, write the answers to it, each on a line, and end the process.

    An answer is written as soon as it is there, so that it is not lost if the next one never comes. The request says
    how much `memory_megabytes` and how many `cpu_seconds` it may take, and with `file_megabytes` how large the files
    may become that it writes. Without that it can write none.
    """
    request = json.load(sys.stdin.buffer)
    _limit_process(request["memory_megabytes"], request["cpu_seconds"], request.get("file_megabytes", 0))

    # Libraries print warnings, which must not get between us and the reader of our answer.
    answer_pipe = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)

    with os.fdopen(answer_pipe, "wb") as pipe:
        for result in answer(request):
            pipe.write(json.dumps(result).encode() + b"\n")
            pipe.flush()
    os._exit(0)  # the libraries need not clean up, which can take long or fail for a damaged file


def forbid_opening() -> None:
    """Keep this process from opening anything from now on: a file, a folder, a connection, a library.

    What is open stays open. No kernel feature is needed for that, and no library can undo it unless it means to.
    """
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def _limit_process(memory_megabytes: int, cpu_seconds: int, file_megabytes: int) -> None:
    limits = {
        resource.RLIMIT_AS: memory_megabytes * _MEGABYTE,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: file_megabytes * _MEGABYTE,
    }
    for kind, limit in limits.items():
        with suppress(OSError, ValueError):  # a system that does not know it, or has a lower one already
            resource.setrlimit(kind, (limit, limit))
