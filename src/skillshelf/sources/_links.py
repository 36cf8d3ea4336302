"""Symlinks to folders.

A link that stays inside the root adds its target under the target's real path, so that reading never passes a link. A
link that leaves the root is reported and not followed.
"""

import os
from collections.abc import Callable, Collection

from skillshelf.files import system
from skillshelf.sources._state import Link, PlainFolder, TreeState, join_key

_NOWHERE = (0, 0)
# A link can lead to a folder with more links in it. Links that keep changing must not keep the scan going.
_MAX_ROUNDS = 8


def set_links(state: TreeState, key: str, folder: PlainFolder, names: Collection[str]) -> None:
    """Record the links that a folder has now. Folders that only a removed link led to are dropped."""
    for name in folder.links.difference(names):
        link = join_key(key, name)
        _release_target(state, link)
        del state.links[link]
    folder.links = set(names)
    for name in names:
        state.links.setdefault(join_key(key, name), Link())


def follow_links(state: TreeState, read_folder: Callable[[str], None]) -> None:
    """Check where each link leads now. `read_folder` reads the folder at a key."""
    for _ in range(_MAX_ROUNDS):
        any_moved = False
        for path, link in list(state.links.items()):
            target = _target(state.path(path))
            if target != link.target and path in state.links:
                any_moved = True
                _release_target(state, path)
                _follow(state, path, link, target, read_folder)
        if not any_moved:
            return


def _follow(
    state: TreeState, path: str, link: Link, target: tuple[int, int], read_folder: Callable[[str], None]
) -> None:
    link.target = target
    link.key = None
    if target == _NOWHERE:
        state.add_note(path, "warning", "link-broken", "the symlink leads nowhere", "remove it, or restore its target")
        return
    try:
        if not os.path.isdir(state.path(path)):
            return
        real = os.path.realpath(state.path(path))
    except OSError:  # it was swapped meanwhile; the next scan follows it again
        link.target = None
        return

    if real != state.root and not real.startswith(f"{state.root}/"):
        message = "the symlink leads out of the folder and is not followed"
        fix = "copy the skill here, or open its folder as a source of its own"
        state.add_note(path, "warning", "link-outside", message, fix)
        return
    link.key = real[len(state.root) + 1 :]
    if not _is_known(state, link.key):
        read_folder(link.key)
        link.is_only_way = True


def _release_target(state: TreeState, path: str) -> None:
    """Drop the folder that only this link led to. If another link leads there as well, that one will bring it back."""
    state.remove_note(path)
    link = state.links[path]
    if not link.is_only_way or link.key is None:
        return
    link.is_only_way = False
    state.drop(link.key)
    for other in state.links.values():
        if other.key is not None and f"{other.key}/".startswith(f"{link.key}/"):
            other.target = None


def _target(path: str) -> tuple[int, int]:
    try:
        info = system.stat(path)
    except OSError:
        return _NOWHERE
    return info.st_dev, info.st_ino


def _is_known(state: TreeState, key: str) -> bool:
    """Return True if the scan has read this folder, or if it is part of a skill."""
    if key in state.folders:
        return True
    while key and key not in state.skills:
        key = key.rpartition("/")[0]
    return key in state.skills
