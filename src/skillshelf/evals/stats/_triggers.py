"""Whether a skill is loaded when it should be, and who is loaded in its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillshelf.evals.stats._rates import CONFIDENCE, Interval, Rate, clustered

NONE = ""
"""The column of trials that loaded nothing."""


@dataclass(frozen=True, slots=True)
class Queries:
    """A row of the matrix: the queries that a skill should be loaded for, or those that it should leave alone.

    The latter are often another skill's queries, and the case does not say whose: only a load of this very skill is
    wrong there.
    """

    skill: str
    should: bool = True

    def __str__(self) -> str:
        return self.skill if self.should else f"not {self.skill}"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trial of a case of a trigger set."""

    case: str
    skill: str
    should: bool
    loaded: frozenset[str]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Who was loaded for whose queries."""

    rows: tuple[Queries, ...]
    columns: tuple[str, ...]
    counts: Mapping[tuple[Queries, str], int]
    """Trials by row and column. A trial that loads two skills counts in both columns, so a row may sum to more than
    its total."""
    totals: Mapping[Queries, int]
    """Trials by row."""

    @property
    def stolen(self) -> tuple[tuple[str, str, int], ...]:
        """Whose queries loaded another skill, which, and how often; the most frequent first."""
        found = [
            (row.skill, column, number)
            for (row, column), number in self.counts.items()
            if row.should and column and row.skill != column and number
        ]
        return tuple(sorted(found, key=lambda one: (-one[2], one)))


def is_right(row: Queries, column: str) -> bool | None:
    """Whether these queries should load this skill, or nothing; None where the case does not say."""
    if row.should:
        return row.skill == column
    return False if row.skill == column else True if column == NONE else None


@dataclass(frozen=True, slots=True)
class TriggerScore:
    """How well one skill's description draws the queries that are its own."""

    skill: str
    precision: Rate
    """Of the trials that loaded it and whose right answer is known, those that should have."""
    recall: Rate
    """Of the trials that should have loaded it, those that did."""
    f1: float | None
    f1_interval: Interval | None


def confusion(trials: Sequence[Trigger]) -> Confusion:
    """The matrix: rows are the skill that should, or should not, have been loaded; columns what was, or none."""
    counts: dict[tuple[Queries, str], int] = defaultdict(int)
    totals: dict[Queries, int] = defaultdict(int)
    for one in trials:
        row = Queries(one.skill, one.should)
        totals[row] += 1
        for column in one.loaded or {NONE}:
            counts[row, column] += 1
    rows = sorted(totals, key=lambda row: (not row.should, row.skill))
    columns = sorted({column for _, column in counts} | {row.skill for row in totals} | {NONE}, key=_none_last)
    return Confusion(tuple(rows), tuple(columns), dict(counts), dict(totals))


def score(skill: str, trials: Sequence[Trigger], confidence: float = CONFIDENCE) -> TriggerScore:
    """Precision, recall and F1 of a skill, each with a Wilson interval clustered by case.

    Another skill's query that loads this one counts against its precision, also where the other was loaded too. A
    query that some other skill should leave alone says nothing about this one. F1 is 2J / (1 + J), rising in the
    Jaccard share J = TP / (TP + FP + FN), so its interval is that of J carried through (van Rijsbergen 1979, ch. 7).
    """
    known = [one for one in trials if one.should or one.skill == skill]
    precision, recall, jaccard = (defaultdict[str, list[bool]](list) for _ in range(3))
    for one in known:
        right, taken = one.should and one.skill == skill, skill in one.loaded
        if taken:
            precision[one.case].append(right)
        if right:
            recall[one.case].append(taken)
        if right or taken:
            jaccard[one.case].append(right and taken)
    share = _rate(jaccard, confidence)
    f1 = None if share.value is None else _f1(share.value)
    ends = share.interval and Interval(_f1(share.interval.low), _f1(share.interval.high))
    return TriggerScore(skill, _rate(precision, confidence), _rate(recall, confidence), f1, ends)


def _rate(cases: Mapping[str, Sequence[bool]], confidence: float) -> Rate:
    return clustered([(sum(one), len(one)) for one in cases.values()], confidence)


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


def _none_last(name: str) -> tuple[bool, str]:
    return name == NONE, name
