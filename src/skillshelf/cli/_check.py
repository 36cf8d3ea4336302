"""`skillshelf check`: mistakes in skills, for people, for CI and for editors; and how other agents load them."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from skillshelf.cli._diagnostics import as_json, as_sarif, count_by_severity, github_annotation, print_diagnostic
from skillshelf.cli._errors import CommandError
from skillshelf.cli._host_option import add_host_option
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import list_searched, locate_workspace
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import SourceError
from skillshelf.streams import keep_output_clean
from skillshelf.tables import Cell, Column
from skillshelf.text import count_noun

if TYPE_CHECKING:
    from skillshelf.lint import CheckReport
    from skillshelf.lint.hosts import HostVerdict

EXAMPLES = """
  skillshelf check                              check every skill below this folder
  skillshelf check .claude/skills/pdf           check one skill
  skillshelf check --package my_skills          check the code skills of an installed package
  skillshelf check --ignore reference-unnamed   leave out one kind of diagnostic
  skillshelf check --strict                     accept only what the open format has
  skillshelf check --format sarif > check.sarif write a log for code scanning
  skillshelf check --format github              print annotations in a GitHub workflow
  skillshelf check --hosts .claude/skills/pdf   see how other agents load a skill
  skillshelf check --host codex --host pi       ask only about these agents
"""
_HOST_COLUMNS = (Column("host"), Column("outcome"), Column("reason"))


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="a skill's folder, a SKILL.md, or a folder of skills (default: the workspace, unless --package is given)",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "sarif", "github"),
        default="text",
        help="the output format (default: text)",
    )
    parser.add_argument(
        "--ignore",
        metavar="CODE",
        type=_diagnostic_code,
        action="append",
        default=[],
        help="leave out diagnostics with this code; repeatable",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="report every departure from the open format as an error: other fields, and values in other forms",
    )
    parser.add_argument(
        "--hosts", action="store_true", help="show instead how other agents and libraries load each skill"
    )
    add_host_option(parser)


def _diagnostic_code(word: str) -> str:
    from skillshelf.lint import CODES
    from skillshelf.text import closest_names

    if word not in CODES:
        message = f"unknown diagnostic code {word!r}"
        closest = ", ".join(closest_names(word, CODES))
        if closest:
            message += f"; did you mean {closest}?"
        raise argparse.ArgumentTypeError(message)
    return word


def run(args: argparse.Namespace, out: Output) -> int:
    output_format = "json" if args.json else args.format
    paths = args.paths
    if not paths and not args.packages:
        paths = list_searched(args)
    if args.json and args.format not in ("text", "json"):
        raise CommandError(f"--json and --format {args.format} cannot be used together.", "Give one of them.")
    if args.hosts or args.host:
        if output_format not in ("text", "json"):
            raise CommandError(f"--hosts and --format {args.format} cannot be used together.", "Give one of them.")
        if args.packages:
            raise CommandError("--hosts is about files: other agents do not load packages.", "Leave out --package.")
        existing = _find_existing(paths)
        code = _check_hosts(existing, args.host, out, as_json=output_format == "json")
    else:
        existing = _find_existing(paths, has_packages=bool(args.packages))
        code = _check_skills(existing, args, output_format, out)
    return 2 if len(existing) < len(paths) else code


def _find_existing(paths: Sequence[str], *, has_packages: bool = False) -> list[str]:
    """Return the paths that exist, and complain about the others. Raises SourceError if nothing is left to check."""
    existing = [path for path in paths if os.path.lexists(path)]
    missing = [repr(shown_path(path)) for path in paths if not os.path.lexists(path)]
    if missing and not existing and not has_packages:
        raise SourceError(f"There is no file or folder {' or '.join(missing)} to check.")
    if missing:
        complain(f"skillshelf check: there is no file or folder {' or '.join(missing)}; the others are checked")
    return existing


def check_together(
    paths: Sequence[str], packages: Sequence[str], *, strict: bool = False, here: str | None = None
) -> "CheckReport":
    """Check several paths and packages. A diagnostic that two of them share appears once.

    `here` is the folder that the user works in: of skills with one name, those farther from it are shadowed.
    """
    from skillshelf.lint import CheckReport, check_code_skills, check_tree

    with keep_output_clean():
        package_reports = {package: check_code_skills(package) for package in packages}
    package_folders = [os.path.realpath(folder) for package in packages for folder in sys.modules[package].__path__]

    skills = 0
    unique: dict[Diagnostic, None] = {}
    for path in paths:
        report = check_tree(path, strict=strict, here=here, package_folders=package_folders)
        skills += report.skills
        unique.update(dict.fromkeys(report.diagnostics))
    for package, report in package_reports.items():
        skills += report.skills
        located = [replace(note, path=_locate_in_package(package, note.path)) for note in report.diagnostics]
        unique.update(dict.fromkeys(located))
    return CheckReport(skills, list(unique))


def _locate_in_package(package: str, path: str) -> str:
    """Return the file of an imported package that a path from its top package on stands for, if it is a real one."""
    top = sys.modules[package.partition(".")[0]]
    for folder in getattr(top, "__path__", ()):
        file = os.path.join(os.path.dirname(folder), path)
        if os.path.lexists(file):
            return os.path.realpath(file)
    return path


def _check_skills(paths: Sequence[str], args: argparse.Namespace, output_format: str, out: Output) -> int:
    is_whole_workspace = not args.paths and not args.packages
    here = locate_workspace(args).folder if is_whole_workspace else None
    report = check_together(paths, args.packages, strict=args.strict, here=here)
    skills = report.skills
    left_out = set(args.ignore)
    if skills and is_whole_workspace:
        left_out.add("no-skill")  # the folder itself has none, but its parents do
    notes = [note for note in report.diagnostics if note.code not in left_out]

    if output_format == "json":
        out.print_json({"skill_count": skills, "diagnostics": [as_json(note) for note in notes]})
    elif output_format == "sarif":
        out.print_json(as_sarif(notes))
    elif output_format == "github":
        for note in notes:
            out.print(github_annotation(note))
    else:
        for note in notes:
            print_diagnostic(note, out)
        _print_summary(skills, notes, out)
    return 1 if any(note.severity == "error" for note in notes) else 0


def _print_summary(skills: int, notes: Sequence[Diagnostic], out: Output) -> None:
    severities = {note.severity for note in notes}
    style = "green"
    if "error" in severities:
        style = "red"
    elif "warning" in severities:
        style = "yellow"
    out.print_styled(f"{count_noun(skills, 'skill')} checked: {count_by_severity(notes) or 'no problems'}", style)


@dataclass(frozen=True, slots=True)
class _HostReport:
    """How hosts treat one skill."""

    path: str
    conditions: list[str]
    verdicts: "list[HostVerdict]"

    @property
    def is_loaded_as_written(self) -> bool:
        return all(verdict.is_as_written for verdict in self.verdicts)


def _check_hosts(paths: Sequence[str], hosts: Sequence[str], out: Output, as_json: bool) -> int:
    """Return 0 if every host loads every skill as written, 1 if one does not, and 2 if there is no skill."""
    reports: list[_HostReport] = []
    for path in paths:
        reports.extend(_judge_skills(os.path.abspath(path), hosts))
    if not reports:
        places = ", ".join(shown_path(os.path.abspath(path)) for path in paths)
        raise CommandError(f"there is no skill in {places}", code="no-skills")

    faultless = sum(report.is_loaded_as_written for report in reports)
    if as_json:
        out.print_json({"skills": [_host_report_as_json(report) for report in reports]})
    else:
        for report in reports:
            if not report.is_loaded_as_written or len(reports) == 1:
                _print_host_report(report, out)
        style = "green" if faultless == len(reports) else "yellow"
        out.print_styled(
            f"{count_noun(len(reports), 'skill')} checked: {faultless:,} loaded as written by every host", style
        )
    return 0 if faultless == len(reports) else 1


def _judge_skills(path: str, hosts: Sequence[str]) -> Iterator[_HostReport]:
    from skillshelf.lint.hosts import find_file_conditions, find_skill_files, is_nested, judge_conditions
    from skillshelf.sources import SKILL_FILES

    if os.path.basename(path) in SKILL_FILES and not os.path.isdir(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        return
    for key, file in find_skill_files(path):
        conditions = find_file_conditions(file, nested=is_nested(path, key))
        yield _HostReport(f"{file.folder}/{file.name}", conditions, judge_conditions(conditions, hosts))


def _host_report_as_json(report: _HostReport) -> dict[str, object]:
    from skillshelf.lint.hosts import CONDITIONS

    conditions = [{"code": code, **asdict(CONDITIONS[code])} for code in report.conditions]
    return {
        "location": report.path,
        "conditions": conditions,
        "hosts": [asdict(verdict) for verdict in report.verdicts],
    }


def _print_host_report(report: _HostReport, out: Output) -> None:
    from skillshelf.lint.hosts import CONDITIONS

    out.print_styled(shown_path(report.path), "bold")
    rows: list[list[str | Cell]] = []
    fixes: dict[str, None] = {}
    for verdict in report.verdicts:
        conditions = [CONDITIONS[code] for code in verdict.because]
        outcome = Cell(verdict.makes.replace("-", " "), _style_verdict(verdict))
        reasons = "; ".join(condition.says for condition in conditions)
        rows.append([f"{verdict.host} {verdict.version}", outcome, reasons])
        fixes.update(dict.fromkeys(f"{condition.says}: {condition.fix}" for condition in conditions))
    out.print_table(_HOST_COLUMNS, rows)
    for fix in fixes:
        out.print_styled(f"fix: {fix}", indent=4)
    out.print()


def _style_verdict(verdict: "HostVerdict") -> str:
    if verdict.is_as_written:
        return "green"
    if verdict.makes in ("exposes", "truncates"):
        return "yellow"
    return "red"
