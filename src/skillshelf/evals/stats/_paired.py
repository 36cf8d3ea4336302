"""Two arms on the same cases: their difference, how sure it is, and whether chance alone would do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, lcm, sqrt
from statistics import fmean, variance
from typing import Literal

from skillshelf.evals.stats._quantiles import certainty
from skillshelf.evals.stats._rates import CONFIDENCE, Interval, effective_size, score_interval

_DRAWS = 5_000
# Bytes of the table that the exact test counts in; beyond, signs are drawn.
_TABLE = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pair:
    """One case on two arms, each `(passed, total)`; no total is 0."""

    case: str
    base: tuple[int, int]
    new: tuple[int, int]

    @property
    def difference(self) -> Fraction:
        return Fraction(*self.new) - Fraction(*self.base)


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of the cases' own differences, new less base. Each case weighs the same, however often it ran."""

    base: float
    new: float
    value: float
    interval: Interval
    p: float
    method: str
    cases: int

    @property
    def verdict(self) -> Literal["better", "worse", "open"]:
        """Settled only where the interval leaves 0 out and the exact test agrees: a score interval alone is too sure
        of itself on two or three cases."""
        if self.p > 1 - CONFIDENCE or 0 in self.interval:
            return "open"
        return "better" if self.value > 0 else "worse"


def difference(pairs: Sequence[Pair], confidence: float = CONFIDENCE) -> Difference | None:
    """The paired difference with its interval and exact p; None without pairs."""
    if not pairs:
        return None
    base, new = _arms(pairs, confidence)
    single = all(one.base[1] == one.new[1] == 1 for one in pairs)
    if single:
        p, method = mcnemar(*discordant(pairs)), "exact McNemar test"
    else:
        p, method = sign_flip([one.difference for one in pairs])
    value = float(sum(one.difference for one in pairs) / len(pairs))
    return Difference(base.share, new.share, value, _reach(base, new, value), p, method, len(pairs))


def reach(pairs: Sequence[Pair], confidence: float = CONFIDENCE) -> Interval:
    """The interval alone, without the test that takes most of the time."""
    base, new = _arms(pairs, confidence)
    return _reach(base, new, new.share - base.share)


def discordant(pairs: Sequence[Pair]) -> tuple[int, int]:
    """Cases that do better on the base, and on the new arm."""
    return sum(one.difference < 0 for one in pairs), sum(one.difference > 0 for one in pairs)


def mcnemar(only_base: int, only_new: int) -> float:
    """The exact two-sided p of a fair coin for the pairs that differ (McNemar 1947, Psychometrika 12:153)."""
    number, fewer = only_base + only_new, min(only_base, only_new)
    return min(1.0, 2 * sum(comb(number, at) for at in range(fewer + 1)) / (1 << number))


def sign_flip(differences: Sequence[Fraction]) -> tuple[float, str]:
    """The p of the paired permutation test on per-case differences, and how it was had (Fisher 1935; Good 2005).

    Without a difference between the arms, each case's could as well have had the other sign. The case is the unit, so
    repeats of one are never counted as independent. With one trial on each arm it is the exact McNemar test.
    """
    unit = lcm(*(one.denominator for one in differences))
    steps = [abs(int(one * unit)) for one in differences if one]
    seen, total = abs(int(sum(differences) * unit)), sum(steps)
    width = len(steps) // 8 + 1
    if (total + 1) * width > _TABLE:
        return _drawn(steps, seen), f"permutation test on cases, {_DRAWS:,} draws"
    # One integer holds, in fields of `width` bytes, how many of the 2^n choices of signs give each sum.
    table = 1
    for step in steps:
        table += table << (8 * width * step)
    fields = table.to_bytes((total + 1) * width, "little")
    extreme = sum(
        int.from_bytes(fields[at * width : (at + 1) * width], "little")
        for at in range(total + 1)
        if abs(total - 2 * at) >= seen
    )
    return extreme / (1 << len(steps)), "exact permutation test on cases"


def _drawn(steps: Sequence[int], seen: int) -> float:
    """By draws; the one that was seen counts as one of them (Phipson & Smyth 2010, SAGMB 9:39)."""
    draw = random.Random(0)
    hits = sum(abs(sum(step if draw.random() < 0.5 else -step for step in steps)) >= seen for _ in range(_DRAWS))
    return (hits + 1) / (_DRAWS + 1)


def _arms(pairs: Sequence[Pair], confidence: float) -> tuple[_Arm, _Arm]:
    return _Arm([one.base for one in pairs], confidence), _Arm([one.new for one in pairs], confidence)


class _Arm:
    """One side of the pairs."""

    def __init__(self, counts: Sequence[tuple[int, int]], confidence: float) -> None:
        self.shares = [passed / total for passed, total in counts]
        self.share = float(sum(Fraction(*one) for one in counts) / len(counts))
        self.spread = variance(self.shares) if len(counts) > 1 else 0.0
        size = effective_size(self.share, self.spread / len(counts), len(counts), sum(total for _, total in counts))
        self.each = size / len(counts)
        """Trials of a case, as far as they tell more than one would."""
        self.interval = score_interval(self.share, size * certainty(len(counts), confidence), confidence)


def _reach(base: _Arm, new: _Arm, value: float) -> Interval:
    """`newcombe`, at the effective sizes that their repeats and the number of cases leave the arms."""
    step = 1 / (base.each * new.each)
    found = newcombe((base.share, base.interval), (new.share, new.interval), phi(base.shares, new.shares, step))
    # Of the shares as fractions: what floats make of them must not move the middle.
    moved = value - (new.share - base.share)
    return Interval(max(-1.0, found.low + moved), min(1.0, found.high + moved))


def newcombe(base: tuple[float, Interval], new: tuple[float, Interval], shared: float) -> Interval:
    """Newcombe's interval for paired proportions (1998, Statistics in Medicine 17:2635, method 10): the Wilson interval
    of each, put together under their correlation."""
    (old, around_old), (now, around_new) = base, new
    low = _together(now - around_new.low, around_old.high - old, shared)
    high = _together(around_new.high - now, old - around_old.low, shared)
    return Interval(now - old - low, now - old + high)


def _together(one: float, other: float, shared: float) -> float:
    return sqrt(max(0.0, one * one + other * other - 2 * shared * one * other))


def phi(base: Sequence[float], new: Sequence[float], step: float = 1.0) -> float:
    """The correlation of the cases' rates, with the continuity correction of method 10 where it is positive.

    There it is n/2 off ad - bc, which is n times the sum of products below: half of the step by which that sum moves
    when two cases change places. With repeats the rates have finer steps, and so has the sum.
    """
    means = fmean(base), fmean(new)
    scale = sqrt(sum((one - means[0]) ** 2 for one in base) * sum((one - means[1]) ** 2 for one in new))
    if scale <= 0:
        return 0.0
    products = sum((a - means[0]) * (b - means[1]) for a, b in zip(base, new, strict=True))
    return max(-1.0, min(1.0, (max(products - step / 2, 0.0) if products > 0 else products) / scale))
