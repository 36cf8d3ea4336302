"""The record of the user's decisions: as a value, as JSON, and as a locked file."""

import hashlib
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from skillshelf.errors import TrustError
from skillshelf.files import (
    FolderIdentity,
    LockTimeout,
    NotPlainFile,
    NotPrivate,
    file_stamp,
    hold_lock,
    is_fresh,
    make_private_folders,
    read_private,
    system,
)
from skillshelf.trust._own import OwnRepository, RepositoryIdentity

VERSION = 2

Kind = Literal["skill", "file", "folder"]
"""A skill, a file of project instructions, or a folder of eval cases."""


class NewerVersion(Exception):
    """A newer version of skillshelf wrote the file."""


@dataclass(frozen=True, slots=True)
class ApprovedTree:
    """When the user approved a tree, and what it was."""

    name: str
    when: str
    kind: Kind = "skill"


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approved trees and where they were seen, and the user's own repositories.

    A tree is named by the hash of its content. A place is a workspace and a key: the path of a skill, file or folder
    below the workspace.
    """

    trees: Mapping[str, ApprovedTree] = field(default_factory=dict)
    """Approved wherever they are."""
    places: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """By workspace and key: the approved trees that were there, the most recent last."""
    own: Mapping[str, OwnRepository] = field(default_factory=dict)
    """By root: the repositories that the user declared their own."""

    @property
    def kept_trees(self) -> set[str]:
        """The trees whose copies are needed."""
        in_use = {tree for repository in self.own.values() for tree in repository.in_use.values()}
        return in_use | self.trees.keys()

    def history(self, root: str, key: str) -> tuple[str, ...]:
        """Return the approved trees that a place has had, the most recent last."""
        return self.places.get(root, {}).get(key, ())

    def last(self, root: str, key: str) -> str:
        """Return the approved tree that a place had last, or an empty string."""
        history = self.history(root, key)
        return history[-1] if history else ""

    def last_in_use(self, root: str, key: str, own: OwnRepository | None) -> str:
        """Return the tree that was in use at a place last, or an empty string. `own`: the workspace, if it is."""
        in_use = own.in_use.get(key, "") if own else ""
        return in_use or self.last(root, key)

    def add(self, tree: str, approval: ApprovedTree) -> "Approvals":
        """Return the approvals with one more tree."""
        return replace(self, trees={**self.trees, tree: approval})

    def place(self, root: str, key: str, tree: str) -> "Approvals":
        """Return the approvals with a note that this approved tree is at this place now."""
        earlier = [known for known in self.history(root, key) if known != tree]
        keys = {**self.places.get(root, {}), key: (*earlier, tree)}
        placed = replace(self, places={**self.places, root: keys})
        repository = self.own.get(root)
        return placed.with_own(root, repository.use(key, tree)) if repository else placed

    def with_own(self, root: str, repository: OwnRepository) -> "Approvals":
        """Return the approvals with this repository as one of the user's own."""
        return replace(self, own={**self.own, root: repository})

    def without_own(self, root: str) -> "Approvals":
        """Return the approvals with this repository as one like any other."""
        return replace(self, own={place: repository for place, repository in self.own.items() if place != root})

    def remove(self, revoked: Collection[str]) -> "Approvals":
        """Return the approvals without these trees. In the user's own repositories, their places are held."""
        trees = {tree: approval for tree, approval in self.trees.items() if tree not in revoked}
        places: dict[str, dict[str, tuple[str, ...]]] = {}
        for root, keys in self.places.items():
            for key, history in keys.items():
                left = tuple(tree for tree in history if tree not in revoked)
                if left:
                    places.setdefault(root, {})[key] = left
        own = {root: repository.withdraw(revoked) for root, repository in self.own.items()}
        return Approvals(trees, places, own)


def dump_approvals(approvals: Approvals) -> bytes:
    """Return the text of the file, with a checksum."""
    plain = {
        "trees": {tree: [approved.name, approved.when, approved.kind] for tree, approved in approvals.trees.items()},
        "places": approvals.places,
        "own": {root: _dump_repository(repository) for root, repository in approvals.own.items()},
    }
    document = {"version": VERSION, "sha256": _checksum(plain), "approvals": plain}
    return json.dumps(document, indent=1).encode() + b"\n"


def parse_approvals(data: bytes) -> Approvals:
    """Read the text of the file. Raises NewerVersion, or ValueError if `dump_approvals` did not write it."""
    try:
        document = json.loads(data)
        version = document["version"]
        if type(version) is int and version > VERSION:
            raise NewerVersion
        plain = document["approvals"]
        if document["sha256"] != _checksum(plain):
            raise ValueError("the checksum does not match")
        if version != VERSION:
            raise ValueError("the version is not one that we wrote")

        # The checksum matches, so everything below is as `dump_approvals` wrote it.
        trees = {tree: ApprovedTree(*approved) for tree, approved in plain["trees"].items()}
        places: dict[str, dict[str, tuple[str, ...]]] = {}
        for root, keys in plain["places"].items():
            places[root] = {key: tuple(tree for tree in history if tree in trees) for key, history in keys.items()}
        own = {root: _parse_repository(repository) for root, repository in plain["own"].items()}
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError("it is not a record of approvals") from error
    return Approvals(trees, places, own)


def _dump_repository(repository: OwnRepository) -> dict[str, Any]:
    return {
        "folder": repository.identity.folder,
        "version_control": repository.identity.version_control,
        "since": repository.since,
        "in_use": repository.in_use,
        "announced": repository.announced,
        "held": sorted(repository.held),
    }


def _parse_repository(plain: Any) -> OwnRepository:
    version_control = plain["version_control"]
    identity = RepositoryIdentity(
        folder=FolderIdentity(*plain["folder"]),
        version_control=FolderIdentity(*version_control) if version_control is not None else None,
    )
    return OwnRepository(
        identity,
        since=plain["since"],
        in_use=plain["in_use"],
        announced=plain["announced"],
        held=frozenset(plain["held"]),
    )


def _checksum(plain: Any) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# A process that dies releases the lock, and one that lives needs it for a moment.
_LOCK_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class RecordText:
    """The record's bytes, or the reason why they cannot be used."""

    data: bytes | None
    """None if there is no record."""
    fault: str = ""


class RecordFile:
    """The file `approvals.json`, and the lock beside it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = f"{folder}/approvals.json"
        self.bad = f"{self.path}.bad"
        """The name that a damaged record gets."""
        self._last_status: os.stat_result | None = None

    def may_have_changed(self) -> bool:
        """Return True unless the file's times prove that it is the one read last."""
        status = self._status()
        if status is None or self._last_status is None:
            return True
        return file_stamp(status) != file_stamp(self._last_status) or is_fresh(status, time.time_ns())

    def read(self) -> RecordText:
        """Read the file, which only this user may have written."""
        self._last_status = self._status()
        try:
            return RecordText(read_private(self.path))
        except FileNotFoundError:
            return RecordText(None)
        except NotPlainFile:
            return RecordText(None, "The record of approvals is not a plain file")
        except NotPrivate as error:
            return RecordText(None, str(error))
        except OSError as error:
            return RecordText(None, f"The record of approvals cannot be read: {error.strerror}")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock. Raises OSError if it cannot be written, TrustError if another process does not release it."""
        make_private_folders(self.folder)
        path = f"{self.folder}/lock"
        try:
            with hold_lock(path, timeout=_LOCK_SECONDS):
                yield
        except LockTimeout:
            raise TrustError(f"Another process has held {path} for {_LOCK_SECONDS:.0f} seconds. Try again.") from None

    def set_aside(self, data: bytes) -> None:
        """Rename a damaged record, unless another process has repaired it. Call it with the lock held."""
        if self.read().data == data:
            system.replace(self.path, self.bad)

    def remove_leftovers(self) -> None:
        """Remove the scratch files of killed processes. Call it with the lock held."""
        for name in system.listdir(self.folder):
            if name.startswith("approvals.json.") and not name.endswith(".bad"):
                system.unlink(f"{self.folder}/{name}")

    def _status(self) -> os.stat_result | None:
        try:
            return system.stat(self.path, follow_symlinks=False)
        except OSError:
            return None
