"""Honest numbers: pure functions from counts to rates, differences and what would settle them."""

from skillshelf.evals.stats._choose import Choice, choose_best
from skillshelf.evals.stats._coverage import Coverage, Section, SkillText, cover, skill_texts
from skillshelf.evals.stats._paired import Difference, Pair, difference, mcnemar, sign_flip
from skillshelf.evals.stats._passk import Tries, pass_all, pass_at, tries
from skillshelf.evals.stats._rates import Counts, Interval, Rate, clustered, wilson
from skillshelf.evals.stats._settle import Settle, settle
from skillshelf.evals.stats._spending import Mean, Spent, mean, spent
from skillshelf.evals.stats._triggers import Confusion, Queries, Trigger, TriggerScore, confusion, is_right, score

__all__ = [
    "Choice",
    "Confusion",
    "Counts",
    "Coverage",
    "Difference",
    "Interval",
    "Mean",
    "Pair",
    "Queries",
    "Rate",
    "Section",
    "Settle",
    "SkillText",
    "Spent",
    "Tries",
    "Trigger",
    "TriggerScore",
    "choose_best",
    "clustered",
    "confusion",
    "cover",
    "difference",
    "is_right",
    "mcnemar",
    "mean",
    "pass_all",
    "pass_at",
    "score",
    "settle",
    "sign_flip",
    "skill_texts",
    "spent",
    "tries",
    "wilson",
]
