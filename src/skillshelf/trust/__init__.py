"""Trust by content: a workspace's text reaches the prompt only in a version that the user approved."""

from skillshelf.trust._files import INSTRUCTION_FILES, trusted_text
from skillshelf.trust._folders import pending_folder
from skillshelf.trust._pending import Pending
from skillshelf.trust._review import review_text, summary
from skillshelf.trust._snapshot import Entry, Snapshot
from skillshelf.trust._source import TrustedSource
from skillshelf.trust._store import Trust
from skillshelf.trust._unreviewed import UnreviewedFile

__all__ = [
    "INSTRUCTION_FILES",
    "Entry",
    "Pending",
    "Snapshot",
    "Trust",
    "TrustedSource",
    "UnreviewedFile",
    "pending_folder",
    "review_text",
    "summary",
    "trusted_text",
]
