"""An immutable snapshot of what is on the shelf: precedence settled, shadowed skills and diagnostics at hand.

A reload of one file among a hundred thousand must not copy a hundred thousand entries, and readers must never see a
half-made catalog. So the tables are split into shards that snapshots share; a new snapshot copies only the shards it
changes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar
from unicodedata import normalize

from skillshelf.descriptor import Delta, Diagnostic, SkillDescriptor
from skillshelf.errors import SkillNotFoundError
from skillshelf.found import Found
from skillshelf.text import closest_names, skeleton

T = TypeVar("T")
# What a NamedTuple's own constructor does after it has sorted its arguments: ten thousand are made at once.
_new = tuple.__new__
_SHARDS = 256


class Shards(Generic[T]):
    """A persistent mapping: `changed` gives a new one and shares what did not change."""

    __slots__ = ("_tables",)

    def __init__(self, tables: tuple[dict[Any, T], ...] = ({},) * _SHARDS) -> None:
        self._tables = tables

    def get(self, key: Any) -> T | None:
        return self._tables[hash(key) % _SHARDS].get(key)

    def changed(self, entries: Mapping[Any, T | None]) -> "Shards[T]":
        """With these entries; None removes one."""
        tables = list(self._tables)
        copied: set[int] = set()
        for key, value in entries.items():
            shard = hash(key) % _SHARDS
            if shard not in copied:
                tables[shard] = tables[shard].copy()
                copied.add(shard)
            if value is None:
                tables[shard].pop(key, None)
            else:
                tables[shard][key] = value
        return Shards(tuple(tables))

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def items(self) -> Iterator[tuple[Any, T]]:
        for table in self._tables:
            yield from table.items()


class Place(NamedTuple):
    """Where a skill was found. Places sort by source, then by depth, then by path."""

    source: int
    depth: int
    key: str


def place_of(source: int, key: str) -> Place:
    """Where a source, by its rank, keeps what it calls `key`."""
    return _new(Place, (source, key.count("/"), key))


class Candidate(NamedTuple):
    place: Place
    found: Found

    @property
    def descriptor(self) -> SkillDescriptor:
        return self.found.descriptor  # type: ignore[return-value]  # a candidate is a skill

    def is_named_by_folder(self) -> bool:
        """Return whether the folder that the skill lies in carries its name."""
        key = self.place.key
        if not key:  # the source's own folder
            key = self.descriptor.location.rpartition("/")[0]
        folder = key.rpartition("/")[2]
        return folder == self.found.name or normalize("NFKC", folder) == self.found.name

    def names(self) -> tuple[str, ...]:
        """What it answers to, where no other comes before it: shortest first, the last its own alone."""
        skill = self.descriptor
        folder = skill.location.rpartition("/")[0] or skill.location
        return (
            skill.name,
            skill.qualified,
            f"{skill.qualified}:{self.place.key}",
            f"{skill.name}@{folder}",
            f"{skill.name}@{self.place.source}:{self.place.key}",
        )


class Catalog(Mapping[str, SkillDescriptor]):
    """The skills by name. `catalog["pdf"]`, or `catalog["pdf@user"]` for one that another of its name comes before."""

    def __init__(
        self,
        names: Shards[tuple[Candidate, ...]] | None = None,
        notes: Shards[tuple[Diagnostic, ...]] | None = None,
        generation: int = 0,
    ) -> None:
        self._names: Shards[tuple[Candidate, ...]] = names or Shards()
        self._notes: Shards[tuple[Diagnostic, ...]] = notes or Shards()
        self.generation = generation
        """Counts the changes; equal generations of one shelf are the same catalog."""
        self._owners: dict[str, dict[str, Candidate]] = {}

    def find(self, name: str) -> Candidate:
        """The skill and its place. Raises SkillNotFoundError with the closest names."""
        found = self._lookup(name)
        if found is None:
            raise SkillNotFoundError(name, closest_names(name.partition("@")[0] or name, self))
        return found

    def _lookup(self, name: str) -> Candidate | None:
        candidates = self._names.get(name)
        if candidates:
            return candidates[0]
        return self._answering(name.partition("@")[0]).get(name)

    def _answering(self, bare: str) -> Mapping[str, Candidate]:
        """The first to answer to each name that the skills of one bare name have, worked out once for all of them."""
        owners = self._owners.get(bare)
        candidates = self._names.get(bare)
        if owners is None and candidates:
            owners = {}
            for one in candidates:
                for name in one.names():
                    owners.setdefault(name, one)
            self._owners[bare] = owners
        return owners or {}

    def reach(self, candidate: Candidate) -> str:
        """The shortest name that leads to this skill and no other."""
        names, owners = candidate.names(), self._answering(candidate.found.name)
        # A source may be called by the number of another: then not even the last name is its own.
        return next((name for name in names if owners.get(name) == candidate), names[-1])

    def candidates(self, name: str) -> tuple[Candidate, ...]:
        """Every skill of that name, the one that is taken first."""
        return self._names.get(name) or ()

    def __getitem__(self, name: str) -> SkillDescriptor:
        return self.find(name).descriptor

    def get(self, name: str, default: Any = None) -> Any:
        found = self._lookup(name)
        return default if found is None else found.descriptor

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._lookup(name) is not None

    def __repr__(self) -> str:
        return f"<Catalog {self.generation}: {len(self)} skills>"

    def __iter__(self) -> Iterator[str]:
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _sorted(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, _ in self._names.items()))

    @cached_property
    def shadowed(self) -> tuple[SkillDescriptor, ...]:
        """Skills that another of the same name comes before."""
        return tuple(one.descriptor for _, candidates in sorted(self._names.items()) for one in candidates[1:])

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything there is to say about the files, sorted by place."""
        found = [note for _, notes in self._notes.items() for note in notes]
        found += self._collisions()
        return tuple(sorted(found, key=lambda note: (note.path, note.line, note.code, note.message)))

    def _collisions(self) -> Iterator[Diagnostic]:
        looks: dict[str, str] = {}
        for name in self:
            first, *rest = self._names.get(name) or ()
            for other in rest:
                yield _shadow(first.descriptor, other.descriptor, self.reach(other))
            twin = looks.setdefault(skeleton(name), name)
            if twin != name:
                yield Diagnostic(
                    "warning",
                    "name-twin",
                    f"the name {name!r} looks like {twin!r}, another skill's",
                    first.descriptor.location,
                    fix="rename one of them",
                )

    def apply(self, changes: Iterable[tuple[Place, Found | None, Found | None]]) -> tuple["Catalog", Delta]:
        """The next snapshot, from what was and what is now at the places that changed."""
        gone: dict[str, set[Place]] = {}
        added: dict[str, list[Candidate]] = {}
        notes: dict[Place, tuple[Diagnostic, ...] | None] = {}
        for place, before, now in changes:
            if now and now.diagnostics:
                notes[place] = now.diagnostics
            elif before and before.diagnostics:
                notes[place] = None
            if before and before.name:
                gone.setdefault(before.name, set()).add(place)
            if now and now.name:
                added.setdefault(now.name, []).append(_new(Candidate, (place, now)))
        settled = self._settle(gone, added)
        said = tuple(note for found in notes.values() for note in found or ())
        delta = self._delta(settled, said)
        if not settled and not notes:
            return self, delta
        return Catalog(self._names.changed(settled), self._notes.changed(notes), self.generation + 1), delta

    def _settle(
        self, gone: Mapping[str, Collection[Place]], added: Mapping[str, list[Candidate]]
    ) -> dict[str, tuple[Candidate, ...] | None]:
        """The skills of each name in order, sorted once however many came."""
        settled: dict[str, tuple[Candidate, ...] | None] = {}
        for name in {**gone, **added} if gone else added:
            now = added.get(name, [])
            if before := self._names.get(name):
                left = gone.get(name, ())
                now = [one for one in before if one.place not in left] + now
            if len(now) > 1:
                now.sort(key=_precedence)
            settled[name] = tuple(now) or None
        return settled

    def _delta(self, settled: Mapping[str, tuple[Candidate, ...] | None], said: tuple[Diagnostic, ...]) -> Delta:
        added, changed, removed = [], [], []
        if not self.generation:
            return Delta(tuple(sorted(settled)), (), (), said)
        for name, now in settled.items():
            before = self._names.get(name)
            if now and not before:
                added.append(name)
            elif before and not now:
                removed.append(name)
            elif now and before and now[0] != before[0] and not now[0].found.is_last_good:
                changed.append(name)
        return Delta(tuple(sorted(added)), tuple(sorted(changed)), tuple(sorted(removed)), said)


def _precedence(candidate: Candidate) -> tuple[int, bool, int, str]:
    """Order skills of one name: by source, then the one whose folder carries the name, then by depth and path.

    So a folder `evil` cannot take the name of the skill in `good` by saying `name: good`.
    """
    place = candidate.place
    return place.source, not candidate.is_named_by_folder(), place.depth, place.key


def _shadow(first: SkillDescriptor, hidden: SkillDescriptor, reach: str) -> Diagnostic:
    copy = first.description == hidden.description and first.size == hidden.size
    what = "a copy of a skill" if copy else "a skill"
    return Diagnostic(
        "info" if copy else "warning",
        "shadowed",
        f"{what} that {first.source!r} has already, {hidden.name!r}; reach it as {reach!r}",
        hidden.location,
        fix="rename or remove one of them",
    )
