"""`skillshelf conformance`: the same scenario through every face, as a matrix of results."""

import argparse
import asyncio
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.errors import MissingExtraError, SettingsError
from skillshelf.tables import Cell, Column

if TYPE_CHECKING:
    from skillshelf.testing.conformance import Report, StepOutcome

EXAMPLES = """
  skillshelf conformance                       try every face that is installed
  skillshelf conformance mcp langchain         try these two
  skillshelf conformance --json                print the results for another program
"""
# Added to a step's own time limit. A face that needs longer cannot even be cancelled.
_GRACE_SECONDS = 10.0


def add_arguments(parser: Parser) -> None:
    parser.add_argument("faces", nargs="*", metavar="FACE", help="the faces to try (default: all)")


def run(args: argparse.Namespace, out: Output) -> int:
    from skillshelf.testing.conformance import FACES

    unknown = [name for name in args.faces if name not in FACES]
    if unknown:
        raise CommandError(f"unknown face {unknown[0]!r}.", f"Choose from: {', '.join(FACES)}.")
    reports = [_try_face(name) for name in args.faces or FACES]
    if args.json:
        out.print_json({"faces": [_report_as_json(report) for report in reports]})
    else:
        _print_reports(reports, out)

    # A face that is not installed counts as a failure only if the user named it.
    for report in reports:
        is_skipped = report.missing and not args.faces
        if not report.passed and not is_skipped:
            return 1
    return 0


def _try_face(name: str) -> "Report":
    """Run the scenario in a daemon thread, because a face that blocks its event loop cannot be cancelled."""
    from skillshelf.testing.conformance import STEP_SECONDS, STEPS, Report, StepOutcome

    results: SimpleQueue[StepOutcome | Report] = SimpleQueue()
    Thread(target=_run_scenario, args=(name, results), name=f"conformance {name}", daemon=True).start()
    limit = STEP_SECONDS + _GRACE_SECONDS
    outcomes: list[StepOutcome] = []
    while True:
        try:
            result = results.get(timeout=limit)
        except Empty:
            problem = f"expected an answer; none came within {limit:g} seconds, and it cannot be cancelled"
            stuck = [StepOutcome(step, problem) for step in list(STEPS)[len(outcomes) :]]
            return Report(name, (*outcomes, *stuck))
        if not isinstance(result, StepOutcome):
            return result
        outcomes.append(result)


def _run_scenario(name: str, results: "SimpleQueue[StepOutcome | Report]") -> None:
    """Put the outcome of each step, and finally the whole report, into the queue."""
    from skillshelf.testing.conformance import FACES, STEP_SECONDS, STEPS, Report, StepOutcome
    from skillshelf.testing.conformance import run as run_scenario

    try:
        results.put(asyncio.run(run_scenario(FACES[name](), limit=STEP_SECONDS, on_outcome=results.put)))
    except (MissingExtraError, SettingsError) as error:
        results.put(Report(name, missing=str(error)))
    except Exception as error:  # another version of a framework may raise anything when it is imported
        problem = f"the face could not be created: {type(error).__name__}: {error}"
        results.put(Report(name, tuple(StepOutcome(step, problem) for step in STEPS)))


def _report_as_json(report: "Report") -> dict[str, Any]:
    return {
        "name": report.face,
        "passed": report.passed,
        "missing": report.missing,
        "steps": [{"name": each.step, "problem": each.problem, "note": each.note} for each in report.outcomes],
    }


def _print_reports(reports: "list[Report]", out: Output) -> None:
    from skillshelf.testing.conformance import STEPS

    tried = [report for report in reports if not report.missing]
    notes = list(dict.fromkeys(outcome.note for report in tried for outcome in report.outcomes if outcome.note))
    if tried:
        columns = [Column("face", style="bold"), *(Column(step) for step in STEPS)]
        rows: list[list[str | Cell]] = []
        for report in tried:
            rows.append([report.face, *(_make_cell(outcome, notes) for outcome in report.outcomes)])
        out.print_table(columns, rows)
        out.print()
    for number, note in enumerate(notes, 1):
        out.print(f"({number}) {note}")
    for report in tried:
        for outcome in report.outcomes:
            if outcome.problem:
                out.print_styled(f"{report.face}, {outcome.step}: {outcome.problem}", "red")
    for report in reports:
        if report.missing:
            out.print_styled(f"{report.face} was not tried. {report.missing}", "yellow")


def _make_cell(outcome: "StepOutcome", notes: list[str]) -> Cell:
    if outcome.problem:
        return Cell("failed", "red")
    if outcome.note:
        return Cell(f"ok ({notes.index(outcome.note) + 1})", "green")
    return Cell("ok", "green")
