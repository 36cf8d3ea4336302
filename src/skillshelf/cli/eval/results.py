"""What a run leaves behind: files, a summary, annotations."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skillshelf.cli.output import Output, complain, shown_path
from skillshelf.cli.reports import github
from skillshelf.evals.checks.base import Check, Verdict
from skillshelf.evals.checks.golden import Golden, update_golden
from skillshelf.evals.engine.folder import RunFolder
from skillshelf.evals.plan import Plan
from skillshelf.evals.report import Summary, blame, exit_code, junit, summarize, write_run
from skillshelf.evals.report.files import HTML_FILE
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


def updated(plan: Plan, outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Golden files from the first good trial of each case, and what their checks say now."""
    for case in plan.cases:
        good = (one for one in outcomes if (one.case, one.arm) == (case.id, "with") and not one.trace.error)
        for path in update_golden(case.checks, first.trace) if (first := next(good, None)) else ():
            complain(f"skillshelf: {shown_path(path)} is what this run gave")
    checks = {case.id: case.checks for case in plan.cases}
    return tuple(_looked_again(one, checks[one.case]) for one in outcomes)


def _looked_again(outcome: Outcome, checks: Sequence[Check]) -> Outcome:
    if outcome.trace.error:
        return outcome
    results = []
    for check, result in zip(checks, outcome.checks, strict=True):
        found = check.look(outcome.trace) if isinstance(check, Golden) else result.verdict
        results.append(replace(result, verdict=found) if isinstance(found, Verdict) else result)
    return replace(outcome, checks=tuple(results))


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
