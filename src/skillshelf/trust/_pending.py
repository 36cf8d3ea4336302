"""Content of a workspace that waits for the user's approval."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from skillshelf.errors import TrustError
from skillshelf.files import NotPlainFile
from skillshelf.trust._approvals import Kind
from skillshelf.trust._trees import Snapshot, SnapshotEntry, TreeCopy, read_verified


@dataclass(frozen=True, slots=True)
class Pending:
    """A skill, a file of project instructions, or a folder of eval cases that the user has not approved as it is."""

    root: str
    """The workspace."""
    key: str
    """Its path in the workspace."""
    name: str
    snapshot: Snapshot
    location: str
    """The path of the SKILL.md, of the file, or of a folder that is not a skill."""
    kind: Kind = "skill"
    copy: TreeCopy | None = field(default=None, repr=False, compare=False)
    """The approved version that is served meanwhile."""
    blocked: str = ""
    """Why it cannot be approved; empty if it can."""
    by_agent: bool = False
    """True if it waits because the agent changed it, in a repository that the user declared their own."""

    @property
    def status(self) -> Literal["new", "changed"]:
        """`changed` if an earlier version is served meanwhile."""
        return "changed" if self.copy else "new"

    @property
    def approved(self) -> Snapshot | None:
        """The snapshot of the approved version that is served meanwhile."""
        return self.copy.snapshot if self.copy else None

    @property
    def tree(self) -> str:
        """The hash of the pending content."""
        return self.snapshot.tree

    @property
    def folder(self) -> str:
        """The folder, below the root, that the paths of the snapshot start from."""
        if self.kind == "file":
            return os.path.dirname(self.key)
        return self.key

    @property
    def file(self) -> str:
        """The path in the snapshot of the file to read first."""
        return os.path.basename(self.location)

    def read(self, entry: SnapshotEntry) -> bytes:
        """Read a file of the snapshot. Raises TrustError if it has changed since."""
        return read_verified(self.root, self.folder, entry)

    def read_approved(self, entry: SnapshotEntry) -> bytes:
        """Read a file of the approved version. Raises TrustError."""
        if self.copy is None or not self.copy.is_intact():
            raise TrustError(f"There is no approved version of {self.name!r} to compare with.")
        try:
            return self.copy.read(entry.path, 0, entry.size).data
        except (OSError, NotPlainFile):
            raise TrustError(f"The approved version of {entry.path!r} cannot be read.") from None


@dataclass(frozen=True, slots=True)
class UnreviewedFile:
    """A file of a skill that the user has not approved as it is now."""

    skill: str
    folder: str
    """The skill's folder, below the workspace."""
    path: str
    """The file, below the skill's folder."""
    status: Literal["new", "changed"]
    """`new`: no version of the skill was approved."""

    def __str__(self) -> str:
        if self.status == "changed":
            return f"{self.path} changed since you approved the skill {self.skill!r}."
        return f"{self.path} belongs to the skill {self.skill!r}, which you have not approved."

    def as_json(self) -> dict[str, str]:
        """Return the file's fields for programs."""
        return {"skill": self.skill, "folder": self.folder, "path": self.path, "status": self.status}


def compare_with_approved(
    skill: str, folder: str, on_disk: Snapshot, approved: Snapshot | None
) -> Iterator[UnreviewedFile]:
    """Yield the files on disk that are not exactly as they were approved.

    If the folder could not be read as a whole, nothing is known about any of its files, and all known ones count.
    """
    if approved is None:
        for entry in on_disk.entries:
            yield UnreviewedFile(skill, folder, entry.path, "new")
        return

    present = approved.entries if on_disk.fault else on_disk.entries
    for entry in present:
        if on_disk.fault or approved.entry(entry.path) != entry:
            yield UnreviewedFile(skill, folder, entry.path, "changed")
