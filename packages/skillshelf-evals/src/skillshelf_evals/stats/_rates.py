"""Pass rates, means and sums over trials, and how far they can be trusted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import pi, sqrt, tan
from statistics import NormalDist, fmean, stdev

from skillshelf_agent.events import Usage
from skillshelf_evals.stats._bounds import Interval, Observation, bound_mean

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Counts:
    """Trials by how they ended. Errors are shown, but are not in any denominator."""

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
    """A share of trials. Without trials it has neither a value nor an interval."""

    passed: int
    total: int
    interval: Interval | None

    @property
    def value(self) -> float | None:
        return self.passed / self.total if self.total else None


def exact_rate(passed: int, total: int) -> Rate:
    """Return the rate of independent trials, such as the repeats of one case, with the interval of Clopper & Pearson.

    It holds the truth in at least 95% of runs, however few trials there are.
    """
    return clustered_rate([(1, 1)] * passed + [(0, 1)] * (total - passed))


def clustered_rate(cases: Iterable[tuple[int, int]], confidence: float = CONFIDENCE) -> Rate:
    """Return the rate over cases, each `(passed, total)`, with an interval for cases like these.

    The case is the unit: each is one observation, its own pass rate, with the weight of its trials. Repeats make that
    observation sharper, but they are not more observations.
    """
    tried = [(passed, total) for passed, total in cases if total]
    if not tried:
        return Rate(0, 0, None)

    observations = tuple(
        Observation(passed / total, total, times) for (passed, total), times in sorted(Counter(tried).items())
    )
    passed = sum(case_passed for case_passed, _ in tried)
    total = sum(case_total for _, case_total in tried)
    return Rate(passed, total, bound_mean(observations, confidence))


def rate_by_case(results: Iterable[tuple[str, bool]], confidence: float = CONFIDENCE) -> Rate:
    """Return the rate of results, each with its case, which is the unit of the interval."""
    totals: dict[str, int] = defaultdict(int)
    passed: dict[str, int] = defaultdict(int)
    for case, is_right in results:
        totals[case] += 1
        passed[case] += is_right
    return clustered_rate([(passed[case], total) for case, total in totals.items()], confidence)


def flaky_share(cases: Iterable[tuple[int, int]]) -> Rate | None:
    """Return the share of cases, each `(passed, total)`, that passed sometimes and missed sometimes.

    Only cases with at least two trials can show it; None if there is none.
    """
    repeated = [(passed, total) for passed, total in cases if total > 1]
    if not repeated:
        return None
    return exact_rate(sum(0 < passed < total for passed, total in repeated), len(repeated))


@dataclass(frozen=True, slots=True)
class Spending:
    """The tokens, seconds and money of several trials."""

    trials: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    """The cost of the trials whose price is known."""
    unpriced: int = 0
    """The number of trials whose price is not known."""

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def is_priced(self) -> bool:
        """True if the cost is that of all trials."""
        return not self.unpriced and self.trials > 0

    def __add__(self, other: Spending) -> Spending:
        sums = [getattr(self, field.name) + getattr(other, field.name) for field in fields(self)]
        return Spending(*sums)


def sum_spending(trials: Iterable[tuple[Usage, float]]) -> Spending:
    """Add up trials, each given by its usage and seconds."""
    return sum(
        (
            Spending(1, usage.input, usage.output, usage.cached, seconds, usage.cost or 0.0, int(usage.cost is None))
            for usage, seconds in trials
        ),
        Spending(),
    )


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over cases. Fewer than two have no interval."""

    value: float
    interval: Interval | None
    cases: int


def mean(values: Sequence[float]) -> Mean | None:
    """Return the mean over cases, which are independent, with Student's t interval (Student 1908, Biometrika 6:1)."""
    if not values:
        return None
    middle = fmean(values)
    if len(values) < 2:
        return Mean(middle, None, 1)
    reach = student_quantile((1 + CONFIDENCE) / 2, len(values) - 1) * stdev(values) / sqrt(len(values))
    return Mean(middle, Interval(middle - reach, middle + reach), len(values))


def student_quantile(level: float, freedom: int) -> float:
    """Return a quantile of Student's t: exact for 1 and 2, else by Abramowitz & Stegun (1964), expansion 26.7.5."""
    if freedom == 1:
        return tan(pi * (level - 0.5))
    if freedom == 2:
        share = 2 * level - 1
        return share * sqrt(2 / (1 - share * share))

    z = NormalDist().inv_cdf(level)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
