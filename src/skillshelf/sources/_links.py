"""Symlinks to folders. One that stays inside the root adds its target under the target's real path, so that reading
never passes a link; one that leaves the root is reported.
"""

import os
from collections.abc import Callable, Collection

from skillshelf.files import system
from skillshelf.sources._ledger import Ledger
from skillshelf.sources._state import Folder, Link

_NOWHERE = (0, 0)
# A link can lead to a folder with more links in it; links that change all the while must not keep us here.
_ROUNDS = 8


def set_links(ledger: Ledger, key: str, folder: Folder, names: Collection[str]) -> None:
    """The links that a folder has now. What only a link led to goes with it."""
    prefix = f"{key}/" if key else ""
    for name in folder.links.difference(names):
        _let_go(ledger, prefix + name)
        del ledger.state.links[prefix + name]
    folder.links = set(names)
    for name in names:
        ledger.state.links.setdefault(prefix + name, Link())


def follow_links(ledger: Ledger, enter: Callable[[str], None]) -> None:
    """Look where each link leads now; `enter` reads the folder at a key."""
    for _ in range(_ROUNDS):
        moved = False
        for link, known in list(ledger.state.links.items()):
            target = _target(ledger.path(link))
            if target != known.target and link in ledger.state.links:
                moved = True
                _let_go(ledger, link)
                _lead(ledger, link, known, target, enter)
        if not moved:
            return


def _lead(ledger: Ledger, link: str, known: Link, target: tuple[int, int], enter: Callable[[str], None]) -> None:
    known.target, known.key = target, None
    if target == _NOWHERE:
        ledger.say(link, "warning", "link-broken", "the symlink leads nowhere", "remove it or mend its target")
        return
    try:
        if not os.path.isdir(ledger.path(link)):
            return
        real = os.path.realpath(ledger.path(link))
    except OSError:  # it was swapped meanwhile; the next look settles it
        known.target = None
        return
    if real != ledger.root and not real.startswith(ledger.root + "/"):
        message = "the symlink leads out of the folder and is not followed"
        fix = "copy the skill here, or open its folder as a source of its own"
        ledger.say(link, "warning", "link-outside", message, fix)
        return
    known.key = real[len(ledger.root) + 1 :]
    if not _is_known(ledger, known.key):
        enter(known.key)
        known.brought = True


def _let_go(ledger: Ledger, link: str) -> None:
    """What only this link led to is forgotten; another link to the same place brings it back."""
    ledger.unsay(link)
    known = ledger.state.links[link]
    if known.brought and known.key is not None:
        known.brought = False
        ledger.forget(known.key)
        for other in ledger.state.links.values():
            if other.key is not None and f"{other.key}/".startswith(f"{known.key}/"):
                other.target = None


def _target(path: str) -> tuple[int, int]:
    try:
        info = system.stat(path)
    except OSError:
        return _NOWHERE
    return info.st_dev, info.st_ino


def _is_known(ledger: Ledger, key: str) -> bool:
    """Whether the walk has been at this folder, or it is part of a skill."""
    if key in ledger.state.folders:
        return True
    while key and key not in ledger.state.skills:
        key = key.rpartition("/")[0]
    return key in ledger.state.skills
