"""What the user approved, what waits for them, and their own repositories: the values, and the JSON of the record."""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from skillshelf.errors import TrustError
from skillshelf.files import FolderIdentity, NotPlainFile
from skillshelf.sources import SKIPPED_FOLDERS
from skillshelf.trust._own import RepositoryIdentity, is_foreign
from skillshelf.trust._trees import Snapshot, SnapshotEntry, TreeCopy, read_verified

VERSION = 2

Kind = Literal["skill", "file", "command", "folder"]
"""A skill, a file of project instructions, a Markdown command, or a folder of eval cases."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A skill, a file of instructions, a command, or a folder of eval cases that the user has not approved as it is."""

    root: str
    """The workspace."""
    key: str
    """Its path in the workspace."""
    name: str
    snapshot: Snapshot
    location: str
    """The path of the SKILL.md, of the file, or of a folder that is not a skill."""
    kind: Kind = "skill"
    copy: TreeCopy | None = field(default=None, repr=False, compare=False)
    """The approved version that is served meanwhile."""
    blocked: str = ""
    """Why it cannot be approved; empty if it can."""
    by_agent: bool = False
    """True if it waits because the agent changed it, in a repository that the user declared their own."""

    @property
    def status(self) -> Literal["new", "changed"]:
        """`changed` if an earlier version is served meanwhile."""
        return "changed" if self.approved else "new"

    @property
    def approved(self) -> Snapshot | None:
        """The snapshot of the approved version that is served meanwhile."""
        return self.copy.snapshot if self.copy else None

    @property
    def tree(self) -> str:
        """The hash of the pending content."""
        return self.snapshot.tree

    @property
    def folder(self) -> str:
        """The folder, below the root, that the paths of the snapshot start from."""
        if self.is_file:
            return os.path.dirname(self.key)
        return self.key

    @property
    def is_file(self) -> bool:
        """True if it is a single file, and not a folder."""
        return self.kind in ("file", "command")

    @property
    def file(self) -> str:
        """The path in the snapshot of the file to read first."""
        return os.path.basename(self.location)

    def read(self, entry: SnapshotEntry) -> bytes:
        """Read a file of the snapshot. Raises TrustError if it has changed since."""
        return read_verified(self.root, self.folder, entry)

    def read_approved(self, entry: SnapshotEntry) -> bytes:
        """Read a file of the approved version. Raises TrustError."""
        if self.copy is None or not self.copy.is_intact():
            raise TrustError(f"There is no approved version of {self.name!r} to compare with.")
        try:
            return self.copy.read(entry.path, 0, entry.size).data
        except (OSError, NotPlainFile):
            raise TrustError(f"The approved version of {entry.path!r} cannot be read.") from None


class ApprovedTree(NamedTuple):
    """When the user approved a tree, and what it was."""

    name: str
    when: str
    kind: Kind = "skill"


@dataclass(frozen=True, slots=True)
class OwnRepository:
    """A repository that the user declared their own, and the content that is in use because of that."""

    identity: RepositoryIdentity
    since: str
    in_use: Mapping[str, str] = field(default_factory=dict)
    """By key: the tree that was found there last and is in use."""
    announced: Mapping[str, str] = field(default_factory=dict)
    """By key: the tree that the user was last informed of."""
    to_review: frozenset[str] = frozenset()
    """The keys where an agent changed something. Nothing there comes into use until the user has reviewed it."""

    def applies(self, content: Pending) -> bool:
        """Return True if content of the repository needs no review: no agent changed it, and it is not foreign."""
        if content.blocked or content.key in self.to_review:
            return False
        folder = content.folder
        # Dependencies are the work of others, and nothing looks there for instructions that an agent changed.
        if content.is_file and not SKIPPED_FOLDERS.isdisjoint(folder.split("/")):
            return False
        return not is_foreign(content.root, folder, [entry.path for entry in content.snapshot.entries])

    def use(self, key: str, tree: str) -> "OwnRepository":
        """Return the repository with this tree in use at a place."""
        return replace(self, in_use={**self.in_use, key: tree})

    def end_review(self, key: str) -> "OwnRepository":
        """Return the repository with a place whose content in use the user has reviewed: that is no news."""
        announced = {**self.announced, key: self.in_use[key]}
        return replace(self, to_review=self.to_review - {key}, announced=announced)

    def require_review(self, keys: Iterable[str]) -> "OwnRepository":
        """Return the repository with these places for the user to review."""
        return replace(self, to_review=self.to_review.union(keys))

    def withdraw(self, revoked: Collection[str]) -> "OwnRepository":
        """Return the repository without these trees. Their places need review, or the trees would come back."""
        in_use = {key: tree for key, tree in self.in_use.items() if tree not in revoked}
        return replace(self, in_use=in_use).require_review(self.in_use.keys() - in_use.keys())


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


@dataclass(frozen=True)
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

    @cached_property  # each copy that is served asks for it: 0.4 ms with 10,000 skills
    def kept_trees(self) -> frozenset[str]:
        """The trees whose copies are needed."""
        in_use = (tree for repository in self.own.values() for tree in repository.in_use.values())
        return frozenset(self.trees).union(in_use)

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

    def approve(self, root: str, key: str, tree: str, approval: ApprovedTree) -> "Approvals":
        """Return the approvals with one more tree, which is at this place now."""
        approvals = replace(self, trees={**self.trees, tree: approval}).place(root, key, tree)
        repository = approvals.own.get(root)
        return approvals.with_own(root, repository.end_review(key)) if repository else approvals

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
        """Return the approvals without these trees. In the user's own repositories, their places need review."""
        trees = {tree: approval for tree, approval in self.trees.items() if tree not in revoked}
        places: dict[str, dict[str, tuple[str, ...]]] = {}
        for root, keys in self.places.items():
            for key, history in keys.items():
                left = tuple(tree for tree in history if tree not in revoked)
                if left:
                    places.setdefault(root, {})[key] = left
        own = {root: repository.withdraw(revoked) for root, repository in self.own.items()}
        return Approvals(trees, places, own)


class NewerVersion(Exception):
    """A newer version of skillshelf wrote the file."""


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
        "held": sorted(repository.to_review),
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
        to_review=frozenset(plain["held"]),
    )


def _checksum(plain: Any) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
