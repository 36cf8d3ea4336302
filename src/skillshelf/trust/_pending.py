"""Content of a workspace that waits for the user's approval."""

import os
from dataclasses import dataclass, field
from typing import Literal

from skillshelf.errors import TrustError
from skillshelf.files import NotPlainFile
from skillshelf.trust._copies import Copy, read_verified
from skillshelf.trust._snapshot import Entry, Snapshot


@dataclass(frozen=True, slots=True)
class Pending:
    """A skill, a file of project instructions, or a folder of eval cases that the user has not approved as it is."""

    root: str
    """The workspace."""
    key: str
    """The place in it; that of a file begins with a slash."""
    name: str
    status: Literal["new", "changed"]
    """`changed`: an earlier version serves meanwhile."""
    snapshot: Snapshot
    location: str
    """The path of the SKILL.md, of the file, or of a folder that is not a skill."""
    copy: Copy | None = field(default=None, repr=False, compare=False)
    """What serves meanwhile."""
    blocked: str = ""
    """Why it cannot be approved; empty if it can."""
    granted: bool = False
    """It serves in this session, because the agent wrote it and the user confirmed that."""

    @property
    def approved(self) -> Snapshot | None:
        """The snapshot that serves meanwhile."""
        return self.copy.snapshot if self.copy else None

    @property
    def tree(self) -> str:
        return self.snapshot.tree

    @property
    def folder(self) -> str:
        """What the paths of the snapshot begin at, below the root."""
        return os.path.dirname(self.key[1:]) if self.key.startswith("/") else self.key

    @property
    def file(self) -> str:
        """The path in the snapshot of what is read first."""
        return os.path.basename(self.location)

    def read(self, entry: Entry) -> bytes:
        """Read a file of the snapshot. Raises TrustError if it has changed since."""
        return read_verified(self.root, self.folder, entry)

    def read_approved(self, entry: Entry) -> bytes:
        """Read a file of the version that serves meanwhile. Raises TrustError."""
        if self.copy is None or not self.copy.is_intact():
            raise TrustError(f"There is no approved version of {self.name!r} to compare with.")
        try:
            return self.copy.read(entry.path, 0, entry.size).data
        except (OSError, NotPlainFile):
            raise TrustError(f"The approved version of {entry.path!r} cannot be read.") from None
