"""Collections of skills with queries whose answers are known.

A folder has `corpus.jsonl` (or `corpus.jsonl.gz`) with a skill on each line, `queries.jsonl`, and perhaps
`negatives.jsonl`: queries that resemble a skill but are not for it. docs/concepts/search.md describes the fields.
"""

import gzip
import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from skillshelf.search import SkillSearch
from skillshelf.skills import Candidate, Catalog, Found, Place, SkillDescriptor

OWN_DATA = Path(__file__).with_name("data")
_KEPT_BY_FORKS = 0.75


class DataError(Exception):
    """A folder does not have the data that it should."""


@dataclass(frozen=True)
class Query:
    text: str
    answers: frozenset[str]
    """The identifiers of the right skills; of the wrong one for a near miss."""
    repository: str = ""
    kind: str = ""
    """trigger (short), expected (routing) or task (long)."""
    language: str = ""
    trait: str = ""
    """The difficulty that the query was written for, such as typo."""

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
    unanswerable: list[Query] = field(default_factory=list)
    """Queries that no skill is for."""

    @cached_property
    def _found(self) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for identifier, skill in self.skills.items():
            descriptor = SkillDescriptor(
                name=skill["name"] or identifier, description=skill["description"], source="bench", location=identifier
            )
            found[identifier] = Found(descriptor)
        return found

    @cached_property
    def _twins(self) -> dict[str, set[str]]:
        """The skills by their description, and by their instructions."""
        twins: dict[str, set[str]] = {}
        for identifier, skill in self.skills.items():
            for text in (skill["description"], skill.get("body", "")):
                if text.strip():
                    twins.setdefault(_plain(text), set()).add(identifier)
        return twins

    def find_copies(self, identifiers: Iterable[str]) -> set[str]:
        """Return these skills and those with the same description or the same instructions."""
        copies: set[str] = set()
        for identifier in identifiers:
            copies.add(identifier)
            skill = self.skills[identifier]
            for text in (skill["description"], skill.get("body", "")):
                copies |= self._twins.get(_plain(text), set())
        return copies

    def make_catalog(self, identifiers: Iterable[str] | None = None) -> Catalog:
        chosen = self.skills if identifiers is None else identifiers
        return Catalog().apply({Place(0, identifier): self._found[identifier] for identifier in chosen})[0]

    def change_catalog(self, catalog: Catalog, before: set[str], after: set[str]) -> Catalog:
        """Return a catalog of the skills `after`, made from one of the skills `before`."""
        changes: dict[Place, Found | None] = {Place(0, identifier): None for identifier in before - after}
        for identifier in sorted(after - before):
            changes[Place(0, identifier)] = self._found[identifier]
        return catalog.apply(changes)[0]

    def read(self, candidate: Candidate) -> str:
        return str(self.skills[candidate.place.key].get("body", ""))

    def make_search(self, **options: Any) -> SkillSearch:
        return SkillSearch(self.read, **options)

    def add_forks(self) -> "Collection":
        """Return the same with a changed copy of each right skill, which is right, too: it has most of the lines."""
        skills = dict(self.skills)
        queries: list[Query] = []
        for query in self.queries:
            forks = {identifier + "#fork" for identifier in query.answers}
            queries.append(replace(query, answers=query.answers | forks))
        for identifier in sorted({answer for query in self.queries for answer in query.answers}):
            skill = self.skills[identifier]
            choice = random.Random(identifier)
            lines = [line for line in skill.get("body", "").splitlines() if choice.random() < _KEPT_BY_FORKS]
            skills[identifier + "#fork"] = {**skill, "name": f"{skill['name']}-2", "body": "\n".join(lines)}
        return Collection(skills, queries)

    def thin_out(self, share: float) -> "Collection":
        """Return all skills with a share of the queries, the same in each run."""
        return Collection(
            self.skills,
            _sample(self.queries, share),
            _sample(self.near_misses, share),
            _sample(self.unanswerable, share),
        )


def load(folder: Path) -> Collection:
    """Read a folder with a corpus, queries and perhaps near misses."""
    corpus = folder / "corpus.jsonl"
    if not corpus.exists():
        corpus = folder / "corpus.jsonl.gz"
    skills = {str(skill["id"]): skill for skill in _read_lines(corpus, ("id", "name", "description"))}
    collection = Collection(skills)
    for query in _read_queries(folder / "queries.jsonl", skills):
        if query.answers:
            collection.queries.append(query)
        else:
            collection.unanswerable.append(query)
    if (folder / "negatives.jsonl").exists():
        collection.near_misses = list(_read_queries(folder / "negatives.jsonl", skills))
    return collection


def _read_queries(path: Path, skills: Mapping[str, object]) -> Iterator[Query]:
    for plain in _read_lines(path, ("query", "gold")):
        answers = frozenset(map(str, plain["gold"]))
        unknown = sorted(answers - skills.keys())
        if unknown:
            raise DataError(f"{path}: no skill of the corpus has the id {unknown[0]!r}, which a query expects")
        yield Query(
            text=plain["query"],
            answers=answers,
            repository=plain.get("repo") or plain["query"],
            kind=plain.get("kind", ""),
            language=plain.get("lang", ""),
            trait=plain.get("trait", ""),
        )


def _read_lines(path: Path, required: Iterable[str]) -> Iterator[dict[str, Any]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} is missing. See docs/concepts/search.md for the files that a folder needs.") from None
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    for number, line in enumerate(data.decode().splitlines(), 1):
        try:
            plain = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{path}, line {number} is not JSON: {error}") from None
        missing = [key for key in required if key not in plain]
        if missing:
            raise DataError(f"{path}, line {number} has no {missing[0]!r}")
        yield plain


def _sample(queries: list[Query], share: float) -> list[Query]:
    count = min(len(queries), max(1, round(share * len(queries))))
    chosen = sorted(random.Random(2).sample(range(len(queries)), count))
    return [queries[at] for at in chosen]


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()
