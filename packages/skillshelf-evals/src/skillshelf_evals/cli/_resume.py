"""The request of a run, which is stored beside it so that --resume needs no other options."""

import argparse
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from skillshelf.cli import list_searched, shown_path
from skillshelf.errors import EvalError
from skillshelf_evals.engine import Options, read_run_folder
from skillshelf_evals.report import find_run_folder

_FIXED_OPTIONS = (
    "paths",
    "skill",
    "keep_going",
    "filter",
    "model",
    "judge",
    "base_url",
    "repeat",
    "baseline",
    "record",
    "replay",
    "rate",
    "timeout",
)
"""Options that a resumed run must share with its beginning."""
_REPORT_OPTIONS = ("max_cost", "max_tokens", "price", "github", "fail_under", "gate")
"""Options about the report and its gates, which may differ when a run is resumed."""
_PATH_OPTIONS = ("baseline", "record", "replay")
_DEFAULTS: tuple[Any, ...] = (None, "", 0, 1, Options().timeout, [])


def restore_request(args: argparse.Namespace) -> None:
    """Fill `args` with the request of the run to resume. Raises EvalError if they contradict each other."""
    if args.report:
        raise EvalError("--resume continues in the folder of the run", "Leave out --report")
    stored = read_run_folder(find_run_folder(args.resume))
    if stored is None:
        raise EvalError(
            f"The run {args.resume!r} cannot be resumed: its request is damaged, or another user began it",
            "Start a new run",
        )
    if stored.is_over:
        raise EvalError(f"The run {stored.id} is finished", f"Its report is in {shown_path(stored.path)}")
    if stored.request["server"] and not args.engine:
        raise EvalError(f"The run {stored.id} is on a PostgreSQL server", "Give its address with --engine")

    request = make_request(args)
    for name in _FIXED_OPTIONS:
        value = getattr(args, name)
        original = stored.request.get(name)
        if value not in _DEFAULTS and request[name] != original:
            option = name.replace("_", "-")
            raise EvalError(
                f"The run {stored.id} did not begin with this {option}: {request[name]!r:.80}", "Leave it out"
            )
        setattr(args, name, original or value)
    for name in _REPORT_OPTIONS:
        value = getattr(args, name)
        setattr(args, name, value or stored.request.get(name, value))


def make_request(args: argparse.Namespace) -> Mapping[str, Any]:
    """Return the options of a run with absolute paths, so that it can be resumed from any folder.

    Addresses that contain a password are left out, because people share their reports.
    """
    request = {name: getattr(args, name) for name in (*_FIXED_OPTIONS, *_REPORT_OPTIONS)}
    if "@" in (args.base_url or ""):
        request["base_url"] = None
    request["paths"] = [os.path.abspath(path) for path in args.paths or list_searched(args)]
    for name in _PATH_OPTIONS:
        value = request[name]
        # A baseline may also be a git revision, or `none`.
        if value and (name != "baseline" or os.path.isdir(value)):
            request[name] = os.path.abspath(value)
    request["gate"] = [_make_gate_absolute(gate) for gate in args.gate]
    return {**request, "server": bool(args.engine)}


def _make_gate_absolute(gate: str) -> str:
    """Return a gate with the absolute path of its run, unless the run is given by its name."""
    name, _, run = gate.partition(" ")
    return f"{name} {os.path.abspath(run)}" if os.path.exists(run) else gate


def check_output_paths(args: argparse.Namespace) -> None:
    """Raise EvalError if the run could not read or write its files, before anything is paid for."""
    if args.replay and not os.path.isdir(args.replay):
        raise EvalError(f"--replay: there is no folder {args.replay}", "`skillshelf eval --record DIR` creates one")
    for option in ("report", "record"):
        folder = getattr(args, option)
        if folder:
            _check_folder(option, folder)


def _check_folder(option: str, folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise EvalError(f"--{option}: cannot write to the folder {folder}: {error.strerror}") from None
