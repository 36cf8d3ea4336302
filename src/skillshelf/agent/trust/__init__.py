"""Trust by content: what a workspace brings reaches the prompt only as a person agreed to it."""

from skillshelf.agent.trust.files import INSTRUCTION_FILES, trusted_text
from skillshelf.agent.trust.pending import Pending
from skillshelf.agent.trust.review import review_text, summary
from skillshelf.agent.trust.snapshot import Entry, Snapshot
from skillshelf.agent.trust.source import TrustedSource
from skillshelf.agent.trust.store import Trust

__all__ = [
    "INSTRUCTION_FILES",
    "Entry",
    "Pending",
    "Snapshot",
    "Trust",
    "TrustedSource",
    "review_text",
    "summary",
    "trusted_text",
]
