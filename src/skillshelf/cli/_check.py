"""`skillshelf check`: what is wrong with skills, for a person, for CI and for editors."""

import argparse
from collections.abc import Sequence

from skillshelf.cli._diagnostics import as_json, count_by_severity, print_diagnostic
from skillshelf.cli._output import Output, complain, plural
from skillshelf.descriptor import Diagnostic

EXAMPLES = """
  skillshelf check                              every skill below this folder
  skillshelf check .claude/skills/pdf           one skill
  skillshelf check --ignore reference-unnamed   without one kind of diagnostic
  skillshelf check --strict                     as the format's own validator has it
  skillshelf check --format sarif > check.sarif for code scanning
  skillshelf check --format github              as annotations in a GitHub workflow
  skillshelf check --hosts .claude/skills/pdf   what other agents make of a skill
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", help="a skill's folder, a SKILL.md, or a folder of skills (the workspace)"
    )
    parser.add_argument(
        "--format", choices=("text", "json", "sarif", "github"), default="text", help="how to say it (text)"
    )
    parser.add_argument(
        "--ignore",
        metavar="CODE",
        type=_code,
        action="append",
        default=[],
        help="leave out diagnostics of this code; repeatable",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="treat every field outside the open format as an error, as the format's own validator does",
    )
    parser.add_argument(
        "--hosts", action="store_true", help="say instead what the loaders of other agents make of each skill"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    from skillshelf.lint import look

    if args.json and args.format not in ("text", "json"):
        complain(f"skillshelf check: --json and --format {args.format} exclude each other; give one of them")
        return 2
    if args.hosts:
        from skillshelf.cli._hosts import run_hosts

        if args.format not in ("text", "json"):
            complain(f"skillshelf check: --hosts and --format {args.format} exclude each other; give one of them")
            return 2
        return run_hosts(args.paths or [args.workspace], out, as_json=args.json or args.format == "json")
    checked = [look(path, strict=args.strict) for path in args.paths or [args.workspace]]
    # Paths that overlap say the same twice.
    notes = list(dict.fromkeys(note for one in checked for note in one.diagnostics if note.code not in args.ignore))
    form = "json" if args.json else args.format
    if form == "json":
        out.print_json({"skills": sum(one.skills for one in checked), "diagnostics": [as_json(note) for note in notes]})
    elif form == "sarif":
        from skillshelf.cli._diagnostics import as_sarif

        out.print_json(as_sarif(notes))
    elif form == "github":
        from skillshelf.cli._diagnostics import github_annotation

        for note in notes:
            out.print(github_annotation(note))
    else:
        for note in notes:
            print_diagnostic(note, out)
        _summarize(sum(one.skills for one in checked), notes, out)
    return 1 if any(note.severity == "error" for note in notes) else 0


def _code(word: str) -> str:
    from skillshelf.lint import CODES
    from skillshelf.text import closest_names

    if word not in CODES:
        near = ", ".join(closest_names(word, CODES))
        raise argparse.ArgumentTypeError(
            f"{word!r} is no code of a diagnostic" + (f"; did you mean {near}?" if near else "")
        )
    return word


def _summarize(skills: int, notes: Sequence[Diagnostic], out: Output) -> None:
    found = {note.severity for note in notes}
    style = "red" if "error" in found else "yellow" if "warning" in found else "green"
    out.print_styled(f"{plural(skills, 'skill')} checked: {count_by_severity(notes) or 'nothing to mend'}", style)
