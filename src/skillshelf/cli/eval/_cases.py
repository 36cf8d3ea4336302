"""`skillshelf eval list`, and the cases that any run begins with."""

import argparse
from collections.abc import Sequence
from typing import Any

from skillshelf.cli._cells import Column
from skillshelf.cli._diagnostics import as_json, counted, print_diagnostic
from skillshelf.cli._output import Output, complain, plural, shown_path
from skillshelf.cli._table import print_table
from skillshelf.descriptor import Diagnostic
from skillshelf.evals import Case, Message
from skillshelf.evals.formats import find_cases
from skillshelf.evals.formats import list_cases as outline_cases
from skillshelf.evals.report import inert

_COLUMNS = (Column("case", "bold"), Column("checks", right=True), Column("model", "cyan"), Column("where"))
_HOW = """\
Write one in the skill's own folder, such as evals/first.yaml:

  cases:
    - name: finds it
      prompt: something that a person would say when the skill should help
      checks:
        - skill_loaded: NAME-OF-THE-SKILL

evals/evals.json and trigger sets ([{"query": …, "should_trigger": …}]) of other tools are read as they are."""


def cases_of(args: argparse.Namespace, *, run: bool = True) -> tuple[list[Case], tuple[Diagnostic, ...]]:
    """Return the cases that were asked for, and the faults of the files they are in. Raises EvalError.

    `run`: files of Python are run for their cases; otherwise their source is read.
    """
    find = find_cases if run else outline_cases
    found, notes = find(args.paths or [args.workspace])
    wanted = args.filter.lower()
    return [case for case in found if wanted in " ".join((case.id, *case.tags)).lower()], notes


def say_none(args: argparse.Namespace) -> int:
    """Where it looked, and what a case looks like."""
    where = ", ".join(shown_path(path) for path in args.paths or [args.workspace])
    fitting = f" with {args.filter!r} in name or tags" if args.filter else ""
    complain(f"skillshelf: there is no case{fitting} in {where}, nor in the evals/ folders of skills below.\n{_HOW}")
    return 2


def list_cases(args: argparse.Namespace, out: Output) -> int:
    cases, notes = cases_of(args, run=False)
    wrong = any(note.severity == "error" for note in notes)
    if args.json:
        out.json({"cases": [_facts(case) for case in cases], "diagnostics": [as_json(note) for note in notes]})
        return 1 if wrong else 0
    for note in notes:
        print_diagnostic(note, out)
    if not cases and not notes:
        return say_none(args)
    print_table(out, _COLUMNS, [_row(case) for case in cases])
    out.text()
    out.styled(_total(cases, notes), "red" if wrong else "dim")
    return 1 if wrong else 0


def _row(case: Case) -> list[Any]:
    path, _, line = case.location.rpartition(":")
    where = f"{shown_path(path)}:{line}" if path else case.location
    return [inert(case.id), str(len(case.checks)), _model(case), where]


def _model(case: Case) -> str:
    return "scripted" if case.script is not None else case.model


def _total(cases: Sequence[Case], notes: Sequence[Diagnostic]) -> str:
    faults = counted(notes)
    return plural(len(cases), "case") + (f"; {faults}" if faults else "")


def _facts(case: Case) -> dict[str, Any]:
    return {
        "id": case.id,
        "skill": case.skill,
        "location": case.location,
        "prompts": [turn.text for turn in case.turns if isinstance(turn, Message)],
        "should_trigger": case.should_trigger,
        "checks": [check.name for check in case.checks],
        "model": _model(case),
        "tags": list(case.tags),
    }
