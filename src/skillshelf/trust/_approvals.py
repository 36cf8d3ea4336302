"""The record of what a person agreed to, as a value, and as the text of a file."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = 1


class NewerVersion(Exception):
    """A later skillshelf wrote it."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The person agreed to a tree."""

    name: str
    when: str


@dataclass(frozen=True, slots=True)
class Approvals:
    """Trees that were agreed to, wherever they lie, and which of them each place had, the latest last."""

    trees: Mapping[str, Agreement] = field(default_factory=dict)
    places: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def last(self, root: str, key: str) -> str:
        """The tree that a place had last; empty where it had none."""
        return self.history(root, key)[-1] if self.history(root, key) else ""

    def history(self, root: str, key: str) -> tuple[str, ...]:
        return self.places.get(root, {}).get(key, ())

    def agreed(self, tree: str, agreement: Agreement) -> "Approvals":
        return Approvals({**self.trees, tree: agreement}, self.places)

    def seen(self, root: str, key: str, tree: str) -> "Approvals":
        """This tree is what the place has now."""
        before = self.history(root, key)
        history = (*(one for one in before if one != tree), tree)
        return Approvals(self.trees, {**self.places, root: {**self.places.get(root, {}), key: history}})

    def without(self, gone: Collection[str]) -> "Approvals":
        places = {
            root: {key: left for key, trees in keys.items() if (left := tuple(one for one in trees if one not in gone))}
            for root, keys in self.places.items()
        }
        trees = {tree: agreement for tree, agreement in self.trees.items() if tree not in gone}
        return Approvals(trees, {root: keys for root, keys in places.items() if keys})


def dump(approvals: Approvals) -> bytes:
    plain = {
        "trees": {tree: [one.name, one.when] for tree, one in approvals.trees.items()},
        "places": approvals.places,
    }
    whole = {"version": VERSION, "sha256": _checksum(plain), "approvals": plain}
    return json.dumps(whole, indent=1).encode() + b"\n"


def parse(data: bytes) -> Approvals:
    """Raises NewerVersion, and ValueError for whatever `dump` did not write."""
    try:
        whole = json.loads(data)
        if type(whole["version"]) is int and whole["version"] > VERSION:
            raise NewerVersion
        plain = whole["approvals"]
        if whole["version"] != VERSION or whole["sha256"] != _checksum(plain):
            raise ValueError("the checksum does not fit")
        trees = {tree: Agreement(*map(_text, row)) for tree, row in plain["trees"].items()}
        places = {
            root: {key: tuple(one for one in map(_text, history) if one in trees) for key, history in keys.items()}
            for root, keys in plain["places"].items()
        }
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
