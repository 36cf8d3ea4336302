"""Where a workspace has Git directories, whose hooks and configuration a command must not change."""

from __future__ import annotations

import os
from collections import deque

from skillshelf.files import system
from skillshelf.sources import SKIPPED_FOLDERS

_MAX_FOLDERS = 5_000
"""Folders that are looked into before each command: about 0.1 s."""
_PARTS_OF_A_REPOSITORY = {"HEAD", "objects", "refs"}
_GIT_DATA = frozenset({"objects", "refs", "logs", "hooks"})


def find_repositories(root: str) -> list[str]:
    """Return the Git directories below a folder, bare ones and those of submodules too, and the `.git` files.

    Links are not followed. Folders of dependencies and caches are left out, and so is what lies beyond the first
    5,000 folders, from the top down.
    """
    found: list[str] = []
    waiting = deque([root])
    looked_into = 0
    while waiting and looked_into < _MAX_FOLDERS:
        folder = waiting.popleft()
        looked_into += 1
        try:
            with system.scandir(folder) as listing:
                entries = list(listing)
        except OSError:  # gone meanwhile, or not readable: then a command cannot read it either
            continue

        is_repository = {entry.name for entry in entries} >= _PARTS_OF_A_REPOSITORY
        if is_repository:
            found.append(folder)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name == ".git":  # before its neighbours, of which a clone can bring any number
                    waiting.appendleft(os.path.join(folder, entry.name))
                elif _is_looked_into(entry.name, is_repository):
                    waiting.append(os.path.join(folder, entry.name))
            elif entry.name == ".git" and not entry.is_symlink():
                found.append(os.path.join(folder, entry.name))
    return found


def _is_looked_into(name: str, in_repository: bool) -> bool:
    if in_repository:
        return name not in _GIT_DATA
    return name not in SKIPPED_FOLDERS
