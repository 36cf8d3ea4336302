"""Where a case may write and read: the one guard for its paths."""

import os
from typing import Any

from skillshelf.errors import EvalError


def workspace_path(path: Any) -> str:
    """A path inside the workspace, as written. Raises EvalError: a case writes nowhere else."""
    parts = path.split("/") if isinstance(path, str) else [""]
    if "" in parts or "." in parts or ".." in parts or any("\0" in part or "\\" in part for part in parts):
        raise EvalError(f"the path {path!r:.60} is not one inside the workspace", "Write it as in `src/main.py`")
    return str(path)


def inside(root: str, base: str, path: str) -> str:
    """The real path of a file that a case may use: below the root, links followed. Raises EvalError."""
    top = os.path.realpath(root)
    whole = os.path.realpath(os.path.join(base, path)) if "\0" not in path else ""
    if not whole or os.path.commonpath([top, whole]) != top:
        raise EvalError(f"the path {path!r:.60} leads out of {root}", "Put a copy of the file there")
    return whole
