"""What a run was asked: kept beside it, so that --resume need not be told again."""

import argparse
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from skillshelf.cli._output import shown_path
from skillshelf.errors import EvalError
from skillshelf.evals import SECONDS
from skillshelf.evals.engine import find_folder, read_run

_REQUEST = (
    *("paths", "filter", "model", "base_url", "repeat", "baseline", "record", "replay", "rate", "update_golden"),
    *("descriptions", "timeout"),
)
_PLACES = ("baseline", "record", "replay", "descriptions", "junit")
# How it is shown, which may be another way the second time.
_SHOWN = ("junit", "github")
_NOT_GIVEN: tuple[Any, ...] = (None, "", 0, 1, SECONDS, [])


def resume(args: argparse.Namespace) -> None:
    """What was asked of the run to go on with becomes what is asked. Raises EvalError."""
    if args.report:
        raise EvalError("--resume goes on in the folder that the run has", "Leave out --report")
    found = read_run(find_folder(args.resume))
    if found is None:
        raise EvalError(f"What {args.resume!r} was asked cannot be read", "Begin anew")
    if found.finished and not found.failed:
        raise EvalError(f"The run {found.id} is finished", f"Its report is in {shown_path(found.path)}")
    if found.request["server"] and not args.engine:
        raise EvalError(f"The run {found.id} is on a PostgreSQL server", "Give its address with --engine")
    now = request_of(args)
    for name in _REQUEST:
        asked = found.request.get(name)
        if getattr(args, name) not in _NOT_GIVEN and now[name] != asked:
            word = name.replace("_", "-")
            raise EvalError(f"The run {found.id} was not begun with this {word}: {now[name]!r:.80}", "Leave it out")
        setattr(args, name, asked or getattr(args, name))
    for name in _SHOWN:
        setattr(args, name, getattr(args, name) or found.request.get(name))


def check_places(args: argparse.Namespace) -> None:
    """Before anything is paid for: what the run needs at its end. Raises EvalError."""
    if args.replay and not os.path.isdir(args.replay):
        raise EvalError(f"--replay: there is no folder {args.replay}", "`skillshelf eval --record DIR` makes one")
    for name in ("report", "record"):
        if folder := getattr(args, name):
            try:
                os.makedirs(folder, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                raise EvalError(f"--{name}: {folder} is no folder to write to: {error.strerror}") from None
    if args.junit:
        try:
            with open(args.junit, "a", encoding="utf-8"):
                pass
        except OSError as error:
            raise EvalError(f"--junit: {args.junit} cannot be written: {error.strerror}") from None


def request_of(args: argparse.Namespace) -> Mapping[str, Any]:
    """As it would be said from any folder. An address with a password is not in it: people share their reports."""
    asked = {name: getattr(args, name) for name in (*_REQUEST, *_SHOWN)}
    if "@" in (args.base_url or ""):
        asked["base_url"] = None
    asked["paths"] = [os.path.abspath(path) for path in args.paths or [args.workspace]]
    for name in _PLACES:
        if asked[name] and (name != "baseline" or os.path.isdir(asked[name])):
            asked[name] = os.path.abspath(asked[name])
    return {**asked, "server": bool(args.engine)}
