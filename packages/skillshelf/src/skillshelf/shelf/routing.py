"""Choose the skills that a listing describes first, if there is no room to describe them all.

A route is made for each message of the user. Within it come, in this order: skills that are pinned, because they are
`always` skills or were loaded in the conversation; skills that fit the message; skills that fitted earlier messages;
and a few others in rotation. All others follow in their usual order.

A changed listing costs the provider's cached prompt, so a choice stays until it would leave the skill that fits the
message best without its description. docs/concepts/listing.md has the measurements.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from skillshelf.listing import Level, Listing, ListingForm
from skillshelf.skills import Catalog

if TYPE_CHECKING:
    from skillshelf.search import Match
    from skillshelf.shelf._shelf import Shelf

Reason = Literal["pinned", "matched", "kept", "rotated", "usual"]

MAX_LOADED = 5
"""Loaded skills that are pinned: the last ones."""
MAX_MATCHES = 5
"""Skills that fit a message and are described for it."""
MAX_KEPT = 5
"""Skills that fitted earlier messages and stay."""
ROTATING = 3
"""Skills in rotation."""


@dataclass(frozen=True, slots=True)
class RoutedSkill:
    """A skill's place in a route, and the reason for it."""

    name: str
    rank: int | None
    """1 for the first; None for a skill that comes after all of these, in its usual order."""
    reason: Reason
    match: "Match | None" = None
    """How the skill fits the message, if it is among the best matches."""


@dataclass(frozen=True, slots=True)
class Route:
    """The choice of skills for a message, and the listing that it leads to."""

    text: str
    """The message."""
    skills: tuple[RoutedSkill, ...]
    """The skills that come first. Empty if the listing describes all skills anyway."""
    listing: Listing
    matches: tuple["Match", ...] = ()
    """The skills that fit the message, best first, whether or not they changed the choice."""
    is_kept: bool = False
    """True if this is the choice of the previous route."""
    rotation: int = 0
    """The position, among all skills, of the first one in rotation."""

    @property
    def ranking(self) -> tuple[str, ...]:
        """The names of the first skills, for `Shelf.listing(ranking=…)`."""
        return tuple(skill.name for skill in self.skills)

    def find(self, name: str) -> RoutedSkill:
        """Return a skill's place. The reason is `usual` for a skill that the route does not put first."""
        match = next((match for match in self.matches if match.name == name), None)
        for skill in self.skills:
            if skill.name == name:
                return replace(skill, match=match)
        return RoutedSkill(name, None, "usual", match)


def choose_route(
    shelf: "Shelf",
    text: str,
    *,
    loaded: Iterable[str],
    previous: Route | None,
    keep: bool,
    disclosure: ListingForm,
    budget: int,
) -> Route:
    """Return the route for a message: see `Shelf.route`."""
    rotation = _first_position(text)
    if previous is not None:
        # If there may be a cache to lose, only what fits the message is worth a change.
        rotation = previous.rotation if keep else previous.rotation + ROTATING
    usual = shelf.listing(disclosure, budget)
    if not usual.is_crowded:
        return Route(text, (), usual, rotation=rotation)

    found = shelf.search(text, MAX_MATCHES)
    matches = tuple(match for match in found if not match.is_weak and _can_be_described(shelf, match))
    kept: Route | None = None
    if keep and previous is not None:
        listing = shelf.listing(disclosure, budget, ranking=previous.ranking)
        kept = replace(previous, text=text, listing=listing, matches=matches, is_kept=True)
        is_clear = bool(matches) and matches[0].is_clear
        if not is_clear or _describes(listing, matches[0].name):
            return kept

    skills = _choose_skills(shelf.catalog, matches, loaded, previous, rotation)
    listing = shelf.listing(disclosure, budget, ranking=[skill.name for skill in skills])
    if kept is not None and not _describes(listing, matches[0].name):
        return kept  # the budget has no room for it in any case
    return Route(text, skills, listing, matches, rotation=rotation)


def _choose_skills(
    catalog: Catalog, matches: Sequence["Match"], loaded: Iterable[str], previous: Route | None, rotation: int
) -> tuple[RoutedSkill, ...]:
    """Return the skills that come first."""
    reasons: dict[str, Reason] = {}
    for name, skill in catalog.items():
        if skill.disclosure == "always":
            reasons[name] = "pinned"
    latest = [name for name in dict.fromkeys(reversed([*loaded])) if _is_listed(catalog, name)]
    for name in latest[:MAX_LOADED]:
        reasons.setdefault(name, "pinned")
    for match in matches:
        reasons.setdefault(match.name, "matched")
    if previous is not None:
        for name in _fitted_before(catalog, previous, reasons):
            reasons[name] = "kept"

    names = list(catalog)
    start = rotation % len(names)
    for name in (*names[start:], *names[:start])[:ROTATING]:
        if _is_listed(catalog, name):
            reasons.setdefault(name, "rotated")
    return tuple(RoutedSkill(name, rank, reason) for rank, (name, reason) in enumerate(reasons.items(), 1))


def _fitted_before(catalog: Catalog, previous: Route, others: Iterable[str]) -> Iterator[str]:
    """Yield the skills that a previous choice matched or kept, and that are not among others now."""
    taken = set(others)
    count = 0
    for skill in previous.skills:
        is_wanted = skill.reason in ("matched", "kept") and skill.name not in taken
        if is_wanted and _is_listed(catalog, skill.name) and count < MAX_KEPT:
            count += 1
            yield skill.name


def _is_listed(catalog: Catalog, name: str) -> bool:
    """Return True if a listing of everything has a skill of this name."""
    skill = catalog.get(name)
    return skill is not None and skill.name == name and skill.disclosure != "manual"


def _can_be_described(shelf: "Shelf", match: "Match") -> bool:
    """Return False for a skill that another one shadows, or that the user wants to see by name only."""
    return _is_listed(shelf.catalog, match.name) and shelf.chosen.choice_for(match.descriptor) != "name"


def _describes(listing: Listing, name: str) -> bool:
    level = listing.level_of(name)
    return level is not None and level > Level.NAME


def _first_position(text: str) -> int:
    """Return where the rotation of a conversation begins: not at the same skill in each of them."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4])
