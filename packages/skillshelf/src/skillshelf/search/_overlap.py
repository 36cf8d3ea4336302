"""Skills that compete for the same requests: which of their own phrases lead to another skill.

The phrases come from the skills themselves: the sentences of a description, the requests that it quotes, and queries
that a caller has, such as those of eval cases. Each phrase is searched for once, so that nothing compares all pairs.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillshelf.search._document import cut_exclusions
from skillshelf.search._ranking import WEAK_SCORE
from skillshelf.search._search import Match
from skillshelf.search._words import split_words
from skillshelf.skills import Candidate, SkillDescriptor

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

Origin = Literal["quoted", "sentence", "eval"]
"""Where a phrase comes from: quoted in the description, a sentence of the description, or an eval case."""

_CONTESTED = 0.8
"""A skill that scores at least this share of another's score competes for the phrase."""
_ANSWERED = 0.75
"""A skill that scores this share of a new skill's score answers the phrase today, and loses it to the new skill."""
_MAX_PHRASES = 12
"""Phrases of a skill that are tried. A description of 1,024 characters rarely has more."""
_MAX_LENGTH = 300
"""Characters of a phrase that are searched for."""
_MIN_WORDS = 3
"""A sentence with fewer words that count says nothing about a skill."""
_MIN_QUOTED_WORDS = 2
"""A single word in quotes is more often a term than a request."""
_NEIGHBOURS = 5
_DEEPER = 100
_MAX_NAMED_WORDS = 4
_QUOTED = re.compile(r"(?<![^\s(,;:/])[\"“]([^\"“”\n]{3,80})[\"”]")
_REFERRAL = re.compile(r"\bsee\s+[`'/]?[\w-]+[`'.]?$|^for\b.*\buse\s+[`'/]?[\w-]+[`'.]?$|\binstead\b", re.I)
"""`For paid ads, see ad-creative.`: a sentence about another skill."""
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A request that a skill claims to be for."""

    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ContestedPhrase:
    """A phrase of one skill that another skill fits as well, or better."""

    phrase: Phrase
    owner: str
    """The skill that the phrase belongs to."""
    rival: str
    owner_score: float
    rival_score: float
    shared_words: tuple[str, ...] = ()
    """Words of the phrase that the rival has in its name or description."""
    is_in_both: bool = False
    """True if both descriptions contain the phrase."""
    is_new: bool = False
    """True if the owner takes the phrase: without the owner, the rival comes first with this score."""

    @property
    def is_taken(self) -> bool:
        """True if a search for the owner's own phrase ranks the rival first."""
        return self.rival_score > self.owner_score and not self.is_new

    @property
    def lead(self) -> float:
        """The rival's lead; below 0 if the owner is still ahead."""
        return round(self.rival_score - self.owner_score, 4)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two skills that compete, with the phrases that they take from each other."""

    first: str
    """The skill that loses more of its phrases."""
    second: str
    phrases: tuple[ContestedPhrase, ...]
    """The largest lead of the rival first."""
    are_copies: bool = False
    """True if the skills say almost the same, so that search shows one of them."""

    @property
    def taken(self) -> tuple[ContestedPhrase, ...]:
        return tuple(phrase for phrase in self.phrases if phrase.is_taken)

    @property
    def advice(self) -> str:
        """What to change in a description, in one sentence."""
        if self.are_copies:
            return "They say almost the same: remove one, or say in each description when to use it and not the other."
        worst = self.phrases[0]
        if worst.is_in_both and worst.phrase.origin == "sentence":
            return "Both descriptions have the same sentence: begin each with what only that skill does."
        if worst.is_in_both:
            return f"Both descriptions claim {worst.phrase.text!r}: keep it in one of them."
        if worst.is_new:
            return f"Say in both descriptions which requests {worst.owner} is for and which {worst.rival} keeps."
        if worst.is_taken and worst.phrase.origin == "eval":
            return f"Say in the description of {worst.owner}, in the words of that request, that it is for it."
        words = ", ".join(map(repr, worst.shared_words[:_MAX_NAMED_WORDS]))
        reason = f"{worst.rival} has {words}, too" if words else f"{worst.rival} has similar instructions"
        if worst.is_taken and worst.phrase.origin == "quoted":
            return f"{reason}: say what only {worst.owner} does, or take that phrase out of its description."
        return f"{reason}: say in the description of {worst.owner} what {worst.rival} does not do."


@dataclass(frozen=True, slots=True)
class OverlapReport:
    """The skills that compete, and what was tried to find them."""

    overlaps: tuple[Overlap, ...]
    """The worst first."""
    skills: int
    """The number of skills whose phrases were tried."""
    phrases: Mapping[Origin, int]
    """The number of phrases that were tried, by where they come from."""


def find_overlaps(
    shelf: "Shelf",
    *,
    only: Collection[str] = (),
    before: "Shelf | None" = None,
    queries: Mapping[str, Sequence[str]] | None = None,
) -> OverlapReport:
    """Find the skills that compete for the same requests.

    `only` names skills whose overlaps are wanted; without it, those of all are. `before` is the shelf without these
    skills: it says which skills answer their requests if they are not there. `queries` has further requests that skills
    are for, by name. Skills that the model does not see, and other versions of the same name, do not count.
    """
    finder = _OverlapFinder(shelf, frozenset(only), before, queries or {})
    return finder.find()


def list_phrases(skill: SkillDescriptor, queries: Sequence[str] = ()) -> list[Phrase]:
    """Return the requests that a skill is for: quoted ones and `queries` first, then sentences of its description."""
    description = cut_exclusions(skill.summary)
    phrases: dict[str, Phrase] = {}

    def add(text: str, origin: Origin) -> None:
        text = " ".join(text[:_MAX_LENGTH].split()).strip(" ,.;:-")
        if text:
            phrases.setdefault(text.casefold(), Phrase(text, origin))

    for quoted in _QUOTED.finditer(description):
        if len(set(split_words(quoted[1]))) >= _MIN_QUOTED_WORDS:
            add(quoted[1], "quoted")
    for query in queries:
        add(query, "eval")
    for sentence in _SENTENCE_END.split(description):
        if len(_QUOTED.findall(sentence)) > 1 or _REFERRAL.search(sentence.strip()):
            continue  # a list of requests, which were added above, or a request for another skill
        plain = _QUOTED.sub(" ", sentence)
        if len(set(split_words(plain))) >= _MIN_WORDS:
            add(plain, "sentence")
    return list(phrases.values())[:_MAX_PHRASES]


class _OverlapFinder:
    """Tries the phrases of skills, and collects those that another skill fits as well."""

    def __init__(
        self, shelf: "Shelf", only: frozenset[str], before: "Shelf | None", queries: Mapping[str, Sequence[str]]
    ) -> None:
        self._shelf = shelf
        self._only = only
        self._before = before
        self._catalog = shelf.catalog
        self._queries = queries
        self._threshold = WEAK_SCORE
        self._contested: dict[frozenset[str], list[ContestedPhrase]] = {}
        self._copies: set[frozenset[str]] = set()
        self._skills = 0
        self._phrases: dict[Origin, int] = {"quoted": 0, "sentence": 0, "eval": 0}

    def find(self) -> OverlapReport:
        owners = self._list_owners()
        for name, candidate in owners.items():
            self._try_phrases(name, candidate)
        if self._only:
            # What these skills take from others: the phrases of those that come close to them.
            for name in sorted(self._find_neighbours(owners) - owners.keys()):
                self._try_phrases(name, self._catalog.find(name))

        overlaps = [self._make_overlap(pair) for pair in {*self._contested, *self._copies}]
        if self._only:
            overlaps = [each for each in overlaps if not self._only.isdisjoint((each.first, each.second))]
        return OverlapReport(tuple(sorted(overlaps, key=_by_severity)), self._skills, self._phrases)

    def _list_owners(self) -> dict[str, Candidate]:
        """Return the skills whose phrases are tried first, by the name that reaches them."""
        owners: dict[str, Candidate] = {}
        for name in sorted(self._only) or self._catalog:
            candidate = self._catalog.find(name)
            if candidate.descriptor.disclosure != "manual":
                owners[name] = candidate
        return owners

    def _find_neighbours(self, owners: Mapping[str, Candidate]) -> set[str]:
        """Return the names of the skills that a search for these skills finds beside them."""
        neighbours: set[str] = set()
        for name, candidate in owners.items():
            texts = [phrase.text for phrase in self._list_phrases(name, candidate)]
            texts.append(candidate.descriptor.description[:_MAX_LENGTH])
            for text in texts:
                neighbours.update(match.name for match in self._search(text, _NEIGHBOURS) if self._counts(match))
        return neighbours

    def _list_phrases(self, name: str, candidate: Candidate) -> list[Phrase]:
        return list_phrases(candidate.descriptor, self._queries.get(name, ()))

    def _counts(self, match: Match) -> bool:
        """Return whether a skill competes: one that another of its name comes before is not in the listing."""
        return match.name in self._only or match.name == match.descriptor.name

    def _search(self, text: str, limit: int) -> list[Match]:
        return self._shelf.search(text, limit)

    def _try_phrases(self, name: str, candidate: Candidate) -> None:
        self._skills += 1
        for phrase in self._list_phrases(name, candidate):
            self._phrases[phrase.origin] += 1
            matches = self._search(phrase.text, _NEIGHBOURS)
            own = _find_own(matches, name)
            if own is None:
                own = _find_own(self._search(phrase.text, _DEEPER), name)
            rival = self._find_rival(matches, candidate.descriptor)
            is_new = self._before is not None and name in self._only and own is not None and own is matches[0]
            if self._before is not None and is_new:
                today = self._before.search(phrase.text, _NEIGHBOURS)
                rival = self._find_rival(today, candidate.descriptor)
            if own is not None and own.name != name and own.descriptor.name != candidate.descriptor.name:
                self._copies.add(frozenset((name, own.name)))
            elif rival is not None:
                self._note(phrase, name, candidate.descriptor, own, rival, is_new=is_new)

    def _find_rival(self, matches: Sequence[Match], skill: SkillDescriptor) -> Match | None:
        """Return the best skill of another name, if it fits the phrase at all."""
        for match in matches:
            is_other = match.descriptor.name != skill.name and self._counts(match)
            if is_other and match.score >= self._threshold:
                return match
        return None

    def _note(
        self, phrase: Phrase, name: str, skill: SkillDescriptor, own: Match | None, rival: Match, *, is_new: bool
    ) -> None:
        own_score = own.score if own else 0.0
        enough = _ANSWERED if is_new else _CONTESTED
        if rival.score < enough * own_score:
            return
        if _sends_to(phrase, rival.descriptor.name):
            return
        shared = [word.word for word in rival.words if word.field in ("name", "description")]
        is_in_both = all(
            phrase.text.casefold() in " ".join(each.summary.split()).casefold() for each in (skill, rival.descriptor)
        )
        self._contested.setdefault(frozenset((name, rival.name)), []).append(
            ContestedPhrase(phrase, name, rival.name, own_score, rival.score, tuple(shared), is_in_both, is_new)
        )

    def _make_overlap(self, pair: frozenset[str]) -> Overlap:
        phrases = self._contested.get(pair, [])
        phrases.sort(key=lambda each: (-each.lead, each.owner, each.phrase.text))
        names = sorted(pair)
        losses = {name: sum(each.is_taken for each in phrases if each.owner == name) for name in names}
        first, second = sorted(names, key=lambda name: (-losses[name], name))
        return Overlap(first, second, tuple(phrases), pair in self._copies)


def _find_own(matches: Sequence[Match], name: str) -> Match | None:
    """Return the match of a skill, or of the one that search shows in its place."""
    return next((match for match in matches if name == match.name or name in match.copies), None)


def _sends_to(phrase: Phrase, name: str) -> bool:
    """Return whether a sentence sends such requests to another skill: `For cold mails, see cold-mails.`"""
    if phrase.origin != "sentence":
        return False
    introduction = ""
    if name.isalnum():  # it may be an ordinary word
        introduction = r"\b(?:see|use|try|prefer|to)\s+(?:the\s+)?[`'/]?"
    return re.search(rf"{introduction}(?<![\w-]){re.escape(name)}(?![\w-])", phrase.text) is not None


def _by_severity(overlap: Overlap) -> tuple[bool, int, float, int, str, str]:
    """Order overlaps: copies, then by phrases taken, the largest lead, and phrases contested."""
    largest_lead = max((phrase.lead for phrase in overlap.phrases), default=0.0)
    return (
        not overlap.are_copies,
        -len(overlap.taken),
        -largest_lead,
        -len(overlap.phrases),
        overlap.first,
        overlap.second,
    )
