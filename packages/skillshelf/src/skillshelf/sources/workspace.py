"""The workspace: the folder that the user works in, and the folders around it that its skills come from.

Inside a repository, skills come from the whole repository. Outside, they come from the folder itself and from the
skills folders of its parents. `find_workspace` climbs to find out which it is. It stops below the home folder and below
every folder that is not the user's own, because anyone could have planted a repository or skills there.
"""

import os
import stat
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from skillshelf.errors import SourceError
from skillshelf.files import is_at_or_inside, mounts_below, system, user_skill_folders

SKILLS_FOLDERS = (
    ".agents/skills",
    ".claude/skills",
    ".codex/skills",
    ".cursor/skills",
    ".gemini/skills",
    ".github/skills",
    ".opencode/skills",
    ".pi/skills",
    ".skillshelf/skills",
)
"""Where a folder keeps its skills, in order of precedence. Only these count in a parent that is not a repository."""

_GIT = ".git"


class SearchedFolder(NamedTuple):
    """A folder whose skills are in the workspace, and a few words that say why."""

    path: str
    reason: str


class Workspace(NamedTuple):
    """Where the user works, and where the project's skills come from. All paths are real paths."""

    folder: str
    """The folder that the user works in: the agent's file tools and commands, and its sessions, belong to it."""
    searched: tuple[SearchedFolder, ...]
    """The folders with the project's skills, nearest first: the root, then the skills folders of parents."""
    notes: tuple[str, ...] = ()
    """Sentences about folders above that do not count, and why."""

    @classmethod
    def exactly(cls, folder: str | os.PathLike[str]) -> "Workspace":
        """Take one folder as it is: neither a repository around it nor its parents count."""
        path = os.path.realpath(os.path.expanduser(folder))
        return cls(path, (SearchedFolder(path, "the folder that was given"),))

    @property
    def root(self) -> str:
        """The root of the repository; outside a repository, the folder itself."""
        return self.searched[0].path

    @property
    def outer(self) -> tuple[str, ...]:
        """The skills folders of parents, nearest first. There are none inside a repository."""
        return self.folders[1:]

    @property
    def folders(self) -> tuple[str, ...]:
        """The paths of all searched folders."""
        return tuple(searched.path for searched in self.searched)

    def relative(self, path: str) -> str:
        """Return a path in the workspace relative to the user's folder, and any other path as it is."""
        if path == self.folder:
            return "."
        if any(is_at_or_inside(path, folder) for folder in self.folders):
            return os.path.relpath(path, self.folder)
        return path

    def levels(self) -> list[str]:
        """Return the folders on the way from the root to the user's folder, both included."""
        levels = [self.root]
        if self.folder != self.root:
            for name in os.path.relpath(self.folder, self.root).split("/"):
                levels.append(os.path.join(levels[-1], name))
        return levels


def find_workspace(start: str | os.PathLike[str] | None = None) -> Workspace:
    """Return the workspace around a folder, by default the current one. Raises SourceError if it is not a folder."""
    folder = _find_start(start)
    climb = _climb(folder)
    notes: list[str] = []

    repository = _find_repository([folder, *climb.parents], notes)
    if repository:
        return Workspace(folder, (SearchedFolder(repository, "the root of the repository you are in"),), tuple(notes))

    searched = [SearchedFolder(folder, "the folder you are in, which is not part of a repository")]
    for path in _find_skills_folders(folder, climb.parents):
        searched.append(SearchedFolder(path, "a skills folder of a parent folder"))
    return Workspace(folder, tuple(searched), (*notes, climb.end))


def choose_workspace(root: str | os.PathLike[str] | Workspace | None) -> Workspace:
    """Return the workspace for a folder that is taken as it is, or without one the workspace around the current folder.

    Raises SourceError if the current folder no longer exists.
    """
    if root is None:
        return find_workspace()
    if isinstance(root, Workspace):
        return root
    return Workspace.exactly(root)


def relative(path: str) -> str:
    """Return a path relative to the current folder if it is in the workspace around it, otherwise the path itself."""
    return workspace_around(os.path.realpath(os.curdir)).relative(path)


@cache
def workspace_around(folder: str) -> Workspace:
    return find_workspace(folder)


def _find_start(start: str | os.PathLike[str] | None) -> str:
    if start is None:
        try:
            return os.path.realpath(os.getcwd())
        except OSError:
            raise SourceError("The current folder no longer exists. Change to another folder first.") from None
    if not os.path.isdir(os.path.expanduser(start)):
        raise SourceError(f"There is no folder {os.fspath(start)!r} to use as the workspace.")
    return os.path.realpath(os.path.expanduser(start))


class _Climb(NamedTuple):
    """The way from a folder up to the last parent that counts."""

    parents: list[str]
    """The parents that belong to the user, nearest first."""
    end: str
    """A sentence that says why the climb ended."""


def _climb(folder: str) -> _Climb:
    """Go up from a folder as far as the parents belong to the user."""
    home = os.path.realpath(os.path.expanduser("~"))
    parents: list[str] = []
    here = folder
    while True:
        barrier = _find_barrier(here, home)
        if barrier:
            subject = f"{here} and the folders above it"
            if here == folder:
                subject = f"The folders above {here}"
            return _Climb(parents, f"{subject} do not count: {barrier}.")
        if here != folder:
            parents.append(here)
        here = os.path.dirname(here)


def _find_barrier(folder: str, home: str) -> str:
    """Return the reason why a climb must not use a folder or leave it upwards; empty if it may."""
    if folder == os.path.dirname(folder):
        return "it is the root of the file system"
    if folder == home:
        return "it is your home folder"
    try:
        info = system.stat(folder)
    except OSError as error:
        return f"it cannot be examined ({error.strerror or 'unknown error'})"
    if info.st_uid != os.geteuid():
        return "it belongs to another user"
    if info.st_mode & stat.S_ISVTX:  # such as /tmp
        return "all users of this machine share it"
    return ""


def _find_repository(folders: list[str], notes: list[str]) -> str:
    """Return the nearest of these folders that is the root of a repository, or an empty string."""
    if _is_repository(folders[0], notes):
        return folders[0]
    mounts = mounts_below("")
    for below, folder in pairwise(folders):
        if below in mounts or os.path.ismount(below):
            return ""  # a scan from above would not enter it, and Git stops here as well
        if _is_repository(folder, notes):
            return folder
    return ""


def _is_repository(folder: str, notes: list[str]) -> bool:
    """Return True if a folder has a `.git` of the user's own. Add a note if it has one of another user."""
    entry = os.path.join(folder, _GIT)
    try:
        owner = system.stat(entry, follow_symlinks=False).st_uid
        kind = system.stat(entry).st_mode
    except OSError:
        return False
    if not stat.S_ISDIR(kind) and not stat.S_ISREG(kind):  # a worktree and a submodule have a file
        return False
    if owner != os.geteuid():
        notes.append(f"{folder} does not count as a repository: its {_GIT} belongs to another user.")
        return False
    return True


def _find_skills_folders(folder: str, parents: list[str]) -> Iterator[str]:
    """Yield the skills folders of parents, without those that share skills with the folder or the user's own."""
    known = [folder, *map(os.path.realpath, user_skill_folders())]
    for parent in parents:
        for name in SKILLS_FOLDERS:
            path = os.path.join(parent, name)
            try:
                info = system.stat(path)
            except OSError:
                continue
            path = os.path.realpath(path)
            is_own_folder = stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()
            if is_own_folder and _is_own_way(parent, name) and not any(_overlap(path, other) for other in known):
                known.append(path)
                yield path


def _is_own_way(parent: str, name: str) -> bool:
    """Return True if a path below a parent leads through no folder and no link of another user."""
    path = parent
    for part in name.split("/"):
        path = os.path.join(path, part)
        try:
            if system.stat(path, follow_symlinks=False).st_uid != os.geteuid():
                return False
        except OSError:
            return False
    return True


def _overlap(folder: str, other: str) -> bool:
    """Return True if the folders are the same or one is in the other."""
    return is_at_or_inside(folder, other) or is_at_or_inside(other, folder)
