"""`skillshelf conformance`: the same scenario through every way in, as a matrix."""

import argparse
import asyncio
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from skillshelf.cli._output import Output, complain
from skillshelf.errors import MissingExtraError, SettingsError
from skillshelf.tables import Cell, Column

if TYPE_CHECKING:
    from skillshelf.testing.conformance import Outcome, Report

EXAMPLES = """
  skillshelf conformance                       every face that is installed
  skillshelf conformance mcp langchain         these two
  skillshelf conformance --json                for a program
"""
# Beyond a step's own limit: then the face does not even let itself be cancelled.
_GRACE = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("faces", nargs="*", metavar="FACE", help="the faces to try (all)")


def run(args: argparse.Namespace, out: Output) -> int:
    from skillshelf.testing.conformance import FACES

    unknown = [name for name in args.faces if name not in FACES]
    if unknown:
        complain(f"skillshelf: there is no face {unknown[0]!r}. There are: {', '.join(FACES)}.")
        return 2
    reports = [_report(name) for name in args.faces or FACES]
    if args.json:
        out.print_json({"faces": [_plain(report) for report in reports]})
    else:
        _print(reports, out)
    # Whoever names a face wants to know of it; of all there are, those that are not installed are none of theirs.
    return 0 if all(report.passed or (report.missing and not args.faces) for report in reports) else 1


def _report(name: str) -> "Report":
    """In a thread that nobody waits for at the end: a face that holds its event loop cannot be cancelled."""
    from skillshelf.testing.conformance import STEP_SECONDS, STEPS, Outcome, Report

    told: SimpleQueue[Outcome | Report] = SimpleQueue()
    Thread(target=_run, args=(name, told), name=f"conformance {name}", daemon=True).start()
    outcomes: list[Outcome] = []
    try:
        while isinstance(one := told.get(timeout=STEP_SECONDS + _GRACE), Outcome):
            outcomes.append(one)
        return one
    except Empty:
        stuck = f"expected an answer; none came within {STEP_SECONDS + _GRACE:g} seconds, and it cannot be cancelled"
        return Report(name, (*outcomes, *(Outcome(step, stuck) for step in list(STEPS)[len(outcomes) :])))


def _run(name: str, told: "SimpleQueue[Outcome | Report]") -> None:
    from skillshelf.testing.conformance import FACES, STEP_SECONDS, STEPS, Outcome, Report
    from skillshelf.testing.conformance import run as run_scenario

    try:
        told.put(asyncio.run(run_scenario(FACES[name](), limit=STEP_SECONDS, on_outcome=told.put)))
    except (MissingExtraError, SettingsError) as error:
        told.put(Report(name, missing=str(error)))
    except Exception as error:  # a framework of another version may raise anything when it is imported
        problem = f"the face could not be made: {type(error).__name__}: {error}"
        told.put(Report(name, tuple(Outcome(step, problem) for step in STEPS)))


def _plain(report: "Report") -> dict[str, Any]:
    return {
        "face": report.face,
        "passed": report.passed,
        "missing": report.missing,
        "steps": {one.step: one.problem for one in report.outcomes},
        "notes": {one.step: one.note for one in report.outcomes if one.note},
    }


def _print(reports: "list[Report]", out: Output) -> None:
    from skillshelf.testing.conformance import STEPS

    columns = (Column("face", style="bold"), *(Column(step) for step in STEPS))
    ran = [report for report in reports if not report.missing]
    notes = list(dict.fromkeys(one.note for report in ran for one in report.outcomes if one.note))
    if ran:
        out.print_table(columns, [_row(report, notes) for report in ran])
        out.print()
    for number, note in enumerate(notes, 1):
        out.print(f"({number}) {note}")
    for report in ran:
        for one in report.outcomes:
            if one.problem:
                out.print_styled(f"{report.face}, {one.step}: {one.problem}", "red")
    for report in reports:
        if report.missing:
            out.print_styled(f"{report.face} was not tried. {report.missing}", "yellow")


def _row(report: "Report", notes: list[str]) -> list[str | Cell]:
    return [report.face, *(_cell(one, notes) for one in report.outcomes)]


def _cell(one: "Outcome", notes: list[str]) -> Cell:
    if one.problem:
        return Cell("failed", "red")
    return Cell(f"ok ({notes.index(one.note) + 1})" if one.note else "ok", "green")
