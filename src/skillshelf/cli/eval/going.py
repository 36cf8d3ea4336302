"""A run: from the cases to the report."""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf._version import __version__
from skillshelf.agent.models import resolve
from skillshelf.agent.settings import load_settings
from skillshelf.cli.diagnostics import as_json, counted, print_diagnostic
from skillshelf.cli.eval.cases import cases_of, say_none
from skillshelf.cli.eval.progress import progress
from skillshelf.cli.eval.results import show, updated
from skillshelf.cli.output import Output, complain, plural, shown_path
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import EvalError
from skillshelf.evals.case import Case
from skillshelf.evals.engine.carry_out import Work, carry_out, finish
from skillshelf.evals.engine.folder import RunFolder, begin, find_folder, new_folder, read_run, state_of
from skillshelf.evals.engine.liveness import only_here
from skillshelf.evals.engine.options import PARALLEL, Options
from skillshelf.evals.plan import make_plan
from skillshelf.evals.results import Run

# What a run was asked, so that --resume need not be told again.
_REQUEST = ("paths", "filter", "model", "base_url", "repeat", "baseline", "record", "replay", "rate", "update_golden")
_FOLDERS = ("baseline", "record", "replay")


def run_evals(args: argparse.Namespace, out: Output) -> int:
    if args.parallel == 0 and not args.engine:
        raise EvalError("--parallel 0 leaves all trials to workers, and there are none without --engine")
    folder = _resumed(args) if args.resume else ""
    cases, notes = cases_of(args)
    if any(note.severity == "error" for note in notes):
        return _refuse(notes, args, out)
    for note in () if args.json else notes:
        print_diagnostic(note, out)
    if not cases:
        return say_none(args)
    options = _options(args)
    name = _model(cases, options)
    with tempfile.TemporaryDirectory(prefix="skillshelf-old-") as stage:
        work = Work(make_plan(cases, args.repeat, args.baseline, stage), options)
        folder = folder or new_folder(args.report)
        with only_here(state_of(folder)):
            begun = _begin(folder, work, args)
            run = _carry_out(work, begun, name, args, out)
            code = show(run, begun, args, out)
            finish(work, begun, run.outcomes)
    return code


def _refuse(notes: Sequence[Diagnostic], args: argparse.Namespace, out: Output) -> int:
    """A case that nobody can read would be missing from the numbers without a word."""
    if args.json:
        out.json({"exit_code": 2, "diagnostics": [as_json(note) for note in notes]})
    for note in () if args.json else notes:
        print_diagnostic(note, out)
    complain(f"skillshelf: nothing was run, because of {counted(notes)} in the files of cases.")
    return 2


def _resumed(args: argparse.Namespace) -> str:
    """The folder of the run to go on with, whose request becomes what was asked. Raises EvalError."""
    found = read_run(find_folder(args.resume))
    if found is None:
        raise EvalError(f"What {args.resume!r} was asked cannot be read", "Begin anew")
    if found.finished and not found.failed:
        raise EvalError(f"The run {found.id} is finished", f"Its report is in {shown_path(found.path)}")
    if found.request["server"] and not args.engine:
        raise EvalError(f"The run {found.id} is on a PostgreSQL server", "Give its address with --engine")
    for name in _REQUEST:
        setattr(args, name, found.request[name] or getattr(args, name))
    return found.path


def _begin(folder: str, work: Work, args: argparse.Namespace) -> RunFolder:
    found = read_run(folder)
    if args.resume and found:
        if found.fingerprint != work.fingerprint:
            raise EvalError(
                f"The cases, the skills, the settings or skillshelf itself have changed since {found.id} began",
                "Its outcomes would not be of one thing: begin a new run",
            )
        found.finished = False
        found.save()
        return found
    begun = begin(folder, work.fingerprint, _request(args))
    if found and not found.finished:
        same = found.id == begun.id
        complain(
            f"skillshelf: going on with run {begun.id}, which was interrupted."
            if same
            else f"skillshelf: run {found.id} was interrupted and something has changed since; this is a new one."
        )
    return begun


def _request(args: argparse.Namespace) -> Mapping[str, Any]:
    """As it would be said from any folder. An address with a password is not in it: people share their reports."""
    asked = {name: getattr(args, name) for name in _REQUEST}
    if "@" in (args.base_url or ""):
        asked["base_url"] = None
    asked["paths"] = [os.path.abspath(path) for path in args.paths or [args.workspace]]
    for name in _FOLDERS:
        if asked[name] and (name != "baseline" or os.path.isdir(asked[name])):
            asked[name] = os.path.abspath(asked[name])
    return {**asked, "server": bool(args.engine)}


def _options(args: argparse.Namespace) -> Options:
    parallel = PARALLEL if args.parallel is None else args.parallel
    return Options(load_settings(vars(args)), args.record, args.replay, args.engine, parallel, args.rate)


def _model(cases: list[Case], options: Options) -> str:
    """The name of the run's model, once it is known that every model can be used. Raises ModelUnavailableError."""
    live = [case for case in cases if case.script is None]
    if not live:
        return "scripted"
    if options.replay:
        from skillshelf.evals.recording import Replay

        return Replay(options.replay).model_id
    if options.engine and not options.parallel:  # the keys are on the workers
        return options.settings.model
    chosen = {model: resolve(options.settings_of(model)) for model in sorted({case.model for case in live})}
    for one in chosen.values():
        if one.note:
            complain(one.note)
    return ", ".join(one.name for one in chosen.values())


def _carry_out(work: Work, begun: RunFolder, name: str, args: argparse.Namespace, out: Output) -> Run:
    plan = work.plan
    if not work.options.parallel:
        complain(f"skillshelf: {plural(len(plan.trials), 'trial')} for workers that run skillshelf {__version__}.")
    try:
        with progress(out, len(plan.trials), shown=out.terminal and not args.json) as told:
            outcomes = asyncio.run(carry_out(work, begun, told))
    except KeyboardInterrupt:
        again = f"skillshelf eval --resume {shown_path(begun.path) if args.report else os.path.basename(begun.path)}"
        complain(f"Interrupted after some of {plural(len(plan.trials), 'trial')}. `{again}` goes on.")
        raise
    if args.update_golden:
        outcomes = updated(plan, outcomes)
    return Run(begun.id, begun.started, name, plan.infos, outcomes, plan.skills, plan.repeats, plan.baseline)
