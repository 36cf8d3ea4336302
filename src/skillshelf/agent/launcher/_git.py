"""Keeps the files of a Git directory that name programs to run as they are.

A command may commit, which writes to the Git directory, but it must not leave a hook or a setting behind that runs a
program when the user calls Git next. Read-only mounts hold the files that exist; a watch removes one that must not come
to exist.
"""

import os
import stat

from skillshelf.agent.launcher._kernel import call, libc, open_without_links
from skillshelf.agent.launcher._mounts import mount_in_place

_REDIRECT = "commondir"
"""The file that says where Git finds the configuration and the hooks."""
_GUARDED_NAMES = ("config", "config.worktree", "hooks", _REDIRECT)
"""Git takes programs to run from these, or the place of the others."""
_GUARDED_WORKTREE_NAMES = ("config.worktree", _REDIRECT, "gitdir")
"""The same in the directory that a repository has for each of its linked worktrees."""

_OPEN_OR_MAKE = os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_CONFIG = 1024 * 1024
_IN_MOVED_TO = 0x080
_IN_CREATE = 0x100
_EVENT_BYTES = 64 * 1024


def guard_repository(repository: str) -> None:
    """Make the parts of a Git directory that name programs read-only, and keep it from being renamed or replaced.

    This process must be in a mount namespace of its own.
    """
    if not os.path.isdir(repository):  # a `.git` file, which says where the directory is
        mount_in_place(repository, read_only=True)
        return

    _make_missing_names(repository)
    _guard_names(repository, _GUARDED_NAMES)

    worktrees = os.path.join(repository, "worktrees")
    if os.path.isdir(worktrees) and not os.path.islink(worktrees):
        for name in os.listdir(worktrees):
            _guard_names(os.path.join(worktrees, name), _GUARDED_WORKTREE_NAMES)


def _make_missing_names(repository: str) -> None:
    """Make the hooks folder and the configuration if they are missing, as `git init` does: a mount needs a place."""
    try:
        os.makedirs(os.path.join(repository, "hooks"), exist_ok=True)
        config = os.open(os.path.join(repository, "config"), _OPEN_OR_MAKE, 0o644)
        try:
            has_worktree_config = _mentions_worktree_config(config)
        finally:
            os.close(config)

        if has_worktree_config:
            worktree_config = os.open(os.path.join(repository, "config.worktree"), _OPEN_OR_MAKE, 0o644)
            os.close(worktree_config)
    except OSError:  # the program cannot make them either, or one is a link
        return


def _mentions_worktree_config(config: int) -> bool:
    """Return True if an open configuration may let Git read a second one. A clone can bring anything as its config."""
    info = os.fstat(config)
    if not stat.S_ISREG(info.st_mode):
        return False
    if info.st_size > _MAX_CONFIG:
        return True
    return b"worktreeconfig" in os.read(config, _MAX_CONFIG).lower()


def _guard_names(folder: str, names: tuple[str, ...]) -> None:
    """Hold a folder in place, and make those of the names that exist in it read-only."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return

    paths = [os.path.join(folder, name) for name in names]
    present = [path for path in paths if os.path.lexists(path)]
    if any(os.path.islink(path) for path in present):
        # A mount cannot hold a link in place. So Git can read the whole folder, but not write to it.
        mount_in_place(folder, read_only=True)
        return

    mount_in_place(folder, read_only=False)
    for path in present:
        mount_in_place(path, read_only=True)


class RedirectWatch:
    """Removes `commondir` from Git directories as soon as it appears.

    A repository's own directory never has this file, and a name that does not exist cannot be made read-only.
    """

    def __init__(self, repositories: list[str]) -> None:
        self.fd = call(libc.inotify_init1, os.O_NONBLOCK | os.O_CLOEXEC)
        """Readable when a file appeared in one of the Git directories."""
        self.removed: list[str] = []
        """The paths of the removed files."""
        self._repositories: list[str] = []

        for repository in repositories:
            if not os.path.isdir(repository):
                continue
            if os.path.lexists(os.path.join(repository, _REDIRECT)):  # then it is read-only
                continue
            call(libc.inotify_add_watch, self.fd, os.fsencode(repository), _IN_CREATE | _IN_MOVED_TO)
            self._repositories.append(repository)

    def check(self) -> None:
        """Remove the file wherever it has appeared."""
        self._discard_events()
        for repository in self._repositories:
            if _remove_redirect(repository):
                self.removed.append(os.path.join(repository, _REDIRECT))

    def _discard_events(self) -> None:
        """Empty the queue of events. Its size is limited, so it may not name every file: `check` looks itself."""
        try:
            while os.read(self.fd, _EVENT_BYTES):
                pass
        except BlockingIOError:
            return


def _remove_redirect(repository: str) -> bool:
    """Remove the file if it exists. Returns True if it was removed.

    This process is not confined, so a link in the folder's place must not lead it elsewhere.
    """
    try:
        folder = open_without_links(repository)
    except OSError:
        return False
    try:
        os.unlink(_REDIRECT, dir_fd=folder)
    except PermissionError:
        return _remove_from_locked(folder)
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _remove_from_locked(folder: int) -> bool:
    """Remove the file from a folder whose mode the program has changed, so that nothing can be removed from it."""
    try:
        permissions = os.fstat(folder).st_mode & 0o777
        os.chmod(f"/proc/self/fd/{folder}", permissions | stat.S_IRWXU)
        os.unlink(_REDIRECT, dir_fd=folder)
    except OSError:
        return False
    return True
