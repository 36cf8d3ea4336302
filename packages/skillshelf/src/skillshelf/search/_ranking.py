"""Rank texts for a query: take those that have its words or its meaning, score them, rate how well the best one fits.

docs/concepts/search.md explains the numbers and has the measurements.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from skillshelf.search._database import FoundEntry, SkillDatabase
from skillshelf.search._query import Query, read_query, weigh_rarity
from skillshelf.search._words import is_unspaced

WEAK_SCORE = 0.08
"""A match with a lower score is marked as weak. One of twenty right skills is."""
_CANDIDATES = 60
"""Texts that are scored. With 100, the results are the same."""
_SIMILAR = 20
"""How many of them are chosen by their similarity; the rest have most of the words."""
_SATURATION = 1.2
"""BM25's k1: the second mention of a word counts for less than the first, and no number of them for more than 2.2."""
_LONG_DAMPING = 0.4
_SHORT_DAMPING = 0.2
"""BM25's b: how much a word counts for less in a longer text."""
_MAX_REPEATS = 3
"""How often a word of a description counts. One that is there ten times is there to be found, not to inform."""
FAR_BEHIND = 0.5
"""A skill with this share of the best one's rank score does not fit at all."""
_ENOUGH_COVERED = 0.25
"""The share of the query that the best skill must have for words to count in full. With less, similarity decides."""
_UNRELATED = 0.3
"""The similarity of texts that have nothing to do with each other."""
_FEW_WORDS = 8
"""A shorter query says no less about its score: few were measured."""
_FEW_TEXTS = 20
"""The same for a smaller collection."""
_MAX_MARGIN = 0.5
"""A single skill has no runner-up, which does not make it right."""
_COPY_LIKENESS = 0.9
"""The share of word pairs that two texts must have in common to be copies."""
_RELATED_LIKENESS = 0.4
"""The same for a text and a copy that was changed: one with a quarter of the lines taken out has about 0.6."""
_MIN_COPY_PAIRS = 8


class Weights(NamedTuple):
    """How much each part of a score counts."""

    long: float
    """The words of all fields."""
    short: float
    """The words of the name and the description."""
    name: float
    pairs: float
    exclusion: float
    similarity: float


WEIGHTS = Weights(long=1.0, short=0.5, name=0.4, pairs=0.5, exclusion=0.5, similarity=0.5)
# The table of vectors does not know these scripts. Most such queries are about skills in English, and what both have in
# common are names of products and tools, which are in the description.
UNSPACED_WEIGHTS = Weights(long=0.3, short=1.0, name=0.0, pairs=0.5, exclusion=0.5, similarity=0.0)


class Ranked:
    """A text that may fit a query. `long`, `short`, `name` and `pairs` are divided by those of the best text."""

    def __init__(self, entry: FoundEntry, query: Query, similarity: float) -> None:
        self.entry = entry
        self.similarity = similarity
        name = entry.name.split()
        card = name + entry.description.split()
        rest = f"{entry.headings} {entry.instructions} {entry.references}".split()
        in_query = query.weights.__contains__
        self.card_counts = Counter(filter(in_query, card))
        """How often each word of the query is in the name and the description."""
        self.counts = Counter(filter(in_query, rest))
        """How often each word of the query is in the text."""
        self.counts.update(self.card_counts)
        self.size = len(card) + len(rest)
        self.card_size = len(card)
        self.name_size = len(name)
        self.name = sum(query.weights[word] for word in set(filter(in_query, name))) / math.sqrt(max(1, len(name)))
        exclusions = entry.exclusions.split()
        self.excluded = [word for word in query.weights if word in exclusions] if exclusions else []
        """The words of the query that are about what the text says it is not for."""
        self.long = 0.0
        self.short = 0.0
        self.pairs = 0.0
        self.coverage = 0.0
        """The share of the query that the words of the text cover."""
        self.card_coverage = 0.0
        """The share of the query, by rarity, that is in the name or the description."""
        self.score = 0.0
        """Orders the texts for one query. It means nothing across queries."""

    @property
    def id(self) -> int:
        return self.entry.id

    @property
    def is_unrelated(self) -> bool:
        """True if it has no word of the query, and a meaning that has nothing to do with it."""
        return not self.counts and self.similarity < _UNRELATED

    def is_copy_of(self, other: "Ranked") -> bool:
        """Return whether two texts say almost the same. Their names don't count."""
        return self._compare(other, _COPY_LIKENESS)

    def is_related_to(self, other: "Ranked") -> bool:
        """Return whether two texts say much the same, as a skill and a changed copy of it do."""
        return self._compare(other, _RELATED_LIKENESS)

    def _compare(self, other: "Ranked", wanted: float) -> bool:
        """Return whether two texts have at least this share of all their word pairs in common."""
        fewer, more = sorted((self.size - self.name_size, other.size - other.name_size))
        if fewer <= _MIN_COPY_PAIRS or fewer < wanted * more:
            return False
        # Most texts that differ have different words of the query, and need not be compared whole.
        if len(self.counts.keys() & other.counts.keys()) < wanted * wanted * max(len(self.counts), len(other.counts)):
            return False
        common = len(self._own_pairs & other._own_pairs)
        return common >= wanted * (len(self._own_pairs) + len(other._own_pairs) - common)

    @cached_property
    def _own_pairs(self) -> frozenset[tuple[str, str]]:
        entry = self.entry
        return frozenset(
            pairwise(f"{entry.description} {entry.headings} {entry.instructions} {entry.references}".split())
        )


class Ranking(NamedTuple):
    """What was found for a query."""

    query: Query
    weights: Weights
    texts: list[Ranked]
    """Best first."""


def rank_texts(
    database: SkillDatabase,
    text: str,
    limit: int,
    *,
    weights: Weights = WEIGHTS,
) -> Ranking:
    """Return the texts that may fit a query, about `limit` of them or more."""
    query = read_query(text, database.count, database.size)
    if is_unspaced(query.text):
        weights = UNSPACED_WEIGHTS
    if database.vectors is None:
        weights = weights._replace(similarity=0.0)
    if not query.words:
        return Ranking(query, weights, [])

    limit = max(limit, _CANDIDATES)
    if database.vectors is None or not weights.similarity:
        chosen = dict.fromkeys(database.choose(query.weights, limit), 0.0)
    else:
        similarities = database.vectors.compare(query.text)
        ids = {*database.choose(query.weights, limit - _SIMILAR), *similarities.best(_SIMILAR)}
        chosen = dict(zip(ids, similarities.of(list(ids)), strict=True))

    texts = [Ranked(entry, query, chosen[entry.id]) for entry in database.read(list(chosen))]
    _score_words(texts, query)
    _score_pairs(texts, query, database.size)
    _fuse(texts, query, weights)
    texts.sort(key=lambda each: (-each.score, each.entry.name, each.id))
    return Ranking(query, weights, texts)


def _score_words(texts: Sequence[Ranked], query: Query) -> None:
    """Score the words of the texts by BM25."""
    having = [each for each in texts if each.counts]
    size = sum(each.size for each in having) / max(1, len(having))
    card_size = sum(each.card_size for each in having) / max(1, len(having))
    total = sum(query.weights.values())
    for each in having:
        damping = _SATURATION * (1 - _LONG_DAMPING + _LONG_DAMPING * each.size / size)
        for word, count in each.counts.items():
            each.long += query.weights[word] * (1 + _SATURATION) * count / (count + damping)
        each.coverage = min(1.0, each.long / ((1 + _SATURATION) * total))
        each.card_coverage = sum(query.weights[word] for word in each.card_counts) / total

        damping = _SATURATION * (1 - _SHORT_DAMPING + _SHORT_DAMPING * each.card_size / max(1, card_size))
        for word, count in each.card_counts.items():
            count = min(count, _MAX_REPEATS)
            each.short += query.weights[word] * (1 + _SATURATION) * count / (count + damping)


def _score_pairs(texts: Sequence[Ranked], query: Query, size: int) -> None:
    """Score the pairs of neighbouring words that the texts have in common with the query.

    How rare a pair is among the candidates orders them as well as how rare it is among all texts.
    """
    having: dict[tuple[str, str], list[Ranked]] = {pair: [] for pair in pairwise(query.words)}
    for each in texts:
        if len(each.counts) < 2:
            continue
        entry = each.entry
        fields = (entry.name, entry.description, entry.headings, entry.instructions, entry.references)
        text = f" {' | '.join(fields)} "
        for pair, found in having.items():
            first, second = pair
            if first in each.counts and second in each.counts and f" {first} {second} " in text:
                found.append(each)
    for (first, second), found in having.items():
        rarity = weigh_rarity(max(1, len(found)), size)
        for each in found:
            each.pairs += min(query.importance[first], query.importance[second]) * rarity


def _fuse(texts: Sequence[Ranked], query: Query, weights: Weights) -> None:
    """Divide each part by the best one, and add them up."""
    best_long = max((each.long for each in texts), default=0.0) or 1.0
    best_short = max((each.short for each in texts), default=0.0) or 1.0
    best_name = max((each.name for each in texts), default=0.0) or 1.0
    best_pairs = max((each.pairs for each in texts), default=0.0) or 1.0
    total = sum(query.weights.values())
    trust = 1.0
    if weights.similarity:
        # Words count in full, unless even the text with the best ones has few of the query's.
        coverage = max((each.coverage for each in texts), default=0.0)
        trust = min(1.0, coverage / _ENOUGH_COVERED) ** 3
    for each in texts:
        each.long /= best_long
        each.short /= best_short
        each.name /= best_name
        each.pairs /= best_pairs
        words = (
            weights.long * each.long
            + weights.short * each.short
            + weights.name * each.name
            + weights.pairs * each.pairs
            - weights.exclusion * sum(query.weights[word] for word in each.excluded) / total
        )
        each.score = trust * words + weights.similarity * each.similarity


class _Evidence(NamedTuple):
    """The coefficients of a logistic regression: how much each observation says that the best text is right."""

    coverage: float
    margin: float
    meant: float
    """The larger of its similarity and of the share of the query that its name and description cover."""
    length: float
    """Of the logarithm of the number of words in the query."""
    size: float
    """Of the logarithm of the number of texts."""
    constant: float


# Fitted to answers with and without their skill among 20 to 4,672 skills, and 50 to 199 tools.
_BY_WORDS = _Evidence(3.05, 8.17, 2.46, 1.1, -0.19, -5.84)
_BY_MEANING = _Evidence(3.99, 8.06, 1.4, 0.75, -0.14, -5.55)
_DESCRIPTION_BY_WORDS = _Evidence(7.74, 15.15, 0.0, 1.31, -0.5, -4.06)
_DESCRIPTION_BY_MEANING = _Evidence(1.94, 9.73, 0.0, 0.55, -0.49, -1.53)
_UNSPACED = _Evidence(3.74, 4.02, 3.86, 0.0, -0.22, -0.83)


def rate_fit(best: Ranked, rival: float, query: Query, *, size: int, has_similarity: bool) -> float:
    """Return the probability that the best text is right, if for half of all queries there is a right one.

    `rival` is the score of the best other text. How far it is behind tells most, and more for a long query. `size` is
    the number of texts: among many, a wrong one comes close more often.
    """
    if best.is_unrelated:
        return 0.0

    margin = 0.0
    if best.score > 0:
        # On a shelf of two skills, one of them is far ahead for any query, even if it has nothing to do with it.
        evident = best.coverage + max(0.0, best.similarity - _UNRELATED)
        margin = max(0.0, min(_MAX_MARGIN, evident, (best.score - rival) / best.score))
    if is_unspaced(query.text):
        weights = _UNSPACED
    elif best.size > best.card_size:
        weights = _BY_MEANING if has_similarity else _BY_WORDS
    else:  # a tool, or a skill without instructions
        weights = _DESCRIPTION_BY_MEANING if has_similarity else _DESCRIPTION_BY_WORDS
    evidence = (
        weights.coverage * best.coverage
        + weights.margin * margin
        + weights.meant * max(best.card_coverage, best.similarity)
        + weights.length * math.log(max(_FEW_WORDS, len(query.weights)))
        + weights.size * math.log(max(_FEW_TEXTS, size))
        + weights.constant
    )
    return 1 / (1 + math.exp(-evidence))


def rate_later_fit(best_fit: float, score: float, best_score: float) -> float:
    """Return how well a later text fits: the closer its rank score comes to the best, the better.

    If the best text isn't weak, neither is one with at least half of its rank score.
    """
    nearness = max(0.0, score / best_score) if best_score > 0 else 0.0
    if best_fit < WEAK_SCORE:
        return best_fit * nearness
    if nearness < FAR_BEHIND:
        return WEAK_SCORE * nearness / FAR_BEHIND
    return WEAK_SCORE + (best_fit - WEAK_SCORE) * (nearness - FAR_BEHIND) / (1 - FAR_BEHIND)


def show_score(score: float) -> str:
    """Return a score with two digits. A weak one is not rounded up."""
    if score < WEAK_SCORE:
        score = min(score, WEAK_SCORE - 0.01)
    return f"{score:.2f}"
