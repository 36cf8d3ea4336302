"""How much reading a PDF file may take. Whoever made the file may have meant it to take everything."""

from typing import NamedTuple


# Not a dataclass, which takes half of the millisecond that attaching a skill may take.
class ReadLimits(NamedTuple):
    """Limits on each call."""

    file_megabytes: int = 100
    seconds: float = 30.0
    """Both of the clock on the wall and of the processor."""
    memory_megabytes: int = 1024
    characters: int = 20_000
    """Text in one result."""
    image_side: int = 1600
    """Pixels of the longer side of a page that is shown."""
    processes: int = 2
    """How many files are read at the same time."""
