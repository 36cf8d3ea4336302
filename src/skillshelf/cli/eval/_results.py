"""What a run leaves behind: files, a summary, annotations."""

import argparse
import os
from collections.abc import Mapping, Sequence

from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli._reports import github
from skillshelf.errors import EvalError
from skillshelf.evals import Case, Outcome, Run
from skillshelf.evals.check import bless
from skillshelf.evals.engine import RunFolder
from skillshelf.evals.report import (
    HTML_FILE,
    Summary,
    as_json,
    blame,
    exit_code,
    headline,
    junit,
    plain,
    rich,
    summarize,
    tables,
    write_run,
)
from skillshelf.evals.stats import SkillText

_STYLES = {0: "green", 1: "red"}


def show(run: Run, texts: Mapping[str, SkillText], begun: RunFolder, args: argparse.Namespace, out: Output) -> int:
    """Files first: what is printed can be printed again. The exit code."""
    write_run(run, begun.path, texts)
    summary = summarize(run, texts)
    if args.junit:
        with open(args.junit, "w", encoding="utf-8") as file:
            file.write(junit(summary))
    code = exit_code(run)
    if args.json:
        out.json({**as_json(summary), "folder": begun.path, "exit_code": code})
    else:
        _print(summary, code, out)
        out.styled(f"{shown_path(os.path.join(begun.path, HTML_FILE))}  (run {run.id})", "dim")
    if args.github and not args.json:
        for note in blame(summary):
            out.text(github(note))
    return code


def updated(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """The golden files, from what this run gave, and what their checks say now. Raises EvalError."""
    try:
        blessed = bless(cases, outcomes)
    except OSError as error:
        raise EvalError(f"--update-golden: {error.filename} cannot be written: {error.strerror}") from None
    for path in blessed.written:
        complain(f"skillshelf: {shown_path(path)} is what this run gave")
    for sentence in blessed.left:
        complain(f"skillshelf: {sentence}")
    return blessed.outcomes


def _print(summary: Summary, code: int, out: Output) -> None:
    last = headline(summary)
    if out.terminal:
        out.show(rich(tables(summary), last, _STYLES.get(code, "yellow")))
    else:
        out.write(plain(tables(summary), last))
