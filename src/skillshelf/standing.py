"""How a skill stands with a request: what the model sees of it, where search ranks it, and what is in its way.

`skillshelf why NAME --for REQUEST` prints this. A program asks the same with `explain_standing`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from skillshelf.catalog import Candidate
from skillshelf.descriptor import MAX_DESCRIPTION, SkillDescriptor
from skillshelf.listing import Level, Listing, ListingForm, Shortened
from skillshelf.search import MIN_SCORE, FoundWord, Match, show_score, spell_words
from skillshelf.shelf import Shelf
from skillshelf.text import clip, closest_names, count_noun
from skillshelf.tokens import DEFAULT_BUDGET
from skillshelf.trust import Trust, TrustedSource, find_pending_skill

RESULTS = 5
"""The number of skills that a search gives to the model."""
_RANKED = 100
"""Skills that are ranked to find one among them."""
_MAX_RIVALS = 3
_MIN_LEAD = 0.01
"""A smaller difference is not worth a line."""
_MAX_NAMED_WORDS = 5
_MAX_NAMED_LEADS = 4
_MAX_ECHOED = 200
"""Characters of a request that are repeated in a sentence."""

ObstacleCode = Literal[
    "missing",
    "not-attached",
    "broken",
    "off",
    "manual",
    "unreviewed",
    "outdated",
    "shadowed",
    "copy",
    "excluded",
    "no-match",
    "below-threshold",
    "outranked",
    "left-out",
    "name-only",
    "shortened",
]
_UNUSABLE: frozenset[ObstacleCode] = frozenset({"missing", "not-attached", "broken", "off", "manual", "unreviewed"})
"""Obstacles that keep a skill from the model altogether, whatever the request."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why the model may not come across a skill."""

    code: ObstacleCode
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Lead:
    """What another skill gains over this one by a word of the request, or by its meaning."""

    word: str
    """Empty for similarity of meaning."""
    field: str
    """The field in which the other skill has the word; empty for similarity."""
    own_field: str
    """The field in which this skill has it; empty if it does not."""
    points: float
    """The difference that it makes to the scores."""

    def __str__(self) -> str:
        if not self.word:
            return f"similar meaning +{self.points:.2f}"
        return f"{self.word} in {self.field} +{self.points:.2f}"


@dataclass(frozen=True, slots=True)
class Rival:
    """A skill that fits the request better."""

    match: Match
    leads: tuple[Lead, ...]
    """Why it fits better, the largest difference first. Where this skill is ahead is left out."""

    def describe_leads(self) -> str:
        return ", ".join(map(str, self.leads[:_MAX_NAMED_LEADS])) or "little in everything"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a skill stands with a request."""

    name: str
    request: str
    obstacles: tuple[Obstacle, ...]
    """What is in its way, the most serious first. Empty if it comes first and the model sees it as it is."""
    level: Level | None = None
    """How much the listing shows of it; None if it is not in the listing."""
    rank: int = 0
    """Its place among the search results, from 1; 0 if search does not rank it."""
    match: Match | None = None
    rivals: tuple[Rival, ...] = ()
    """The first of the skills that fit the request and come before it."""
    runner_up: Match | None = None
    """The skill that comes after it, if it is the first."""
    threshold: float = 0.0
    """The score that a match needs."""

    @property
    def headline(self) -> str:
        """Whether the skill comes up, in a sentence."""
        request = repr(clip(self.request, _MAX_ECHOED))
        if not self.comes_up:
            return f"{self.name} does not come up for {request}."
        if self.rank == 1 and self.is_found:
            return f"{self.name} comes first for {request}."
        if self.is_found:
            return f"{self.name} comes up for {request}, but not first."
        return f"{self.name} is in the listing, but a search for {request} does not find it."

    def describe_rank(self) -> str:
        """Return the skill's place in a search, in a sentence; empty if search does not rank it."""
        if self.match is None:
            return ""
        text = f"In search, it is number {self.rank} with a score of {show_score(self.match.score)}"
        if self.runner_up is not None:
            text += f", ahead of {self.runner_up.name} with {show_score(self.runner_up.score)}"
        return f"{text}; a match needs {self.threshold:.2f}, and the model gets the first {RESULTS}."

    @property
    def is_found(self) -> bool:
        """True if a search for the request gives the skill to the model."""
        return self.match is not None and self.rank <= RESULTS and self.match.score >= self.threshold

    @property
    def is_usable(self) -> bool:
        """True if the model may use the skill at all."""
        return not any(obstacle.code in _UNUSABLE for obstacle in self.obstacles)

    @property
    def comes_up(self) -> bool:
        """True if the model can use the skill and reads what it is for, in the listing or in a search."""
        if not self.is_usable:
            return False
        is_described = self.level is not None and self.level > Level.NAME
        return is_described or self.is_found


def describe_level(level: Level) -> str:
    """Say what the listing shows of a skill at this level."""
    if level == Level.NAME:
        return "its name only"
    if level == Level.SHORT:
        return "the beginning of its description"
    if level == Level.WHOLE:
        return "its description"
    return "its instructions"


def explain_standing(
    shelf: Shelf,
    name: str,
    request: str,
    *,
    disclosure: ListingForm = "auto",
    budget: int = DEFAULT_BUDGET,
    listing: Listing | None = None,
    attachable: Mapping[str, str] = MappingProxyType({}),
) -> Standing:
    """Explain why a skill comes up for a request, or why it does not.

    `listing` is the one that the model got. Without it, one is made with this form and budget, as a conversation that
    begins with the request gets it. `attachable` says of skills that are not on the shelf how the user attaches them.
    """
    catalog = shelf.catalog
    if name not in catalog:
        return Standing(name, request, (_explain_absence(shelf, name, attachable),))

    candidate = catalog.find(name)
    skill = candidate.descriptor
    name = catalog.reach(candidate)
    obstacles = list(_find_usability_obstacles(shelf, candidate))
    if skill.disclosure == "manual":
        return Standing(name, request, tuple(obstacles))

    if listing is None:
        listing = shelf.route(request, disclosure=disclosure, budget=budget).listing
    is_first_of_name = catalog.find(skill.name) == candidate
    level = listing.level_of(skill.name) if is_first_of_name else None

    threshold = MIN_SCORE
    ranked = shelf.search(request, _RANKED, min_score=0.0)
    rank = _find_rank(ranked, name)
    match = ranked[rank - 1] if rank and ranked[rank - 1].name == name else None
    if rank and match is None:
        obstacles.append(_explain_copy(ranked[rank - 1]))
    ahead = ranked[: rank - 1] if rank else ranked
    rivals = tuple(_compare(rival, match) for rival in ahead[:_MAX_RIVALS] if rival.score >= threshold)
    if match is not None and match.excluded_words and (rank > 1 or match.score < threshold):
        obstacles.append(_explain_exclusion(match))
    obstacles += _find_search_obstacles(request, rank, match, ranked, threshold)
    if is_first_of_name:
        obstacles += _find_listing_obstacles(shelf, skill, listing, budget, match)

    runner_up = ranked[1] if rank == 1 and len(ranked) > 1 else None
    return Standing(name, request, tuple(obstacles), level, rank, match, rivals, runner_up, threshold)


# --- before any search ---


def _explain_absence(shelf: Shelf, name: str, attachable: Mapping[str, str]) -> Obstacle:
    """Explain why a name leads to no skill."""
    for candidate in shelf.off:
        if name in (candidate.found.name, candidate.descriptor.qualified):
            key = shelf.choice_key(candidate.descriptor)
            return Obstacle("off", "you switched it off", f"`skillshelf set {key} auto` switches it on")

    for source in shelf.sources:
        if isinstance(source, TrustedSource) and any(pending.name == name for pending in source.find_pending()):
            return _NOT_REVIEWED

    for note in shelf.catalog.diagnostics:
        folder = os.path.basename(os.path.dirname(note.path))
        if note.severity == "error" and name in (folder, os.path.basename(note.path)):
            return Obstacle("broken", f"its file cannot be used: {note.message}", note.fix or "`skillshelf check`")

    if name in attachable:
        return Obstacle("not-attached", "it comes with skillshelf, and is not attached here", attachable[name])

    closest = closest_names(name.partition("@")[0] or name, dict.fromkeys([*shelf.catalog, *attachable]))
    fix = "`skillshelf list` shows all skills"
    if closest:
        fix = f"did you mean {' or '.join(closest)}?"
    return Obstacle("missing", "no skill of that name is on the shelf", fix)


_NOT_REVIEWED = Obstacle(
    "unreviewed", "it waits for your review: the agent does not use it", "`skillshelf trust` shows it and asks"
)


def _find_usability_obstacles(shelf: Shelf, candidate: Candidate) -> Iterator[Obstacle]:
    skill = candidate.descriptor
    if skill.disclosure == "manual":
        fix = "remove that from its SKILL.md"
        if shelf.choice_for(skill) == "manual":
            fix = f"`skillshelf set {shelf.choice_key(skill)} auto` undoes your choice"
        yield Obstacle("manual", "its disclosure is manual: the model does not see it, only you can invoke it", fix)

    pending = find_pending_skill(shelf.sources[candidate.place.source], skill.location, Trust.open())
    if pending is not None and pending.status == "new":
        yield _NOT_REVIEWED
    elif pending is not None:
        yield Obstacle(
            "outdated",
            "it waits for your review: the agent uses the approved version, and this is about the one on disk",
            "`skillshelf trust` shows the changes and asks",
        )

    first = shelf.catalog.find(skill.name)
    if first != candidate:
        yield Obstacle(
            "shadowed",
            f"the name leads to {first.descriptor.location}, which the listing shows; only search finds this one",
            "rename one of them",
        )


# --- search ---


def _find_rank(ranked: Sequence[Match], name: str) -> int:
    """Return the place of a skill or of the one that stands for it as a copy, from 1; 0 if there is none."""
    for rank, match in enumerate(ranked, 1):
        if name == match.name or name in match.copies:
            return rank
    return 0


def _explain_copy(original: Match) -> Obstacle:
    return Obstacle(
        "copy",
        f"it says almost the same as {original.name}, which search shows in its place",
        "remove one of them, or say in both descriptions how they differ",
    )


def _explain_exclusion(match: Match) -> Obstacle:
    words = ", ".join(map(repr, match.excluded_words[:_MAX_NAMED_WORDS]))
    return Obstacle(
        "excluded",
        f"its description says that it is not for {words}, which counts against it",
        "if it is the right skill, say more exactly what it is not for",
    )


def _find_search_obstacles(
    request: str, rank: int, match: Match | None, ranked: Sequence[Match], threshold: float
) -> Iterator[Obstacle]:
    has_no_word = match is not None and not match.words and match.score < threshold
    if has_no_word or (rank == 0 and len(ranked) < _RANKED):
        yield Obstacle("no-match", "it has no word of the request", _advise(spell_words(request)))
    elif rank == 0:
        message = f"it is not among the {_RANKED} skills that fit best"
        yield Obstacle("no-match", message, _advise(_words_of(ranked[0])))
    elif match is not None and match.score < threshold:
        found = {word.word for word in match.words}
        yield Obstacle(
            "below-threshold",
            f"its score of {show_score(match.score)} is below {threshold:.2f}, so search leaves it out",
            _advise([word for word in spell_words(request) if word not in found]),
        )
    elif rank > 1:
        message = f"{count_noun(rank - 1, 'skill')} fit better"
        if rank == 2:
            message = f"{ranked[0].name} fits better"
        if rank > RESULTS:
            message += f", and a search gives the model the first {RESULTS}"
        yield Obstacle("outranked", message, _advise_against(ranked[0], match))


def _words_of(match: Match) -> list[str]:
    return [word.word for word in sorted(match.words, key=lambda word: -word.share)]


def _advise_against(rival: Match, match: Match | None) -> str:
    """Return what to change so that a skill fits better than its rival."""
    leads = _compare(rival, match).leads
    lacking = [lead.word for lead in leads if lead.word and lead.own_field not in ("name", "description")]
    if lacking:
        return _advise(lacking)
    return f"its description has the words already: say what it does that {rival.name} does not"


def _advise(words: Sequence[str]) -> str:
    """Return what to change so that a skill is found by these words."""
    named = [repr(word) for word in words if word][:_MAX_NAMED_WORDS]
    if not named:
        return "say in its description when to use it, in the words of such a request"
    return f"if it is the right skill, use the words of such a request in its description: {', '.join(named)}"


def _compare(rival: Match, match: Match | None) -> Rival:
    """Return what makes a skill fit better than another one, or what it has at all."""
    own_words: dict[str, FoundWord] = {}
    own_score = 0.0
    own_similarity = 0.0
    if match is not None:
        own_words = {word.word: word for word in match.words}
        own_score = match.score
        own_similarity = match.score * match.similarity_share

    leads: list[Lead] = []
    for word in rival.words:
        own = own_words.get(word.word)
        points = rival.score * word.share
        if own is not None:
            points -= own_score * own.share
        leads.append(Lead(word.word, word.field, own.field if own else "", round(points, 3)))
    similarity = rival.score * rival.similarity_share - own_similarity
    leads.append(Lead("", "", "", round(similarity, 3)))
    leads = [lead for lead in leads if lead.points >= _MIN_LEAD]
    leads.sort(key=lambda lead: (-lead.points, lead.word))
    return Rival(rival, tuple(leads))


# --- the listing ---


def _find_listing_obstacles(
    shelf: Shelf, skill: SkillDescriptor, listing: Listing, budget: int, match: Match | None
) -> Iterator[Obstacle]:
    level = listing.level_of(skill.name)
    raise_budget = "raise the budget in your settings, or keep fewer and shorter skills here"
    if level is None:
        message = f"the listing leaves it out: the budget of {budget:,} tokens has no room for its name"
        yield Obstacle("left-out", message, raise_budget)
    elif level == Level.NAME and shelf.choice_for(skill) == "name":
        fix = f"`skillshelf set {shelf.choice_key(skill)} auto` shows its description"
        yield Obstacle("name-only", "the listing has its name only, as you chose", fix)
    elif level == Level.NAME:
        message = f"the listing has its name only: the budget of {budget:,} tokens has no room for its description"
        yield Obstacle("name-only", message, raise_budget)
    elif Shortened(skill.name, "description") in listing.shortened:
        yield _explain_shortened(skill, listing, match)


def _explain_shortened(skill: SkillDescriptor, listing: Listing, match: Match | None) -> Obstacle:
    """Explain a shortened description, and name the words of the request that are in the part that is cut."""
    entry = next(entry for entry in listing.entries if entry.name == skill.name)
    shown = {word.lower() for word in spell_words(entry.description)}
    cut: list[str] = []
    if match is not None:
        cut = [word.word for word in match.words if word.field == "description" and word.word.lower() not in shown]
    message = "the listing has room for the beginning of its description only"
    fix = "put what matters most into its first sentence"
    if len(skill.description) > MAX_DESCRIPTION and len(entry.description) >= MAX_DESCRIPTION // 2:
        message = f"its description is longer than {MAX_DESCRIPTION:,} characters, and the listing shows no more"
        fix = "shorten it"
    if cut:
        message += f": {', '.join(map(repr, cut[:_MAX_NAMED_WORDS]))} is cut off"
    return Obstacle("shortened", message, fix)
