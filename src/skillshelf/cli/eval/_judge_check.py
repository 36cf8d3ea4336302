"""`skillshelf eval judge-check`: measure the judge of a run, or another one, against the labels of a person."""

import argparse
import asyncio
import os

from skillshelf.agent import load_settings, resolve
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.errors import EvalError
from skillshelf.evals import (
    Run,
    describe_sentences,
    find_judged_sentences,
    join_labels,
    make_label_template,
    read_labels,
    sample_sentences,
)
from skillshelf.evals.engine import Options, judge_again
from skillshelf.evals.report import (
    check_judge,
    judge_report_as_json,
    judge_tables,
    judge_verdict,
    render_plain,
    render_rich,
)
from skillshelf.files import replace_file
from skillshelf.text import count_noun

_ANSWERS_FILE = "judge-check.sqlite"
"""In the folder of the run: the answers of other judges."""


def check_judge_of_run(run: Run, folder: str, args: argparse.Namespace, out: Output) -> int:
    if bool(args.labels) == bool(args.template):
        raise EvalError(
            "judge-check takes a file of labels, or writes one to fill in",
            "skillshelf eval judge-check RUN --template FILE, and then --labels FILE",
        )
    judged = find_judged_sentences(run)
    if not judged:
        raise EvalError(f"No check of the run {run.id} asked a judge", "Choose a run whose cases have `judge` checks")
    if args.template:
        return _write_template(run, args.template)

    labels = read_labels(args.labels, judged)
    judge = run.judge
    if args.judge:
        settings = load_settings(vars(args) | {"model": args.judge})
        judge = resolve(settings).name
        trials = len({sentence.key[:3] for sentence in judged})
        complain(f"skillshelf: asking {judge} about {count_noun(trials, 'trial')}.")
        store = os.path.join(folder, _ANSWERS_FILE)
        judged = asyncio.run(judge_again(run, Options(settings), store))
    report = check_judge(run.id, judge, join_labels(judged, labels))
    if args.json:
        out.print_json(judge_report_as_json(report))
        return 0
    if out.is_terminal:
        out.print_rich(render_rich(judge_tables(report)))
    else:
        out.write(render_plain(judge_tables(report)))
    for line in judge_verdict(report):
        out.print_styled(line)
    return 0


def _write_template(run: Run, path: str) -> int:
    """Write a file to fill in, and a text to read beside it.

    A file that exists may hold an hour of work, so it is never overwritten.
    """
    keys = sample_sentences(run)
    texts = {path: make_label_template(keys), f"{path}.txt": describe_sentences(keys, run)}
    for name in texts:
        if os.path.exists(name):
            raise EvalError(f"--template: {name} exists", "Choose another name, or remove it")
    try:
        for name, text in texts.items():
            replace_file(name, text.encode("utf-8", "backslashreplace"), 0o666)
    except OSError as error:
        raise EvalError(f"--template: {path} cannot be written: {error.strerror}") from None
    complain(
        f"skillshelf: {count_noun(len(keys), 'sentence')} in random order. Read {shown_path(path)}.txt from the top, "
        f"and set `holds` in {shown_path(path)} to true or false. The rest may stay null."
    )
    return 0
