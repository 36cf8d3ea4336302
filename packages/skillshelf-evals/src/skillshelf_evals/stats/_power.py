"""How many more runs would settle a difference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt
from statistics import NormalDist, fmean, variance

from skillshelf_evals.stats._exact import sign_flip
from skillshelf_evals.stats._paired import Pair
from skillshelf_evals.stats._rates import CONFIDENCE

POWER = 0.8
MAX_MORE_RUNS = 10_000
_NO_DIFFERENCE = f"no difference is seen: more runs will not settle it within {MAX_MORE_RUNS:,}"


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


def settle(pairs: Sequence[Pair], tests: int = 1) -> NeededRuns | None:
    """Return the sample size at which the test would find the difference in four of five runs.

    `tests` is how many differences are looked at together: each must then be clearer. The variance of the cases'
    differences is split into a part that repeats reduce and a part that only more cases do (Chow, Shao & Wang 2008,
    ch. 3).
    """
    if not pairs:
        return None
    differences = [pair.difference for pair in pairs]
    value = float(sum(differences) / len(pairs))
    level = (1 - CONFIDENCE) / tests
    p, _ = sign_flip(differences)
    if p <= level:
        return NeededRuns(None, None, 0, "settled")
    if not value:
        return NeededRuns(None, None, 0, _NO_DIFFERENCE)

    trials = sum(pair.base[1] + pair.new[1] for pair in pairs)
    trials_per_case = trials / len(pairs)
    ways: list[str] = []
    costs: list[int] = []

    repeats = _needed_repeats(pairs, value, level)
    if repeats is not None:
        cost = repeats * 2 * len(pairs) - trials
        ways.append(f"{repeats:,} repeats of these cases ({cost:,} more runs)")
        costs.append(cost)

    cases: int | None = None
    needed_cases = _needed_cases(pairs, value, level)
    cost = ceil(needed_cases * trials_per_case) - trials
    if cost <= MAX_MORE_RUNS:
        cases = needed_cases
        ways.append(f"{cases:,} cases in all ({cost:,} more runs)")
        costs.append(cost)

    if not ways:
        return NeededRuns(None, None, 0, f"more runs will not settle it within {MAX_MORE_RUNS:,}")
    return NeededRuns(repeats, cases, min(costs), f"needs about {' or '.join(ways)}")


def _needed_cases(pairs: Sequence[Pair], value: float, level: float) -> int:
    differing = sum(pair.difference != 0 for pair in pairs)
    for_the_test = ceil(_min_differing_pairs(level) * len(pairs) / differing)
    # Few cases may agree more than their trials could make sure.
    spread = max(_variance_of_differences(pairs), _noise_of_differences(pairs))
    return max(len(pairs) + 1, for_the_test, ceil(_cases_for(value, spread, level)))


def _needed_repeats(pairs: Sequence[Pair], value: float, level: float) -> int | None:
    """Return the repeats of each case; None if repeats cannot settle it.

    That is so with too few cases, with cases that differ too much, and without repeats yet to estimate the noise from.
    """
    totals = [total for pair in pairs for total in (pair.base[1], pair.new[1])]
    if len(pairs) < _min_differing_pairs(level) or min(totals) < 2:
        return None
    noise = fmean(_trial_variance(*pair.base) + _trial_variance(*pair.new) for pair in pairs)
    between_cases = max(0.0, _variance_of_differences(pairs) - _noise_of_differences(pairs))

    def is_enough(repeats: int) -> bool:
        return _cases_for(value, between_cases + noise / repeats, level) <= len(pairs)

    most = (MAX_MORE_RUNS + sum(totals)) // (2 * len(pairs))
    possible = range(max(totals) + 1, most + 1)
    index = bisect_left(possible, True, key=is_enough)  # any more than enough are enough, too
    return possible[index] if index < len(possible) else None


def _cases_for(value: float, spread: float, level: float) -> float:
    """Return the number of cases at which a difference of this size, with this variance, is found.

    The permutation test compares the sum with one whose signs are random, and the variance of that is the mean square
    of the differences, not their variance around the mean.
    """
    for_the_test = NormalDist().inv_cdf(1 - level / 2) * sqrt(spread + value * value)
    for_the_power = NormalDist().inv_cdf(POWER) * sqrt(spread)
    return ((for_the_test + for_the_power) / value) ** 2


def _min_differing_pairs(level: float) -> int:
    """Return the fewest pairs that can settle anything: n that all point in one direction have a p of 2 / 2^n."""
    return ceil(log2(2 / level))


def _variance_of_differences(pairs: Sequence[Pair]) -> float:
    if len(pairs) < 2:
        return 0.0
    return float(variance([pair.difference for pair in pairs]))


def _noise_of_differences(pairs: Sequence[Pair]) -> float:
    """Return the part of the variance that comes from the trials; 0 if single trials do not show it."""
    return fmean(
        _trial_variance(*pair.base) / pair.base[1] + _trial_variance(*pair.new) / pair.new[1] for pair in pairs
    )


def _trial_variance(passed: int, total: int) -> float:
    """Return the variance of one trial of a case, unbiased; 0 if there is only one."""
    if total == 1:
        return 0.0
    share = passed / total
    return share * (1 - share) * total / (total - 1)
