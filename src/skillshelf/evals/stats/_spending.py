"""Tokens, time and money."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from skillshelf.agent.events import Usage
from skillshelf.evals.stats._quantiles import student
from skillshelf.evals.stats._rates import CONFIDENCE, Interval


@dataclass(frozen=True, slots=True)
class Spent:
    """A sum over trials. `cost` is that of the trials whose price is known; `unpriced` counts the others."""

    trials: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def priced(self) -> bool:
        """Whether the sum is the whole price."""
        return not self.unpriced and self.trials > 0


def spent(trials: Iterable[tuple[Usage, float]]) -> Spent:
    """The sum over trials, each its usage and seconds."""
    given = list(trials)
    return Spent(
        len(given),
        sum(usage.input for usage, _ in given),
        sum(usage.output for usage, _ in given),
        sum(usage.cached for usage, _ in given),
        sum(seconds for _, seconds in given),
        sum(usage.cost or 0.0 for usage, _ in given),
        sum(usage.cost is None for usage, _ in given),
    )


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over cases; no interval for fewer than two."""

    value: float
    interval: Interval | None
    cases: int


def mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Mean | None:
    """The mean over cases with Student's t interval (Student 1908, Biometrika 6:1): cases are the independent unit."""
    if not values:
        return None
    middle = fmean(values)
    if len(values) < 2:
        return Mean(middle, None, 1)
    reach = student((1 + confidence) / 2, len(values) - 1) * stdev(values) / sqrt(len(values))
    return Mean(middle, Interval(middle - reach, middle + reach), len(values))
