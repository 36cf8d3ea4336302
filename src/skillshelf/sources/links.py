"""Symlinks to folders. One that stays inside the root adds its target under the target's real path, so that reading
never passes a link; one that leaves the root is reported.
"""

import os
from collections.abc import Callable, Iterable

from skillshelf.sources.ledger import Ledger
from skillshelf.sources.state import Link

_NOWHERE = (0, 0)


def add_links(ledger: Ledger, links: Iterable[str]) -> None:
    for link in links:
        ledger.state.links.setdefault(link, Link())


def drop_links(ledger: Ledger, folder: str, kept: Iterable[str]) -> None:
    """Strike out the links of a folder that are gone, and what only they led to."""
    gone = {link for link in ledger.state.links if link.rpartition("/")[0] == folder}.difference(kept)
    for link in gone:
        _let_go(ledger, link)
        del ledger.state.links[link]


def follow_links(ledger: Ledger, enter: Callable[[str], None]) -> None:
    """Look where each link leads now; `enter` reads the folder at a key."""
    for link, known in list(ledger.state.links.items()):
        target = _target(ledger.path(link))
        if target == known.target:
            continue
        _let_go(ledger, link)
        known.target = target
        if target == _NOWHERE:
            ledger.say(link, "warning", "link-broken", "the symlink leads nowhere", "remove it or mend its target")
        elif os.path.isdir(ledger.path(link)):
            _follow(ledger, link, known, enter)


def _follow(ledger: Ledger, link: str, known: Link, enter: Callable[[str], None]) -> None:
    try:
        real = os.path.realpath(ledger.path(link))
    except OSError:  # it was swapped meanwhile; the next look settles it
        known.target = None
        return
    if real != ledger.root and not real.startswith(ledger.root + "/"):
        message = "the symlink leads out of the folder and is not followed"
        fix = "copy the skill here, or open its folder as a source of its own"
        ledger.say(link, "warning", "link-outside", message, fix)
        return
    key = real[len(ledger.root) + 1 :]
    if not _is_known(ledger, key):
        enter(key)
        known.brought = key


def _let_go(ledger: Ledger, link: str) -> None:
    """What only this link led to is forgotten; another link to the same place brings it back."""
    ledger.unnote(link)
    brought = ledger.state.links[link].brought
    if brought:
        ledger.forget(brought)
        ledger.state.links[link].brought = ""
        for other in ledger.state.links.values():
            other.target = None


def _target(path: str) -> tuple[int, int]:
    try:
        info = os.stat(path)
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
