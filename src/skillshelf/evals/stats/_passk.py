"""pass@k and pass^k: whether one of k tries succeeds, and whether all of them do."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb


def pass_at(k: int, passed: int, total: int) -> float:
    """The chance that at least one of k tries passes, unbiased (Chen et al. 2021, arXiv:2107.03374, equation 1)."""
    _sound(k, passed, total)
    return 1 - comb(total - passed, k) / comb(total, k)


def pass_all(k: int, passed: int, total: int) -> float:
    """The chance that all of k tries pass, "pass^k", unbiased (Yao et al. 2024, tau-bench, arXiv:2406.12045)."""
    _sound(k, passed, total)
    return comb(passed, k) / comb(total, k)


@dataclass(frozen=True, slots=True)
class Tries:
    """Both, as means over the cases that had at least k trials."""

    k: int
    at: float
    all: float
    cases: int


def tries(k: int, cases: Iterable[tuple[int, int]]) -> Tries | None:
    """Over cases, each `(passed, total)`; None where no case had k trials that were no errors."""
    enough = [(passed, total) for passed, total in cases if total >= k]
    if not enough:
        return None
    number = len(enough)
    at = sum(pass_at(k, passed, total) for passed, total in enough) / number
    return Tries(k, at, sum(pass_all(k, passed, total) for passed, total in enough) / number, number)


def _sound(k: int, passed: int, total: int) -> None:
    if not 0 <= passed <= total or not 1 <= k <= total:
        raise ValueError(f"no estimate for {k} tries from {passed} passes of {total}")
