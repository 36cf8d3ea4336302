"""The plan of a confinement: the agent writes it, the launcher reads it.

A workspace can have thousands of Git directories, and Linux allows 128 KiB for an argument of a program. So the plan is
a file in memory. It is sealed: a command that still runs cannot change the plan of the next one.
"""

import fcntl
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from skillshelf.agent.launcher._kernel import call, libc

# By number: a Python that was built for an older C library has neither these names nor os.memfd_create.
_MFD_CLOEXEC = 0x1
_MFD_ALLOW_SEALING = 0x2
_F_ADD_SEALS = 1033
_F_SEAL_SEAL = 0x1
_F_SEAL_SHRINK = 0x2
_F_SEAL_GROW = 0x4
_F_SEAL_WRITE = 0x8
_ALL_SEALS = _F_SEAL_SEAL | _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_WRITE


class LaunchPlan(NamedTuple):
    """The level of a confinement and the folders it is about."""

    level: str
    writable: list[str]
    """Real paths of the folders that the program may change."""
    repositories: list[str]
    """Git directories in them, and `.git` files."""
    network: bool = True
    """False if the program gets no network. The level `landlock` cannot do that."""
    leaves_processes: bool = True
    """False if every process that the program started ends with it. The level `landlock` cannot do that."""


@contextmanager
def open_plan(
    level: str,
    *,
    writable: Sequence[str],
    repositories: Sequence[str] = (),
    network: bool = True,
    leaves_processes: bool = True,
) -> Iterator[int]:
    """Write a plan, and provide the descriptor of its file while the block lasts.

    `writable`: the real paths of the folders the program may change. `repositories`: Git directories in them. Without
    `network`, the program gets no network. Without `leaves_processes`, what it started ends with it.
    """
    plan = LaunchPlan(level, list(writable), list(repositories), network, leaves_processes)
    descriptor = call(libc.memfd_create, b"skillshelf-plan", _MFD_CLOEXEC | _MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "w", encoding="ascii", closefd=False) as file:
            json.dump(plan._asdict(), file)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _ALL_SEALS)
        yield descriptor
    finally:
        os.close(descriptor)


def launch_command(program: Sequence[str], plan: int, process: int | Literal["self"] | None = None) -> list[str]:
    """Return the command that starts a program as a plan says.

    `process` has the plan open: this one by default, "self" if the command inherits the descriptor.
    """
    launcher = os.path.dirname(os.path.abspath(__file__))
    path = f"/proc/{process or os.getpid()}/fd/{plan}"
    # -I -S: neither the workspace nor the environment chooses what Python imports before it is confined.
    return [sys.executable, "-I", "-S", launcher, path, "--", *program]


def read_plan(path: str) -> LaunchPlan:
    """Read the plan that another process has open. Raises OSError, ValueError or TypeError."""
    with open(path, "rb") as file:
        fields = json.load(file)
    return LaunchPlan(**fields)
