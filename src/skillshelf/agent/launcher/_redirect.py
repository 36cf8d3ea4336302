"""A file that would redirect Git."""

import os

from skillshelf.agent.launcher._calls import call, libc


class RedirectWatch:
    """Removes `commondir` from Git directories as soon as it appears.

    The file says where Git finds the configuration and the hooks. A repository's own directory never has it, and a name
    that does not exist cannot be made read-only.
    """

    def __init__(self, repositories: list[str]) -> None:
        self.fd = call(libc.inotify_init1, os.O_NONBLOCK | os.O_CLOEXEC)
        self.removed: list[str] = []
        self._paths = []
        for repository in repositories:
            path = os.path.join(repository, "commondir")
            if os.path.isdir(repository) and not os.path.lexists(path):
                created_or_moved_here = 0x100 | 0x80
                call(libc.inotify_add_watch, self.fd, os.fsencode(repository), created_or_moved_here)
                self._paths.append(path)

    def check(self) -> None:
        try:
            while os.read(self.fd, 65_536):
                pass
        except BlockingIOError:
            pass
        for path in self._paths:
            try:
                os.unlink(path)
            except OSError:
                continue
            self.removed.append(path)
