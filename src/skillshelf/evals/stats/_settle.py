"""How many more runs would settle a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import NormalDist, fmean, variance

from skillshelf.evals.stats._paired import Pair, difference, reach
from skillshelf.evals.stats._quantiles import z_of
from skillshelf.evals.stats._rates import CONFIDENCE

# With fewer pairs that differ, all in one direction, the exact test stays above 0.05: 2 / 2^5 is 0.0625.
FEWEST = 6
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Settle:
    """What it would take, if the difference is as seen. None where it would not do within the limit."""

    repeats: int | None
    """Trials of each of the same cases on each arm."""
    cases: int | None
    """Cases, at as many trials each as now."""
    runs: int
    """Trials beyond those there are, for the cheaper of the two; 0 where it is settled, or nothing would."""
    text: str


def settle(pairs: Sequence[Pair], limit: int = 10_000) -> Settle | None:
    """The sample size at which the interval would leave out 0 in four of five runs (Chow, Shao & Wang 2008, ch. 3).

    The variance of the cases' differences is split into what repeats take away and what only more cases do.
    """
    found = difference(pairs)
    if found is None:
        return None
    if found.verdict != "open":
        return Settle(None, None, 0, "settled")
    have = sum(one.base[1] + one.new[1] for one in pairs)
    if not found.value:
        return Settle(None, None, 0, f"no difference is seen: more runs will not settle it within {limit:,}")
    per_case = have / len(pairs)
    repeats, cases = _repeats(pairs, found.value), _cases(pairs, found.value, int(limit / per_case) + len(pairs))
    costs = {
        "repeats": repeats * 2 * len(pairs) - have if repeats else limit + 1,
        "cases": ceil(cases * per_case) - have,
    }
    if costs["repeats"] > limit:
        repeats = None
    if costs["cases"] > limit:
        return Settle(repeats, None, costs["repeats"] if repeats else 0, _say(repeats, None, costs, limit))
    return Settle(repeats, cases, min(costs.values()), _say(repeats, cases, costs, limit))


def _say(repeats: int | None, cases: int | None, costs: dict[str, int], limit: int) -> str:
    ways = []
    if repeats:
        ways.append(f"{repeats:,} repeats of these cases ({costs['repeats']:,} more runs)")
    if cases:
        ways.append(f"{cases:,} cases in all ({costs['cases']:,} more runs)")
    return "needs about " + " or ".join(ways) if ways else f"more runs will not settle it within {limit:,}"


def _needed(value: float) -> float:
    """The variance of the mean at which a difference of this size is seen as one."""
    return (value / (z_of(CONFIDENCE) + NormalDist().inv_cdf(POWER))) ** 2


def _cases(pairs: Sequence[Pair], value: float, limit: int) -> int:
    differing = sum(one.difference != 0 for one in pairs)
    spread = float(variance([one.difference for one in pairs])) if len(pairs) > 1 else 0.0
    by_test = ceil(FEWEST * len(pairs) / differing)
    number = max(len(pairs) + 1, by_test, ceil(spread / _needed(value)))
    # On few cases the interval is wider than the normal theory has it: the same kinds of cases again must do.
    while number <= limit and 0 in reach([*pairs] * -(-number // len(pairs))):
        number += max(1, number // 4)
    return number


def _repeats(pairs: Sequence[Pair], value: float) -> int | None:
    """None where repeats cannot do it: too few cases, cases that differ too much, or no repeats yet to judge by."""
    if len(pairs) < FEWEST or any(total < 2 for one in pairs for total in (one.base[1], one.new[1])):
        return None
    noise = fmean(_noise(*one.base) + _noise(*one.new) for one in pairs)
    seen = fmean(_noise(*one.base) / one.base[1] + _noise(*one.new) / one.new[1] for one in pairs)
    between = max(0.0, float(variance([one.difference for one in pairs])) - seen)
    left = _needed(value) * len(pairs) - between
    least = max(total for one in pairs for total in (one.base[1], one.new[1])) + 1
    return max(least, ceil(noise / left)) if left > 0 else None


def _noise(passed: int, total: int) -> float:
    """The variance of one trial of a case, unbiased."""
    share = passed / total
    return share * (1 - share) * total / (total - 1)
