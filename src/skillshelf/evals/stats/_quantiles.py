"""Quantiles that intervals are made of."""

from math import pi, sqrt, tan
from statistics import NormalDist


def z_of(confidence: float) -> float:
    """The two-sided quantile of the normal distribution."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def student(level: float, freedom: int) -> float:
    """A quantile of Student's t: closed for 1 and 2, else the expansion 26.7.5 of Abramowitz & Stegun (1964)."""
    if freedom == 1:
        return tan(pi * (level - 0.5))
    if freedom == 2:
        share = 2 * level - 1
        return share * sqrt(2 / (1 - share * share))
    z = z_of(2 * level - 1)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def certainty(cases: int, confidence: float) -> float:
    """What a variance estimated from few cases takes off the effective size (Korn & Graubard 1998, Survey Methodology
    24:193): the square of the normal quantile over Student's."""
    return (z_of(confidence) / student((1 + confidence) / 2, max(1, cases - 1))) ** 2
