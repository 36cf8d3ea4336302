"""What a directory source remembers between two looks."""

from dataclasses import dataclass, field

from skillshelf.found import Found

MISSING = -1
"""The stamp of what is not there; no hash is -1."""


@dataclass(slots=True, repr=False, eq=False)
class Skill:
    """A skill's folder."""

    found: Found
    file: str
    folders: tuple[str, ...]
    """Folders below the skill's, whose times belong to the stamp."""
    stamp: int
    fresh: bool
    """Changed so lately that the times cannot tell a further change."""
    cached: bool = False
    """Whether the scan cache told of it, and no look has read it since."""
    kept: str | None = None
    """The last good instructions, while there is room for them."""


@dataclass(slots=True, repr=False, eq=False)
class Folder:
    """A folder on the way to skills."""

    stamp: int
    fresh: bool
    children: set[str] = field(default_factory=set)
    """Names of the folders below it that were entered."""
    links: set[str] = field(default_factory=set)
    """Names of the symlinks in it that count."""


@dataclass(slots=True, repr=False, eq=False)
class Link:
    """A symlink on the way."""

    target: tuple[int, int] | None = None
    """Device and inode it led to; None before it was followed."""
    key: str | None = None
    """Of the folder inside the root that it leads to; None where it leads to none."""
    brought: bool = False
    """Whether that folder was entered only because of it."""


@dataclass(slots=True, repr=False, eq=False)
class State:
    """All of it. Keys are paths below the root; the root itself is the empty key."""

    skills: dict[str, Skill] = field(default_factory=dict)
    folders: dict[str, Folder] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    notes: dict[str, Found] = field(default_factory=dict)
    """What is to be said of places that are no skills."""
    ignore_stamp: int = MISSING
