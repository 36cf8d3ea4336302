"""Protect what Git runs: a command may commit, but it can't leave a hook or a setting behind.

Otherwise the user's next `git status` would run it outside the sandbox. Bubblewrap mounts the files that name programs
read-only; a file that must not come to exist is removed after the command. docs/concepts/safety.md lists what stays
open.
"""

import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from skillshelf.files import is_inside, open_folder_below, split_below, system
from skillshelf.sources import SKIPPED_FOLDERS

_MAX_FOLDERS = 5_000
"""How many folders are searched for Git directories before each command. That many take about 0.1 s."""
_NAMES_IN_GIT_DIRECTORY = {"HEAD", "objects", "refs"}
"""Git takes a folder with these for a repository, whatever its name is."""
_GIT_DATA_FOLDERS = frozenset({"objects", "refs", "logs", "hooks"})
"""Folders of a Git directory in which there is no other one."""

_PROTECTED = ("hooks", "config", "config.worktree", "commondir", "info/attributes")
"""Git takes programs to run from these, or the place of the others."""
_PROTECTED_IN_WORKTREE = ("commondir", "gitdir", "config.worktree")
"""The same in the directory that a repository has for each of its linked worktrees."""
_REMOVED = ("commondir", "config.worktree")
"""A command that makes one of these in a repository's own directory sends Git elsewhere for its configuration."""
_REBASES = ("rebase-merge", "rebase-apply")


class GitMount(NamedTuple):
    """A path that is mounted on itself, so that it can't be renamed or replaced."""

    path: str
    read_only: bool


class GitGuard:
    """The Git directories of a workspace, remembered for as long as this object exists.

    So a command can't hide a repository from the next one by moving its HEAD away.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._known: dict[str, int] = {}
        """Each Git directory, and its inode."""
        self._absent: set[str] = set()
        """Files that weren't there before a command, and must not be there after it."""
        self._rebases: set[str] = set()
        self._notices: list[str] = []
        self._is_prepared = False

    def prepare(self) -> list[GitMount]:
        """Find the Git directories, and return what to mount before a command, a folder before what it contains."""
        self._known.update(_find_inodes(self.root))
        self._rebases.update(self._find_rebases())
        self._is_prepared = True

        mounts: dict[str, bool] = {}
        for path in self._known:
            for mount in self._protect(path):
                # A Git directory can be inside another one, and what is read-only stays so.
                mounts[mount.path] = mounts.get(mount.path, False) or mount.read_only
        return [GitMount(path, read_only) for path, read_only in sorted(mounts.items())]

    def clean_up(self) -> list[str]:
        """Remove what a command must not leave in a Git directory. Return a sentence about each thing found."""
        if not self._is_prepared:
            return []
        found = [_remove(path) for path in sorted(self._absent) if os.path.lexists(path)]
        found += self._report_new()
        self._notices += found
        return found

    def take_notices(self) -> list[str]:
        """Return what `clean_up` has found since the last call, for the user. A cancelled command has no result."""
        notices = self._notices
        self._notices = []
        return notices

    def _report_new(self) -> Iterator[str]:
        """Yield a sentence about each repository and each rebase that a command has left."""
        found = _find_inodes(self.root)
        for path in sorted(path for path, inode in found.items() if self._known.get(path) != inode):
            yield (
                f"The command made a Git repository: {path}. Git runs the programs that its configuration and hooks "
                "name, without the sandbox."
            )
        self._known.update(found)
        for rebase in sorted(self._find_rebases() - self._rebases):
            self._rebases.add(rebase)
            yield (
                f"The command left a rebase in progress in {os.path.dirname(rebase)}. `git rebase --continue` runs the "
                "commands in its plan, without the sandbox: look at `git rebase --edit-todo` first."
            )

    def _protect(self, path: str) -> Iterator[GitMount]:
        """Yield the mounts for a Git directory or a `.git` file."""
        if os.path.islink(path) or not os.path.lexists(path):
            return
        if not os.path.isdir(path):  # a `.git` file says where the directory is
            yield GitMount(path, read_only=True)
            return

        # A submodule's directory is in `.git/modules`, and a mount alone doesn't keep the folders above it in place.
        yield from _hold(path, self._find_outermost(path))
        if not self._make_missing(path):
            yield GitMount(path, read_only=True)
            return

        self._absent.update(place for name in _REMOVED if not os.path.lexists(place := os.path.join(path, name)))
        yield from _protect_names(path, _PROTECTED)
        worktrees = os.path.join(path, "worktrees")
        if os.path.isdir(worktrees) and not os.path.islink(worktrees):
            yield GitMount(worktrees, read_only=False)
            for name in os.listdir(worktrees):
                yield from _protect_names(os.path.join(worktrees, name), _PROTECTED_IN_WORKTREE)

    def _find_outermost(self, path: str) -> str:
        """Return the Git directory that a Git directory is in, or the path itself."""
        return min((known for known in self._known if is_inside(path, known)), key=len, default=path)

    def _make_missing(self, folder: str) -> bool:
        """Make the hooks folder and the configuration if they are missing, as `git init` does: a mount needs a place.

        Return False if that fails. The command may find a way, so the whole folder has to be read-only.
        """
        parts = split_below(self.root, folder)
        if parts is None:
            return False
        try:
            with open_folder_below(self.root, parts) as descriptor:
                with suppress(FileExistsError):
                    system.mkdir("hooks", 0o755, dir_fd=descriptor)
                with suppress(FileExistsError):
                    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
                    os.close(system.open("config", flags, 0o644, dir_fd=descriptor))
        except OSError:
            return False
        return True

    def _find_rebases(self) -> set[str]:
        """Return the plans of rebases that are in progress."""
        places = [path for path in self._known if os.path.isdir(path)]
        for path in list(places):
            with suppress(OSError):
                worktrees = os.path.join(path, "worktrees")
                places += [os.path.join(worktrees, name) for name in os.listdir(worktrees)]
        plans = (os.path.join(place, name) for place in places for name in _REBASES)
        return {plan for plan in plans if os.path.lexists(plan)}


def _hold(path: str, outermost: str) -> Iterator[GitMount]:
    """Yield mounts that keep a folder and those above it in place, down from the outermost one."""
    while path != outermost:
        yield GitMount(path, read_only=False)
        path = os.path.dirname(path)
    yield GitMount(outermost, read_only=False)


def _protect_names(folder: str, names: Sequence[str]) -> Iterator[GitMount]:
    """Yield mounts that hold a folder in place and make those of the names that exist in it read-only."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return
    paths = [os.path.join(folder, name) for name in names]
    present = [path for path in paths if os.path.lexists(path)]
    if any(os.path.islink(path) or os.path.islink(os.path.dirname(path)) for path in present):
        # A mount can't hold a link in place. So Git can read the whole folder, but not write to it.
        yield GitMount(folder, read_only=True)
        return

    for path in present:
        yield from _hold(os.path.dirname(path), folder)
        yield GitMount(path, read_only=True)
    yield GitMount(folder, read_only=False)


def _remove(path: str) -> str:
    """Remove a file that redirects Git, and return a sentence about it. No process of the command is left."""
    folder = os.path.dirname(path)
    with suppress(OSError):
        if os.path.realpath(folder) == folder and not os.access(folder, os.W_OK | os.X_OK):
            system.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | stat.S_IRWXU)
    try:
        if os.path.realpath(folder) != folder:  # the folder was replaced by a link, so this is another file
            return f"{path} redirects Git, and was made by the command. It was left, because its folder is a link now."
        system.unlink(path)
    except OSError as error:
        return f"{path} redirects Git, and could not be removed ({error.strerror}). Remove it before you use Git here."
    return f"skillshelf removed {path}, which would have redirected Git."


def _find_inodes(root: str) -> dict[str, int]:
    """Return the Git directories below a folder, and the inode of each, which a directory in its place won't have."""
    inodes = {}
    for path in find_git_directories(root):
        with suppress(OSError):  # gone meanwhile
            inodes[path] = os.lstat(path).st_ino
    return inodes


def find_git_directories(root: str) -> list[str]:
    """Return the Git directories below a folder and the `.git` files.

    Every folder named `.git` is one, whatever it contains, and so is every folder that Git takes for a repository:
    submodules and bare repositories. Links are not followed, and folders of dependencies and caches left out. The
    search ends after 5,000 folders. Unlike `files.walk`, it goes level by level, so that a deep folder can't use up the
    limit before its neighbours are searched.
    """
    found: list[str] = []
    pending = deque([root])
    searched = 0
    while pending and searched < _MAX_FOLDERS:
        folder = pending.popleft()
        searched += 1
        try:
            with system.scandir(folder) as listing:
                entries = list(listing)
        except OSError:  # gone meanwhile, or not readable
            entries = []

        skipped = SKIPPED_FOLDERS
        is_git = os.path.basename(folder) == ".git" and folder != root
        if is_git or _NAMES_IN_GIT_DIRECTORY.issubset(entry.name for entry in entries):
            found.append(folder)
            skipped = _GIT_DATA_FOLDERS

        for entry in entries:
            path = os.path.join(folder, entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git":
                if is_folder:
                    pending.appendleft(path)  # before its neighbours, of which a clone can bring any number
                elif not entry.is_symlink():
                    found.append(path)
            elif is_folder and entry.name not in skipped:
                pending.append(path)
    return found
