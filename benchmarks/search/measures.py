"""How good a ranking is."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.search.collections import Query

DEPTH = 10
Rank = Callable[[str], list[str]]
"""Returns the identifiers of the skills for a query, best first."""


@dataclass(frozen=True)
class Quality:
    """The results of some queries."""

    hits: tuple[bool, ...]
    """Whether the first skill was right."""
    gains: tuple[float, ...]
    """nDCG@10: 1 if all right skills come first, less the later they come."""

    @property
    def hit_rate(self) -> float:
        return 100 * sum(self.hits) / max(1, len(self.hits))

    @property
    def gain(self) -> float:
        return 100 * sum(self.gains) / max(1, len(self.gains))

    def __str__(self) -> str:
        return f"{self.hit_rate:.1f} / {self.gain:.1f}"

    def interval(self) -> str:
        """Return the 95 % interval of the hit rate (Wilson)."""
        count = len(self.hits)
        if not count:
            return ""
        share = self.hit_rate / 100
        square = 1.96**2
        middle = (share + square / (2 * count)) / (1 + square / count)
        reach = 1.96 / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
        return f"{100 * (middle - reach):.0f}–{100 * (middle + reach):.0f}"

    def choose(self, chosen: Sequence[bool]) -> "Quality":
        """Return the results of some of the queries."""
        hits = tuple(hit for hit, is_chosen in zip(self.hits, chosen, strict=True) if is_chosen)
        gains = tuple(gain for gain, is_chosen in zip(self.gains, chosen, strict=True) if is_chosen)
        return Quality(hits, gains)


def measure(queries: Sequence[Query], rank: Rank) -> Quality:
    hits: list[bool] = []
    gains: list[float] = []
    for query in queries:
        found = rank(query.text)[:DEPTH]
        hits.append(bool(found) and found[0] in query.answers)
        ideal = sum(1 / math.log2(at + 2) for at in range(min(DEPTH, len(query.answers))))
        gain = sum(1 / math.log2(at + 2) for at, identifier in enumerate(found) if identifier in query.answers)
        gains.append(gain / ideal)
    return Quality(tuple(hits), tuple(gains))


def measure_near_misses(queries: Sequence[Query], rank: Rank) -> float:
    """Return the percentage of near misses whose wrong skill comes first."""
    if not queries:
        return 0.0
    wrong = 0
    for query in queries:
        found = rank(query.text)[:1]
        wrong += bool(found) and found[0] in query.answers
    return 100 * wrong / len(queries)
