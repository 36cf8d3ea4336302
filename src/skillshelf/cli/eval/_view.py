"""`skillshelf eval view`: the runs in a folder, with their trend."""

import argparse
import os

from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.errors import EvalError
from skillshelf.evals.engine import find_runs_folder
from skillshelf.evals.report import (
    history_as_json,
    history_tables,
    read_history,
    render_history_page,
    render_plain,
    render_rich,
)
from skillshelf.files import replace_file
from skillshelf.text import count_noun


def view_runs(args: argparse.Namespace, out: Output) -> int:
    history = read_history(os.path.abspath(args.folder or find_runs_folder()))
    if not history.records and not history.unreadable:
        if history.choices:
            problem = f"{history.folder} holds a choice between descriptions and no other run"
            raise EvalError(problem, "Open description-*/report.html in it")
        raise EvalError(f"There is no run in {history.folder}", "Give the folder that --report named, or one above it")
    if args.html:
        page = os.path.abspath(args.html)
        _write_page(page, render_history_page(history, os.path.dirname(page)))
        if not args.json:
            out.print(f"{shown_path(page)}  ({count_noun(len(history.records), 'run')})")
            for found in history.unreadable:
                complain(f"skillshelf: {found.path} is left out: {found.reason}")
            return 0

    if args.json:
        out.print_json(history_as_json(history))
    elif out.is_terminal:
        out.print_rich(render_rich(history_tables(history)))
    else:
        out.write(render_plain(history_tables(history)))
    return 0


def _write_page(path: str, text: str) -> None:
    try:
        replace_file(path, text.encode(), 0o666)
    except OSError as error:
        raise EvalError(f"--html: {path} cannot be written: {error.strerror}") from None
