"""The protocol of a source: a place that skills come from, and the only reader of their bytes."""

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from skillshelf.files import Page
from skillshelf.skills import Found, SkillDescriptor


class Source(Protocol):
    """A place that skills come from. A key names one place inside it and stays the same from refresh to refresh."""

    name: str

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        """Return what differs from the last refresh, by key: a new reading, or None for something that is gone.

        The first call returns everything. `changed` are paths that the caller knows to have changed; without it, the
        source finds out for itself.
        """

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        """Return the text below the frontmatter. Raises SkillUnreadableError."""

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        """Return bytes of a listed reference. Raises ReferenceNotFoundError, -NotAllowedError or -UnreadableError."""


@runtime_checkable
class InFolder(Protocol):
    """A source whose skills are in a folder."""

    root: str


@runtime_checkable
class Cacheable(InFolder, Protocol):
    """A source in a folder about which data may be kept in the user's cache."""

    uses_cache: bool


class FolderSource(Source, Cacheable, Protocol):
    """A source in a folder whose skills can be reviewed, file by file."""

    def has_file(self, key: str, path: str) -> bool:
        """Return False for a file in a skill's folder that is not part of the skill, such as compiled code."""


ENVIRONMENT = "environment"
"""The name of the source of installed packages."""
