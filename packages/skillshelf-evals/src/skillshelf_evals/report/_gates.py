"""Gates: the conditions that decide about the exit code of a run."""

from __future__ import annotations

from dataclasses import dataclass

from skillshelf.text import clean_line, count_noun
from skillshelf_evals._results import Run
from skillshelf_evals._text import list_items
from skillshelf_evals.report._comparison import RunComparison, compare
from skillshelf_evals.report._format import MAX_CASES_NAMED, format_gain, format_p, format_percent, format_rate
from skillshelf_evals.report._summary import CaseSummary, Summary
from skillshelf_evals.stats import Counts

HOW_TO_GATE = "--fail-under RATE or --gate worse-than RUN"


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates that the user chose for a run."""

    fail_under: float | None = None
    """The rate that the lower end of the pass rate must reach."""
    worse_than: Run | None = None
    """The run that this one must not be worse than."""
    no_new_failures: bool = False
    """Whether no case may miss, or none that passed in the run that `worse_than` names."""

    @property
    def is_empty(self) -> bool:
        return self.fail_under is None and self.worse_than is None and not self.no_new_failures


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate found."""

    gate: str
    passed: bool | None
    """None if errors left it open."""
    text: str
    cases: tuple[str, ...] = ()
    """The cases whose misses made it fail; none if it did not fail, or if no single case did it."""
    is_chosen: bool = True
    """False for the condition that every run has: a case without chance in it must not miss."""

    @property
    def line(self) -> str:
        """One line, whatever the names of cases and runs hold."""
        words = {True: "passed", False: "failed", None: "left open"}[self.passed]
        return clean_line(f"{self.gate}: {words}. {self.text}")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The exit code of a run, and why it is so."""

    exit_code: int
    results: tuple[GateResult, ...]
    note: str = ""
    """A word about misses that no gate is about."""

    @property
    def failed_cases(self) -> frozenset[str]:
        """The cases that fail the run. The misses of all others are for information."""
        return frozenset(case for result in self.results for case in result.cases)

    @property
    def lines(self) -> tuple[str, ...]:
        lines = [result.line for result in self.results]
        if self.note:
            lines.append(self.note)
        return tuple(lines)


def judge_run(summary: Summary, gates: Gates | None = None) -> Judgement:
    """Return the exit code for CI, and what each gate found.

    2 means that nothing was tried, 1 that a gate failed or a case without chance in it missed, 3 that neither is so but
    some trials could not be completed, and 0 that all is well. Misses on baseline arms do not count: a case that misses
    without the skill is what the skill is for. An error there counts, because the comparison is then incomplete.
    """
    chosen = gates or Gates()
    run = summary.run
    if not run.outcomes:
        return Judgement(2, ())

    results = _judge_gates(summary, chosen)
    if any(result.passed is False for result in results):
        code = 1
    elif any(result.passed is None for result in results) or any(outcome.status == "error" for outcome in run.outcomes):
        code = 3
    else:
        code = 0
    return Judgement(code, tuple(results), _note_ungated(summary) if chosen.is_empty else "")


def _judge_gates(summary: Summary, gates: Gates) -> list[GateResult]:
    comparison = compare(gates.worse_than, summary.run) if gates.worse_than else None
    results = []
    if gates.no_new_failures:
        results.append(_judge_new_failures(summary, comparison))
    else:
        results += _judge_firm_cases(summary)
    if comparison:
        results.append(_judge_comparison(comparison))
    if gates.fail_under is not None:
        results.append(_judge_rate(summary, gates.fail_under))
    return results


def _find_missed(summary: Summary) -> list[CaseSummary]:
    return [case for case in summary.total.cases if case.main.counts.missed]


def _judge_firm_cases(summary: Summary) -> list[GateResult]:
    """Judge the scripted and replayed cases. They need no gate: they end the same way every time."""
    missed = [case.info.id for case in _find_missed(summary) if not summary.run.is_live(case.info)]
    if not missed:
        return []
    kind = "replayed" if summary.run.replayed else "scripted"
    text = f"{count_noun(len(missed), 'case')} missed: {list_items(missed, MAX_CASES_NAMED)}"
    return [GateResult(f"{kind} cases", False, text, tuple(missed), is_chosen=False)]


def _judge_new_failures(summary: Summary, comparison: RunComparison | None) -> GateResult:
    gate = "--gate no-new-failures"
    failures = [case.info.id for case in _find_missed(summary)]
    if comparison:
        added = [case for case in failures if case in comparison.only_b]
        failures = [*comparison.new_failures, *added]
    if not failures:
        return GateResult(gate, True, "No case newly fails.")
    text = f"{count_noun(len(failures), 'case')} newly failing: {list_items(failures, MAX_CASES_NAMED)}"
    live = {case.info.id for case in summary.total.cases if summary.run.is_live(case.info)}
    if not live.isdisjoint(failures):
        text += ". A live case can miss by chance: --gate worse-than RUN takes that into account."
    return GateResult(gate, False, text, tuple(failures))


def _judge_comparison(comparison: RunComparison) -> GateResult:
    gate = f"--gate worse-than {comparison.a.id}"
    if not comparison.changes:
        return GateResult(gate, None, "The runs have no case in common.")

    difference = comparison.versus.difference
    if difference:
        text = f"{format_gain(difference)}, p {format_p(difference.p)} on {count_noun(difference.cases, 'case')}"
    else:
        text = "No live case was tried in both runs"
    worse = comparison.cases_of("newly failing", "worse")
    if worse:
        text += f"; worse beyond chance: {list_items(worse, MAX_CASES_NAMED)}"
    passed = {0: True, 1: False, 3: None}[comparison.exit_code()]
    return GateResult(gate, passed, f"{text}.", tuple(worse))


def _judge_rate(summary: Summary, fail_under: float) -> GateResult:
    gate = f"--fail-under {format_percent(fail_under)}"
    arm = summary.total.arms.get("with")
    if arm is None:
        return GateResult(gate, None, "The run has no live case, so it has no pass rate.")
    if arm.rate.interval is None:
        return GateResult(gate, None, "No trial could be completed.")
    text = f"The pass rate is {format_rate(arm.rate)}, and its lower end counts."
    if arm.rate.interval.low >= fail_under:
        return GateResult(gate, True, text)
    missed = [case.info.id for case in _find_missed(summary) if summary.run.is_live(case.info)]
    return GateResult(gate, False, text, tuple(missed))


def _note_ungated(summary: Summary) -> str:
    """Return the words for a run with live cases and without a gate."""
    live = [case for case in summary.total.cases if summary.run.is_live(case.info)]
    if not live:
        return ""
    counts = sum((case.main.counts for case in live), Counts())
    if not counts.missed:
        return f"Nothing was gated: live cases do not fail a run by themselves. Choose {HOW_TO_GATE}."
    return (
        f"Nothing was gated: {counts.missed} of {count_noun(counts.trials, 'live trial')} missed, which does not fail "
        f"the run. Choose {HOW_TO_GATE}."
    )
