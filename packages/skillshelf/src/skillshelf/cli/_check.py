"""`skillshelf check`: mistakes in skills, for people, for CI and for editors.

`--hosts` shows how other agents load them, and `--overlap` which of them compete.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skillshelf.cli._diagnostics import as_json, as_sarif, count_by_severity, github_annotation, print_diagnostic
from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import list_searched, locate_workspace
from skillshelf.errors import SourceError
from skillshelf.skills import Diagnostic
from skillshelf.text import closest_names, count_noun
from skillshelf.text.streams import keep_output_clean

if TYPE_CHECKING:
    from skillshelf.lint import CheckReport

EXAMPLES = """
  skillshelf check                              check every skill below this folder
  skillshelf check .claude/skills/pdf           check one skill
  skillshelf check --package my_skills          check the code skills of an installed package
  skillshelf check --ignore reference-unnamed   leave out one kind of diagnostic
  skillshelf check --strict                     accept only what the open format has
  skillshelf check --format sarif > check.sarif write a log for code scanning
  skillshelf check --format github              print annotations in a GitHub workflow
  skillshelf check --hosts                      see which agents see which skills of this repository
  skillshelf check --hosts .claude/skills/pdf   see how other agents load a skill
  skillshelf check --host codex --host pi       ask only about these agents
  skillshelf check --wheel dist/app-1.0.whl     see which skills users of a library get
  skillshelf check --overlap                    see which skills take requests from each other
  skillshelf check --overlap drafts/pdf-sign    see what a new skill would take from those on the shelf
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="a skill's folder, a SKILL.md, or a folder of skills (default: the workspace, unless --package is given)",
    )
    parser.add_argument(
        "--format",
        choices=("text", "sarif", "github"),
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
    instead = parser.add_mutually_exclusive_group()
    hosts = instead.add_argument(
        "--hosts", action="store_true", help="show instead which agents see the skills, or how they load those in PATH"
    )
    overlap = instead.add_argument(
        "--overlap", action="store_true", help="show instead which skills compete for requests, or those in PATH alone"
    )
    instead.add_argument(
        "--wheel", metavar="FILE", help="show instead which skills users of a wheel get, and check those"
    )
    parser.note_argument(hosts)
    parser.note_argument(overlap)
    parser.add_argument(
        "--host",
        metavar="NAME",
        type=_host_name,
        action="append",
        default=[],
        help="with --hosts: ask only about this host, such as codex; repeatable",
    )


def _host_name(word: str) -> str:
    from skillshelf.lint.hosts import load_records

    hosts = list(load_records())
    if word not in hosts:
        message = f"unknown host {word!r}; choose from {', '.join(hosts)}"
        closest = closest_names(word, hosts)
        if closest:
            message = f"unknown host {word!r}; did you mean {', '.join(closest)}?"
        raise argparse.ArgumentTypeError(message)
    return word


def _diagnostic_code(word: str) -> str:
    from skillshelf.lint import CODES

    if word not in CODES:
        message = f"unknown diagnostic code {word!r}"
        closest = ", ".join(closest_names(word, CODES))
        if closest:
            message += f"; did you mean {closest}?"
        raise argparse.ArgumentTypeError(message)
    return word


def run(args: argparse.Namespace, out: Output) -> int:
    _check_options(args)
    if args.wheel:
        from skillshelf.cli._check_wheel import check_wheel

        return check_wheel(args, out)
    if args.overlap:
        from skillshelf.cli._overlap import check_overlap

        return check_overlap(args, out)
    if args.hosts or args.host:
        return _check_hosts(args, out)

    paths = args.paths
    if not paths and not args.packages:
        paths = list_searched(args)
    existing = _find_existing(paths, has_packages=bool(args.packages))
    code = _check_skills(existing, args, out)
    return 2 if len(existing) < len(paths) else code


def _check_options(args: argparse.Namespace) -> None:
    """Raise CommandError for options that mean nothing together."""
    if args.json and args.format != "text":
        raise CommandError(f"--json and --format {args.format} cannot be used together.", "Give one of them.")
    if not (args.hosts or args.host or args.overlap or args.wheel):
        return
    option = "--hosts"
    if args.overlap or args.wheel:
        option = "--overlap" if args.overlap else "--wheel"
    if args.format != "text":
        raise CommandError(f"{option} and --format {args.format} cannot be used together.", "Give one of them.")
    if args.wheel and (args.paths or args.packages or args.host):
        raise CommandError("--wheel checks one wheel and nothing else.", "Leave out the other arguments.")
    if args.host and args.overlap:
        raise CommandError("--host works only with --hosts.", "Leave out --overlap.")
    if args.packages and not args.overlap:
        raise CommandError("--hosts is about files: other agents do not load packages.", "Leave out --package.")


def _check_hosts(args: argparse.Namespace, out: Output) -> int:
    from skillshelf.cli._hosts import check_hosts, show_map

    if not args.paths:
        return show_map(args, out)
    existing = _find_existing(args.paths)
    code = check_hosts(existing, args.host, out, as_json=args.json)
    return 2 if len(existing) < len(args.paths) else code


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


def _check_skills(paths: Sequence[str], args: argparse.Namespace, out: Output) -> int:
    is_whole_workspace = not args.paths and not args.packages
    here = locate_workspace(args).folder if is_whole_workspace else None
    report = check_together(paths, args.packages, strict=args.strict, here=here)
    skills = report.skills
    left_out = set(args.ignore)
    if skills and is_whole_workspace:
        left_out.add("no-skill")  # the folder itself has none, but its parents do
    notes = [note for note in report.diagnostics if note.code not in left_out]

    if args.json:
        out.print_json({"skill_count": skills, "diagnostics": [as_json(note) for note in notes]})
    elif args.format == "sarif":
        out.print_json(as_sarif(notes))
    elif args.format == "github":
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
