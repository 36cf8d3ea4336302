"""Pass rates, means and sums over trials, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, pi, sqrt, tan
from statistics import NormalDist, fmean, stdev

from skillshelf.agent.events import Usage

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the true value lies, at a given confidence."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


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


def wilson(passed: int, total: int, confidence: float = CONFIDENCE) -> Rate:
    """Return the rate of independent trials, such as the repeats of one case, with Wilson's score interval."""
    if not 0 <= passed <= total:
        raise ValueError(f"{passed} passes of {total} trials are impossible")
    interval = score_interval(passed / total, total, confidence) if total else None
    return Rate(passed, total, interval)


def clustered_rate(cases: Iterable[tuple[int, int]], confidence: float = CONFIDENCE) -> Rate:
    """Return the rate over cases, each `(passed, total)`: Wilson's interval at the effective number of trials.

    Repeats of one case tell less than as many new cases. The variance is that of a ratio over clusters, as in Miller
    2024, "Adding Error Bars to Evals" (arXiv:2411.00640); the interval is Wilson's with the size divided by the design
    effect (Dean & Pagano 2015, J. Survey Statistics and Methodology 3:484).
    """
    tried = [(passed, total) for passed, total in cases if total]
    passed = sum(case_passed for case_passed, _ in tried)
    total = sum(case_total for _, case_total in tried)
    if not total:
        return Rate(0, 0, None)

    share = passed / total
    number = len(tried)
    variance = 0.0
    if number > 1:
        spread = sum((case_passed - share * case_total) ** 2 for case_passed, case_total in tried)
        variance = spread * number / (number - 1) / total**2

    size = effective_size(share, variance, number, total)
    # With one trial of each case this is the plain interval. With repeats, the spread between few cases is itself an
    # estimate, which makes the interval wider.
    size = max(min(size, number), size * certainty(number, confidence))
    return Rate(passed, total, score_interval(share, size, confidence))


def score_interval(share: float, size: float, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's score interval (1927, JASA 22:209) for a share of `size` trials, which may be fractional."""
    z = normal_quantile(confidence)
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    reach = z / (1 + z * z / size) * sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    # At shares of 0 and 1 the ends are exact. Floating-point arithmetic would be off in the last bit.
    low = 0.0 if share == 0 else min(middle - reach, share)
    high = 1.0 if share == 1 else max(middle + reach, share)
    return Interval(max(0.0, low), min(1.0, high))


def effective_size(share: float, variance: float, cases: int, trials: int) -> float:
    """Return how many independent trials would give this variance: at least the cases, at most the trials.

    If all cases agree, it is the number of cases: that does not prove that another case would agree.
    """
    if variance <= 0 or share in (0.0, 1.0):
        return cases
    return min(float(trials), max(float(cases), share * (1 - share) / variance))


def pass_at(k: int, passed: int, total: int) -> float:
    """Return the chance that one of k tries passes, unbiased (Chen et al. 2021, arXiv:2107.03374, equation 1)."""
    _check_tries(k, passed, total)
    return 1 - comb(total - passed, k) / comb(total, k)


def pass_all(k: int, passed: int, total: int) -> float:
    """Return the chance that all of k tries pass, "pass^k", unbiased (Yao et al. 2024, tau-bench, arXiv:2406.12045)."""
    _check_tries(k, passed, total)
    return comb(passed, k) / comb(total, k)


@dataclass(frozen=True, slots=True)
class PassK:
    """pass@k and pass^k, as means over the cases that had at least k trials."""

    k: int
    at: float
    """The chance that one of k tries passes."""
    all: float
    """The chance that all of k tries pass."""
    cases: int


def pass_k(k: int, cases: Iterable[tuple[int, int]]) -> PassK | None:
    """Return pass@k and pass^k over cases, each `(passed, total)`; None if no case had k trials without an error."""
    enough = [(passed, total) for passed, total in cases if total >= k]
    if not enough:
        return None
    return PassK(
        k,
        sum(pass_at(k, passed, total) for passed, total in enough) / len(enough),
        sum(pass_all(k, passed, total) for passed, total in enough) / len(enough),
        len(enough),
    )


def _check_tries(k: int, passed: int, total: int) -> None:
    if not 0 <= passed <= total or not 1 <= k <= total:
        raise ValueError(f"{passed} passes of {total} trials give no estimate for {k} tries")


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


def sum_spending(trials: Iterable[tuple[Usage, float]]) -> Spending:
    """Add up trials, each given by its usage and seconds."""
    given = list(trials)
    return Spending(
        trials=len(given),
        input=sum(usage.input for usage, _ in given),
        output=sum(usage.output for usage, _ in given),
        cached=sum(usage.cached for usage, _ in given),
        seconds=sum(seconds for _, seconds in given),
        cost=sum(usage.cost or 0.0 for usage, _ in given),
        unpriced=sum(usage.cost is None for usage, _ in given),
    )


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over cases. Fewer than two have no interval."""

    value: float
    interval: Interval | None
    cases: int


def mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Mean | None:
    """Return the mean over cases, which are independent, with Student's t interval (Student 1908, Biometrika 6:1)."""
    if not values:
        return None
    middle = fmean(values)
    if len(values) < 2:
        return Mean(middle, None, 1)
    reach = student_quantile((1 + confidence) / 2, len(values) - 1) * stdev(values) / sqrt(len(values))
    return Mean(middle, Interval(middle - reach, middle + reach), len(values))


def normal_quantile(confidence: float) -> float:
    """Return the two-sided quantile of the normal distribution."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def student_quantile(level: float, freedom: int) -> float:
    """Return a quantile of Student's t: exact for 1 and 2, else by Abramowitz & Stegun (1964), expansion 26.7.5."""
    if freedom == 1:
        return tan(pi * (level - 0.5))
    if freedom == 2:
        share = 2 * level - 1
        return share * sqrt(2 / (1 - share * share))

    z = normal_quantile(2 * level - 1)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def certainty(cases: int, confidence: float) -> float:
    """Return the factor by which a variance from few cases shrinks the effective size.

    It is the square of the normal quantile over Student's (Korn & Graubard 1998, Survey Methodology 24:193).
    """
    student = student_quantile((1 + confidence) / 2, max(1, cases - 1))
    return (normal_quantile(confidence) / student) ** 2
