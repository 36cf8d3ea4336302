"""The best of several descriptions, with a score that is not flattered by having been chosen."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from skillshelf.evals.stats._bounds import Interval
from skillshelf.evals.stats._rates import CONFIDENCE, Rate, exact_rate, share_interval

BOOTSTRAP_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Choice:
    """The best description, and the score to expect of it."""

    best: str
    chosen_on: Rate
    """Its score on the queries it was chosen by, which flatters it."""
    held_out: Rate
    """Its score on the queries held out, which is honest."""
    corrected: float
    """Its score on all queries, minus the flattery."""
    corrected_interval: Interval
    left_out: int
    """The number of queries that infrastructure errors kept from some description."""
    naive: Rate
    """The highest score that any description has on all queries."""
    choosing_queries: tuple[int, ...]
    """The queries to choose by, as positions in `scores`."""
    held_out_queries: tuple[int, ...]

    @property
    def flattery(self) -> float:
        """How much of the naive score is due to choosing."""
        return (self.naive.value or 0.0) - self.corrected


def choose_best(
    scores: Mapping[str, Sequence[bool | None]],
    queries: Sequence[str] = (),
    groups: Sequence[bool] = (),
    hold_out: float = 0.5,
    confidence: float = CONFIDENCE,
) -> Choice:
    """Choose the best description on one part of the queries, and score it on the other.

    `scores` tells for each description whether it was right on each query; None is an infrastructure error. `queries`
    identify the queries, so that the parts stay the same when others are added. Each of the `groups` (such as
    `should_trigger`) is split alike.

    The corrected score is that of the bootstrap: chosen on the queries that were drawn, scored on those that were not
    (Efron & Tibshirani 1997, JASA 92:548; Tsamardinos et al. 2018, Machine Learning 107:1895).
    """
    sizes = {len(row) for row in scores.values()}
    if len(sizes) != 1:
        raise ValueError("every description needs a result for each query")
    number = sizes.pop()
    names = queries or [str(index) for index in range(number)]
    kinds = groups or [True] * number
    if len(names) != number or len(kinds) != number:
        raise ValueError("queries and groups need one entry for each query")

    scored = [index for index in range(number) if all(row[index] is not None for row in scores.values())]
    choosing, held_out = _split(scored, names, kinds, hold_out)
    if not choosing or not held_out:
        raise ValueError("too few queries: a group needs at least two, one to choose by and one to hold out")

    best = _find_best(scores, choosing)
    corrected, interval = _bootstrap(scores, scored, confidence)
    return Choice(
        best=best,
        chosen_on=_rate(scores[best], choosing, confidence),
        held_out=_rate(scores[best], held_out, confidence),
        corrected=corrected,
        corrected_interval=interval,
        left_out=number - len(scored),
        naive=_rate(scores[_find_best(scores, scored)], scored, confidence),
        choosing_queries=tuple(sorted(choosing)),
        held_out_queries=tuple(sorted(held_out)),
    )


def _split(
    scored: Sequence[int], names: Sequence[str], kinds: Sequence[bool], hold_out: float
) -> tuple[list[int], list[int]]:
    """Split queries by their digests. By their order, one author's batch could end up on one side."""

    def digest_and_index(index: int) -> tuple[bytes, int]:
        return hashlib.sha256(names[index].encode("utf-8", "surrogatepass")).digest(), index

    groups: dict[bool, list[int]] = defaultdict(list)
    for index in sorted(scored, key=digest_and_index):
        groups[kinds[index]].append(index)

    choosing: list[int] = []
    held_out: list[int] = []
    for group in groups.values():
        cut = max(1, round(len(group) * hold_out)) if len(group) > 1 else 0
        held_out += group[:cut]
        choosing += group[cut:]

    return choosing, held_out


def _find_best(scores: Mapping[str, Sequence[bool | None]], queries: Sequence[int]) -> str:
    """Return the first of the descriptions that score highest, so that a tie changes nothing."""
    return max(scores, key=lambda name: sum(bool(scores[name][index]) for index in queries))


def _rate(row: Sequence[bool | None], queries: Sequence[int], confidence: float) -> Rate:
    return exact_rate(sum(bool(row[index]) for index in queries), len(queries), confidence)


def _bootstrap(
    scores: Mapping[str, Sequence[bool | None]], scored: Sequence[int], confidence: float
) -> tuple[float, Interval]:
    generator = random.Random(0)
    estimates: list[float] = []
    while len(estimates) < BOOTSTRAP_DRAWS:
        drawn = generator.choices(scored, k=len(scored))
        rest = sorted(set(scored) - set(drawn))
        if rest:
            row = scores[_find_best(scores, drawn)]
            estimates.append(fmean(bool(row[index]) for index in rest))

    estimates.sort()
    value = fmean(estimates)

    # The bootstrap knows only the queries it has seen: twenty without a miss would give certainty. So the interval is
    # never narrower than the exact one. Together they hold the truth in at least 95% of simulated runs.
    tail = int(len(estimates) * (1 - confidence) / 2)
    plain = share_interval(value, len(scored), confidence)
    return value, Interval(min(estimates[tail], plain.low), max(estimates[-1 - tail], plain.high))
