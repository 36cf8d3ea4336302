"""A run: from the cases to the report."""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence

from skillshelf._version import __version__
from skillshelf.agent import load_settings, resolve
from skillshelf.cli._diagnostics import as_json, counted, print_diagnostic
from skillshelf.cli._output import Output, complain, plural, shown_path
from skillshelf.cli.eval._cases import cases_of, say_none
from skillshelf.cli.eval._consent import case_folders, is_approved, refuse_unconfined, skill_folders
from skillshelf.cli.eval._progress import progress
from skillshelf.cli.eval._request import check_places, request_of
from skillshelf.cli.eval._results import show, updated
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import EvalError
from skillshelf.evals import Case, Plan, Run, make_plan
from skillshelf.evals.check import is_judge
from skillshelf.evals.engine import (
    PARALLEL,
    Options,
    RunFolder,
    Work,
    begin,
    carry_out,
    find_folder,
    finish,
    new_folder,
    only_here,
    read_run,
    replayed,
    state_of,
)


def run_evals(args: argparse.Namespace, out: Output) -> int:
    cases = wanted_cases(args, out)
    if not cases:
        return 2
    return carry_through(
        lambda stage: make_plan(cases, args.repeat, args.baseline, stage),
        lambda run, plan, begun: show(run, plan.texts, begun, args, out),
        args,
        out,
    )


def wanted_cases(args: argparse.Namespace, out: Output) -> list[Case]:
    """The cases to run; none where that cannot be, which is said."""
    if not is_approved(case_folders(args), args, out):
        return []
    cases, notes = cases_of(args)
    if any(note.severity == "error" for note in notes):
        _refuse(notes, args, out)
        return []
    for note in () if args.json else notes:
        print_diagnostic(note, out)
    if not cases:
        say_none(args)
    if not is_approved(skill_folders(cases), args, out):
        return []
    return cases


def carry_through(
    make: Callable[[str], Plan],
    show: Callable[[Run, Plan, RunFolder], int],
    args: argparse.Namespace,
    out: Output,
) -> int:
    """A run from its plan to what is shown of it. `make` is given a folder for other versions of skills."""
    if args.parallel == 0 and not args.engine:
        raise EvalError("--parallel 0 leaves all trials to workers, and there are none without --engine")
    options = _options(args)
    check_places(args)
    with tempfile.TemporaryDirectory(prefix="skillshelf-old-") as stage:
        work = Work(make(stage), options)
        for skill in work.plan.new:
            complain(f"skillshelf: {skill} is new since {args.baseline}, so that there is nothing to compare it with.")
        if options.parallel:
            refuse_unconfined((trial.case for trial in work.plan.trials), args)
        name = _model(work.plan.cases, options)
        folder = find_folder(args.resume) if args.resume else new_folder(args.report)
        with only_here(state_of(folder)):
            begun = _begin(folder, work, args)
            run = _carry_out(work, begun, name, args, out)
            code = show(run, work.plan, begun)
            finish(work, begun, run.outcomes)
    return code


def _refuse(notes: Sequence[Diagnostic], args: argparse.Namespace, out: Output) -> None:
    """A case that nobody can read would be missing from the numbers without a word."""
    if args.json:
        out.json({"exit_code": 2, "diagnostics": [as_json(note) for note in notes]})
    for note in () if args.json else notes:
        print_diagnostic(note, out)
    complain(f"skillshelf: nothing was run, because of {counted(notes)} in the files of cases.")


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
    begun = begin(folder, work.fingerprint, request_of(args))
    if found and not found.finished:
        same = found.id == begun.id
        complain(
            f"skillshelf: going on with run {begun.id}, which was interrupted."
            if same
            else f"skillshelf: run {found.id} was interrupted and something has changed since; this is a new one."
        )
    return begun


def _options(args: argparse.Namespace) -> Options:
    parallel = PARALLEL if args.parallel is None else args.parallel
    settings, named = load_settings(vars(args)), args.model or ""
    return Options(settings, args.record, args.replay, args.engine, parallel, args.rate, args.timeout, named=named)


def _model(cases: Sequence[Case], options: Options) -> str:
    """The name of the run's model, once it is known that every model can be used. Raises ModelUnavailableError."""
    live = [case for case in cases if case.script is None]
    if options.replay:
        return ", ".join(sorted({replayed(options, case.model).id for case in live})) or "scripted"
    # Judges are asked here, wherever the trials are run.
    if any(is_judge(check) for case in cases for check in case.checks):
        resolve(options.settings)
    if not live:
        return "scripted"
    if options.engine and not options.parallel:  # the keys are on the workers
        return options.settings.model
    chosen = {model: resolve(options.settings_of(model)) for model in sorted({case.model for case in live})}
    for one in chosen.values():
        if one.note:
            complain(one.note)
    return ", ".join(one.name for one in chosen.values())


def _carry_out(work: Work, begun: RunFolder, name: str, args: argparse.Namespace, out: Output) -> Run:
    plan = work.plan
    if work.options.server and not work.options.parallel:
        complain(f"skillshelf: {plural(len(plan.trials), 'trial')} for workers that run skillshelf {__version__}.")
    try:
        with progress(out, len(plan.trials), shown=out.terminal and not args.json) as told:
            outcomes = asyncio.run(carry_out(work, begun, told))
    except KeyboardInterrupt:
        place = shown_path(begun.path) if args.report else os.path.basename(begun.path)
        again = f"skillshelf eval --resume {place}" + (" --trust-workspace" if args.trust_workspace else "")
        complain(f"Interrupted after some of {plural(len(plan.trials), 'trial')}. `{again}` goes on.")
        raise
    if args.update_golden:
        outcomes = updated(plan.cases, outcomes)
    return Run(begun.id, begun.started, name, plan.infos, outcomes, plan.skills, plan.repeats, plan.baseline)
