"""The inner side of a worker process: it loads a program's `answer` and calls it for each request.

    python -I -B worker.py PROGRAM

Its answers deserve no more trust than what it read. This file imports nothing of skillshelf: that takes 30 ms, and not
every program needs it.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any, NoReturn

OUT_OF_MEMORY = 83
"""The exit code of a worker that needed more memory than it may take."""
_FAILED = 1
_MIB = 1024 * 1024

Answer = Callable[[dict[str, Any], Sequence[bytes]], Any]
"""Gets a request and the data that came with it, and returns a value that JSON can hold.

An exception ends the process: MemoryError as a limit, any other as a crash.
"""


def main() -> NoReturn:
    """Answer requests until there are no more."""
    answer = _load_answer(sys.argv[1])
    requests = sys.stdin.buffer
    _limit_process(**json.loads(requests.readline()))

    # Libraries print warnings, which must not get between us and the reader of our answers.
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)

    code = 0
    try:
        while line := requests.readline():
            request = json.loads(line)
            data = [requests.read(size) for size in request.pop("sizes")]
            answers.write(json.dumps(answer(request, data)).encode() + b"\n")
            answers.flush()
    except MemoryError:
        code = OUT_OF_MEMORY
    except Exception as error:
        answers.write(f"{type(error).__name__}: {error}\n".encode(errors="replace"))
        answers.flush()
        code = _FAILED
    os._exit(code)  # the libraries need not clean up, which can take long or fail for a damaged file


def _load_answer(path: str) -> Answer:
    loader = SourceFileLoader("program", path)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    program = module_from_spec(spec)
    sys.modules[loader.name] = program
    loader.exec_module(program)
    answer: Answer = program.answer
    return answer


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


if __name__ == "__main__":
    main()
