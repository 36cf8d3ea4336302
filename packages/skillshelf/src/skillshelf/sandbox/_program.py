"""What runs in a sandbox, how much it may take, and how it ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from skillshelf.sandbox._git import GitGuard

Limit = Literal["seconds", "memory", "processes", "output"]


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """How much a program may take, with everything it starts. 0 is no limit, except for its output."""

    seconds: float = 120.0
    output_bytes: int = 1024 * 1024
    """Of a background program, only so much of the last output is kept. Another one is stopped if it prints more."""
    memory_mb: int = 0
    """For each process, and for all of them together."""
    processes: int = 0
    """How many may be alive at the same time."""
    file_mb: int = 0
    """The size of one file."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its arguments, and everything it gets."""

    words: Sequence[str]
    folder: str
    """The folder it starts in."""
    environment: Mapping[str, str]
    """Its whole environment. With `scratch`, TMPDIR and XDG_CACHE_HOME are added."""
    writable: Sequence[str] = ()
    """The real paths of the folders that it can change."""
    readable: Sequence[str] = ()
    """The real paths of folders that it needs, even if they are in one that bubblewrap hides, such as /tmp."""
    scratch: str = ""
    """The real path of a folder of ours for its temporary files, which other programs may share."""
    network: bool = False
    """Whether it gets the network. Otherwise it has loopback of its own, or none where that isn't possible."""
    git: GitGuard | None = None
    """Protects the Git directories in the writable folders, as far as the level can."""
    descriptors: Sequence[int] = ()
    """Open files that it inherits."""
    background: bool = False
    """Whether others in its workspace may start while it runs. Git directories are read-only to it.

    It must not share `scratch` with others: it could swap folders there while they are mounted.
    """

    @property
    def temporary(self) -> str:
        """The folder in `scratch` that is TMPDIR."""
        return f"{self.scratch}/files"

    @property
    def private_tmp(self) -> str:
        """The folder in `scratch` that bubblewrap shows as /tmp. Mount points appear there, too."""
        return f"{self.scratch}/tmp"

    @property
    def all_writable(self) -> Sequence[str]:
        return [*self.writable, self.temporary] if self.scratch else self.writable


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended, and what it printed."""

    exit_code: int | None
    """128 and more for a signal; None if it was stopped from outside."""
    stdout: str
    stderr: str = ""
    """Empty if the streams were merged into `stdout`."""
    limit: Limit | None = None
    """The limit for which it was stopped."""
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    """Of all its processes together, as far as it was measured."""
    notices: Sequence[str] = field(default=())
    """What was found after it: a file removed from a Git directory, a rebase in progress."""


class SandboxError(Exception):
    """The program wasn't started, because its sandbox could not be set up."""
