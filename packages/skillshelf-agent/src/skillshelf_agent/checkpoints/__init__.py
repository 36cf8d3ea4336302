"""Checkpoints: the files that each turn changed, kept outside the workspace, so that a turn can be taken back.

See `docs/adr/0013-checkpoints.md` for what is covered and what is not.
"""

from skillshelf_agent.checkpoints._checkpoints import ChangedFile, Checkpoints, Undone
from skillshelf_agent.checkpoints._restore import LeftFile
from skillshelf_agent.checkpoints._states import PathState
from skillshelf_agent.checkpoints._sweep import Sweep, TooManyFiles, find_changed_paths, sweep

__all__ = [
    "ChangedFile",
    "Checkpoints",
    "LeftFile",
    "PathState",
    "Sweep",
    "TooManyFiles",
    "Undone",
    "find_changed_paths",
    "sweep",
]
