"""The ignore file of a root: read again when it changes."""

import os

from skillshelf.reference import NotPlainFile, read_file
from skillshelf.sources.ignore import IgnoreRules
from skillshelf.sources.state import MISSING

IGNORE_FILE = ".skillshelfignore"
_MAX_BYTES = 64 * 1024


class IgnoreFile:
    """What is left out of a walk, by gitignore's rules."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.rules = IgnoreRules.parse("")
        self.active = False
        """Whether there is any rule at all."""
        self.fault = ""
        """Why the file could not be read whole; empty where it could, or is not there."""

    def update(self, fd: int, known: int) -> int:
        """The file's stamp now. It is read where that is not the `known` one, or where no rules were read yet."""
        try:
            info = os.stat(IGNORE_FILE, dir_fd=fd, follow_symlinks=False)
            stamp = hash((info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns))
        except OSError:
            stamp = MISSING
        if stamp != known or (stamp != MISSING and not self.active):
            self._read(stamp)
        return stamp

    def _read(self, stamp: int) -> None:
        text, self.fault = "", ""
        if stamp != MISSING:
            try:
                page = read_file(self._root, [IGNORE_FILE], 0, _MAX_BYTES)
                text = page.data.decode(errors="replace")
                if page.size > _MAX_BYTES:
                    self.fault = f"it has {page.size} bytes; rules past the first {_MAX_BYTES} do not count"
            except (OSError, NotPlainFile) as error:
                self.fault = (error.strerror or "unknown fault") if isinstance(error, OSError) else str(error)
        self.rules = IgnoreRules.parse(text)
        self.active = bool(self.rules)

    def covers(self, key: str) -> bool:
        return self.active and self.rules.match(key, True) is not None
