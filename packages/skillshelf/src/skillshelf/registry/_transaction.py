"""Installing skills so that a crash leaves each of them old or new, and the lock agrees.

Everything new is written beside the target and forced to disk. Then one write to the journal commits it, and from there
on it is renames only: they need no network and no space, and can be repeated. Whoever holds the lock next ends what a
killed process began. Without the commit, what was written is removed.
"""

import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from skillshelf.errors import RegistryError
from skillshelf.files import (
    SCRATCH_FOLDER,
    LockTimeout,
    NotPlainFile,
    NotPrivate,
    hold_lock,
    make_folders,
    make_private_folders,
    read_private,
    replace_file,
    sync_folder,
    system,
    write_new,
)
from skillshelf.registry._installation import Installation
from skillshelf.registry._lock import SkillsLock, dump_lock, read_lock
from skillshelf.registry._other_locks import update_vercel_lock
from skillshelf.registry._package import SkillContent

_LOCK_SECONDS = 120.0
"""Another process holds the lock while it writes and renames, not while it fetches or asks."""
_OLD = ".old"
"""Where replaced skills go, beside the new ones. No skill has this name."""
_MAX_JOURNAL = 1024 * 1024


class Transaction:
    """Changes the skills and the lock together, or not at all. While it is open, no other process does."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.lock: SkillsLock = read_lock(installation.lock_path)

    def commit(self, lock: SkillsLock, put: Sequence[SkillContent] = (), remove: Collection[str] = ()) -> None:
        """Write this lock, install these skills over those of their names, and remove others. Raises RegistryError."""
        steps = _Steps(self.installation, secrets.token_hex(8))
        try:
            steps.stage(put, dump_lock(lock))
            steps.commit([content.name for content in put], list(remove))
        except OSError as error:
            steps.discard()
            raise RegistryError(f"Nothing was changed in {self.installation.folder}: {_explain(error)}.") from None
        try:
            steps.carry_out()
        except OSError as error:
            raise RegistryError(
                f"The change in {self.installation.folder} is not complete: {_explain(error)}. The next `skillshelf "
                f"sync` completes it."
            ) from None
        self.lock = lock
        update_vercel_lock(self.installation, lock, put, remove)


@contextmanager
def change_installation(installation: Installation) -> Iterator[Transaction]:
    """Wait until no other process changes it, complete what a killed one began, and hold it until the end of the block.

    Raises RegistryError.
    """
    state = installation.state
    try:
        make_private_folders(state)
        with hold_lock(f"{state}/lock", timeout=_LOCK_SECONDS):
            repair(installation)
            yield Transaction(installation)
    except LockTimeout:
        message = f"Another process has changed {installation.folder} for {_LOCK_SECONDS:.0f} seconds. Try again."
        raise RegistryError(message) from None
    except OSError as error:
        raise RegistryError(f"Nothing can be changed: {_explain(error)}.") from None


def _explain(error: OSError) -> str:
    """Return the reason and the file that cannot be written, renamed or removed."""
    reason = error.strerror or str(error)
    return f"{reason} ({error.filename})" if error.filename else reason


def is_interrupted(installation: Installation) -> bool:
    """Return True if a process was killed amid a change, or is changing something right now."""
    return os.path.lexists(f"{installation.state}/journal.json")


def repair(installation: Installation) -> None:
    """Complete or undo what a killed process began. Call it while no other process changes the skills."""
    journal = _read_journal(installation)
    if journal is not None:
        steps = _Steps(installation, journal["token"])
        steps.put = journal["put"]
        steps.remove = journal["remove"]
        if journal["committed"]:
            steps.carry_out()
        else:
            steps.discard()
    _remove_leftovers(installation)


def _remove_leftovers(installation: Installation) -> None:
    """Remove the scratch files of killed processes."""
    for name in system.listdir(installation.state):
        if name.startswith(("journal.json.", "known.json.", "undo.json.")):
            system.unlink(f"{installation.state}/{name}")
    with suppress(OSError):  # nearly always, it is not there
        system.rmdir(f"{installation.folder}/{SCRATCH_FOLDER}")


def _read_journal(installation: Installation) -> dict[str, Any] | None:
    try:
        journal: dict[str, Any] = json.loads(read_private(f"{installation.state}/journal.json", _MAX_JOURNAL))
    except (FileNotFoundError, ValueError):
        return None
    except (NotPlainFile, NotPrivate) as error:
        raise RegistryError(f"The journal cannot be used: {error}.") from None
    return journal


class _Steps:
    """The steps of one transaction. Each can be taken again by another process."""

    def __init__(self, installation: Installation, token: str) -> None:
        self._installation = installation
        self._token = token
        self._journal = f"{installation.state}/journal.json"
        self._lock_draft = f"{installation.lock_path}.{token}"
        self._scratch = f"{installation.folder}/{SCRATCH_FOLDER}"
        self._draft = f"{self._scratch}/.skillshelf-{token}"
        self._discarded = f"{self._draft}.old"
        self.put: list[str] = []
        self.remove: list[str] = []

    def stage(self, put: Sequence[SkillContent], lock: bytes) -> None:
        """Write everything that is new beside its place, and force it to disk."""
        self._write_journal(committed=False)
        make_folders(self._installation.place, 0o700 if self._installation.is_user else 0o777)
        make_folders(self._installation.folder)
        with suppress(FileExistsError):
            system.mkdir(self._scratch)
        if os.path.islink(self._scratch):
            raise OSError(f"{self._scratch} is a link")
        system.mkdir(self._draft)
        system.mkdir(f"{self._draft}/{_OLD}")
        for content in put:
            _write_skill(f"{self._draft}/{content.name}", content)
        sync_folder(self._draft)
        write_new(self._lock_draft, lock, 0o666, durable=True)

    def commit(self, put: list[str], remove: list[str]) -> None:
        """Decide that it happens."""
        self.put = put
        self.remove = remove
        self._write_journal(committed=True)

    def carry_out(self) -> None:
        """Rename everything into place."""
        if os.path.lexists(self._draft):
            folder = self._installation.folder
            for name in self.put:
                if os.path.lexists(f"{self._draft}/{name}"):
                    self._move_away(name)
                    system.rename(f"{self._draft}/{name}", f"{folder}/{name}")
            for name in self.remove:
                self._move_away(name)
            sync_folder(folder)
            if os.path.lexists(self._lock_draft):
                system.rename(self._lock_draft, self._installation.lock_path)
                sync_folder(self._installation.place)
        self.discard()

    def discard(self) -> None:
        """Remove what is left. What cannot be removed now, the next process removes."""
        with suppress(OSError):
            # Renamed first: half of a draft must never be carried out.
            if os.path.lexists(self._draft):
                system.rename(self._draft, self._discarded)
            if os.path.lexists(self._discarded):
                shutil.rmtree(self._discarded)
            with suppress(FileNotFoundError):
                system.unlink(self._lock_draft)
            with suppress(FileNotFoundError):
                system.unlink(self._journal)
            with suppress(OSError):  # another process uses it, or there is none
                system.rmdir(self._scratch)

    def _move_away(self, name: str) -> None:
        if os.path.lexists(f"{self._installation.folder}/{name}"):
            system.rename(f"{self._installation.folder}/{name}", f"{self._draft}/{_OLD}/{name}")

    def _write_journal(self, *, committed: bool) -> None:
        journal = {"token": self._token, "committed": committed, "put": self.put, "remove": self.remove}
        replace_file(self._journal, json.dumps(journal).encode(), durable=True)


def _write_skill(folder: str, content: SkillContent) -> None:
    """Create a folder with the files of a skill, all forced to disk."""
    folders = {folder}
    system.mkdir(folder)
    for entry in content.snapshot.entries:
        path = f"{folder}/{entry.path}"
        parent = os.path.dirname(path)
        make_folders(parent)
        while parent not in folders:
            folders.add(parent)
            parent = os.path.dirname(parent)
        write_new(path, content.files[entry.path], 0o777 if entry.executable else 0o666, durable=True)
    for path in folders:
        sync_folder(path)
