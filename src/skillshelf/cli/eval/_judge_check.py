"""`skillshelf eval judge-check`: measure the judge of a run, or another one, against the labels of a person."""

import argparse
import os

from skillshelf.agent import load_settings, resolve
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.errors import EvalError
from skillshelf.evals import Run
from skillshelf.evals.engine import Options
from skillshelf.evals.report import check_judge, make_label_template, render_plain, render_rich
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
    if args.template:
        return _write_template(run, args.template)

    judge = ""
    options = None
    if args.judge:
        settings = load_settings(vars(args) | {"model": args.judge})
        judge = resolve(settings).name
        options = Options(settings)
        complain(f"skillshelf: asking {judge} about the same sentences.")
    report = check_judge(run, args.labels, judge, options, os.path.join(folder, _ANSWERS_FILE))
    if args.json:
        out.print_json(report.as_json())
        return 0
    if out.is_terminal:
        out.print_rich(render_rich(report.tables))
    else:
        out.write(render_plain(report.tables))
    for line in report.lines:
        out.print_styled(line)
    return 0


def _write_template(run: Run, path: str) -> int:
    """Write a file to fill in, and a text to read beside it.

    A file that exists may hold an hour of work, so it is never overwritten.
    """
    template = make_label_template(run)
    texts = {path: template.labels, f"{path}.txt": template.text}
    for name in texts:
        if os.path.exists(name):
            raise EvalError(f"--template: {name} exists", "Choose another name, or remove it")
    try:
        for name, text in texts.items():
            replace_file(name, text.encode("utf-8", "backslashreplace"), 0o666)
    except OSError as error:
        raise EvalError(f"--template: {path} cannot be written: {error.strerror}") from None
    complain(
        f"skillshelf: {count_noun(template.sentences, 'sentence')} in random order. Read {shown_path(path)}.txt from "
        f"the top, and set `holds` in {shown_path(path)} to true or false. The rest may stay null."
    )
    return 0
