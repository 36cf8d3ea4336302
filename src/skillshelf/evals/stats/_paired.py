"""Two arms on the same cases: their difference, how sure it is, and how many more runs would settle it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb, lcm, sqrt
from statistics import NormalDist, fmean, variance
from typing import Literal

from skillshelf.evals.stats._rates import (
    CONFIDENCE,
    Interval,
    certainty,
    effective_size,
    normal_quantile,
    score_interval,
)

DRAWS = 5_000
MAX_TABLE = 2 * 1024 * 1024
"""The exact test counts in a table of up to this many bytes. Beyond, signs are drawn at random."""
# With fewer pairs that differ, all in one direction, the exact test stays above 0.05: 2 / 2^5 is 0.0625.
MIN_DIFFERING_PAIRS = 6
POWER = 0.8
MAX_MORE_RUNS = 10_000


@dataclass(frozen=True, slots=True)
class Pair:
    """One case on two arms, each `(passed, total)`. No total is 0."""

    case: str
    base: tuple[int, int]
    new: tuple[int, int]

    @property
    def difference(self) -> Fraction:
        return Fraction(*self.new) - Fraction(*self.base)


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of the cases' own differences, new minus base. Each case weighs the same, however often it ran."""

    base: float
    new: float
    value: float
    interval: Interval
    p: float
    method: str
    cases: int

    @property
    def verdict(self) -> Literal["better", "worse", "open"]:
        """Settled only if the interval excludes 0 and the exact test agrees.

        A score interval alone is too sure of itself on two or three cases."""
        if self.p > 1 - CONFIDENCE or 0 in self.interval:
            return "open"
        return "better" if self.value > 0 else "worse"


def difference(pairs: Sequence[Pair], confidence: float = CONFIDENCE) -> Difference | None:
    """Return the paired difference with its interval and p; None without pairs."""
    if not pairs:
        return None

    has_single_trials = all(pair.base[1] == pair.new[1] == 1 for pair in pairs)
    if has_single_trials:
        only_base = sum(pair.difference < 0 for pair in pairs)
        only_new = sum(pair.difference > 0 for pair in pairs)
        p = mcnemar(only_base, only_new)
        method = "exact McNemar test"
    else:
        p, method = sign_flip([pair.difference for pair in pairs])

    base = _Arm([pair.base for pair in pairs], confidence)
    new = _Arm([pair.new for pair in pairs], confidence)
    value = float(sum(pair.difference for pair in pairs) / len(pairs))
    interval = _paired_interval(base, new, value)
    return Difference(base.share, new.share, value, interval, p, method, len(pairs))


def mcnemar(only_base: int, only_new: int) -> float:
    """Return the exact two-sided p of a fair coin for the pairs that differ (McNemar 1947, Psychometrika 12:153)."""
    number = only_base + only_new
    fewer = min(only_base, only_new)
    ways = sum(comb(number, count) for count in range(fewer + 1))
    return min(1.0, 2 * ways / (1 << number))


def sign_flip(differences: Sequence[Fraction], max_table: int = MAX_TABLE) -> tuple[float, str]:
    """Return the p of the paired permutation test on per-case differences, and the method (Fisher 1935; Good 2005).

    If the arms did not differ, each case's difference could as well have had the other sign. The case is the unit, so
    repeats of one are never counted as independent. With one trial on each arm it is the exact McNemar test.
    """
    unit = lcm(*(value.denominator for value in differences))
    steps = [abs(int(value * unit)) for value in differences if value]
    observed = abs(int(sum(differences) * unit))
    total = sum(steps)
    width = len(steps) // 8 + 1
    if (total + 1) * width > max_table:
        return _draw_signs(steps, observed), f"permutation test on cases, {DRAWS:,} draws"

    # One integer holds, in fields of `width` bytes, how many of the 2^n choices of signs give each sum. Adding a
    # shifted copy of the table to itself adds one case with either sign.
    table = 1
    for step in steps:
        table += table << (8 * width * step)
    fields = table.to_bytes((total + 1) * width, "little")
    extreme = 0
    for position in range(total + 1):
        if abs(total - 2 * position) >= observed:
            extreme += int.from_bytes(fields[position * width : (position + 1) * width], "little")
    return extreme / (1 << len(steps)), "exact permutation test on cases"


def _draw_signs(steps: Sequence[int], observed: int) -> float:
    """Return p by random draws. The observed result counts as one of them (Phipson & Smyth 2010, SAGMB 9:39)."""
    generator = random.Random(0)
    hits = 0
    for _ in range(DRAWS):
        drawn = sum(step if generator.random() < 0.5 else -step for step in steps)
        if abs(drawn) >= observed:
            hits += 1
    return (hits + 1) / (DRAWS + 1)


class _Arm:
    """One side of the pairs."""

    def __init__(self, counts: Sequence[tuple[int, int]], confidence: float) -> None:
        cases = len(counts)
        trials = sum(total for _, total in counts)
        self.shares = [passed / total for passed, total in counts]
        self.share = float(sum(Fraction(*count) for count in counts) / cases)
        spread = variance(self.shares) if cases > 1 else 0.0
        size = effective_size(self.share, spread / cases, cases, trials)
        self.trials_per_case = size / cases
        """How many trials of a case count, as far as they tell more than one would."""
        self.interval = score_interval(self.share, size * certainty(cases, confidence), confidence)


def _paired_interval(base: _Arm, new: _Arm, value: float) -> Interval:
    """Return Newcombe's interval at the effective sizes of the arms."""
    step = 1 / (base.trials_per_case * new.trials_per_case)
    correlation = phi(base.shares, new.shares, step)
    interval = newcombe((base.share, base.interval), (new.share, new.interval), correlation)
    # The value comes from exact fractions. Rounding of floats must not move the middle.
    shift = value - (new.share - base.share)
    return Interval(max(-1.0, interval.low + shift), min(1.0, interval.high + shift))


def newcombe(base: tuple[float, Interval], new: tuple[float, Interval], correlation: float) -> Interval:
    """Return Newcombe's interval for paired proportions (1998, Statistics in Medicine 17:2635, method 10).

    It joins the Wilson intervals of both arms under their correlation.
    """
    base_share, base_interval = base
    new_share, new_interval = new
    middle = new_share - base_share
    below = _join(new_share - new_interval.low, base_interval.high - base_share, correlation)
    above = _join(new_interval.high - new_share, base_share - base_interval.low, correlation)
    return Interval(middle - below, middle + above)


def _join(first: float, second: float, correlation: float) -> float:
    return sqrt(max(0.0, first * first + second * second - 2 * correlation * first * second))


def phi(base: Sequence[float], new: Sequence[float], step: float = 1.0) -> float:
    """Return the correlation of the cases' rates, with the continuity correction of method 10 if it is positive.

    There the correction is n/2 off ad - bc, which is n times the sum of products below: half of the step by which that
    sum moves when two cases change places. With repeats the rates have finer steps, and so has the sum.
    """
    base_mean = fmean(base)
    new_mean = fmean(new)
    base_spread = sum((rate - base_mean) ** 2 for rate in base)
    new_spread = sum((rate - new_mean) ** 2 for rate in new)
    scale = sqrt(base_spread * new_spread)
    if scale <= 0:
        return 0.0
    products = sum(
        (base_rate - base_mean) * (new_rate - new_mean) for base_rate, new_rate in zip(base, new, strict=True)
    )
    if products > 0:
        products = max(products - step / 2, 0.0)
    return max(-1.0, min(1.0, products / scale))


@dataclass(frozen=True, slots=True)
class NeededRuns:
    """How many runs would settle a difference, if it is as measured. None if that is not possible within the limit."""

    repeats: int | None
    """Trials of each of the same cases on each arm."""
    cases: int | None
    """Cases in all, with as many trials each as now."""
    runs: int
    """More trials, for the cheaper of the two; 0 if it is settled, or no number would do."""
    text: str


def settle(pairs: Sequence[Pair], limit: int = MAX_MORE_RUNS) -> NeededRuns | None:
    """Return the sample size at which the interval would exclude 0 in four of five runs.

    The variance of the cases' differences is split into a part that repeats reduce and a part that only more cases do
    (Chow, Shao & Wang 2008, ch. 3).
    """
    found = difference(pairs)
    if found is None:
        return None
    if found.verdict != "open":
        return NeededRuns(None, None, 0, "settled")
    if not found.value:
        return NeededRuns(None, None, 0, f"no difference is seen: more runs will not settle it within {limit:,}")

    trials = sum(pair.base[1] + pair.new[1] for pair in pairs)
    trials_per_case = trials / len(pairs)
    ways: list[str] = []
    costs: list[int] = []

    repeats: int | None = None
    needed_repeats = _needed_repeats(pairs, found.value)
    if needed_repeats is not None:
        cost = needed_repeats * 2 * len(pairs) - trials
        if cost <= limit:
            repeats = needed_repeats
            ways.append(f"{repeats:,} repeats of these cases ({cost:,} more runs)")
            costs.append(cost)

    cases: int | None = None
    needed_cases = _needed_cases(pairs, found.value, int(limit / trials_per_case) + len(pairs))
    cost = ceil(needed_cases * trials_per_case) - trials
    if cost <= limit:
        cases = needed_cases
        ways.append(f"{cases:,} cases in all ({cost:,} more runs)")
        costs.append(cost)

    if not ways:
        return NeededRuns(None, None, 0, f"more runs will not settle it within {limit:,}")
    return NeededRuns(repeats, cases, min(costs), f"needs about {' or '.join(ways)}")


def _needed_variance(value: float) -> float:
    """Return the variance of the mean at which a difference of this size is found."""
    return (value / (normal_quantile(CONFIDENCE) + NormalDist().inv_cdf(POWER))) ** 2


def _needed_cases(pairs: Sequence[Pair], value: float, limit: int) -> int:
    differing = sum(pair.difference != 0 for pair in pairs)
    spread = float(variance([pair.difference for pair in pairs])) if len(pairs) > 1 else 0.0
    for_the_test = ceil(MIN_DIFFERING_PAIRS * len(pairs) / differing)
    number = max(len(pairs) + 1, for_the_test, ceil(spread / _needed_variance(value)))
    # On few cases the interval is wider than the normal theory has it, so it is computed for copies of the same cases.
    while number <= limit and 0 in _interval_of([*pairs] * ceil(number / len(pairs))):
        number += max(1, number // 4)
    return number


def _interval_of(pairs: Sequence[Pair]) -> Interval:
    """Return the interval alone, without the test that takes most of the time."""
    base = _Arm([pair.base for pair in pairs], CONFIDENCE)
    new = _Arm([pair.new for pair in pairs], CONFIDENCE)
    return _paired_interval(base, new, new.share - base.share)


def _needed_repeats(pairs: Sequence[Pair], value: float) -> int | None:
    """Return the repeats of each case; None if repeats cannot settle it.

    That is so with too few cases, with cases that differ too much, and without repeats yet to estimate the noise from.
    """
    totals = [total for pair in pairs for total in (pair.base[1], pair.new[1])]
    if len(pairs) < MIN_DIFFERING_PAIRS or min(totals) < 2:
        return None
    noise = fmean(_trial_variance(*pair.base) + _trial_variance(*pair.new) for pair in pairs)
    noise_now = fmean(
        _trial_variance(*pair.base) / pair.base[1] + _trial_variance(*pair.new) / pair.new[1] for pair in pairs
    )
    between_cases = max(0.0, float(variance([pair.difference for pair in pairs])) - noise_now)
    room = _needed_variance(value) * len(pairs) - between_cases
    if room <= 0:
        return None
    return max(max(totals) + 1, ceil(noise / room))


def _trial_variance(passed: int, total: int) -> float:
    """Return the variance of one trial of a case, unbiased."""
    share = passed / total
    return share * (1 - share) * total / (total - 1)
