"""The agent's file tools: they reach the workspace and nothing outside it, and they run nothing.

Every path is opened by descriptor below the workspace, never through a link. See `docs/concepts/safety.md`.
"""

from skillshelf_agent.filetools._access import PROTECTED_NAMES, FileAccess, Parts, find_protection, show_path
from skillshelf_agent.filetools._changes import Change, apply_change, diff_texts, propose_change
from skillshelf_agent.filetools._finding import list_directory
from skillshelf_agent.filetools._limits import MAX_MEDIA_BYTES
from skillshelf_agent.filetools._line_search import PatternError, search_lines
from skillshelf_agent.filetools._reading import Media, read_page, sniff_media_type
from skillshelf_agent.filetools._tools import FileTools
from skillshelf_agent.filetools._tree import GitIgnore

__all__ = [
    "MAX_MEDIA_BYTES",
    "PROTECTED_NAMES",
    "Change",
    "FileAccess",
    "FileTools",
    "GitIgnore",
    "Media",
    "Parts",
    "PatternError",
    "apply_change",
    "diff_texts",
    "find_protection",
    "list_directory",
    "propose_change",
    "read_page",
    "search_lines",
    "show_path",
    "sniff_media_type",
]
