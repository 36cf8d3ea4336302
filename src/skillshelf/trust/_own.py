"""Repositories that the user declared their own, and what agents change there.

Skills and AGENTS.md of such a repository apply as they are on disk, except for what an agent changed out of the user's
sight. The declaration is the user's and is kept outside the repository. It holds for one folder: another folder that
takes its path later is not the user's own until the user says so again.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from skillshelf.errors import TrustError
from skillshelf.files import FolderIdentity, identify, make_private_folders, system, try_lock
from skillshelf.sources import SKILL_FILES, VERSION_CONTROL_FOLDERS
from skillshelf.trust._trees import SnapshotEntry, hash_file

_OTHERS_MAY_WRITE = 0o002


class RepositoryIdentity(NamedTuple):
    """The folder, and its version control folder: a new clone in an emptied folder has another one."""

    folder: FolderIdentity
    version_control: FolderIdentity | None


@dataclass(frozen=True, slots=True)
class OwnRepository:
    """A repository that the user declared their own, and the content that is in use because of that."""

    identity: RepositoryIdentity
    since: str
    in_use: Mapping[str, str] = field(default_factory=dict)
    """By key: the tree that was found there last and is in use."""
    announced: Mapping[str, str] = field(default_factory=dict)
    """By key: the tree that the user was last informed of."""
    held: frozenset[str] = frozenset()
    """The keys where the agent changed something. Nothing there comes into use until the user has looked at it."""

    def use(self, key: str, tree: str) -> "OwnRepository":
        """Return the repository with this tree in use at a place, which ends a hold there."""
        return replace(self, in_use={**self.in_use, key: tree}, held=self.held - {key})

    def hold(self, keys: Iterable[str]) -> "OwnRepository":
        """Return the repository with these places held."""
        return replace(self, held=self.held.union(keys))

    def withdraw(self, revoked: Collection[str]) -> "OwnRepository":
        """Return the repository without these trees. Their places are held, or they would come back by themselves."""
        in_use = {key: tree for key, tree in self.in_use.items() if tree not in revoked}
        return replace(self, in_use=in_use).hold(self.in_use.keys() - in_use.keys())


class OwnChanges(NamedTuple):
    """What came into use in a repository of the user's own since the user was last informed. Paths below its root."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def find_changes(own: OwnRepository) -> OwnChanges:
    """Compare the content in use with the content that the user was informed of."""
    before = own.announced
    now = own.in_use
    return OwnChanges(
        added=tuple(sorted(now.keys() - before.keys())),
        changed=tuple(sorted(key for key in now.keys() & before.keys() if now[key] != before[key])),
        removed=tuple(sorted(before.keys() - now.keys())),
    )


def identify_repository(root: str) -> RepositoryIdentity:
    """Return the identity of a repository. Raises TrustError, with the reason, if it cannot be the user's own."""
    reason = _find_obstacle(root)
    if reason:
        raise TrustError(f"{root!r} cannot be your own repository: {reason}.")
    identity = _identify(root)
    if identity is None:
        raise TrustError(f"{root!r} cannot be your own repository: it does not exist.")
    return identity


def check_repository(root: str, declared: RepositoryIdentity) -> str:
    """Return the reason why a declared repository no longer counts as the user's own; empty if it does."""
    try:
        reason = _find_obstacle(root)
        now = _identify(root)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        now = None
    if reason:
        return reason
    if now is None or not declared.folder.is_still(now.folder):
        return "another folder has taken its place"
    was_versioned = declared.version_control
    if was_versioned is not None and not was_versioned.is_still(now.version_control):
        return "another repository has taken its place"
    return ""


def is_foreign(root: str, key: str, paths: Iterable[str] = ()) -> bool:
    """Return True if a place below the root is not the user's own, although the root is.

    It may belong to another repository inside, such as a submodule or a clone, or another user may have written it.
    `paths` are its files, below the key; both kinds of place may begin inside it.
    """
    files = [f"{key}/{path}".lstrip("/") for path in paths]
    folders = {folder for path in (*files, f"{key}/") for folder in _list_folders(path)}
    for folder in folders:
        if any(os.path.lexists(f"{root}/{folder}/{name}") for name in VERSION_CONTROL_FOLDERS):
            return True
    return any(_others_may_have_written(f"{root}/{path}") for path in (*folders, *files))


def _list_folders(path: str) -> Iterator[str]:
    """Yield the folders above a path, up to the root and without it."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _others_may_have_written(path: str) -> bool:
    """Return True if a file or folder belongs to another user than this one and root, or everyone can write to it."""
    try:
        status = system.stat(path, follow_symlinks=False)
    except OSError:
        return False  # it has just gone, and cannot come into use
    if stat.S_ISLNK(status.st_mode):  # links have no rights of their own
        return status.st_uid not in (os.geteuid(), 0)
    return status.st_uid not in (os.geteuid(), 0) or bool(status.st_mode & _OTHERS_MAY_WRITE)


def _find_obstacle(root: str) -> str:
    """Return why a folder cannot be the user's own repository; empty if it can."""
    status = system.stat(root, follow_symlinks=False)
    home = os.path.realpath(os.path.expanduser("~"))
    if f"{home}/".startswith(root.rstrip("/") + "/"):
        return "it is or contains your home folder; declare the repositories in it one by one"
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if status.st_uid != os.geteuid():
        return "the folder belongs to another user"
    if status.st_mode & _OTHERS_MAY_WRITE:
        return "every user of this machine can write to it"
    if _find_version_control(root) is None:
        return "it is not the root of a repository: run this at the root, or `git init` first"
    return ""


def _find_version_control(root: str) -> str | None:
    for name in sorted(VERSION_CONTROL_FOLDERS):
        path = f"{root}/{name}"
        if os.path.lexists(path):
            return path
    return None


def _identify(root: str) -> RepositoryIdentity | None:
    folder = identify(root)
    if folder is None:
        return None
    version_control = _find_version_control(root)
    return RepositoryIdentity(folder, identify(version_control) if version_control else None)


AgentState = Literal["idle", "at work", "killed"]
"""`killed`: no agent works there, and one of them left its mark behind."""

_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class AgentMark:
    """A mark that this process has set."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = system.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
        try_lock(self._fd)

    def remove(self) -> None:
        """Take the mark away. Raises OSError."""
        with suppress(FileNotFoundError):
            system.unlink(self._path)

    def release(self) -> None:
        """Give up the lock. A mark that was not removed counts as that of a killed agent from now on."""
        system.close(self._fd)


class AgentMarks:
    """The marks in a folder of the trust store. Call these methods with the lock of the store held."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def set(self, root: str) -> AgentMark:
        """Mark a repository. Raises OSError."""
        make_private_folders(self._folder)
        return AgentMark(f"{self._folder}/{_prefix(root)}{secrets.token_hex(8)}")

    def any(self, root: str) -> bool:
        """Return True if there is a mark of a repository, whether or not its agent lives. Raises OSError."""
        return bool(self._names(root))

    def find_state(self, root: str) -> AgentState:
        """Return the state of the agents in a repository. Raises OSError."""
        state: AgentState = "idle"
        for name in self._names(root):
            if self._is_locked(name):
                return "at work"
            state = "killed"
        return state

    def remove_abandoned(self, root: str) -> None:
        """Remove the marks of agents that were killed. Raises OSError."""
        for name in self._names(root):
            if not self._is_locked(name):
                system.unlink(f"{self._folder}/{name}")

    def _names(self, root: str) -> list[str]:
        try:
            names = system.listdir(self._folder)
        except FileNotFoundError:
            return []
        return [name for name in names if name.startswith(_prefix(root))]

    def _is_locked(self, name: str) -> bool:
        try:
            fd = system.open(f"{self._folder}/{name}", _OPEN)
        except FileNotFoundError:
            return False
        try:
            return not try_lock(fd)
        finally:
            system.close(fd)


def _prefix(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:32] + "-"


class AgentWrites:
    """The files of a workspace that the agent wrote in this session in the user's sight, as it left them.

    Skills have several files, and the agent writes one at a time: a skill is approved when all of it has been seen.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._entries: dict[str, SnapshotEntry] = {}

    def add(self, path: str, sha256: str) -> None:
        """Record a file below the root, unless its content is no longer the one with this hash."""
        self._entries.pop(path, None)
        with suppress(TrustError):
            entry = hash_file(self._root, path)
            if entry.sha256 == sha256:
                self._entries[path] = entry

    def entries(self, key: str) -> set[SnapshotEntry]:
        """Return the files of the skill at a key, with their paths in the skill."""
        prefix = f"{key}/" if key else ""
        entries = set()
        for path, entry in self._entries.items():
            if path.startswith(prefix):
                entries.add(replace(entry, path=path.removeprefix(prefix)))
        return entries


def find_skill_of(root: str, parts: list[str]) -> str | None:
    """Return the key of the skill that a path below the root belongs to: of the outermost folder that is one."""
    depths = [*range(1, len(parts)), 0]
    # A workspace that is itself a skill has other skills in its dot-folders only.
    if len(parts) > 1 and not parts[0].startswith("."):
        depths = list(range(len(parts)))
    for depth in depths:
        key = "/".join(parts[:depth])
        if any(os.path.isfile(f"{root}/{key}/{name}") for name in SKILL_FILES):
            return key
    return None
