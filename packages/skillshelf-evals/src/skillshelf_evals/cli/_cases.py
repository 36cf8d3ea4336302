"""Finding the cases of a run, and `skillshelf eval list`."""

import argparse
import os
from typing import Any

from skillshelf.cli import CommandError, Output, as_json, count_by_severity, list_searched, print_diagnostic, shown_path
from skillshelf.errors import EvalError
from skillshelf.skills import Diagnostic
from skillshelf.text import count_noun
from skillshelf.text.tables import Cell, Column
from skillshelf_evals import Case, CaseInfo, Message
from skillshelf_evals.formats import find_cases, find_skill_folder
from skillshelf_evals.formats import list_cases as read_case_outlines
from skillshelf_evals.report import disarm_line

_COLUMNS = (Column("case", style="bold"), Column("checks", right=True), Column("model", style="cyan"), Column("where"))
_HOW_TO_WRITE_A_CASE = """\
Write one in the skill's own folder, such as evals/first.yaml:

  cases:
    - name: finds it
      prompt: something a user would say when the skill should help
      checks:
        - skill_loaded: NAME-OF-THE-SKILL

evals/evals.json and trigger sets ([{"query": …, "should_trigger": …}]) of other tools work as they are."""


def select_cases(args: argparse.Namespace, *, run_python: bool = True) -> tuple[list[Case], tuple[Diagnostic, ...]]:
    """Return the cases that fit the paths and the filter, and the faults of their files. Raises EvalError.

    Python case files are run if `run_python` is set; otherwise their source is read.
    """
    find = find_cases if run_python else read_case_outlines
    cases, notes = find(args.paths or list_searched(args), skill_folder=find_suite_skill(args))
    wanted = args.filter.lower()
    selected = []
    for case in cases:
        texts = (case.id, CaseInfo.of(case).query, *case.tags)
        if any(wanted in text.lower() for text in texts):
            selected.append(case)
    return selected, notes


def find_suite_skill(args: argparse.Namespace) -> str:
    """Return the absolute path of the skill that --skill names; empty without the option. Raises EvalError."""
    if not args.skill:
        return ""
    try:
        return os.path.abspath(find_skill_folder(args.skill, [*args.paths, *list_searched(args)]))
    except EvalError as error:
        raise EvalError(f"--skill: {error.problem}", error.fix) from None


def explain_no_cases(args: argparse.Namespace) -> CommandError:
    """Return an error that says where cases were looked for and how to write one."""
    places = ", ".join(shown_path(path) for path in args.paths or list_searched(args))
    fitting = f" with {args.filter!r} in its name, query or tags" if args.filter else ""
    return CommandError(
        f"there is no case{fitting} in {places} or in the evals/ folders of the skills below.\n",
        _HOW_TO_WRITE_A_CASE,
        code="no-cases",
    )


def list_cases(args: argparse.Namespace, out: Output) -> int:
    cases, notes = select_cases(args, run_python=False)
    has_errors = any(note.severity == "error" for note in notes)
    exit_code = 1 if has_errors else 0

    if not cases and not notes:
        raise explain_no_cases(args)

    if args.json:
        out.print_json(
            {"cases": [_case_as_json(case) for case in cases], "diagnostics": [as_json(note) for note in notes]}
        )
        return exit_code
    for note in notes:
        print_diagnostic(note, out)
    out.print_table(_COLUMNS, [_row(case) for case in cases])
    out.print()
    total = count_noun(len(cases), "case")
    if notes:
        total += f"; {count_by_severity(notes)}"
    out.print_styled(total, "red" if has_errors else "dim")
    return exit_code


def _row(case: Case) -> list[str | Cell]:
    place = case.location
    path, _, line = case.location.rpartition(":")
    if path:
        place = f"{shown_path(path)}:{line}"
    return [disarm_line(CaseInfo.of(case).label), str(len(case.checks)), _model_name(case), place]


def _model_name(case: Case) -> str:
    return case.model if case.script is None else "scripted"


def _case_as_json(case: Case) -> dict[str, Any]:
    path, _, line = case.location.rpartition(":")
    return {
        "case": case.id,
        "skill": case.skill,
        "path": path,
        "line": int(line) if line.isdecimal() else 0,
        "prompts": [turn.text for turn in case.turns if isinstance(turn, Message)],
        "should_trigger": case.should_trigger,
        "check_names": [check.name for check in case.checks],
        "model": _model_name(case),
        "tags": list(case.tags),
    }
