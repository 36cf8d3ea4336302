"""Trust by content: a workspace's text reaches the prompt only in a version that the user approved."""

from skillshelf.trust._folders import pending_folder
from skillshelf.trust._unreviewed import UnreviewedFile
from skillshelf.trust.files import INSTRUCTION_FILES, trusted_text
from skillshelf.trust.pending import Pending
from skillshelf.trust.review import review_text, summary
from skillshelf.trust.snapshot import Entry, Snapshot
from skillshelf.trust.source import TrustedSource
from skillshelf.trust.store import Trust

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
