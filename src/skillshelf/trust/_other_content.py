"""Content beside the skills that is approved in the same way: project instructions, and folders of eval cases."""

import os
from dataclasses import dataclass

from skillshelf.errors import TrustError
from skillshelf.files import NotPlainFile, mounts_below
from skillshelf.skillmd import MAX_FILE, Unreadable, decode
from skillshelf.sources import SKILL_FILES
from skillshelf.trust._copies import TreeCopy, read_verified
from skillshelf.trust._pending import Pending
from skillshelf.trust._snapshot import Snapshot, hash_file, take_snapshot
from skillshelf.trust._store import Trust

INSTRUCTION_FILES = ("AGENTS.md",)


def trusted_text(
    path: str | os.PathLike[str], trust: Trust, root: str | os.PathLike[str] | None = None
) -> tuple[str | None, Pending | None]:
    """Return the approved text of a file, if any, and the file as pending if the user has not approved it as it is.

    `root` is the workspace, if the file does not lie directly in it.
    """
    trust.refresh()
    top, below = _split_file(path, root)
    location = f"{top}/{below}"
    if not os.path.lexists(location):
        return None, None

    file = _read_file(top, below)
    key = f"/{below}"
    refusal = trust.refusal(top)
    if not refusal and not file.fault and trust.is_approved(file.snapshot.tree):
        trust.note_places(top, {key: file.snapshot.tree})
        return file.text, None

    copy = _last_approved(trust, top, key)
    pending = Pending(
        root=top,
        key=key,
        name=below,
        snapshot=file.snapshot,
        location=location,
        copy=copy,
        blocked=refusal or file.fault,
    )
    return _copied_text(copy), pending


def pending_folder(folder: str, workspace: str, trust: Trust) -> Pending | None:
    """Return a folder as pending, or None if the user approved it as it is now.

    A folder outside the workspace counts as a place in the folder above it.
    """
    root, key = _split_folder(os.path.realpath(folder), os.path.realpath(workspace))
    trust.refresh()
    snapshot = take_snapshot(root, key, mounts_below(root)).snapshot
    refusal = trust.refusal(root)
    if not refusal and trust.is_approved(snapshot.tree):
        trust.note_places(root, {key: snapshot.tree})
        return None

    copy = _last_approved(trust, root, key)
    return Pending(
        root=root,
        key=key,
        name=key or os.path.basename(root),
        snapshot=snapshot,
        location=_first_file(f"{root}/{key}".rstrip("/"), snapshot),
        copy=copy,
        blocked=refusal or snapshot.fault,
    )


def _last_approved(trust: Trust, root: str, key: str) -> TreeCopy | None:
    """Return the copy of the approved version that a place had last, if the workspace can be trusted at all."""
    tree = trust.approvals.last(root, key)
    if not tree or trust.refusal(root):
        return None
    return trust.copy(tree)


@dataclass(frozen=True, slots=True)
class _InstructionFile:
    snapshot: Snapshot
    text: str = ""
    fault: str = ""
    """Why it cannot be used; empty if it can."""


def _read_file(top: str, below: str) -> _InstructionFile:
    folder, name = os.path.split(below)
    try:
        entry = hash_file(top, below)
    except TrustError as error:
        return _InstructionFile(Snapshot(name, fault=str(error)), fault=str(error))

    snapshot = Snapshot(name, (entry,))
    if entry.size > MAX_FILE:
        return _InstructionFile(snapshot, fault=f"it is larger than {MAX_FILE >> 10} KiB")
    try:
        # These are the very bytes that were hashed, so they can be served from memory if they are approved.
        return _InstructionFile(snapshot, decode(read_verified(top, folder, entry)))
    except TrustError as error:
        return _InstructionFile(Snapshot(name, fault=str(error)), fault=str(error))
    except Unreadable as error:
        return _InstructionFile(snapshot, fault=error.diagnostic.message)


def _copied_text(copy: TreeCopy | None) -> str | None:
    if copy is None:
        return None
    try:
        return decode(copy.read(copy.snapshot.name, 0, MAX_FILE).data)
    except (OSError, NotPlainFile, Unreadable):
        return None


def _split_file(path: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> tuple[str, str]:
    """Return the workspace and the file's path below it. Raises TrustError if the file lies elsewhere."""
    folder, name = os.path.split(os.path.abspath(path))
    folder = os.path.realpath(folder)
    top = folder if root is None else os.path.realpath(root)
    prefix = top.rstrip("/") + "/"
    if not f"{folder}/".startswith(prefix):
        raise TrustError(f"{os.fspath(path)!r} does not lie in the workspace {os.fspath(root or '.')!r}.")
    return top, os.path.join(folder, name).removeprefix(prefix)


def _split_folder(folder: str, workspace: str) -> tuple[str, str]:
    """Return the workspace, or the folder above, and the folder's path below it."""
    if folder == workspace:
        return workspace, ""
    prefix = workspace.rstrip("/") + "/"
    if folder.startswith(prefix):
        return workspace, folder.removeprefix(prefix)
    return os.path.split(folder)


def _first_file(path: str, snapshot: Snapshot) -> str:
    """Return the path of the SKILL.md if the folder is a skill after all, otherwise the folder's."""
    for name in SKILL_FILES:
        if snapshot.entry(name):
            return f"{path}/{name}"
    return path
