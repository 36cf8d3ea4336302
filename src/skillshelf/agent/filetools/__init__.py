"""The agent's file tools: they reach the workspace and nothing outside it, and they run nothing.

Every path is opened by descriptor below the workspace, never through a link. See `docs/concepts/safety.md`.
"""

from skillshelf.agent.filetools._access import PROTECTED_NAMES, FileAccess
from skillshelf.agent.filetools._changes import Change, permit, propose_change
from skillshelf.agent.filetools._line_search import MatchingLine, PatternError, SearchResult, search_lines
from skillshelf.agent.filetools._tools import FileTools

__all__ = [
    "PROTECTED_NAMES",
    "Change",
    "FileAccess",
    "FileTools",
    "MatchingLine",
    "PatternError",
    "SearchResult",
    "permit",
    "propose_change",
    "search_lines",
]
