"""Folders that are not skills, such as a suite of eval cases: approved by content in the same way."""

import os

from skillshelf.files import mounts_below
from skillshelf.sources import SKILL_FILES
from skillshelf.trust._pending import Pending
from skillshelf.trust._snapshot import Snapshot, look
from skillshelf.trust._store import Trust


def pending_folder(folder: str, workspace: str, trust: Trust) -> Pending | None:
    """Return a folder that waits for the user's approval as it is now; None if the user approved this content.

    A folder outside the workspace is looked up from the folder above it.
    """
    root, key = _place(os.path.realpath(folder), os.path.realpath(workspace))
    trust.refresh()
    snapshot = look(root, key, mounts_below(root)).snapshot
    refusal = trust.refusal(root)
    if not refusal and trust.is_approved(snapshot.tree):
        trust.seen(root, {key: snapshot.tree})
        return None

    approved = trust.approvals.last(root, key)
    copy = trust.copy(approved) if approved and not refusal else None
    return Pending(
        root=root,
        key=key,
        name=key or os.path.basename(root),
        status="changed" if copy else "new",
        snapshot=snapshot,
        location=_location(f"{root}/{key}".rstrip("/"), snapshot),
        copy=copy,
        blocked=refusal or snapshot.fault,
    )


def _location(path: str, snapshot: Snapshot) -> str:
    """Return the path of the SKILL.md if the folder is a skill after all, otherwise of the folder."""
    for name in SKILL_FILES:
        if snapshot.entry(name):
            return f"{path}/{name}"
    return path


def _place(folder: str, workspace: str) -> tuple[str, str]:
    if folder == workspace:
        return workspace, ""
    inside = workspace.rstrip("/") + "/"
    if folder.startswith(inside):
        return workspace, folder.removeprefix(inside)
    return os.path.split(folder)
