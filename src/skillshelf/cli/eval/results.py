"""What a run leaves behind: files, a summary, annotations."""

import argparse
import os
from typing import Any

from skillshelf.cli.output import Output, complain, shown_path
from skillshelf.cli.reports import github
from skillshelf.evals.checks.golden import update_golden
from skillshelf.evals.engine.carry_out import Work
from skillshelf.evals.engine.folder import RunFolder
from skillshelf.evals.report.blame import blame
from skillshelf.evals.report.files import HTML_FILE, write_run
from skillshelf.evals.report.junit import junit
from skillshelf.evals.report.summary import Summary, exit_code, summarize
from skillshelf.evals.report.terminal import headline, plain, rich, tables
from skillshelf.evals.results import Outcome, Run
from skillshelf.evals.stats import SkillText, skill_texts
from skillshelf.shelf import Shelf
from skillshelf.sources.directory import DirectorySource

_STYLES = {0: "green", 1: "red"}


def show(run: Run, begun: RunFolder, args: argparse.Namespace, out: Output) -> int:
    """Files first: what is printed can be printed again. The exit code."""
    texts = _texts(run)
    write_run(run, begun.path, texts)
    summary = summarize(run, texts)
    if args.junit:
        with open(args.junit, "w", encoding="utf-8") as file:
            file.write(junit(summary))
    code = exit_code(run)
    if args.json:
        out.json({"run": run.id, "folder": begun.path, "exit_code": code, "trials": list(map(_facts, run.outcomes))})
    else:
        _print(summary, code, out)
        out.styled(f"{shown_path(os.path.join(begun.path, HTML_FILE))}  (run {run.id})", "dim")
    if args.github and not args.json:
        for note in blame(summary):
            out.text(github(note))
    return code


def update(work: Work, run: Run) -> None:
    """Golden files from the first good trial of each case."""
    outcomes = {(one.case, one.arm, one.repeat): one for one in run.outcomes}
    for case in work.plan.cases:
        trace = outcomes[case.id, "with", 1].trace
        for path in () if trace.error else update_golden(case.checks, trace):
            complain(f"skillshelf: {shown_path(path)} is what this run gave")


def _print(summary: Summary, code: int, out: Output) -> None:
    last = headline(summary)
    if out.terminal:
        out.show(rich(tables(summary), last, _STYLES.get(code, "yellow")))
    else:
        out.write(plain(tables(summary), last))


def _texts(run: Run) -> dict[str, SkillText]:
    """The skills under test, for the coverage."""
    texts: dict[str, SkillText] = {}
    for name, path in run.skills.items():
        texts |= skill_texts(Shelf([DirectorySource(os.path.dirname(path), cache=False)]), [name])
    return texts


def _facts(outcome: Outcome) -> dict[str, Any]:
    return {
        "case": outcome.case,
        "arm": outcome.arm,
        "repeat": outcome.repeat,
        "status": outcome.status,
        "error": outcome.trace.error,
        "checks": [
            {"name": one.name, "passed": one.verdict.passed, "reason": one.verdict.reason, "error": one.verdict.error}
            for one in outcome.checks
        ],
    }
