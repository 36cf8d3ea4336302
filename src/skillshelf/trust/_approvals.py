"""The user's approvals as a value, and as the text of a file."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

VERSION = 1


class NewerVersion(Exception):
    """A newer version of skillshelf wrote the file."""


@dataclass(frozen=True, slots=True)
class ApprovedTree:
    """When the user approved a tree, and under which name."""

    name: str
    when: str


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approved trees, and the places where they were seen. A tree is named by the hash of its content."""

    trees: Mapping[str, ApprovedTree] = field(default_factory=dict)
    """Approved wherever they lie."""
    places: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """By workspace and place in it: the approved trees that were there, the most recent last."""

    def history(self, root: str, key: str) -> tuple[str, ...]:
        """Return the approved trees that a place has had, the most recent last."""
        return self.places.get(root, {}).get(key, ())

    def last(self, root: str, key: str) -> str:
        """Return the approved tree that a place had last, or an empty string."""
        history = self.history(root, key)
        return history[-1] if history else ""

    def add(self, tree: str, approval: ApprovedTree) -> "Approvals":
        """Return the approvals with one more tree."""
        return replace(self, trees={**self.trees, tree: approval})

    def place(self, root: str, key: str, tree: str) -> "Approvals":
        """Return the approvals with a note that this tree lies at this place now."""
        earlier = [known for known in self.history(root, key) if known != tree]
        keys = {**self.places.get(root, {}), key: (*earlier, tree)}
        return replace(self, places={**self.places, root: keys})

    def remove(self, revoked: Collection[str]) -> "Approvals":
        """Return the approvals without these trees."""
        trees = {tree: approval for tree, approval in self.trees.items() if tree not in revoked}
        places: dict[str, dict[str, tuple[str, ...]]] = {}
        for root, keys in self.places.items():
            for key, history in keys.items():
                left = tuple(tree for tree in history if tree not in revoked)
                if left:
                    places.setdefault(root, {})[key] = left
        return Approvals(trees, places)


def dump_approvals(approvals: Approvals) -> bytes:
    """Return the text of the file, with a checksum."""
    plain = {
        "trees": {tree: [approval.name, approval.when] for tree, approval in approvals.trees.items()},
        "places": approvals.places,
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
        if version != VERSION or document["sha256"] != _checksum(plain):
            raise ValueError("the checksum does not match")

        trees = {}
        for tree, (name, when) in plain["trees"].items():
            trees[tree] = ApprovedTree(_text(name), _text(when))
        places: dict[str, dict[str, tuple[str, ...]]] = {}
        for root, keys in plain["places"].items():
            places[root] = {key: tuple(tree for tree in history if tree in trees) for key, history in keys.items()}
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError("it is not a record of approvals") from error
    return Approvals(trees, places)


def _checksum(plain: Any) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError(value)
    return value
