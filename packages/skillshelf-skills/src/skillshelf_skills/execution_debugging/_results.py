"""What a run may take, and what it returns."""

from typing import NamedTuple, TypedDict


# Not a dataclass, which takes half of the millisecond that attaching a skill may take.
class Limits(NamedTuple):
    """How much one run may take."""

    seconds: float = 60.0
    """The longest time that a call may ask for."""
    memory_mb: int = 1024
    """For each process, and for all of them together."""
    processes: int = 64
    """How many may be alive at the same time."""
    output_bytes: int = 2 * 1024 * 1024
    """A run that prints more is ended."""
    file_mb: int = 1024
    """The size of one file."""


class Failure(TypedDict):
    """Why a run failed, as far as its end and its output tell."""

    kind: str
    explanation: str
    reference: str
    """The reference that helps."""


class RunResult(TypedDict):
    """A run that has ended."""

    run_id: str
    succeeded: bool
    exit_code: int | None
    """128 and more for a signal; None if a limit ended it."""
    signal: str
    """The name of the signal that ended it; empty if none did."""
    seconds: float
    peak_memory_mb: float | None
    """Of all its processes together; None if it ended before they were measured."""
    output: str
    """Both streams, in order; the middle is left out if there is much."""
    output_characters: int
    is_whole: bool
    """False if `read_output` has more than `output`."""
    failure: Failure | None
    sandbox: str
    """The level of its sandbox: `bubblewrap`, `landlock`, `sandbox-exec` or `none`."""
    has_network: bool
    notices: list[str]
    """What was found after it: a file removed from a Git directory, a rebase in progress."""


class OutputPiece(TypedDict):
    """A piece of a run's output."""

    text: str
    next_offset: int | None
    """Where to read on; None at the end."""
    output_characters: int


class SandboxDescription(TypedDict):
    """How far runs are confined here."""

    folder: str
    level: str
    reason: str
    """Why the level is not higher."""
    blocked: list[str]
    stays_open: list[str]
    has_network: bool
    seconds: float
    memory_mb: int
    processes: int
    output_bytes: int
    file_mb: int
