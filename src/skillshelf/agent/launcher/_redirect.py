"""A file that would redirect Git."""

import os

from skillshelf.agent.launcher._calls import call, libc, open_without_links

_NAME = "commondir"


class RedirectWatch:
    """Removes `commondir` from Git directories as soon as it appears.

    The file says where Git finds the configuration and the hooks. A repository's own directory never has it, and a name
    that does not exist cannot be made read-only.
    """

    def __init__(self, repositories: list[str]) -> None:
        self.fd = call(libc.inotify_init1, os.O_NONBLOCK | os.O_CLOEXEC)
        self.removed: list[str] = []
        self._repositories = []
        for repository in repositories:
            if os.path.isdir(repository) and not os.path.lexists(os.path.join(repository, _NAME)):
                created_or_moved_here = 0x100 | 0x80
                call(libc.inotify_add_watch, self.fd, os.fsencode(repository), created_or_moved_here)
                self._repositories.append(repository)

    def check(self) -> None:
        try:
            while os.read(self.fd, 65_536):
                pass
        except BlockingIOError:
            pass
        for repository in self._repositories:
            if _remove_redirect(repository):
                self.removed.append(os.path.join(repository, _NAME))


def _remove_redirect(repository: str) -> bool:
    """Remove the file. This process is not confined, so a link in the folder's place must not lead it elsewhere."""
    try:
        folder = open_without_links(repository)
    except OSError:
        return False
    try:
        os.unlink(_NAME, dir_fd=folder)
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
        os.chmod(f"/proc/self/fd/{folder}", os.fstat(folder).st_mode & 0o777 | 0o700)
        os.unlink(_NAME, dir_fd=folder)
    except OSError:
        return False
    return True
