"""An immutable snapshot of the skills on a shelf: which one has each name, which are shadowed, what is wrong.

Listings, searches and loads read a catalog without a lock while another thread reloads. A reload builds the next
catalog from copies of the tables (0.1 ms at 10,000 skills), and the shelf swaps it in one step.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from unicodedata import normalize

from skillshelf.errors import SkillNotFoundError
from skillshelf.files import count_shared_names
from skillshelf.skills._descriptor import Delta, Diagnostic, Found, SkillDescriptor
from skillshelf.text import closest_names, skeleton

_KEPT_GENERATIONS = 10
"""How many generations back a catalog knows what changed, if that were few places each time."""
_FEW_CHANGES = 100


class Place(NamedTuple):
    """Where a skill was found."""

    source: int
    """The rank of the source among the shelf's sources."""
    key: str
    """The source's own name for the place."""


class Candidate(NamedTuple):
    """A skill at its place, perhaps one of several with the same name."""

    place: Place
    found: Found

    @property
    def descriptor(self) -> SkillDescriptor:
        return self.found.descriptor  # type: ignore[return-value]  # a candidate is a skill

    def is_named_by_folder(self) -> bool:
        """Return whether the folder that the skill is in carries its name."""
        key = self.place.key
        if not key:  # the source's own folder
            key = self.descriptor.location.rpartition("/")[0]
        folder = key.rpartition("/")[2]
        return folder == self.found.name or normalize("NFKC", folder) == self.found.name

    def names(self) -> tuple[str, ...]:
        """Return the names it answers to unless another candidate comes first: shortest first, the last unique."""
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
        found: Mapping[Place, Found] | None = None,
        candidates: Mapping[str, tuple[Candidate, ...]] | None = None,
        generation: int = 0,
        notes: tuple[Diagnostic, ...] = (),
        *,
        here: Sequence[str] = (),
        changes: tuple[frozenset[Place], ...] = (),
    ) -> None:
        """`here`: for each source, the key of the folder in it that the user works in; empty for its top."""
        self._found = found or {}
        self._candidates = candidates or {}
        """The skills of each name in order of precedence."""
        self.generation = generation
        """Counts the changes; equal generations of one shelf are the same catalog."""
        self._notes = notes
        """Diagnostics about the shelf as a whole, beside those of each place."""
        self._here = tuple(here)
        self._changes = changes
        """The places that each of the last generations changed."""
        self._owners: dict[str, dict[str, Candidate]] = {}

    # --- lookups ---

    def find(self, name: str) -> Candidate:
        """Return the skill and its place. Raises SkillNotFoundError with the closest names."""
        candidate = self._lookup(name)
        if candidate is None:
            bare_name = name.partition("@")[0] or name
            raise SkillNotFoundError(name, closest_names(bare_name, self))
        return candidate

    def candidates(self, name: str) -> tuple[Candidate, ...]:
        """Return every skill of that name, first the one that the name leads to."""
        return self._candidates.get(name, ())

    def reach(self, candidate: Candidate) -> str:
        """Return the shortest name that leads to this skill and no other."""
        names = candidate.names()
        owners = self._owners_of(candidate.found.name)
        for name in names:
            if owners.get(name) == candidate:
                return name
        # A source may be called by the number of another: then not even the last name is unique.
        return names[-1]

    def explain_shadowed(self, candidate: Candidate) -> Diagnostic:
        """Return a diagnostic that says why another skill comes before this one of the same name."""
        first = self._candidates[candidate.found.name][0]
        skill = candidate.descriptor
        is_copy = first.descriptor.description == skill.description and first.descriptor.size == skill.size
        what = "a copy of it" if is_copy else "another skill of the same name"
        return Diagnostic(
            "info" if is_copy else "warning",
            "shadowed",
            f"{what} comes first: {self._explain_precedence(first, candidate)}; reach it as {self.reach(candidate)!r}",
            skill.location,
            fix="rename or remove one of them",
        )

    def _explain_precedence(self, first: Candidate, other: Candidate) -> str:
        """Return the part of `_precedence` that decides between two skills, in words."""
        if other.place.source > first.place.source:
            return f"the source {first.descriptor.source!r} takes precedence"
        if first.is_named_by_folder() and not other.is_named_by_folder():
            return "its folder has the skill's name"
        if self._nearness(first.place) > self._nearness(other.place):
            return "it is nearer to the folder you are in"
        return "it is less deep, or earlier by name"

    def _nearness(self, place: Place) -> int:
        """Return how many folders of its path a place shares with the folder that the user works in."""
        if place.source >= len(self._here) or not self._here[place.source]:
            return 0
        return count_shared_names(place.key, self._here[place.source])

    def _lookup(self, name: str) -> Candidate | None:
        candidates = self._candidates.get(name)
        if candidates:
            return candidates[0]
        return self._owners_of(name.partition("@")[0]).get(name)

    def _owners_of(self, bare_name: str) -> Mapping[str, Candidate]:
        """Map every name of the skills that share `bare_name` to the skill it leads to.

        Worked out once for all of them: doing it for each would take the square of their number.
        """
        candidates = self._candidates.get(bare_name)
        if not candidates:
            return {}

        owners = self._owners.get(bare_name)
        if owners is None:
            owners = {}
            for candidate in candidates:
                for name in candidate.names():
                    owners.setdefault(name, candidate)
            self._owners[bare_name] = owners
        return owners

    # --- a mapping of names to descriptors ---

    def __getitem__(self, name: str) -> SkillDescriptor:
        return self.find(name).descriptor

    def get(self, name: str, default: Any = None) -> Any:
        candidate = self._lookup(name)
        return default if candidate is None else candidate.descriptor

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._lookup(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._candidates)

    def __repr__(self) -> str:
        return f"<Catalog {self.generation}: {len(self)} skills>"

    @cached_property
    def _sorted(self) -> tuple[str, ...]:
        return tuple(sorted(self._candidates))

    # --- what else there is to know ---

    @property
    def found(self) -> Mapping[Place, Found]:
        """Everything that the sources found, in no order, with shadowed skills and places without a usable skill."""
        return self._found

    @cached_property
    def shadowed(self) -> tuple[SkillDescriptor, ...]:
        """Skills that another of the same name comes before."""
        return tuple(candidate.descriptor for name in self for candidate in self._candidates[name][1:])

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that is wrong with the files and their names, sorted by place."""
        diagnostics = [diagnostic for found in self._found.values() for diagnostic in found.diagnostics]
        diagnostics += self._find_collisions()
        diagnostics += self._notes
        return tuple(sorted(diagnostics, key=lambda each: (each.path, each.line, each.code, each.message)))

    def _find_collisions(self) -> Iterator[Diagnostic]:
        first_with_look: dict[str, str] = {}
        for name in self:
            first, *shadowed = self._candidates[name]
            yield from map(self.explain_shadowed, shadowed)

            twin = first_with_look.setdefault(skeleton(name), name)
            if twin != name:
                yield Diagnostic(
                    "warning",
                    "name-twin",
                    f"the name {name!r} looks like {twin!r}, the name of another skill",
                    first.descriptor.location,
                    fix="rename one of them",
                )

    def descriptor_at(self, place: Place) -> SkillDescriptor | None:
        """Return the skill at a place, shadowed or not, or None if there is none."""
        found = self._found.get(place)
        return found.descriptor if found else None

    # --- the next snapshot ---

    def with_notes(self, notes: tuple[Diagnostic, ...]) -> "Catalog":
        """Return the same catalog with these diagnostics about the shelf as a whole."""
        return Catalog(self._found, self._candidates, self.generation, notes, here=self._here, changes=self._changes)

    def changed_since(self, generation: int) -> frozenset[Place] | None:
        """Return the places that changed since a generation of this catalog; None if that was too long ago."""
        steps = self.generation - generation
        if not 0 <= steps <= len(self._changes):
            return None
        return frozenset().union(*self._changes[len(self._changes) - steps :])

    def apply(self, changes: Mapping[Place, Found | None]) -> tuple["Catalog", Delta]:
        """Return the next catalog and the difference. `changes` has the new state of each changed place."""
        found = dict(self._found)
        added: dict[str, list[Candidate]] = {}
        """New candidates for every name that the changes concern, including names that only lose some."""
        diagnostics: list[Diagnostic] = []
        is_changed = False

        for place, now in changes.items():
            before = found.get(place)
            if before is not None:
                is_changed = True
                if before.name:
                    added.setdefault(before.name, [])
            if now is None:
                found.pop(place, None)
                continue

            is_changed = True
            found[place] = now
            diagnostics += now.diagnostics
            if now.name:
                added.setdefault(now.name, []).append(Candidate(place, now))

        if not is_changed:
            return self, Delta()

        candidates = dict(self._candidates)
        for name, ranked in added.items():
            if name in candidates:
                ranked += [each for each in candidates[name] if each.place not in changes]
            if len(ranked) > 1:
                ranked.sort(key=self._precedence)
            if ranked:
                candidates[name] = tuple(ranked)
            else:
                candidates.pop(name, None)

        delta = _compare(self._candidates, candidates, sorted(added), tuple(diagnostics))
        latest: tuple[frozenset[Place], ...] = ()
        if len(changes) <= _FEW_CHANGES:
            latest = (*self._changes, frozenset(changes))[-_KEPT_GENERATIONS:]
        return Catalog(found, candidates, self.generation + 1, here=self._here, changes=latest), delta

    def _precedence(self, candidate: Candidate) -> tuple[int, bool, int, int, str]:
        """Order skills of one name: by source, by the folder's name, the nearest first, then by depth and path.

        The folder's name comes before nearness: wherever the user works, a folder `evil` cannot take the name of the
        skill in `good` by saying `name: good`.
        """
        place = candidate.place
        depth = place.key.count("/")
        return place.source, not candidate.is_named_by_folder(), -self._nearness(place), depth, place.key


def _compare(
    before: Mapping[str, tuple[Candidate, ...]],
    after: Mapping[str, tuple[Candidate, ...]],
    names: list[str],
    diagnostics: tuple[Diagnostic, ...],
) -> Delta:
    added: list[str] = []
    changed: list[str] = []
    removed: list[str] = []
    for name in names:
        if name not in after:
            removed.append(name)
        elif name not in before:
            added.append(name)
        elif after[name][0] != before[name][0] and not after[name][0].found.is_last_good:
            changed.append(name)
    return Delta(tuple(added), tuple(changed), tuple(removed), diagnostics)
