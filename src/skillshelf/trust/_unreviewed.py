"""Files of skills that differ from the version the user approved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from skillshelf.trust._snapshot import Snapshot


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
