"""How good the answers of a search are."""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.search.collections import Query

DEPTH = 10
_NORMAL_95 = 1.959964
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Ranking:
    """The skills that a search returned, best first."""

    identifiers: list[str]
    score: float = 0.0
    """The score of the first one; 0 if there is none, or if the method has no scores that can be compared."""


Rank = Callable[[str], Ranking]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search answered to one query."""

    is_hit: bool
    """Whether the first skill was one of those expected: the right ones, or the wrong one for a near miss."""
    gain: float
    """nDCG@10: 1 if all right skills come first, less the later they come."""
    score: float
    recall: float = 0.0
    """The share of the right skills that are among the first ten."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bin:
    """The answers whose scores lie in one range."""

    low: float
    high: float
    count: int
    mean_score: float
    share_right: float


@dataclass(frozen=True)
class Quality:
    """The results of some queries, in percent."""

    answers: Sequence[Answer]

    @property
    def hit_rate(self) -> float:
        return 100 * mean(answer.is_hit for answer in self.answers)

    @property
    def gain(self) -> float:
        return 100 * mean(answer.gain for answer in self.answers)

    @property
    def recall(self) -> float:
        return 100 * mean(answer.recall for answer in self.answers)

    def __str__(self) -> str:
        if not self.answers:
            return "–"
        return f"{self.hit_rate:.1f} / {self.gain:.1f}"

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the hit rate."""
        hits = sum(answer.is_hit for answer in self.answers)
        interval = wilson(hits, len(self.answers))
        return Interval(100 * interval.low, 100 * interval.high)


def judge(query: Query, ranking: Ranking) -> Answer:
    found = ranking.identifiers[:DEPTH]
    return Answer(
        is_hit=bool(found) and found[0] in query.answers,
        gain=discounted_gain(found, query.answers),
        score=ranking.score,
        recall=len(query.answers.intersection(found)) / max(1, len(query.answers)),
    )


def discounted_gain(found: Sequence[str], right: frozenset[str]) -> float:
    """Return nDCG@10 of a ranking: what its right skills are worth by rank, as a share of the best possible."""
    ideal = sum(1 / math.log2(at + 2) for at in range(min(DEPTH, len(right))))
    gain = sum(1 / math.log2(at + 2) for at, identifier in enumerate(found[:DEPTH]) if identifier in right)
    return gain / ideal if ideal else 0.0


def wilson(hits: int, count: int) -> Interval:
    """Return the 95 % interval of a share (Wilson's score interval)."""
    if not count:
        return Interval(0.0, 1.0)
    share = hits / count
    square = _NORMAL_95**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    reach = _NORMAL_95 / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    return Interval(max(0.0, middle - reach), min(1.0, middle + reach))


def resample(groups: Iterable[Sequence[Answer]]) -> Interval:
    """Return the 95 % interval of the hit rate if the groups, not their queries, are a sample (bootstrap).

    The queries of one author resemble each other, so that few authors say less than many queries seem to.
    """
    counted = [(sum(answer.is_hit for answer in group), len(group)) for group in groups]
    choice = random.Random(5)
    rates: list[float] = []
    for _ in range(_RESAMPLES):
        chosen = choice.choices(counted, k=len(counted))
        rates.append(sum(hits for hits, _ in chosen) / sum(count for _, count in chosen))
    return Interval(percentile(rates, 0.025), percentile(rates, 0.975))


def compare_scores(present: Sequence[Answer], absent: Sequence[Answer]) -> float:
    """Return how likely the score with the right skill is higher than one without: 0.5 says nothing, 1 all (AUC)."""
    if not present or not absent:
        return 0.5
    ordered = sorted(answer.score for answer in absent)
    below = 0.0
    for answer in present:
        low = bisect_left(ordered, answer.score)
        below += low + (bisect_right(ordered, answer.score) - low) / 2
    return below / (len(present) * len(absent))


def sort_into_bins(answers: Iterable[Answer], edges: Sequence[float]) -> list[Bin]:
    """Return, for each range of scores, how often the first skill was right. The last range includes its end."""
    bins: list[Bin] = []
    remaining = list(answers)
    for low, high in pairwise(edges):
        is_last = high == edges[-1]
        inside = [answer for answer in remaining if low <= answer.score and (answer.score < high or is_last)]
        bins.append(
            Bin(
                low=low,
                high=high,
                count=len(inside),
                mean_score=mean(answer.score for answer in inside),
                share_right=mean(answer.is_hit for answer in inside),
            )
        )
    return bins


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return by how much the mean score of a range differs from the share of right answers, on average."""
    total = sum(each.count for each in bins)
    return sum(each.count * abs(each.mean_score - each.share_right) for each in bins) / max(1, total)


def mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
