"""Project instructions, such as AGENTS.md: a file on its own, trusted in the same way as a skill."""

import os

from skillshelf.errors import TrustError
from skillshelf.files import NotPlainFile
from skillshelf.skillmd import MAX_FILE, Unreadable, decode
from skillshelf.trust._copies import Copy, read_verified
from skillshelf.trust._pending import Pending
from skillshelf.trust._snapshot import Snapshot, look_at_file
from skillshelf.trust._store import Trust

INSTRUCTION_FILES = ("AGENTS.md",)


def trusted_text(
    path: str | os.PathLike[str], trust: Trust, root: str | os.PathLike[str] | None = None
) -> tuple[str | None, Pending | None]:
    """Return the approved text, if any, and the file as it is now if the user has not approved that.

    `root`: the workspace, if the file lies deeper in it.
    """
    trust.refresh()
    top, below = _place(path, root)
    if not os.path.lexists(f"{top}/{below}"):
        return None, None
    snapshot, text, fault = _look(top, below)
    key = f"/{below}"
    refusal = trust.refusal(top)
    if not refusal and not fault and trust.is_approved(snapshot.tree):
        trust.seen(top, {key: snapshot.tree})
        return text, None
    last = trust.approvals.last(top, key)
    copy = trust.copy(last) if last and not refusal else None
    status = "changed" if copy else "new"
    location = f"{top}/{below}"
    return _text_of(copy), Pending(top, key, below, status, snapshot, location, copy, refusal or fault)  # type: ignore[arg-type]


def _place(path: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> tuple[str, str]:
    folder, name = os.path.split(os.path.abspath(path))
    folder = os.path.realpath(folder)
    top = folder if root is None else os.path.realpath(root)
    if not f"{folder}/".startswith(top.rstrip("/") + "/"):
        raise TrustError(f"{os.fspath(path)!r} does not lie in the workspace {os.fspath(root or '.')!r}.")
    return top, os.path.join(folder, name)[len(top.rstrip("/")) + 1 :]


def _look(top: str, below: str) -> tuple[Snapshot, str, str]:
    """Return the file as it is now, its text, and what is wrong with it."""
    folder, name = os.path.split(below)
    try:
        entry = look_at_file(top, below)
        if entry.size > MAX_FILE:
            return Snapshot(name, (entry,)), "", f"it is larger than {MAX_FILE >> 10} KiB"
        # Served from memory if it is approved: these are the very bytes of the hash.
        return Snapshot(name, (entry,)), decode(read_verified(top, folder, entry)), ""
    except TrustError as error:
        return Snapshot(name, (), str(error)), "", str(error)
    except Unreadable as error:
        return Snapshot(name, (entry,)), "", error.diagnostic.message


def _text_of(copy: Copy | None) -> str | None:
    try:
        return decode(copy.read(copy.snapshot.name, 0, MAX_FILE).data) if copy else None
    except (OSError, NotPlainFile, Unreadable):
        return None
