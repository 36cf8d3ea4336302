"""What was read lately, for every client: a file that a hundred ask for at once is read once, and is held once."""

import sys
import threading
import time
from typing import NamedTuple

from skillshelf.catalog import Candidate
from skillshelf.descriptor import SkillDescriptor
from skillshelf.shelf import Shelf
from skillshelf.turn import Loaded, Turn

SHARED_SECONDS = 1.0
"""As long as a look at the folders serves the calls after it, a text serves the turns that begin after it was read."""
SHARED_BYTES = 16 * 1024 * 1024
"""Of texts at most. A client that pages through a long file would else have all of it kept for others."""

Asked = tuple[str, str, int]
"""A skill's name, the path of a reference or nothing, and an offset."""


class Read(NamedTuple):
    began: float
    skill: SkillDescriptor
    """The card it was read by: a skill that changed, or another of its name, has another."""
    loaded: Loaded


class Reads:
    def __init__(self) -> None:
        self._kept: dict[Asked, Read] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def lately(self) -> float:
        """What was read since then, a turn that begins now may give."""
        return time.monotonic() - SHARED_SECONDS

    def find(self, asked: Asked, skill: SkillDescriptor | None, since: float) -> Loaded | None:
        read = self._kept.get(asked)
        return read.loaded if read and read.skill is skill and read.began >= since else None

    def keep(self, asked: Asked, read: Read) -> None:
        """As far as there is room. What finds none is read again by whoever asks."""
        with self._lock:
            self._drop(asked)
            size = sys.getsizeof(read.loaded.text)
            if self._bytes + size <= SHARED_BYTES:
                self._kept[asked] = read
                self._bytes += size

    def tidy(self) -> None:
        """Lets go of what nobody may be given any more. The turns that gave it hold it as long as they last."""
        since = self.lately()
        with self._lock:
            for asked in [asked for asked, read in self._kept.items() if read.began < since]:
                self._drop(asked)

    def _drop(self, asked: Asked) -> None:
        if asked in self._kept:
            self._bytes -= sys.getsizeof(self._kept.pop(asked).loaded.text)


class SharingTurn(Turn):
    """A turn that takes from the others what they read. Who may load what, and what is recorded, is its own affair."""

    def __init__(self, shelf: Shelf, invoked: set[str], reads: Reads, since: float) -> None:
        super().__init__(shelf)
        self.invoked = invoked  # itself: what is invoked in one turn is so in all that begin with this set
        self._reads, self._since = reads, since

    def is_at_hand(self, asked: Asked) -> bool:
        """Whether this load needs no file and waits for nobody, and so needs no thread."""
        found = self._reads.find(asked, self.shelf.catalog.get(asked[0]), self._since)
        return found is not None and not self._lock.locked()

    def _read(self, candidate: Candidate, path: str, offset: int) -> Loaded:
        descriptor = candidate.descriptor
        asked = descriptor.name, path, offset
        found = self._reads.find(asked, descriptor, self._since)
        if found is None:
            began = time.monotonic()
            found = super()._read(candidate, path, offset)
            self._reads.keep(asked, Read(began, descriptor, found))
        return found
