"""`skillshelf eval choose`: find the best description of a skill, and how sure that is.

The queries that pick a description are not the ones that score it. The skill itself stays as it is: its author decides
whether to use the description.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace

from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli.eval._run import find_approved_cases, run_and_report
from skillshelf.errors import EvalError
from skillshelf.evals import (
    Case,
    ChoiceResult,
    CurrentSkill,
    Plan,
    Run,
    Variant,
    decide,
    make_variants,
    plan_variants,
    read_current_skill,
    read_descriptions,
    select_queries,
)
from skillshelf.evals.engine import RunFolder
from skillshelf.evals.report import (
    CHOICE_FILE,
    choice_as_json,
    choice_table,
    choice_verdict,
    render_plain,
    render_rich,
    summarize,
    write_run,
)
from skillshelf.skillmd import render_skill
from skillshelf.text import count_noun, to_json

_MAX_LISTED_FAULTS = 3


def choose_description(args: argparse.Namespace, out: Output) -> int:
    if len(args.paths) != 1 or not args.descriptions:
        raise EvalError(
            "choose takes the folder of one skill, and descriptions for it",
            "skillshelf eval choose SKILL --descriptions FILE",
        )
    skill = read_current_skill(args.paths[0])
    descriptions = read_descriptions(args.descriptions, skill.text.description)
    cases = find_approved_cases(args, out).cases
    queries = select_queries(cases, skill.name)
    unused = len(cases) - len(queries)
    if unused and not args.json:
        complain(
            f"skillshelf: {count_noun(unused, 'case')} not used. Only cases of {skill.name} with `should_trigger` and "
            "without a script can tell descriptions apart."
        )
    choice = _Choice(skill, descriptions, queries)
    return run_and_report(
        lambda stage: choice.make_plan(stage, args.repeat),
        lambda run, plan, folder: _report(choice, run, folder, args, out),
        args,
        out,
    )


class _Choice:
    """A choice between descriptions of one skill: its variants, and the run that compares them."""

    def __init__(self, skill: CurrentSkill, descriptions: Sequence[str], queries: Sequence[Case]) -> None:
        self.skill = skill
        self.queries = tuple(queries)
        self._descriptions = descriptions
        self._variants: tuple[Variant, ...] = ()

    def make_plan(self, stage: str, repeats: int) -> Plan:
        self._variants = make_variants(self.skill, self._descriptions, self.queries, stage)
        return plan_variants(self._variants, repeats)

    def decide(self, run: Run) -> ChoiceResult:
        return decide(self.queries, self._variants, run.outcomes)

    def split_by_description(self, run: Run) -> list[Run]:
        """Return a run for each description, as if it were the skill's own, for reports and `compare`.

        Its report is in a folder of its own below that of the run, which has the artefacts.
        """
        infos = Plan(self.queries, ()).infos
        skills = {self.skill.name: self.skill.file}
        runs = []
        for variant in self._variants:
            query_ids = {case.id: query.id for case, query in zip(variant.cases, self.queries, strict=True)}
            outcomes = [
                replace(outcome, case=query_ids[outcome.case], artefacts=outcome.artefacts.seen_from_below())
                for outcome in run.outcomes
                if outcome.case in query_ids
            ]
            run_id = f"{run.id}-{variant.number}"
            runs.append(replace(run, id=run_id, cases=infos, outcomes=tuple(outcomes), skills=skills))
        return runs


def _report(choice: _Choice, run: Run, folder: RunFolder, args: argparse.Namespace, out: Output) -> int:
    """Write the files, then print the decision, which can be printed again. Return the exit code."""
    for number, description_run in enumerate(choice.split_by_description(run), 1):
        write_run(description_run, os.path.join(folder.path, f"description-{number}"))
    decision = choice.decide(run)
    code = 0 if decision.choice else 3
    report = {"run": run.id, "folder": folder.path, "exit_code": code, "statistics": choice_as_json(decision)}
    with open(os.path.join(folder.path, CHOICE_FILE), "w", encoding="utf-8") as file:
        file.write(to_json(report, indent=1) + "\n")

    if args.json:
        out.print_json(report)
        return code
    _print_decision(decision, out)
    _print_faults(run, folder, out)
    _print_recommended_description(decision, choice.skill, out)
    out.print_styled(f"{shown_path(folder.path)}/description-*/report.html  (run {run.id})", "dim")
    return code


def _print_decision(decision: ChoiceResult, out: Output) -> None:
    table = choice_table(decision)
    if out.is_terminal:
        out.print_rich(render_rich([table]))
    else:
        out.write(render_plain([table]))
    for line in choice_verdict(decision):
        out.print_styled(line)
    out.print()


def _print_faults(run: Run, folder: RunFolder, out: Output) -> None:
    faults = summarize(run).faults
    if not faults:
        return
    for fault in faults[:_MAX_LISTED_FAULTS]:
        out.print_styled(f"{count_noun(fault.times, 'trial')} could not be completed: {fault.message}", "yellow")
    others = faults[_MAX_LISTED_FAULTS:]
    if others:
        trials = count_noun(sum(fault.times for fault in others), "trial")
        out.print_styled(f"and {trials} more, for {count_noun(len(others), 'other reason')}", "yellow")

    if not all(fault.unrecorded for fault in faults):
        out.print_styled(
            f"`skillshelf eval --resume {shown_path(folder.path)}` tries the failed trials again.", "yellow"
        )
    out.print()


def _print_recommended_description(decision: ChoiceResult, skill: CurrentSkill, out: Output) -> None:
    """Print a description that is better beyond chance as YAML for the frontmatter."""
    recommended = decision.recommended
    if recommended is None or recommended.number == 1:
        return
    out.print_styled(f"For {shown_path(skill.file)}:", "dim")
    frontmatter = render_skill({"description": recommended.description}, "")
    out.print(frontmatter.removeprefix("---\n").removesuffix("---\n\n"))
