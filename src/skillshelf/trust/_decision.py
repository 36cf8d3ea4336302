"""The rule that decides which version of a workspace's skill the model may read. No files, no state."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a skill that could be served. Each is the hash of its content, and empty if there is none."""

    on_disk: str
    """The files as they are now; empty if they could not be read as a whole."""
    in_session: str = ""
    """The version the agent wrote in this session, with the user's permission for each write."""
    session_base: str = ""
    """The approved version that the agent's writes were made on."""
    serving: str = ""
    """The version that is served at the moment."""
    last_approved: str = ""
    """The approved version that lay at this place last."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The version to serve."""

    serve: Literal["on_disk", "in_session", "approved_copy", "nothing"]
    tree: str = ""
    ends_session: bool = False
    """True if the version of this session is no longer needed, or no longer allowed."""


def choose_version(versions: Versions, approved: Container[str]) -> Decision:
    """Decide which version of a skill the model may read, given the trees that the user approved.

    Approved content always wins. While the files on disk wait for review, the version that the agent wrote with the
    user's permission is served, or else the approved version that was in use before.
    """
    if versions.on_disk in approved:
        return Decision("on_disk", versions.on_disk, ends_session=True)

    # The agent's edits of an approved version go when the user revokes that version.
    is_base_revoked = versions.session_base != "" and versions.session_base not in approved
    if versions.in_session and not is_base_revoked:
        return Decision("in_session", versions.in_session)

    for tree in (versions.serving, versions.last_approved):
        if tree in approved:
            return Decision("approved_copy", tree, ends_session=is_base_revoked)
    return Decision("nothing", ends_session=is_base_revoked)
