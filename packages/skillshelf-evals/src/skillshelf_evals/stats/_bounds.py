"""An interval for the mean of values between 0 and 1, whatever their distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import atan, exp, log1p, pi, sin, sqrt

_PRECISION = 1e-8


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the true value lies, at a given confidence."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Observation:
    """A value between 0 and 1, such as the pass rate of a case."""

    value: float
    weight: float = 1.0
    """Its weight in the mean."""
    times: float = 1.0
    """How many cases have this value and weight."""


@lru_cache(4096)
def bound_mean(observations: tuple[Observation, ...], confidence: float) -> Interval:
    """Return Gaffke's interval for the mean of independent values (2005, Three test statistics for a nonparametric
    one-sided hypothesis on the mean of a nonnegative variable).

    For the lower end, one more case with the value 0 is added and all cases get random weights that sum to 1; the end
    is the quantile of the mean. For the upper end, the added case has the value 1. It assumes nothing about the values,
    does not shrink to a point if they all agree, and a higher value never moves an end down. For values of 0 and 1
    alone it is the exact interval of Clopper & Pearson (1934, Biometrika 26:404).
    """
    tail = (1 - confidence) / 2
    mirrored = tuple(replace(observation, value=1 - observation.value) for observation in observations)
    return Interval(_lower_end(observations, tail), 1 - _lower_end(mirrored, tail))


def _lower_end(observations: Sequence[Observation], tail: float) -> float:
    number = sum(observation.times for observation in observations)
    total_weight = sum(observation.weight * observation.times for observation in observations)
    added = Observation(0.0, total_weight / number)

    def excess(end: float) -> float:
        terms = [(one.weight * (one.value - end), one.times) for one in (*observations, added)]
        return _chance_of_negative_sum(terms) - tail

    share = sum(one.value * one.weight * one.times for one in observations) / total_weight
    return _find_root(excess, 0.0, share)


def _find_root(rise: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses 0, by the Illinois method: about ten calls (Dowell & Jarratt 1971)."""
    at_low = rise(low)
    at_high = rise(high)
    if at_low >= 0 or at_high <= 0:
        return low if at_low >= 0 else high

    last_side = 0
    while high - low > _PRECISION:
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        at_middle = rise(middle)
        if abs(at_middle) < _PRECISION:
            return middle
        side = 1 if at_middle > 0 else -1
        if side > 0:
            high = middle
            at_high = at_middle
        else:
            low = middle
            at_low = at_middle
        # An end that stays twice weighs half, so that the other one moves across the root.
        if side == last_side and side > 0:
            at_low /= 2
        elif side == last_side:
            at_high /= 2
        last_side = side
    return low


def _chance_of_negative_sum(terms: Sequence[tuple[float, float]]) -> float:
    """Return the chance that a sum of independent gamma variables, each `(factor, shape)`, is below 0.

    Random weights that sum to 1 are gamma variables divided by their sum, so a weighted mean is below a value exactly
    if such a sum is below 0. The integral is that of Imhof (1961, Biometrika 48:419). On a logarithmic scale its
    integrand is smooth and vanishes at both ends, so the trapezoidal rule is right to six digits in 50 to 700 steps:
    0.1 ms for 50 cases, 0.5 ms for 1,000.
    """
    factors = [factor for factor, _ in terms]
    if min(factors) >= 0:
        return 0.0
    if max(factors) <= 0:
        return 1.0

    scale = max(map(abs, factors))
    shapes = sum(shape for _, shape in terms)
    step = min(0.5, 1 / sqrt(shapes))
    exponent = -18.0
    total = 0.0
    while True:
        at = exp(exponent) / scale
        angle = sum(shape * atan(factor * at) for factor, shape in terms)
        decay = sum(shape / 2 * log1p((factor * at) ** 2) for factor, shape in terms)
        if decay > 40:
            return 0.5 - total * step / pi
        total += sin(angle) * exp(-decay)
        exponent += step
