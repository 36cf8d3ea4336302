"""Why a skill comes up for a request, or doesn't: what the listing shows of it, and where search ranks it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillshelf.explain._reasons import (
    MAX_ECHOED,
    MAX_NAMED_WORDS,
    UNUSABLE,
    Reason,
    describe_level,
    explain_absence,
    explain_listing,
    explain_usability,
)
from skillshelf.listing import Level, Listing, ListingForm
from skillshelf.search import WEAK_SCORE, FoundWord, Match, show_score, spell_words
from skillshelf.text import count_noun, truncate
from skillshelf.text.tokens import DEFAULT_BUDGET

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

RESULTS = 5
"""The number of skills that a search gives to the model."""
_RANKED = 100
"""Skills that are ranked to find one among them."""
_MAX_BETTER = 3
_MIN_ADVANTAGE = 0.01
"""A smaller difference is not worth a line."""
_MAX_NAMED_ADVANTAGES = 4


@dataclass(frozen=True, slots=True)
class Advantage:
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
class BetterMatch:
    """A skill that fits the request better."""

    match: Match
    advantages: tuple[Advantage, ...]
    """Why it fits better, the largest difference first. Where this skill is ahead is left out."""

    def describe_advantages(self) -> str:
        return ", ".join(map(str, self.advantages[:_MAX_NAMED_ADVANTAGES])) or "little in everything"


@dataclass(frozen=True, slots=True)
class RequestExplanation:
    """Whether a skill comes up for a request, and every reason against it."""

    name: str
    request: str
    reasons: tuple[Reason, ...]
    """The most serious first. Empty if it comes first and the model sees its whole description."""
    level: Level | None = None
    """How much the listing shows of it; None if it isn't in the listing."""
    rank: int = 0
    """Its place among the search results, from 1; 0 if search doesn't rank it."""
    match: Match | None = None
    better: tuple[BetterMatch, ...] = ()
    """The first of the skills that fit the request and come before it."""
    runner_up: Match | None = None
    """The skill that comes after it, if it is the first."""
    threshold: float = 0.0
    """The score that a match needs."""

    @property
    def headline(self) -> str:
        """Whether the skill comes up, in a sentence."""
        request = repr(truncate(self.request, MAX_ECHOED))
        if not self.comes_up:
            return f"{self.name} doesn't come up for {request}."
        if self.rank == 1 and self.is_found:
            return f"{self.name} comes first for {request}."
        if self.is_found:
            return f"{self.name} comes up for {request}, but not first."
        return f"{self.name} is in the listing, but a search for {request} doesn't find it."

    def describe_rank(self) -> str:
        """Return the skill's place in a search, in a sentence; empty if search doesn't rank it."""
        if self.match is None:
            return ""
        text = f"In search, it is number {self.rank} with a score of {show_score(self.match.score)}"
        if self.runner_up is not None:
            text += f", ahead of {self.runner_up.name} with {show_score(self.runner_up.score)}"
        return f"{text}; a match below {self.threshold:.2f} is weak, and the model gets the first {RESULTS}."

    @property
    def is_found(self) -> bool:
        """True if a search for the request gives the skill to the model, and not as a weak match."""
        return self.match is not None and self.rank <= RESULTS and self.match.score >= self.threshold

    @property
    def is_usable(self) -> bool:
        """True if the model may use the skill at all."""
        return not any(reason.code in UNUSABLE for reason in self.reasons)

    @property
    def comes_up(self) -> bool:
        """True if the model can use the skill and reads what it is for, in the listing or in a search."""
        if not self.is_usable:
            return False
        is_described = self.level is not None and self.level > Level.NAME
        return is_described or self.is_found

    def describe_use(self, *, is_loaded: bool, was_offered: bool) -> str:
        """Return what became of the skill in a conversation, in which the model got this request if `was_offered`."""
        if is_loaded:
            return "It was used: it is loaded in this conversation."
        if not self.is_usable:
            return "The model could not use it."
        if not was_offered:
            return "This request was not sent to the model, so this is what it would have seen."
        if self.level is None:
            return "The model did not see it: it isn't in the listing. Only a search by the model would have found it."
        if self.level == Level.FULL:
            return "Its instructions are in every call, so there was nothing to load."
        seen = f"It was offered and ignored: the model saw {describe_level(self.level)}, and did not load it."
        if self.level == Level.WHOLE:
            seen += " Say in the description when to use it, in the words of such a request."
        return seen


def explain_request(
    shelf: "Shelf",
    name: str,
    request: str,
    *,
    disclosure: ListingForm = "auto",
    budget: int = DEFAULT_BUDGET,
    listing: Listing | None = None,
    command: str = "skillshelf",
) -> RequestExplanation:
    """Explain why a skill comes up for a request, or why it doesn't.

    `listing` is the one the model got. Without it, one is made with this form and budget, as a conversation that begins
    with the request gets it. `command` begins the commands in fixes.
    """
    catalog = shelf.catalog
    if name not in catalog:
        reason = explain_absence(shelf, name, command)
        return RequestExplanation(name, request, (reason,))

    candidate = catalog.find(name)
    skill = candidate.descriptor
    name = catalog.reach(candidate)
    reasons = list(explain_usability(shelf, candidate, command))
    if skill.disclosure == "manual":
        return RequestExplanation(name, request, tuple(reasons))

    if listing is None:
        listing = shelf.route(request, disclosure=disclosure, budget=budget).listing
    is_first_of_name = catalog.find(skill.name) == candidate
    level = listing.level_of(skill.name) if is_first_of_name else None

    threshold = WEAK_SCORE
    ranked = shelf.search(request, _RANKED)
    rank = _find_rank(ranked, name)
    match = ranked[rank - 1] if rank and ranked[rank - 1].name == name else None
    if rank and match is None:
        reasons.append(
            Reason(
                "copy",
                f"it says almost the same as {ranked[rank - 1].name}, which search shows in its place",
                "remove one of them, or say in both descriptions how they differ",
            )
        )
    ahead = ranked[: rank - 1] if rank else ranked
    better = tuple(_compare(other, match) for other in ahead[:_MAX_BETTER] if other.score >= threshold)
    if match is not None and match.excluded_words and (rank > 1 or match.score < threshold):
        words = ", ".join(map(repr, match.excluded_words[:MAX_NAMED_WORDS]))
        reasons.append(
            Reason(
                "excluded",
                f"its description says that it is not for {words}, which counts against it",
                "if it is the right skill, say more exactly what it is not for",
            )
        )
    reasons += _explain_rank(request, rank, match, ranked, threshold)
    if is_first_of_name:
        reasons += explain_listing(shelf, skill, listing, budget, match=match, command=command)

    runner_up = ranked[1] if rank == 1 and len(ranked) > 1 else None
    return RequestExplanation(name, request, tuple(reasons), level, rank, match, better, runner_up, threshold)


# --- search ---


def _find_rank(ranked: Sequence[Match], name: str) -> int:
    """Return the place of a skill or of the one that stands for it as a copy, from 1; 0 if there is none."""
    for rank, match in enumerate(ranked, 1):
        if name == match.name or name in match.copies:
            return rank
    return 0


def _explain_rank(
    request: str, rank: int, match: Match | None, ranked: Sequence[Match], threshold: float
) -> Iterator[Reason]:
    has_no_word = match is not None and not match.words and match.score < threshold
    if has_no_word or (rank == 0 and len(ranked) < _RANKED):
        yield Reason("no-match", "it has no word of the request", _advise(spell_words(request)))
    elif rank == 0:
        message = f"it is not among the {_RANKED} skills that fit best"
        yield Reason("no-match", message, _advise(_words_of(ranked[0])))
    elif match is not None and match.score < threshold:
        found = {word.word for word in match.words}
        yield Reason(
            "weak",
            f"its score of {show_score(match.score)} is below {threshold:.2f}, so search marks it as weak",
            _advise([word for word in spell_words(request) if word not in found]),
        )
    elif rank > 1:
        message = f"{count_noun(rank - 1, 'skill')} fit better"
        if rank == 2:
            message = f"{ranked[0].name} fits better"
        if rank > RESULTS:
            message += f", and a search gives the model the first {RESULTS}"
        yield Reason("outranked", message, _advise_against(ranked[0], match))


def _words_of(match: Match) -> list[str]:
    return [word.word for word in sorted(match.words, key=lambda word: -word.share)]


def _advise_against(rival: Match, match: Match | None) -> str:
    """Return what to change so that a skill fits better than its rival."""
    advantages = _compare(rival, match).advantages
    lacking = [each.word for each in advantages if each.word and each.own_field not in ("name", "description")]
    if lacking:
        return _advise(lacking)
    return f"its description has the words already: say what it does that {rival.name} does not"


def _advise(words: Sequence[str]) -> str:
    """Return what to change so that a skill is found by these words."""
    named = [repr(word) for word in words if word][:MAX_NAMED_WORDS]
    if not named:
        return "say in its description when to use it, in the words of such a request"
    return f"if it is the right skill, use the words of such a request in its description: {', '.join(named)}"


def _compare(rival: Match, match: Match | None) -> BetterMatch:
    """Return what makes a skill fit better than another one, or what it has at all."""
    own_words: dict[str, FoundWord] = {}
    own_score = 0.0
    own_similarity = 0.0
    if match is not None:
        own_words = {word.word: word for word in match.words}
        own_score = match.score
        own_similarity = match.score * match.similarity_share

    advantages: list[Advantage] = []
    for word in rival.words:
        own = own_words.get(word.word)
        points = rival.score * word.share
        if own is not None:
            points -= own_score * own.share
        advantages.append(Advantage(word.word, word.field, own.field if own else "", round(points, 3)))
    similarity = rival.score * rival.similarity_share - own_similarity
    advantages.append(Advantage("", "", "", round(similarity, 3)))
    advantages = [advantage for advantage in advantages if advantage.points >= _MIN_ADVANTAGE]
    advantages.sort(key=lambda advantage: (-advantage.points, advantage.word))
    return BetterMatch(rival, tuple(advantages))
