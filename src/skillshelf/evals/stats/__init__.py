"""Honest numbers: pure functions from counts to rates, differences, and the runs that would settle them."""

from skillshelf.evals.stats._bounds import Interval
from skillshelf.evals.stats._coverage import Coverage, Section, SkillContent, measure_coverage, read_skill_contents
from skillshelf.evals.stats._exact import fisher, holm, mcnemar, sign_flip
from skillshelf.evals.stats._judging import JudgeQuality, JudgeVerdict, cohen_kappa, measure_judge
from skillshelf.evals.stats._paired import Difference, Pair, correct_together, difference
from skillshelf.evals.stats._power import NeededRuns, settle
from skillshelf.evals.stats._rates import (
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
from skillshelf.evals.stats._triggers import (
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
    "Coverage",
    "Difference",
    "Interval",
    "JudgeQuality",
    "JudgeVerdict",
    "Mean",
    "NeededRuns",
    "Pair",
    "Queries",
    "Rate",
    "Section",
    "SkillContent",
    "Spending",
    "TriggerScore",
    "TriggerTrial",
    "clustered_rate",
    "cohen_kappa",
    "correct_together",
    "count_confusion",
    "difference",
    "exact_rate",
    "fisher",
    "flaky_share",
    "holm",
    "is_right",
    "mcnemar",
    "mean",
    "measure_coverage",
    "measure_judge",
    "read_skill_contents",
    "score_triggers",
    "settle",
    "sign_flip",
    "sum_spending",
]
