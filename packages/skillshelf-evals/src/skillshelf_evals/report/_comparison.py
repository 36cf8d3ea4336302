"""The comparison of two runs, case by case: `skillshelf eval compare A B`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from skillshelf.text import count_noun
from skillshelf.text.tables import Column, Table
from skillshelf_evals._results import CaseInfo, Outcome, Run
from skillshelf_evals._text import list_items
from skillshelf_evals.report._format import (
    MAX_CASES_NAMED,
    NO_VALUE,
    format_change,
    format_gain,
    format_p,
    format_points,
    format_rate,
    to_plain,
)
from skillshelf_evals.report._summary import CaseArm, Versus, compare_arms, count_cases, summarize_trials
from skillshelf_evals.report._tables import cut_rows
from skillshelf_evals.stats import CONFIDENCE, Counts, fisher, holm

Kind = Literal["newly failing", "worse", "untested", "lower", "newly passing", "better", "higher", "same"]
"""`newly failing` cases always passed before, and `newly passing` ones do now. `lower` and `higher` may be chance."""
KINDS_IN_ORDER: tuple[Kind, ...] = get_args(Kind)
KINDS_WITHIN_CHANCE = frozenset({"lower", "higher"})


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case of both runs."""

    case: str
    before: CaseArm
    after: CaseArm
    is_scripted: bool
    corrected_p: float | None = None
    """The p of Fisher's exact test, corrected for all cases together (Holm); None if chance has no part in the case."""

    @property
    def kind(self) -> Kind:
        """How the case changed. `untested` means that errors left one of the runs without a trial."""
        old = self.before.rate.value
        new = self.after.rate.value
        if old is None or new is None:
            return "untested"
        if new == old:
            return "same"

        may_be_chance = self.corrected_p is not None and self.corrected_p > 1 - CONFIDENCE
        if new < old:
            if may_be_chance:
                return "lower"
            return "newly failing" if old == 1 else "worse"
        if may_be_chance:
            return "higher"
        return "newly passing" if new == 1 else "better"

    @property
    def p(self) -> float:
        """The p of Fisher's exact test."""
        before = self.before.counts
        after = self.after.counts
        return fisher((before.passed, before.trials), (after.passed, after.trials))

    @property
    def is_new_failure(self) -> bool:
        """True if the case always passed before and has missed now, even if by chance."""
        return self.before.rate.value == 1 and bool(self.after.counts.missed)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Run B minus run A, over the trials with the skill as it was in each."""

    a: Run
    b: Run
    versus: Versus
    changes: tuple[CaseChange, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    scripted_before: Counts
    """The scripted cases of both runs, each counted once. They are not part of `versus`."""
    scripted_after: Counts

    def cases_of(self, *kinds: Kind) -> tuple[str, ...]:
        return tuple(change.case for change in self.changes if change.kind in kinds)

    @property
    def new_failures(self) -> tuple[str, ...]:
        """The cases that always passed in A and missed in B, even if by chance."""
        return tuple(change.case for change in self.changes if change.is_new_failure)

    def exit_code(self, no_new_failures: bool = False) -> int:
        """Return the exit code for CI: 1 if B is worse beyond chance, as a whole or in a case.

        With `no_new_failures` it is also 1 if a case that always passed in A missed in B, even if by chance. 3 means
        that errors left open whether that is so, 0 that it is not. If nothing changed, it is 1 in at most 5% of
        comparisons: 2.5% for the whole, as only worse counts, and 2.5% for all cases together.
        """
        difference = self.versus.difference
        if self.cases_of("newly failing", "worse") or (difference and difference.verdict == "worse"):
            return 1
        if no_new_failures and self.new_failures:
            return 1
        if self.cases_of("untested") or not self.changes:
            return 3
        return 0

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables for the terminal: the changes in all, and the cases that changed, if there are any."""
        versus = self.versus
        totals = []
        if versus.difference or self.scripted_after == Counts():
            totals += [
                ("pass rate", format_gain(versus.difference)),
                ("tokens per trial", format_change(versus.tokens)),
                ("seconds per trial", format_change(versus.seconds, "s")),
                ("cost per trial", format_change(versus.cost, "$")),
            ]
        if self.scripted_after != Counts():
            before = self.scripted_before
            after = self.scripted_after
            change = f"{before.passed} of {before.trials} passed before, {after.passed} of {after.trials} now"
            totals.append(("scripted cases", change))
        title = f"{self.b.id} against {self.a.id} on {len(self.changes)} cases"
        whole = Table(title, (Column("what"), Column("change [95%]")), totals, _make_notes(self))
        if len(self.cases_of("same")) == len(self.changes):
            return (whole,)

        labels = {case.id: case.label for case in self.b.cases}
        rows = [
            (
                change.kind,
                _format_result(change, change.before),
                _format_result(change, change.after),
                _format_difference(change),
                NO_VALUE if change.corrected_p is None else format_p(change.corrected_p),
                labels[change.case],
            )
            for change in self.changes
            if change.kind != "same"
        ]
        columns = (
            Column("change"),
            Column("before", right=True),
            Column("after", right=True),
            Column("pp", right=True),
            Column("corrected p", right=True),
            Column("case"),
        )
        tested = sum(change.corrected_p is not None for change in self.changes)
        notes = []
        if tested:
            notes.append(f"p: Fisher's exact test of each live case, corrected for {count_noun(tested, 'case')} (Holm)")
        return whole, cut_rows(Table("Cases that changed", columns, rows, notes))

    def as_json(self) -> dict[str, Any]:
        """Return a comparison for `--json`."""
        statistics = to_plain(self.versus)
        del statistics["base"]
        statistics["scripted"] = to_plain({"before": self.scripted_before, "after": self.scripted_after})
        difference = self.versus.difference
        return {
            "a": self.a.id,
            "b": self.b.id,
            "verdict": difference.verdict if difference else "open",
            "statistics": statistics,
            "cases": [
                {
                    "case": change.case,
                    "change": change.kind,
                    "statistics": {
                        "corrected_p": change.corrected_p,
                        "before": _arm_as_json(change.before),
                        "after": _arm_as_json(change.after),
                    },
                }
                for change in self.changes
            ],
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
        }


def compare(a: Run, b: Run) -> RunComparison:
    """Compare two runs case by case.

    Cases are paired if they have the same id and the same prompt, and are live in both runs, or scripted in both.
    """
    before = _main_outcomes(a)
    after = _main_outcomes(b)
    old_infos = {case.id: case for case in a.cases}
    # A case whose prompt has changed is another question under the same name.
    infos = [
        case
        for case in b.cases
        if case.id in before and case.id in after and _is_same_question(old_infos[case.id], case)
    ]
    changes = [
        CaseChange(info.id, summarize_trials(before[info.id]), summarize_trials(after[info.id]), not info.live)
        for info in infos
    ]
    # Scripted and replayed cases end the same way every time, so no test is made of them.
    by_chance = {info.id for info in infos if a.is_live(old_infos[info.id]) or b.is_live(info)}
    tested = [change for change in changes if change.case in by_chance and change.kind != "untested"]
    corrected = holm([change.p for change in tested])
    p_by_case = {change.case: p for change, p in zip(tested, corrected, strict=True)}
    changes = [replace(change, corrected_p=p_by_case.get(change.case)) for change in changes]
    changes.sort(key=lambda change: KINDS_IN_ORDER.index(change.kind))

    both = [info.id for info in infos]
    live = [info.id for info in infos if info.live]
    scripted = [change for change in changes if change.is_scripted]
    return RunComparison(
        a=a,
        b=b,
        versus=compare_arms(a.id, {case: before[case] for case in live}, {case: after[case] for case in live}),
        changes=tuple(changes),
        only_a=tuple(case for case in before if case not in both),
        only_b=tuple(case for case in after if case not in both),
        scripted_before=count_cases(change.before for change in scripted),
        scripted_after=count_cases(change.after for change in scripted),
    )


def _is_same_question(old: CaseInfo, new: CaseInfo) -> bool:
    return old.turns_digest == new.turns_digest and old.live == new.live


def _main_outcomes(run: Run) -> dict[str, list[Outcome]]:
    """Return the outcomes of a run with the skill as it is, by case."""
    by_case: dict[str, list[Outcome]] = {}
    for outcome in run.outcomes:
        if outcome.arm == "with":
            by_case.setdefault(outcome.case, []).append(outcome)
    return by_case


def _make_notes(comparison: RunComparison) -> list[str]:
    notes = []
    for kind in KINDS_IN_ORDER:
        cases = comparison.cases_of(kind)
        if cases:
            chance = ", which may be chance" if kind in KINDS_WITHIN_CHANCE else ""
            notes.append(f"{len(cases)} {kind}{chance}")

    difference = comparison.versus.difference
    if difference:
        settled = comparison.versus.settle.text if comparison.versus.settle else ""
        notes.append(f"{difference.verdict}: p {format_p(difference.p)}, {difference.method}; {settled}")

    for run, cases in ((comparison.a, comparison.only_a), (comparison.b, comparison.only_b)):
        if cases:
            labels = {case.id: case.label for case in run.cases}
            notes.append(f"only in {run.id}: {list_items([labels[case] for case in cases], MAX_CASES_NAMED)}")

    changed = sum(case in comparison.only_b for case in comparison.only_a)
    if changed:
        notes.append(f"{count_noun(changed, 'case')} with another prompt, or a script in one run only: not compared")
    return notes


def _format_result(change: CaseChange, arm: CaseArm) -> str:
    """Return the rate of a case in one run; of a scripted one, only whether it passed."""
    if not change.is_scripted:
        return format_rate(arm.rate)
    if not arm.counts.trials:
        return "error"
    return "missed" if arm.counts.missed else "passed"


def _format_difference(change: CaseChange) -> str:
    old = change.before.rate.value
    new = change.after.rate.value
    if old is None or new is None:
        return "?"
    return format_points(new - old)


def _arm_as_json(arm: CaseArm) -> dict[str, Any]:
    return {**to_plain(arm.counts), "rate": arm.rate.value, "spent": to_plain(arm.spent)}
