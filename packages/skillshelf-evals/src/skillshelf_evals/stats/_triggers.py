"""Triggers: whether a skill is loaded when it should be, and which skill is loaded instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillshelf_evals.stats._bounds import Interval
from skillshelf_evals.stats._rates import Rate, rate_by_case

NONE = ""
"""The column of trials that loaded nothing."""


@dataclass(frozen=True, slots=True)
class Queries:
    """A row of the matrix: the queries that a skill should be loaded for, or those that it should leave alone.

    The latter are often queries for another skill, but the case does not say for which: only a load of this very skill
    is wrong there.
    """

    skill: str
    should: bool = True

    def __str__(self) -> str:
        return self.skill if self.should else f"not {self.skill}"


@dataclass(frozen=True, slots=True)
class TriggerTrial:
    """One trial of a case with `should_trigger`."""

    case: str
    skill: str
    should: bool
    loaded: frozenset[str]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Which skills were loaded for which queries."""

    rows: tuple[Queries, ...]
    columns: tuple[str, ...]
    counts: Mapping[tuple[Queries, str], int]
    """Trials by row and column. A trial that loads two skills counts in both columns, so a row may sum to more than
    its total."""
    totals: Mapping[Queries, int]
    """Trials by row."""

    @property
    def stolen(self) -> tuple[tuple[str, str, int], ...]:
        """The skill a query was for, the other skill it loaded, and how often; the most frequent first."""
        found = [
            (row.skill, column, number)
            for (row, column), number in self.counts.items()
            if row.should and column and row.skill != column and number
        ]
        return tuple(sorted(found, key=lambda theft: (-theft[2], theft)))


def is_right(row: Queries, column: str) -> bool | None:
    """Return whether these queries should load this skill, or nothing; None if the case does not say."""
    if row.should:
        return row.skill == column
    if row.skill == column:
        return False
    if column == NONE:
        return True
    return None


@dataclass(frozen=True, slots=True)
class TriggerScore:
    """How well a skill's description attracts the queries that it is for."""

    skill: str
    precision: Rate
    """Of the trials that loaded it and whose right answer is known, those that should have."""
    recall: Rate
    """Of the trials that should have loaded it, those that did."""
    f1: float | None
    f1_interval: Interval | None


def count_confusion(trials: Sequence[TriggerTrial]) -> Confusion:
    """Count trials in a matrix: rows by the skill that should or should not be loaded, columns by what was loaded."""
    counts: dict[tuple[Queries, str], int] = defaultdict(int)
    totals: dict[Queries, int] = defaultdict(int)
    for trial in trials:
        row = Queries(trial.skill, trial.should)
        totals[row] += 1
        for column in trial.loaded or {NONE}:
            counts[row, column] += 1

    rows = sorted(totals, key=lambda row: (not row.should, row.skill))
    names = {column for _, column in counts} | {row.skill for row in totals} | {NONE}
    columns = sorted(names, key=lambda name: (name == NONE, name))
    return Confusion(tuple(rows), tuple(columns), dict(counts), dict(totals))


def score_triggers(skill: str, trials: Sequence[TriggerTrial]) -> TriggerScore:
    """Return the precision, recall and F1 of a skill, each with an interval over cases.

    A query for another skill that loads this one counts against its precision, even if the other was loaded too. A
    query that another skill should leave alone says nothing about this one. F1 is 2J / (1 + J), rising in the Jaccard
    share J = TP / (TP + FP + FN), so its interval is that of J carried through (van Rijsbergen 1979, ch. 7).
    """
    precision: list[tuple[str, bool]] = []
    recall: list[tuple[str, bool]] = []
    jaccard: list[tuple[str, bool]] = []
    for trial in trials:
        if not trial.should and trial.skill != skill:
            continue
        should_load = trial.should and trial.skill == skill
        did_load = skill in trial.loaded
        if did_load:
            precision.append((trial.case, should_load))
        if should_load:
            recall.append((trial.case, did_load))
        if should_load or did_load:
            jaccard.append((trial.case, should_load and did_load))

    share = rate_by_case(jaccard)
    f1 = None if share.value is None else _f1_of(share.value)
    f1_interval = None
    if share.interval:
        f1_interval = Interval(_f1_of(share.interval.low), _f1_of(share.interval.high))
    return TriggerScore(skill, rate_by_case(precision), rate_by_case(recall), f1, f1_interval)


def _f1_of(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)
