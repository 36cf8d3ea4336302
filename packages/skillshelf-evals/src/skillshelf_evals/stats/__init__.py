"""Honest numbers: pure functions from counts to rates, differences, and the runs that would settle them."""

from skillshelf_evals.stats._bounds import Interval
from skillshelf_evals.stats._exact import fisher, holm
from skillshelf_evals.stats._judging import JudgeQuality, JudgeVerdict, measure_judge
from skillshelf_evals.stats._paired import Difference, Pair, correct_together, difference
from skillshelf_evals.stats._power import NeededRuns, settle
from skillshelf_evals.stats._rates import (
    CONFIDENCE,
    Counts,
    Mean,
    Rate,
    Spending,
    clustered_rate,
    exact_rate,
    flaky_share,
    mean,
    sum_spending,
)
from skillshelf_evals.stats._triggers import (
    Confusion,
    Queries,
    TriggerScore,
    TriggerTrial,
    count_confusion,
    is_right,
    score_triggers,
)

__all__ = [
    "CONFIDENCE",
    "Confusion",
    "Counts",
    "Difference",
    "Interval",
    "JudgeQuality",
    "JudgeVerdict",
    "Mean",
    "NeededRuns",
    "Pair",
    "Queries",
    "Rate",
    "Spending",
    "TriggerScore",
    "TriggerTrial",
    "clustered_rate",
    "correct_together",
    "count_confusion",
    "difference",
    "exact_rate",
    "fisher",
    "flaky_share",
    "holm",
    "is_right",
    "mean",
    "measure_judge",
    "score_triggers",
    "settle",
    "sum_spending",
]
