"""The formula: how much words, word pairs and similarity of meaning count, and when nothing fits.

All functions here are pure. docs/concepts/search.md explains the numbers and has the measurements.
"""

import math
from typing import NamedTuple

from skillshelf.search._words import is_unspaced

MIN_SCORE = 0.05
"""A skill that fits less well is not returned. One of twenty requests that have an answer stays without one then."""
_FAR_BEHIND = 0.5
"""A skill with this share of the best one's rank score does not fit at all."""
_ENOUGH_COVERED = 0.25
"""The share of the query that the best skill must have for words to count in full. With less, similarity decides."""
_UNRELATED = 0.3
"""The similarity of texts that have nothing to do with each other."""
_MAX_MARGIN = 0.5
"""A single skill has no runner-up, which does not make it right."""


def show_score(score: float) -> str:
    """Return a score with two digits. One below the threshold is not rounded up to it."""
    if score < MIN_SCORE:
        score = min(score, MIN_SCORE - 0.01)
    return f"{score:.2f}"


class Weights(NamedTuple):
    """How much each part counts."""

    long: float
    short: float
    pairs: float
    exclusion: float
    similarity: float


WEIGHTS = Weights(long=1.0, short=0.5, pairs=0.33, exclusion=1.0, similarity=1.0)
# The table of vectors does not know these scripts. Most such queries are about skills in English, and what both have in
# common are names of products and tools, which are in the description.
UNSPACED_WEIGHTS = Weights(long=0.3, short=1.0, pairs=0.5, exclusion=1.0, similarity=0.0)


class Features(NamedTuple):
    """What is known of a skill for a query."""

    words: float
    """The weighted sum of the scores of its long and its short text, each divided by that of the best skill."""
    pairs: float
    """The score of its word pairs, divided by that of the best skill."""
    exclusion: float
    """The share of the query's words, by rarity, that are about what the skill says it is not for."""
    similarity: float
    """Between 0 and 1."""


def choose_weights(query: str, weights: Weights = WEIGHTS, unspaced: Weights = UNSPACED_WEIGHTS) -> Weights:
    """Return how much each part counts for a query."""
    return unspaced if is_unspaced(query) else weights


def trust_in_words(coverage: float, weights: Weights) -> float:
    """Return how much words count: in full, unless even the skill with the best words has few of the query's."""
    if not weights.similarity:
        return 1.0
    return float(min(1.0, coverage / _ENOUGH_COVERED) ** 3)


def fuse(features: Features, trust: float, weights: Weights) -> float:
    """Return a number to order skills by. It means nothing across queries."""
    in_words = features.words + weights.pairs * features.pairs - weights.exclusion * features.exclusion
    return trust * in_words + weights.similarity * features.similarity


def is_unrelated(features: Features) -> bool:
    """Return True for a text that has no word of the query, and a meaning that has nothing to do with it."""
    return not features.words and features.similarity < _UNRELATED


def rate_fit(coverage: float, similarity: float | None, score: float, rival: float) -> float:
    """Return the probability that the best skill is right, if for half of all requests there is a right one.

    `coverage` is the score of its words, divided by that of a text which has nothing but the query's words.
    `similarity` is None if words alone decide. `score` and `rival` are the results of `fuse` for the skill and for the
    best other one: how far it is ahead tells most, and means the same in small and large collections.
    """
    margin = 0.0
    if score > 0:
        # On a shelf of two skills, one of them is far ahead for any request, even if it has nothing to do with it.
        evident = coverage + max(0.0, (similarity or 0.0) - _UNRELATED)
        margin = min(_MAX_MARGIN, evident, (score - rival) / score)
    if similarity is None:
        evidence = 5.5 * coverage + 6.9 * margin - 4.4
    else:
        evidence = 4.4 * coverage + 3.0 * similarity + 7.4 * margin - 5.1
    return 1 / (1 + math.exp(-evidence))


def rate_later_fit(best_fit: float, score: float, best_score: float) -> float:
    """Return how well a later skill fits: the closer its rank score comes to the best, the better."""
    if best_score <= 0:
        return 0.0
    return best_fit * max(0.0, (score / best_score - _FAR_BEHIND) / (1 - _FAR_BEHIND))
