"""`skillshelf conformance`: the same scenario through every way in, as a matrix."""

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from skillshelf.cli.cells import Cell, Column
from skillshelf.cli.output import Output, complain
from skillshelf.cli.table import print_table
from skillshelf.errors import MissingExtraError, SettingsError

if TYPE_CHECKING:
    from skillshelf.testing.conformance import Report

EXAMPLES = """
  skillshelf conformance                       every face that is installed
  skillshelf conformance mcp langchain         these two
  skillshelf conformance --json                for a program
"""


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
        out.json({"faces": [_plain(report) for report in reports]})
    else:
        _print(reports, out)
    return 0 if all(report.passed or report.missing for report in reports) else 1


def _report(name: str) -> "Report":
    from skillshelf.testing.conformance import FACES, Report
    from skillshelf.testing.conformance import run as run_scenario

    try:
        return asyncio.run(run_scenario(FACES[name]()))
    except (MissingExtraError, SettingsError) as error:
        return Report(name, missing=str(error))


def _plain(report: "Report") -> dict[str, Any]:
    steps = {one.step: one.problem for one in report.outcomes}
    return {"face": report.face, "passed": report.passed, "missing": report.missing, "steps": steps}


def _print(reports: "list[Report]", out: Output) -> None:
    from skillshelf.testing.conformance import STEPS

    columns = (Column("face", "bold"), *(Column(step) for step in STEPS))
    ran = [report for report in reports if not report.missing]
    print_table(out, columns, [_row(report) for report in ran])
    out.text()
    for report in ran:
        for one in report.outcomes:
            if one.problem:
                out.styled(f"{report.face}, {one.step}: {one.problem}", "red")
    for report in reports:
        if report.missing:
            out.styled(f"{report.face} was not tried. {report.missing}", "yellow")


def _row(report: "Report") -> list[str | Cell]:
    marks = [Cell("failed", "red") if one.problem else Cell("ok", "green") for one in report.outcomes]
    return [report.face, *marks]
