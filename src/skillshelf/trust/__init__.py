"""Trust by content: text from a workspace reaches the prompt only in a version that the user approved."""

from skillshelf.trust._other_content import INSTRUCTION_FILES, pending_folder, trusted_text
from skillshelf.trust._pending import Pending, UnreviewedFile
from skillshelf.trust._questions import Review, ReviewQuestion
from skillshelf.trust._review import review_text, summary
from skillshelf.trust._snapshot import Snapshot, SnapshotEntry
from skillshelf.trust._source import TrustedSource
from skillshelf.trust._store import Trust

__all__ = [
    "INSTRUCTION_FILES",
    "Pending",
    "Review",
    "ReviewQuestion",
    "Snapshot",
    "SnapshotEntry",
    "Trust",
    "TrustedSource",
    "UnreviewedFile",
    "pending_folder",
    "review_text",
    "summary",
    "trusted_text",
]
