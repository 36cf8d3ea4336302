"""Collections of skills with queries whose answers are known."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillshelf.catalog import Candidate, Catalog, Place
from skillshelf.descriptor import Found, SkillDescriptor
from skillshelf.search import SkillSearch

OWN_DATA = Path(__file__).with_name("data")


@dataclass(frozen=True)
class Query:
    text: str
    answers: frozenset[str]
    """The identifiers of the right skills; of the wrong one for a near miss."""
    repository: str = ""
    kind: str = ""

    @property
    def half(self) -> int:
        """0 or 1, by a hash of the repository: skills of one author never lie in both halves."""
        return int(hashlib.sha256(self.repository.encode()).hexdigest(), 16) % 2

    @property
    def is_cjk(self) -> bool:
        return any("\u3040" <= character <= "\u9fff" for character in self.text)


@dataclass
class Collection:
    """Skills by identifier, and the queries about them."""

    skills: dict[str, dict[str, Any]]
    queries: list[Query] = field(default_factory=list)
    near_misses: list[Query] = field(default_factory=list)

    def make_catalog(self, identifiers: Iterator[str] | None = None) -> Catalog:
        chosen = self.skills if identifiers is None else identifiers
        changes = {}
        for identifier in chosen:
            skill = self.skills[identifier]
            descriptor = SkillDescriptor(
                name=skill["name"] or identifier, description=skill["description"], source="bench", location=identifier
            )
            changes[Place(0, identifier)] = Found(descriptor)
        return Catalog().apply(changes)[0]

    def read(self, candidate: Candidate) -> str:
        return self.skills[candidate.place.key].get("body", "")

    def make_search(self, **options: Any) -> SkillSearch:
        return SkillSearch(self.read, **options)


def load(folder: Path) -> Collection:
    """Read a folder with a corpus, queries and perhaps near misses."""
    if (folder / "corpus.jsonl.gz").exists():
        text = gzip.decompress((folder / "corpus.jsonl.gz").read_bytes()).decode()
    else:
        text = (folder / "corpus.jsonl").read_text(encoding="utf-8")
    skills = {skill["id"]: skill for skill in map(json.loads, text.splitlines())}
    collection = Collection(skills, _read_queries(folder / "queries.jsonl"))
    if (folder / "negatives.jsonl").exists():
        collection.near_misses = _read_queries(folder / "negatives.jsonl")
    return collection


def _read_queries(path: Path) -> list[Query]:
    queries: list[Query] = []
    with path.open(encoding="utf-8") as lines:
        for plain in map(json.loads, lines):
            answers = frozenset(plain["gold"])
            queries.append(Query(plain["query"], answers, plain.get("repo", plain["query"]), plain.get("kind", "")))
    return queries
