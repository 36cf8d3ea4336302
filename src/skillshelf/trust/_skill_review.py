"""Whether a single skill waits for review, in a shelf that reads the disk or in the agent's."""

import os
from typing import TypeGuard

from skillshelf.sources import DirectorySource, Source
from skillshelf.trust._other_content import find_pending_folder
from skillshelf.trust._pending import Pending
from skillshelf.trust._source import TrustedSource
from skillshelf.trust._store import Trust

_OF_THE_PROJECT = ("project", "parent")
"""The sources whose skills come with a workspace. The user's own skills need no review."""


def needs_review(source: Source) -> TypeGuard[DirectorySource | TrustedSource]:
    """Return whether the agent uses the skills of a source only in versions that the user approved."""
    return isinstance(source, DirectorySource | TrustedSource) and source.name in _OF_THE_PROJECT


def find_pending_skill(source: Source, location: str, trust: Trust) -> Pending | None:
    """Return the skill at `location` as pending, or None if the agent uses it as it is now."""
    if not needs_review(source):
        return None
    if isinstance(source, TrustedSource):
        return next((pending for pending in source.find_pending() if pending.location == location), None)
    return find_pending_folder(os.path.dirname(location), source.root, trust)
