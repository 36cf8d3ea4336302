"""Exact tests: how often chance alone would give a difference as large as the one seen."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import comb, lcm

DRAWS = 5_000
MAX_ADDITIONS = 20_000_000
"""An upper limit for the additions of the exact permutation test, which takes half a second there at the very most."""


def mcnemar(only_base: int, only_new: int) -> float:
    """Return the exact two-sided p of a fair coin for the pairs that differ (McNemar 1947, Psychometrika 12:153)."""
    number = only_base + only_new
    fewer = min(only_base, only_new)
    ways = sum(comb(number, count) for count in range(fewer + 1))
    return min(1.0, 2 * ways / (1 << number))


def sign_flip(differences: Sequence[Fraction]) -> tuple[float, str]:
    """Return the p of the paired permutation test on per-case differences, and the method (Fisher 1935; Good 2005).

    If the arms did not differ, each case's difference could as well have had the other sign. The case is the unit, so
    repeats of one are never counted as independent. With one trial on each arm it is the exact McNemar test.

    The time grows with the square of the cases and with the repeats: 0.2 ms for 20 cases of 5 repeats, 10 ms for 100
    of 10, 0.2 s for 500 of 10. Beyond that, signs are drawn at random, with the same draws each time.
    """
    unit = lcm(*(value.denominator for value in differences))
    steps = [abs(int(value * unit)) for value in differences if value]
    observed = abs(int(sum(differences) * unit))
    if len(differences) ** 2 * unit > MAX_ADDITIONS:
        return _draw_signs(steps, observed), f"permutation test on cases, {DRAWS:,} draws"

    # ways[s] is the number of ways to choose cases whose differences, all taken as positive, add up to s. If exactly
    # those change their sign to minus, the sum of all is total - 2s.
    total = sum(steps)
    ways = [1] + [0] * total
    reached = 0
    for step in steps:
        for position in range(reached, -1, -1):
            ways[position + step] += ways[position]
        reached += step
    extreme = sum(count for position, count in enumerate(ways) if abs(total - 2 * position) >= observed)
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


def fisher(base: tuple[int, int], new: tuple[int, int]) -> float:
    """Return the two-sided p of Fisher's exact test for one case, tried on two arms, each `(passed, total)`.

    It adds up all ways to share out the passes that are at most as likely as the one seen (Fisher 1935).
    """
    passed = base[0] + new[0]
    fewest = max(0, passed - new[1])
    most = min(passed, base[1])
    ways = {count: comb(base[1], count) * comb(new[1], passed - count) for count in range(fewest, most + 1)}
    at_most_as_likely = sum(number for number in ways.values() if number <= ways[base[0]])
    return at_most_as_likely / sum(ways.values())


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for being looked at together (Holm 1979, Scandinavian Journal of Statistics 6:65).

    If nothing differs, the chance that any of them is at most 0.05 is at most 0.05, however they depend on each other.
    """
    corrected = [1.0] * len(p_values)
    highest = 0.0
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = highest
    return corrected
