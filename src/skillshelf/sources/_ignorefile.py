"""The ignore file of a root: read again when it changes."""

from skillshelf.files import NotPlainFile, Page, file_stamp, read_file, system
from skillshelf.sources._ignore import IgnoreRules
from skillshelf.sources._state import MISSING

IGNORE_FILE = ".skillshelfignore"
_MAX_BYTES = 64 * 1024
_MAX_LINES = 1000
_NEVER = 0


class IgnoreFile:
    """What is left out of a walk, by gitignore's rules."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._read_at: int | None = None
        self.rules = IgnoreRules.parse("")
        self.lines: list[str] = []
        """The file's lines that count."""
        self.active = False
        """Whether there is any rule at all."""
        self.fault = ""
        """Why the file could not be read whole; empty where it could, or is not there."""

    def update(self, fd: int) -> int:
        """The file's stamp now; it is read where that is not the one it was read at."""
        try:
            info = system.stat(IGNORE_FILE, dir_fd=fd, follow_symlinks=False)
            stamp = hash(file_stamp(info))
        except OSError:
            stamp = MISSING
        if stamp != self._read_at:
            self._read_at = self._read(stamp)
        return self._read_at

    def _read(self, stamp: int) -> int:
        """The stamp it was read at: one that never fits where the fault may pass, so that it is tried again."""
        self.lines, self.fault = [], ""
        if stamp != MISSING:
            try:
                self._take(read_file(self._root, [IGNORE_FILE], 0, _MAX_BYTES))
            except NotPlainFile as error:
                self.fault = error.reason
            except OSError as error:
                self.fault, stamp = error.strerror or "unknown fault", _NEVER
        self.rules = IgnoreRules.parse("\n".join(self.lines))
        self.active = bool(self.rules)
        return stamp

    def _take(self, page: Page) -> None:
        lines = page.data.decode(errors="replace").split("\n")
        if page.size > _MAX_BYTES or len(lines) > _MAX_LINES:
            self.fault = f"only {_MAX_LINES} lines and {_MAX_BYTES} bytes of it count"
        self.lines = lines[:_MAX_LINES]

    def covers(self, key: str) -> bool:
        return self.active and self.rules.match(key, True) is not None
