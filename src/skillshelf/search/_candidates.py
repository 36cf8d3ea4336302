"""Find what fits a query in a store: candidates by words and by meaning, scored with their word pairs."""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from skillshelf.search._document import hash_pairs
from skillshelf.search._engine import SATURATION, WordScores, weigh_rarity
from skillshelf.search._query import Query, read_query
from skillshelf.search._ranking import Features, Weights, choose_weights, fuse, trust_in_words
from skillshelf.search._similarity import Similarities
from skillshelf.search._store import PairRow, Store


@dataclass(frozen=True, slots=True)
class Scored:
    """An entry of a store that may fit."""

    id: int
    row: PairRow
    features: Features
    score: float
    """Orders the entries for one query. It means nothing across queries."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The entries that may fit a query, in no order."""

    query: Query
    weights: Weights
    scored: list[Scored]
    words: WordScores
    possible: float
    """The score of a long text that has nothing but the query's words."""


def find_candidates(
    store: Store,
    text: str,
    *,
    size: int,
    count: int,
    weights: Weights,
    unspaced_weights: Weights,
    is_known: Callable[[int], bool],
) -> Candidates | None:
    """Return the `count` entries that are best by words, by similarity, or by both. None if the text has no words.

    `size` is the number of entries in the store. Those that are not known are left out: another process may have added
    them.
    """
    query = read_query(text, store.engine.count, size)
    if not query.words:
        return None
    weights = choose_weights(query.text, weights, unspaced_weights)
    similarities: Similarities | None = None
    if store.vectors is not None and weights.similarity:
        similarities = store.vectors.compare(query.text)
    else:
        weights = weights._replace(similarity=0.0)

    similar = similarities.best(count) if similarities else []
    words = store.engine.search(query.importance, long=weights.long, short=weights.short, also=similar)
    possible = (1 + SATURATION) * query.weight
    trust = trust_in_words(words.best_long / possible, weights)

    in_words = words.by_id
    ids = sorted({*heapq.nlargest(count, in_words, key=in_words.__getitem__), *similar})
    similarity = dict(zip(ids, similarities.of(ids), strict=True)) if similarities else {}
    base = {
        number: trust * in_words.get(number, 0.0) + weights.similarity * similarity.get(number, 0.0)
        for number in ids
        if is_known(number)
    }
    rows = store.read_pairs(heapq.nlargest(count, base, key=base.__getitem__))
    in_pairs = _score_pairs(query, rows, size)

    scored: list[Scored] = []
    for number, row in rows.items():
        features = Features(
            words=in_words.get(number, 0.0),
            pairs=in_pairs.get(number, 0.0),
            exclusion=_weigh_exclusions(query, row),
            similarity=similarity.get(number, 0.0),
        )
        scored.append(Scored(number, row, features, fuse(features, trust, weights)))
    return Candidates(query, weights, scored, words, possible)


def find_excluded(query: Query, row: PairRow) -> list[str]:
    """Return the words of the query that are about what the entry says it is not for."""
    if not row.exclusions:
        return []
    return [word for word in query.importance if f" {word} " in row.exclusions]


def _weigh_exclusions(query: Query, row: PairRow) -> float:
    """Return the share of the query's words, by rarity, that are about what the entry says it is not for."""
    excluded = find_excluded(query, row)
    if not excluded:
        return 0.0
    return sum(map(query.weigh, excluded)) / query.weight


def _score_pairs(query: Query, rows: Mapping[int, PairRow], size: int) -> dict[int, float]:
    """Return the scores of the word pairs that entries have in common with a query, divided by the best.

    How rare a pair is among the candidates orders them as well as how rare it is among all entries.
    """
    wanted = _weigh_pairs(query)
    having: dict[int, list[int]] = {pair: [] for pair in wanted}
    for number, row in rows.items():
        pairs = row.pairs.elsewhere
        for pair in wanted:
            at = bisect_left(pairs, pair)
            if (at < len(pairs) and pairs[at] == pair) or pair in row.pairs.in_name:
                having[pair].append(number)

    scores: dict[int, float] = {}
    for pair, numbers in having.items():
        weight = wanted[pair] * weigh_rarity(max(1, len(numbers)), size)
        for number in numbers:
            scores[number] = scores.get(number, 0.0) + weight
    best = max(scores.values(), default=1.0)
    return {number: score / best for number, score in scores.items()}


def _weigh_pairs(query: Query) -> dict[int, float]:
    """Return the importance of each pair of neighbouring words: that of the less important one."""
    importance = [query.importance[word] for word in query.words]
    return dict(zip(hash_pairs(query.words), map(min, pairwise(importance)), strict=True))
