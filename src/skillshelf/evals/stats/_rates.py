"""Pass rates and how far they can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from skillshelf.evals.stats._quantiles import certainty, z_of

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the true value lies, at the confidence that was asked for."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Counts:
    """Trials by how they ended. Errors are no trials: they are shown, and in no denominator."""

    passed: int = 0
    missed: int = 0
    errors: int = 0

    @property
    def trials(self) -> int:
        return self.passed + self.missed

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.missed + other.missed, self.errors + other.errors)


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of trials. No value and no interval where there were none."""

    passed: int
    total: int
    interval: Interval | None

    @property
    def value(self) -> float | None:
        return self.passed / self.total if self.total else None


def score_interval(share: float, size: float, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval (Wilson 1927, JASA 22:209) for a share of `size` trials, which need not be whole."""
    z = z_of(confidence)
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    reach = z / (1 + z * z / size) * math.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    # The ends are exactly 0 and 1 at those shares; arithmetic gives them a last bit more or less.
    low = 0.0 if share == 0 else min(middle - reach, share)
    high = 1.0 if share == 1 else max(middle + reach, share)
    return Interval(max(0.0, low), min(1.0, high))


def wilson(passed: int, total: int, confidence: float = CONFIDENCE) -> Rate:
    """The rate of independent trials, such as the repeats of one case, with Wilson's score interval."""
    if not 0 <= passed <= total:
        raise ValueError(f"{passed} of {total} is no count of passes")
    return Rate(passed, total, score_interval(passed / total, total, confidence) if total else None)


def clustered(cases: Iterable[tuple[int, int]], confidence: float = CONFIDENCE) -> Rate:
    """The rate over cases, each `(passed, total)`: Wilson's interval at the effective number of trials.

    Repeats of one case tell less than as many new cases. The variance is that of a ratio over clusters, as in Miller
    2024, "Adding Error Bars to Evals" (arXiv:2411.00640); the interval is Wilson's with the size divided by the design
    effect (Dean & Pagano 2015, J. Survey Statistics and Methodology 3:484).
    """
    counted = [(passed, total) for passed, total in cases if total]
    passed, total = sum(one for one, _ in counted), sum(one for _, one in counted)
    if not total:
        return Rate(0, 0, None)
    share, number = passed / total, len(counted)
    spread = sum((one - share * size) ** 2 for one, size in counted)
    variance = spread * number / (number - 1) / total**2 if number > 1 else 0.0
    size = effective_size(share, variance, number, total)
    # One trial of each case is the plain interval; with repeats the spread between few cases is itself a guess.
    size = max(min(size, number), size * certainty(number, confidence))
    return Rate(passed, total, score_interval(share, size, confidence))


def effective_size(share: float, variance: float, cases: int, trials: int) -> float:
    """As many independent trials as would give this variance; between the number of cases and that of trials.

    Where no spread is seen it is the number of cases: all alike is no proof that another case would be.
    """
    if variance <= 0 or share in (0.0, 1.0):
        return cases
    return min(float(trials), max(float(cases), share * (1 - share) / variance))
