"""The shelf that a command looks at, and what commands say of a skill on it."""

import argparse
import os
from collections.abc import Iterator
from typing import Any

from skillshelf.catalog import Candidate, Catalog
from skillshelf.descriptor import SkillDescriptor, thaw
from skillshelf.errors import SkillError, SourceError
from skillshelf.shelf import Shelf
from skillshelf.tokens import Counter, estimate


def open_shelf(args: argparse.Namespace, counter: Counter = estimate) -> Shelf:
    """Raises SourceError for a workspace that is none."""
    if not os.path.isdir(args.workspace):
        raise SourceError(f"There is no folder {args.workspace!r} to take as the workspace.")
    return Shelf.open(args.workspace, counter=counter)


def all_candidates(catalog: Catalog) -> Iterator[Candidate]:
    """Every skill by name, each followed by those it shadows."""
    for name in catalog:
        yield from catalog.candidates(name)


def instructions_of(shelf: Shelf, candidate: Candidate) -> str | None:
    """None where the file cannot be read right now."""
    try:
        return shelf.sources[candidate.place.source].instructions(candidate.place.key, candidate.descriptor)
    except SkillError:
        return None


def as_json(skill: SkillDescriptor) -> dict[str, Any]:
    """A descriptor for a program, without the fields that say nothing."""
    facts = {field: thaw(getattr(skill, field)) for field in SkillDescriptor.__dataclass_fields__}
    always = ("name", "description", "source", "location", "references", "size")
    return {field: value for field, value in facts.items() if field in always or value}
