"""Choose the weights on one half of the authors and report them on the other, and the other way round.

The shipped weights were chosen with these queries at hand. If weights that never saw a query do as well on it, the
shipped ones have not learnt the queries by heart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.search.collections import Query
from benchmarks.search.measures import Answer, Quality
from skillshelf.search import Weights

Ask = Callable[[Weights, Sequence[Query]], list[Answer]]
"""Puts queries to the search with some weights."""

_STEPS = (2.0, 1.4)
"""A weight is tried this many times lower and higher, in each round."""
_LEAST_GAIN = 0.05
"""Points of nDCG@10 that a change must bring: less is chance."""


@dataclass(frozen=True)
class Choice:
    """The weights that are best on one half, and what they bring on the other."""

    reported_half: int
    weights: dict[str, float]
    answers: list[Answer]
    """To the queries of the reported half, in their order."""


def choose_on_halves(queries: Sequence[Query], ask: Ask, *, with_similarity: bool) -> list[Choice]:
    """Choose twice, once on each half."""
    # Only proportions matter, so the first weight stays.
    free = [name for name in Weights._fields[1:] if with_similarity or name != "similarity"]
    return [_choose(queries, ask, free, reported_half) for reported_half in (0, 1)]


def _choose(queries: Sequence[Query], ask: Ask, free: Sequence[str], reported_half: int) -> Choice:
    """Start with equal weights, and change one after the other as long as the seen half gains.

    The shipped weights would be an unfair start: they were chosen on both halves. Queries in Chinese and Japanese have
    weights of their own, which stay as they are shipped.
    """
    seen = [query for query in queries if query.half != reported_half and not query.is_cjk]
    reported = [query for query in queries if query.half == reported_half]

    best = Weights(*(1.0 for _ in Weights._fields))
    best_gain = Quality(ask(best, seen)).gain
    for step in _STEPS:
        for name in free:
            start = best
            for factor in (1 / step, step):
                tried = start._replace(**{name: round(getattr(start, name) * factor, 3)})
                gain = Quality(ask(tried, seen)).gain
                if gain > best_gain + _LEAST_GAIN:
                    best = tried
                    best_gain = gain
    return Choice(reported_half, best._asdict(), ask(best, reported))
