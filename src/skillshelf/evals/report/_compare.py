"""Two runs, case by case: `skillshelf eval compare A B`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from skillshelf.evals._results import Outcome, Run
from skillshelf.evals.report._sections import cut_rows
from skillshelf.evals.report._summary import case_arm
from skillshelf.evals.report._tree import CaseArm
from skillshelf.evals.report._versus import Versus, versus
from skillshelf.evals.report._words import chance, change, gain, points, rate
from skillshelf.tables import Column, Table

Kind = Literal["newly failing", "worse", "better", "newly passing", "same", "untested"]
_ORDER: tuple[Kind, ...] = ("newly failing", "worse", "untested", "newly passing", "better", "same")


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case of both runs. `untested`: errors left one of them without a trial."""

    case: str
    kind: Kind
    before: CaseArm
    after: CaseArm


@dataclass(frozen=True, slots=True)
class RunComparison:
    """B less A, over the trials with the skill as it was in each."""

    a: Run
    b: Run
    versus: Versus
    changes: tuple[CaseChange, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    def of(self, kind: Kind) -> tuple[str, ...]:
        return tuple(one.case for one in self.changes if one.kind == kind)


def compare(a: Run, b: Run) -> RunComparison:
    """Paired by case id."""
    before, after = _main(a), _main(b)
    both = [case.id for case in b.cases if case.id in before and case.id in after]
    changes = [_change(case, case_arm(before[case]), case_arm(after[case])) for case in both]
    changes.sort(key=lambda one: _ORDER.index(one.kind))
    compared = versus(a.id, {case: before[case] for case in both}, {case: after[case] for case in both})
    only_a, only_b = (tuple(case for case in one if case not in other) for one, other in _ways(before, after))
    return RunComparison(a, b, compared, tuple(changes), only_a, only_b)


def _ways(before: dict[str, Any], after: dict[str, Any]) -> Sequence[tuple[dict[str, Any], dict[str, Any]]]:
    return (before, after), (after, before)


def _main(run: Run) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for one in run.outcomes:
        if one.arm == "with":
            found.setdefault(one.case, []).append(one)
    return found


def _change(case: str, before: CaseArm, after: CaseArm) -> CaseChange:
    old, new = before.rate.value, after.rate.value
    if old is None or new is None:
        kind: Kind = "untested"
    elif new == old:
        kind = "same"
    elif old == 1:
        kind = "newly failing"
    elif new == 1:
        kind = "newly passing"
    else:
        kind = "better" if new > old else "worse"
    return CaseChange(case, kind, before, after)


def comparison_exit_code(comparison: RunComparison) -> int:
    """For CI: 1 where a case newly fails or the whole is worse beyond chance, 3 where errors hide that, else 0."""
    found = comparison.versus.difference
    if comparison.of("newly failing") or (found and found.verdict == "worse"):
        return 1
    return 3 if comparison.of("untested") or not comparison.changes else 0


def comparison_tables(comparison: RunComparison) -> tuple[Table, ...]:
    """For the terminal: what changed, then the cases that did."""
    found = comparison.versus
    number = len(comparison.changes)
    totals = [
        ("pass rate", gain(found.difference)),
        ("tokens per trial", change(found.tokens)),
        ("seconds per trial", change(found.seconds, "s")),
        ("cost per trial", change(found.cost, "$")),
    ]
    notes = [f"{len(comparison.of(kind))} {kind}" for kind in _ORDER if comparison.of(kind)]
    if found.difference:
        settled = found.settle.text if found.settle else ""
        notes.append(
            f"{found.difference.verdict}: p {chance(found.difference.p)}, {found.difference.method}; {settled}"
        )
    for run, cases in ((comparison.a, comparison.only_a), (comparison.b, comparison.only_b)):
        if cases:
            notes.append(f"only in {run.id}: {', '.join(cases[:10])}{' …' if len(cases) > 10 else ''}")
    title = f"{comparison.b.id} against {comparison.a.id} on {number} cases"
    whole = Table(title, (Column("what"), Column("change [95%]")), tuple(totals), tuple(notes))
    rows = [
        (one.kind, rate(one.before.rate), rate(one.after.rate), _points(one), one.case)
        for one in comparison.changes
        if one.kind != "same"
    ]
    columns = (Column("change"), Column("before", True), Column("after", True), Column("pp", True), Column("case"))
    return whole, cut_rows(Table("Cases that changed", columns, tuple(rows)))


def _points(one: CaseChange) -> str:
    old, new = one.before.rate.value, one.after.rate.value
    return points(new - old) if old is not None and new is not None else "?"


def comparison_as_json(comparison: RunComparison) -> dict[str, Any]:
    """For programs."""
    return {
        "a": comparison.a.id,
        "b": comparison.b.id,
        "verdict": comparison.versus.difference.verdict if comparison.versus.difference else "open",
        **{key: value for key, value in asdict(comparison.versus).items() if key != "base"},
        "cases": [
            {
                "case": one.case,
                "change": one.kind,
                "before": _arm(one.before),
                "after": _arm(one.after),
            }
            for one in comparison.changes
        ],
        "only_a": list(comparison.only_a),
        "only_b": list(comparison.only_b),
    }


def _arm(arm: CaseArm) -> dict[str, Any]:
    return {**asdict(arm.counts), "rate": arm.rate.value, "spent": asdict(arm.spent)}
