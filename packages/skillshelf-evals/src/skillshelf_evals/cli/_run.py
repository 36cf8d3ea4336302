"""`skillshelf eval run`: from the cases to the report."""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from skillshelf import __version__
from skillshelf.cli import (
    CommandError,
    Output,
    complain,
    count_by_severity,
    github_annotation,
    print_diagnostic,
    shown_path,
)
from skillshelf.cli import as_json as diagnostic_as_json
from skillshelf.errors import EvalError, RunStoppedError
from skillshelf.skills import Diagnostic
from skillshelf.text import count_noun
from skillshelf.text.streams import keep_output_clean
from skillshelf_agent import Settings, load_settings
from skillshelf_evals import Case, Run, make_plan
from skillshelf_evals.cli._cases import explain_no_cases, find_suite_skill, select_cases
from skillshelf_evals.cli._consent import check_approval, find_case_folders, refuse_unconfined
from skillshelf_evals.cli._progress import make_progress
from skillshelf_evals.cli._resume import check_output_paths, make_request
from skillshelf_evals.engine import (
    Options,
    PackedPlan,
    Price,
    RunFolder,
    SpendingLimits,
    begin_run,
    estimate_plan,
    finish_run,
    leave_server,
    lock_run,
    make_run_folder,
    name_judges,
    name_models,
    read_run_folder,
    run_plan,
)
from skillshelf_evals.formats import find_skill_folders
from skillshelf_evals.report import (
    Gates,
    annotate,
    disarm_line,
    find_run_folder,
    format_money,
    judge_run,
    render_plain,
    render_rich,
    summarize,
    summary_as_json,
    summary_line,
    summary_tables,
    write_run,
)

_EXIT_STYLES = {0: "green", 1: "red"}
_INCOMPLETE = 3


@dataclass(frozen=True, slots=True)
class _ApprovedCases:
    """The cases of a run, and the faults of those that cannot be read, if it keeps going without them."""

    cases: list[Case]
    faults: tuple[Diagnostic, ...] = ()


def run_cases(args: argparse.Namespace, gates: Gates, out: Output) -> int:
    args.skill = find_suite_skill(args)  # its path, so that the run can be resumed from any folder
    approved = _find_approved_cases(args, out)
    if args.parallel == 0 and not args.engine:
        raise EvalError("--parallel 0 leaves all trials to workers, and there are none without --engine")
    options = _make_options(args)
    check_output_paths(args)
    with tempfile.TemporaryDirectory(prefix="skillshelf-old-") as stage:
        with keep_output_clean():
            packed = PackedPlan(make_plan(approved.cases, args.repeat, args.baseline, stage), options)
        _note_incomparable(packed)
        if options.parallel:
            refuse_unconfined((trial.case for trial in packed.plan.trials), args)
        judge = name_judges(packed.plan.cases, options)
        model = name_models(packed.plan.cases, options, complain)
        if not args.resume and not options.are_workers_alone:
            _announce_cost(packed)

        path = find_run_folder(args.resume) if args.resume else make_run_folder(args.report)
        with lock_run(path):
            folder = _open_run_folder(path, packed, args)
            run = replace(_run_trials(packed, folder, model, args, out), judge=judge)
            code = _report(run, packed, folder, gates, approved.faults, args, out)
            finish_run(packed, folder, run.outcomes)
    return code


def _find_approved_cases(args: argparse.Namespace, out: Output) -> _ApprovedCases:
    """Return the cases to run. Raises CommandError if they cannot be run."""
    check_approval(find_case_folders(args), args)
    with keep_output_clean():
        cases, notes = select_cases(args)
    if not args.json:
        for note in notes:
            print_diagnostic(note, out)
    faults = tuple(note for note in notes if note.severity == "error")
    if faults and not args.keep_going:
        # Otherwise they would be missing from the numbers without notice.
        raise CommandError(
            f"nothing was run, because of {count_by_severity(notes)} in the case files.",
            "Correct them, or run the other cases with --keep-going.",
            code="invalid-cases",
            facts={"diagnostics": [diagnostic_as_json(note) for note in notes]},
        )
    if not cases:
        raise explain_no_cases(args)
    check_approval(find_skill_folders(cases), args)
    return _ApprovedCases(cases, faults)


def _note_incomparable(packed: PackedPlan) -> None:
    """Say what the baseline has nothing to compare with."""
    plan = packed.plan
    for skill in plan.new:
        complain(f"skillshelf: {skill} is new since {plan.baseline}, so there is nothing to compare it with.")
    if plan.lacks_comparison:
        complain(
            f"skillshelf: --baseline {plan.baseline}: no case can be compared. Scripted cases, and those that "
            "check only what is offered or loaded, are tried with the skill alone."
        )


def _make_options(args: argparse.Namespace) -> Options:
    return Options(
        load_settings(vars(args)),
        args.record,
        args.replay,
        args.engine,
        Options().parallel if args.parallel is None else args.parallel,
        args.rate,
        args.timeout,
        SpendingLimits(args.max_cost or 0.0, args.max_tokens or 0, Price(*args.price) if args.price else None),
        named=args.model or "",
        judge=_choose_judge(args),
        named_judge=args.judge or "",
    )


def _choose_judge(args: argparse.Namespace) -> Settings | None:
    """Return the judge that --judge names, or the configured model if --model puts another one to the test.

    None is the model under test itself: no other is configured.
    """
    if args.judge:
        return load_settings({**vars(args), "model": args.judge})
    configured = load_settings({})
    if args.model and configured.model not in ("", args.model):
        return configured
    return None


def _announce_cost(packed: PackedPlan) -> None:
    """Say what the run will cost, as far as that is known. Raises EvalError if --max-cost cannot be kept."""
    estimate = estimate_plan(packed.plan, packed.options)
    if not estimate.trials:
        return
    usage = estimate.usage
    cost = "" if usage.cost is None else f", about {format_money(usage.cost)}"
    tokens = f"about {usage.input + usage.output:,} tokens"
    complain(f"skillshelf: {count_noun(estimate.trials, 'live trial')}, estimated at {tokens}{cost}.")


def _open_run_folder(path: str, packed: PackedPlan, args: argparse.Namespace) -> RunFolder:
    """Continue the run in the folder if it was interrupted, or begin a new one."""
    previous = read_run_folder(path)
    if args.resume and previous:
        if previous.fingerprint != packed.fingerprint:
            raise EvalError(
                f"The cases, the skills, the settings or skillshelf itself have changed since {previous.id} began",
                "Outcomes from before and after the change cannot be mixed: start a new run",
            )
        previous.finished = False
        previous.save()
        return previous

    folder = begin_run(path, packed.fingerprint, make_request(args))
    if previous and not previous.finished:
        if previous.id == folder.id:
            complain(f"skillshelf: continuing run {folder.id}, which was interrupted.")
        else:
            complain(
                f"skillshelf: run {previous.id} was interrupted, and something has changed since then; "
                "this is a new run."
            )
            leave_server(packed.options, previous)
    return folder


def _run_trials(packed: PackedPlan, folder: RunFolder, model: str, args: argparse.Namespace, out: Output) -> Run:
    plan = packed.plan
    if packed.options.server and not packed.options.parallel:
        complain(f"skillshelf: {count_noun(len(plan.trials), 'trial')} for workers that run skillshelf {__version__}.")
    progress = make_progress(out, len(plan.trials), is_visible=out.is_terminal and not args.json)
    try:
        with progress.shown(), nullcontext() if out.is_terminal else keep_output_clean():
            outcomes = asyncio.run(run_plan(packed, folder, progress.add_outcome, progress.say))
    except KeyboardInterrupt:
        complain(f"Interrupted after {progress.state}. Continue with `{_resume_command(folder, args)}`.")
        raise
    except RunStoppedError as error:
        advice = f"Stopped after {progress.state}. Continue with `{_resume_command(folder, args)}`"
        if error.fix:
            advice = f"{error.fix}. {advice}"
        raise RunStoppedError(error.problem, f"{advice}.") from error
    return Run(
        id=folder.id,
        started=folder.started,
        model=model,
        cases=plan.infos,
        outcomes=outcomes,
        skills=plan.skills,
        repeats=plan.repeats,
        baseline=plan.baseline,
        replayed=bool(args.replay),
    )


def _resume_command(folder: RunFolder, args: argparse.Namespace) -> str:
    place = shown_path(folder.path) if args.report else os.path.basename(folder.path)
    words = ["skillshelf", "eval", "--resume", place]
    if args.engine:
        words += ["--engine", "URL"]  # the address may hold a password
    if args.trust_workspace:
        words.append("--trust-workspace")
    return " ".join(words)


def _report(
    run: Run,
    packed: PackedPlan,
    folder: RunFolder,
    gates: Gates,
    faults: Sequence[Diagnostic],
    args: argparse.Namespace,
    out: Output,
) -> int:
    """Write the files of a run, then print its summary, which can be printed again. Return the exit code."""
    summary = summarize(run, packed.plan.contents)
    judgement = judge_run(summary, gates)
    page = write_run(summary, folder.path, judgement)
    code = judgement.exit_code or (_INCOMPLETE if faults else 0)
    if args.json:
        results = [
            {"name": result.gate, "passed": result.passed, "reason": result.text} for result in judgement.results
        ]
        report = {**summary_as_json(summary), "folder": folder.path, "gates": results, "exit_code": code}
        if args.keep_going:
            report["diagnostics"] = [diagnostic_as_json(fault) for fault in faults]
        out.print_json(report)
        return code
    if out.is_terminal:
        out.print_rich(render_rich(summary_tables(summary), summary_line(summary), _EXIT_STYLES.get(code, "yellow")))
    else:
        out.write(render_plain(summary_tables(summary), summary_line(summary)))
    for line in judgement.lines:
        out.print_styled(disarm_line(line), _EXIT_STYLES.get(code, "yellow"))
    if faults:
        missing = f"{count_noun(len(faults), 'error')} in the case files: those cases are not in these numbers."
        out.print_styled(missing, _EXIT_STYLES.get(code, "yellow"))
    out.print_styled(f"{shown_path(page)}  (run {run.id})", "dim")
    if args.github:
        for note in annotate(summary, judgement):
            out.print(github_annotation(note))
    return code
