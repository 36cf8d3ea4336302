"""Bringing paths of a workspace back to an earlier state, by descriptor and never through a link.

Each path is looked at just before it is changed. One that is not in the expected state is left alone, so a run that was
cut short can be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from skillshelf.files import (
    FileChanged,
    NotPlainFile,
    make_folder_below,
    make_link_below,
    remove_below,
    remove_folder_below,
    replace_below,
    set_mode_below,
)
from skillshelf_agent.checkpoints import _limits
from skillshelf_agent.checkpoints._states import PathState, look_at

LeftReason = Literal["changed", "command", "not-kept", "failed"]


class Restoration(NamedTuple):
    """A path, the state to bring it back to, and the state it must be in for that."""

    path: str
    target: PathState
    expected: PathState | None
    """None if whatever is there may be replaced."""
    is_doubtful: bool = False
    """True if the change may be the user's. Then the path is left, unless it is in the target state already."""


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A path that was left as it is."""

    path: str
    reason: LeftReason
    """`changed`: it is not as the turn left it. `command`: it changed while a command ran, perhaps by the user.
    `not-kept`: the earlier content is missing. `failed`: see `problem`."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RestoredPath:
    """What became of one path."""

    path: str
    is_changed: bool = False
    """False if it was in the wanted state already."""
    left: LeftFile | None = None


def restore(
    root: str, restorations: Sequence[Restoration], read_content: Callable[[str], bytes | None]
) -> Iterator[RestoredPath]:
    """Bring paths back, and yield what became of each. `read_content` returns a content by its digest.

    Paths that must go are removed first, the deepest before the others; then folders are made; then files and links.
    """
    by_depth = sorted(restorations, key=lambda item: (item.path.count("/"), item.path))
    gone = [item for item in reversed(by_depth) if item.target.kind == "absent"]
    folders = [item for item in by_depth if item.target.kind == "folder"]
    contents = [item for item in by_depth if item.target.has_content]
    for item in (*gone, *folders, *contents):
        yield _restore(root, item, read_content)


def _restore(root: str, item: Restoration, read_content: Callable[[str], bytes | None]) -> RestoredPath:
    parts = item.path.split("/")
    try:
        current = look_at(root, parts).state
        if _matches(root, parts, current, item.target):
            return RestoredPath(item.path)
        if item.expected is not None and not _matches(root, parts, current, item.expected):
            return _leave(item, "changed")
        if item.is_doubtful:
            return _leave(item, "command")

        data = b""
        if item.target.has_content:
            content = read_content(item.target.digest) if item.target.digest else None
            if content is None:
                return _leave(item, "not-kept")
            data = content
        return RestoredPath(item.path, is_changed=_apply(root, parts, current, item, data))
    except FileChanged:
        return _leave(item, "changed")
    except NotPlainFile as error:
        return _leave(item, "failed", error.reason)
    except OSError as error:
        return _leave(item, "failed", error.strerror or str(error))


def _matches(root: str, parts: Sequence[str], current: PathState, state: PathState) -> bool:
    if current == state:
        return True
    return bool(state.stamp) and look_at(root, parts, limit=-1).state == state  # known by its stamp only


def _apply(root: str, parts: Sequence[str], current: PathState, item: Restoration, data: bytes) -> bool:
    """Bring a path back. Return False if it is a folder that stays, because there is something else in it."""
    target = item.target
    if current.kind == "folder" and target.kind != "folder":
        try:
            remove_folder_below(root, parts)
        except OSError:
            if target.kind != "absent":
                raise
            return False
    elif current.kind == "link" or (current.kind == "file" and target.kind != "file"):
        remove_below(root, parts)

    if target.kind == "folder":
        make_folder_below(root, parts, target.mode)
    elif target.kind == "link":
        make_link_below(root, parts, os.fsdecode(data))
    elif target.kind == "file":
        _write_file(root, parts, current, item, data)
    return True


def _write_file(root: str, parts: Sequence[str], current: PathState, item: Restoration, data: bytes) -> None:
    target = item.target
    if current.kind == "file" and current.digest == target.digest:
        set_mode_below(root, parts, target.mode)
        return
    expected = None
    if current.kind != "file":
        expected = ""
    elif item.expected is not None and item.expected.digest:
        expected = item.expected.digest
    replace_below(root, parts, data, expected=expected, limit=_limits.FILE_BYTES, mode=target.mode)


def _leave(item: Restoration, reason: LeftReason, problem: str = "") -> RestoredPath:
    return RestoredPath(item.path, left=LeftFile(item.path, reason, problem))
