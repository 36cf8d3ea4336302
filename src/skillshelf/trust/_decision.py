"""The rules that decide what the model may read of a workspace's skill. No files, no state."""

from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a skill that could be served. Each is the hash of its content, and empty if there is none."""

    on_disk: str
    """The files as they are now; empty if they could not be read as a whole."""
    serving: str = ""
    """The version that is served at the moment."""
    last_in_use: str = ""
    """The version that was in use at this place last, in this process or another."""


def choose_version(versions: Versions, usable: Container[str]) -> str:
    """Return the version of a skill that the model may read, or an empty string if there is none.

    `usable` has the trees that the user approved, and those in use in a repository of the user's own. While the files
    on disk are not among them, the version that was in use before is served.
    """
    for tree in (versions.on_disk, versions.serving, versions.last_in_use):
        if tree and tree in usable:
            return tree
    return ""


@dataclass(frozen=True, slots=True)
class OwnContent:
    """Content on disk in a repository that the user declared their own."""

    is_complete: bool
    """True if it could be read as a whole, and is what it claims to be: a SKILL.md that loads."""
    is_held: bool
    """True if the agent changed it, and the user has not looked at it since."""
    is_foreign: bool
    """True if it belongs to another repository inside this one, or if another user may have written it."""


def applies_unasked(content: OwnContent) -> bool:
    """Return True if content comes into use without a question, because the repository is the user's own."""
    return content.is_complete and not content.is_held and not content.is_foreign
