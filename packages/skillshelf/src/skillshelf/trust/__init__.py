"""Trust by content: text from a workspace reaches the prompt only in a version that the user approved."""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily
from skillshelf.trust._approvals import OwnChanges, OwnRepository, Pending
from skillshelf.trust._limits import MAX_BYTES, MAX_FILES
from skillshelf.trust._other_content import (
    COMMAND_FOLDERS,
    INSTRUCTION_FILES,
    approve_file_write,
    find_command_files,
    find_instruction_files,
    find_pending_folder,
    find_unapproved_file,
    find_unapproved_folder,
    is_command_file,
    list_commands,
    name_command,
    trusted_text,
)
from skillshelf.trust._source import TrustedSource, UnreviewedFile, find_pending_skill, needs_review
from skillshelf.trust._store import Trust
from skillshelf.trust._trees import DiskState, Snapshot, SnapshotEntry, take_signature, take_snapshot

if TYPE_CHECKING:
    from skillshelf.trust._review import (
        MINE_CONSEQUENCE,
        MINE_QUESTION,
        Review,
        ReviewLine,
        ReviewQuestion,
        describe_kinds,
        review_lines,
        review_text,
        shorten_review,
        summary,
    )
    from skillshelf.trust._script_folders import ScriptFolders

__all__ = [
    "COMMAND_FOLDERS",
    "INSTRUCTION_FILES",
    "MAX_BYTES",
    "MAX_FILES",
    "MINE_CONSEQUENCE",
    "MINE_QUESTION",
    "DiskState",
    "OwnChanges",
    "OwnRepository",
    "Pending",
    "Review",
    "ReviewLine",
    "ReviewQuestion",
    "ScriptFolders",
    "Snapshot",
    "SnapshotEntry",
    "Trust",
    "TrustedSource",
    "UnreviewedFile",
    "approve_file_write",
    "describe_kinds",
    "find_command_files",
    "find_instruction_files",
    "find_pending_folder",
    "find_pending_skill",
    "find_unapproved_file",
    "find_unapproved_folder",
    "is_command_file",
    "list_commands",
    "name_command",
    "needs_review",
    "review_lines",
    "review_text",
    "shorten_review",
    "summary",
    "take_signature",
    "take_snapshot",
    "trusted_text",
]

# What a reviewer reads compiles patterns for 8 ms, which counting what waits for a review need not.
__getattr__ = export_lazily(
    __name__,
    {
        "_review": [
            "MINE_CONSEQUENCE",
            "MINE_QUESTION",
            "Review",
            "ReviewLine",
            "ReviewQuestion",
            "describe_kinds",
            "review_lines",
            "review_text",
            "shorten_review",
            "summary",
        ],
        "_script_folders": ["ScriptFolders"],
    },
)
