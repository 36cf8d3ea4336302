"""The comparison of two runs, case by case: `skillshelf eval compare A B`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from skillshelf.evals._results import Outcome, Run
from skillshelf.evals.report._format import format_change, format_gain, format_p, format_points, format_rate
from skillshelf.evals.report._summary import CaseArm, Versus, compare_arms, summarize_trials
from skillshelf.evals.report._tables import cut_rows
from skillshelf.tables import Column, Table
from skillshelf.text import count_noun

Kind = Literal["newly failing", "worse", "better", "newly passing", "same", "untested"]
KINDS_IN_ORDER: tuple[Kind, ...] = ("newly failing", "worse", "untested", "newly passing", "better", "same")
MAX_CASES_NAMED = 10


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case of both runs. `untested` means that errors left one of them without a trial."""

    case: str
    kind: Kind
    before: CaseArm
    after: CaseArm


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Run B minus run A, over the trials with the skill as it was in each."""

    a: Run
    b: Run
    versus: Versus
    changes: tuple[CaseChange, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    def cases_of(self, kind: Kind) -> tuple[str, ...]:
        return tuple(change.case for change in self.changes if change.kind == kind)


def compare(a: Run, b: Run) -> RunComparison:
    """Compare two runs case by case. Cases are paired if they have the same id and the same prompt."""
    before = _main_outcomes(a)
    after = _main_outcomes(b)
    digests = {case.id: case.turns_digest for case in a.cases}
    # A case whose prompt has changed is another question under the same name.
    both = [
        case.id for case in b.cases if case.id in before and case.id in after and case.turns_digest == digests[case.id]
    ]
    changes = [_make_change(case, summarize_trials(before[case]), summarize_trials(after[case])) for case in both]
    changes.sort(key=lambda change: KINDS_IN_ORDER.index(change.kind))
    return RunComparison(
        a=a,
        b=b,
        versus=compare_arms(a.id, {case: before[case] for case in both}, {case: after[case] for case in both}),
        changes=tuple(changes),
        only_a=tuple(case for case in before if case not in both),
        only_b=tuple(case for case in after if case not in both),
    )


def _main_outcomes(run: Run) -> dict[str, list[Outcome]]:
    """Return the outcomes of a run with the skill as it is, by case."""
    by_case: dict[str, list[Outcome]] = {}
    for outcome in run.outcomes:
        if outcome.arm == "with":
            by_case.setdefault(outcome.case, []).append(outcome)
    return by_case


def _make_change(case: str, before: CaseArm, after: CaseArm) -> CaseChange:
    old = before.rate.value
    new = after.rate.value
    kind: Kind
    if old is None or new is None:
        kind = "untested"
    elif new == old:
        kind = "same"
    elif old == 1:
        kind = "newly failing"
    elif new == 1:
        kind = "newly passing"
    elif new > old:
        kind = "better"
    else:
        kind = "worse"

    return CaseChange(case, kind, before, after)


def comparison_exit_code(comparison: RunComparison) -> int:
    """Return the exit code for CI: 1 if a case newly fails or the whole is worse beyond chance.

    3 means that errors left open whether that is so, 0 that it is not.
    """
    found = comparison.versus.difference
    if comparison.cases_of("newly failing") or (found and found.verdict == "worse"):
        return 1
    if comparison.cases_of("untested") or not comparison.changes:
        return 3
    return 0


def comparison_tables(comparison: RunComparison) -> tuple[Table, ...]:
    """Return the tables for the terminal: the changes in all, and the cases that changed."""
    versus = comparison.versus
    totals = [
        ("pass rate", format_gain(versus.difference)),
        ("tokens per trial", format_change(versus.tokens)),
        ("seconds per trial", format_change(versus.seconds, "s")),
        ("cost per trial", format_change(versus.cost, "$")),
    ]
    title = f"{comparison.b.id} against {comparison.a.id} on {len(comparison.changes)} cases"
    whole = Table(title, (Column("what"), Column("change [95%]")), totals, _make_notes(comparison))

    labels = {case.id: case.label for case in comparison.b.cases}
    rows = [
        (
            change.kind,
            format_rate(change.before.rate),
            format_rate(change.after.rate),
            _format_difference(change),
            labels[change.case],
        )
        for change in comparison.changes
        if change.kind != "same"
    ]
    columns = (
        Column("change"),
        Column("before", right=True),
        Column("after", right=True),
        Column("pp", right=True),
        Column("case"),
    )
    return whole, cut_rows(Table("Cases that changed", columns, rows))


def _make_notes(comparison: RunComparison) -> list[str]:
    notes = []
    for kind in KINDS_IN_ORDER:
        cases = comparison.cases_of(kind)
        if cases:
            notes.append(f"{len(cases)} {kind}")

    found = comparison.versus.difference
    if found:
        settled = comparison.versus.settle.text if comparison.versus.settle else ""
        notes.append(f"{found.verdict}: p {format_p(found.p)}, {found.method}; {settled}")

    for run, cases in ((comparison.a, comparison.only_a), (comparison.b, comparison.only_b)):
        if cases:
            more = " …" if len(cases) > MAX_CASES_NAMED else ""
            labels = {case.id: case.label for case in run.cases}
            named = ", ".join(labels[case] for case in cases[:MAX_CASES_NAMED])
            notes.append(f"only in {run.id}: {named}{more}")

    changed = sum(case in comparison.only_b for case in comparison.only_a)
    if changed:
        notes.append(f"{count_noun(changed, 'case')} with another prompt in each run: not compared")
    return notes


def _format_difference(change: CaseChange) -> str:
    old = change.before.rate.value
    new = change.after.rate.value
    if old is None or new is None:
        return "?"
    return format_points(new - old)


def comparison_as_json(comparison: RunComparison) -> dict[str, Any]:
    """Return a comparison for `--json`."""
    versus = asdict(comparison.versus)
    del versus["base"]
    found = comparison.versus.difference
    return {
        "a": comparison.a.id,
        "b": comparison.b.id,
        "verdict": found.verdict if found else "open",
        "statistics": versus,
        "cases": [
            {
                "case": change.case,
                "change": change.kind,
                "statistics": {"before": _arm_as_json(change.before), "after": _arm_as_json(change.after)},
            }
            for change in comparison.changes
        ],
        "only_a": list(comparison.only_a),
        "only_b": list(comparison.only_b),
    }


def _arm_as_json(arm: CaseArm) -> dict[str, Any]:
    return {**asdict(arm.counts), "rate": arm.rate.value, "spent": asdict(arm.spent)}
