"""`skillshelf eval compare A B`: two runs, case by case."""

import argparse
import os

from skillshelf.cli._output import Output
from skillshelf.errors import EvalError
from skillshelf.evals import Run
from skillshelf.evals.engine import find_folder
from skillshelf.evals.report import (
    RunUnreadableError,
    compare,
    comparison_as_json,
    comparison_exit_code,
    comparison_tables,
    plain,
    read_run,
    rich,
)


def compare_runs(args: argparse.Namespace, out: Output) -> int:
    if len(args.paths) != 2:
        raise EvalError("compare takes two runs", "Give the name, the folder or the run.json of each")
    found = compare(*(_read(path) for path in args.paths))
    if args.json:
        out.json(comparison_as_json(found))
    elif out.terminal:
        out.show(rich(comparison_tables(found)))
    else:
        out.write(plain(comparison_tables(found)))
    return comparison_exit_code(found)


def _read(given: str) -> Run:
    try:
        return read_run(given if os.path.exists(given) else find_folder(given))
    except RunUnreadableError as error:
        raise EvalError(str(error).rstrip(".")) from error
