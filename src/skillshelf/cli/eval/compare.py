"""`skillshelf eval compare A B`: two runs, case by case."""

import argparse
import os

from skillshelf.cli.output import Output
from skillshelf.errors import EvalError
from skillshelf.evals.engine.folder import find_folder
from skillshelf.evals.report.compare import as_json, compare, exit_code, tables
from skillshelf.evals.report.files import RunUnreadableError, read_run
from skillshelf.evals.report.terminal import plain, rich
from skillshelf.evals.results import Run


def compare_runs(args: argparse.Namespace, out: Output) -> int:
    if len(args.paths) != 2:
        raise EvalError("compare takes two runs", "Give the name, the folder or the run.json of each")
    found = compare(*(_read(path) for path in args.paths))
    if args.json:
        out.json(as_json(found))
    elif out.terminal:
        out.show(rich(tables(found)))
    else:
        out.write(plain(tables(found)))
    return exit_code(found)


def _read(given: str) -> Run:
    try:
        return read_run(given if os.path.exists(given) else find_folder(given))
    except RunUnreadableError as error:
        raise EvalError(str(error).rstrip(".")) from error
