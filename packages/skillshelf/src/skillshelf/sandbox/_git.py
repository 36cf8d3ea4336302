"""Protect what Git runs: a command may commit, but it can't leave a hook or a setting behind.

Otherwise the user's next `git status` would run it outside the sandbox. Bubblewrap mounts the files that name programs
read-only; a file that must not come to exist is removed after the command. docs/concepts/safety.md lists what stays
open.
"""

import os
import re
import socket
import stat
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from skillshelf.files import is_inside, open_folder_below, split_below, system
from skillshelf.sandbox._processes import find_descendants
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
_FOLDER_ITSELF = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OCTAL = re.compile(r"\\([0-7]{3})")
"""How the kernel writes blanks and backslashes in the list of mounts."""


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
        self._lock = threading.Lock()
        """A background program can end while another one starts."""
        self.jobs_lock: socket.socket | None = None
        """What keeps programs of other guards waiting while one of this guard runs, in the background or not."""
        self._holders = 0
        self._jobs: set[int] = set()
        """The processes of bubblewrap whose background programs run."""

    def prepare(self, *, background: bool = False) -> list[GitMount]:
        """Find the Git directories, and return what to mount before a command, a folder before what it contains.

        Bubblewrap mounts by path, and follows links. A program that runs meanwhile must not be able to swap a folder on
        the way for a link: what the link leads to would become writable. A mount point can't be renamed or removed by
        a program that sees the mount. So a background program gets each Git directory, and each folder above it in the
        workspace, as mounts; and while it runs, others get only mounts whose path is held in place in this way. What is
        in a Git directory stays in place, too, because it is read-only to a background program.
        """
        with self._lock:
            self._known.update(_find_inodes(self.root))
            self._rebases.update(self._find_rebases())
            self._is_prepared = True

            held = [points for points in map(_find_mount_points, self._jobs) if points is not None]
            mounts: dict[str, bool] = {}
            for path in self._known:
                if not all(self._is_held(path, points) for points in held):
                    continue
                for mount in self._hold_for_job(path) if background else self._protect(path):
                    # A Git directory can be inside another one, and what is read-only stays so.
                    mounts[mount.path] = mounts.get(mount.path, False) or mount.read_only
            return [GitMount(path, read_only) for path, read_only in sorted(mounts.items())]

    def clean_up(self) -> list[str]:
        """Remove what a command must not leave in a Git directory. Return a sentence about each thing found."""
        with self._lock:
            if not self._is_prepared:
                return []
            found = [self._remove(path) for path in sorted(self._absent) if os.path.lexists(path)]
            found += self._report_new()
            self._notices += found
            return found

    def hold(self, jobs_lock: socket.socket) -> None:
        """Keep programs of other guards waiting until `release` was called as often."""
        self.jobs_lock = jobs_lock
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self.jobs_lock and not self._holders:
            self.jobs_lock.close()
            self.jobs_lock = None

    @contextmanager
    def beside_job(self, bubblewrap: int) -> Iterator[None]:
        """Mount nothing that a background program could swap, while the block lasts."""
        assert self.jobs_lock is not None  # the program has just held it while it was mounted
        self.hold(self.jobs_lock)
        self._jobs.add(bubblewrap)
        try:
            yield
        finally:
            self._jobs.discard(bubblewrap)
            self.release()

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

    def _hold_for_job(self, path: str) -> Iterator[GitMount]:
        """Yield the mounts of a Git directory or `.git` file for a background program."""
        if os.path.realpath(path) != path or not os.path.lexists(path) or self._find_outermost(path) != path:
            return
        yield GitMount(path, read_only=True)
        while path != self.root:
            path = os.path.dirname(path)
            yield GitMount(path, read_only=False)

    def _is_held(self, path: str, points: dict[str, bool]) -> bool:
        """Return True if a background program that sees these mounts can't swap anything on the way to a path."""
        place = self.root
        for name in os.path.relpath(path, self.root).split("/"):
            place = os.path.normpath(os.path.join(place, name))
            if place not in points:
                return False
            is_read_only = points[place]
            if is_read_only:  # and so is everything in it
                return True
        return True

    def _find_outermost(self, path: str) -> str:
        """Return the Git directory that a Git directory is in, or the path itself."""
        return min((known for known in self._known if is_inside(path, known)), key=len, default=path)

    def _remove(self, path: str) -> str:
        """Remove a file that redirects Git, and return a sentence about it."""
        folder, name = os.path.split(path)
        try:
            with self._open_in_place(folder) as descriptor:
                mode = stat.S_IMODE(system.fstat(descriptor).st_mode)
                if mode & stat.S_IRWXU != stat.S_IRWXU:
                    system.chmod(f"/dev/fd/{descriptor}", mode | stat.S_IRWXU)
                system.unlink(name, dir_fd=descriptor)
        except NotADirectoryError:  # the folder was replaced by a link, so this is another file
            return f"{path} redirects Git, and was made by the command. It was left, because its folder is a link now."
        except OSError as error:
            return (
                f"{path} redirects Git, and could not be removed ({error.strerror}). Remove it before you use Git here."
            )
        return f"skillshelf removed {path}, which would have redirected Git."

    @contextmanager
    def _open_in_place(self, folder: str) -> Iterator[int]:
        """Open a folder of the workspace, which needs no permission to read it.

        Links are not followed, also if a background program is swapping folders for them.
        """
        descriptor = system.open(self.root, _FOLDER_ITSELF)
        try:
            parts = [] if folder == self.root else os.path.relpath(folder, self.root).split("/")
            for part in parts:
                inner = system.open(part, _FOLDER_ITSELF, dir_fd=descriptor)
                system.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            system.close(descriptor)

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


def _find_mount_points(bubblewrap: int) -> dict[str, bool] | None:
    """Return the mount points that a running program sees, and whether each is read-only; None if it has ended.

    The kernel knows best: a folder that was renamed since is listed by its new path, and a removed one not at all.
    """
    first = next(find_descendants(bubblewrap), None)
    if first is None:
        return None
    try:
        with open(f"/proc/{first}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    points = {}
    for line in lines:  # id, parent, device, root, mount point, options …
        fields = line.split(" ")
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
        points[point] = "ro" in fields[5].split(",")
    return points


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
