"""The plan of a confinement: the agent writes it, the launcher reads it.

A workspace can have thousands of Git directories, and Linux allows 128 KiB for an argument of a program. So the plan is
a file in memory. It is sealed: a command that still runs cannot change the plan of the next one.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from skillshelf.agent.launcher._calls import call, libc

# By number: a Python that was built for an older C library has neither these names nor os.memfd_create.
_MFD_CLOEXEC = 0x1
_MFD_ALLOW_SEALING = 0x2
_F_ADD_SEALS = 1033
_NO_MORE_SEALS = 0x1
_NO_SHRINKING = 0x2
_NO_GROWING = 0x4
_NO_WRITING = 0x8


@contextmanager
def open_plan(level: str, *, writable: Sequence[str], repositories: Sequence[str] = ()) -> Iterator[int]:
    """Write a plan, and provide the descriptor of its file while the block lasts.

    `writable`: the real paths of the folders the program may change. `repositories`: Git directories in them.
    """
    plan = {"level": level, "writable": [*writable], "repositories": [*repositories]}
    descriptor = call(libc.memfd_create, b"skillshelf-plan", _MFD_CLOEXEC | _MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "w", encoding="ascii", closefd=False) as file:
            json.dump(plan, file)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _NO_MORE_SEALS | _NO_SHRINKING | _NO_GROWING | _NO_WRITING)
        yield descriptor
    finally:
        os.close(descriptor)


def read_plan(path: str) -> dict[str, Any]:
    """Read the plan that another process has open. Raises OSError or ValueError."""
    with open(path, "rb") as file:
        return dict(json.load(file))
