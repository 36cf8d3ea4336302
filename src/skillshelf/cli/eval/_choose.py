"""`skillshelf eval choose SKILL --descriptions FILE`: which description is best, by queries that had no say in it."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace

from skillshelf.cli._output import Output, complain, plural, shown_path
from skillshelf.cli.eval._going import carry_through, wanted_cases
from skillshelf.errors import EvalError
from skillshelf.evals import (
    AGAIN,
    Candidate,
    Case,
    Decision,
    Plan,
    Present,
    Run,
    decide,
    make_candidates,
    plan_of,
    present_skill,
    queries_among,
    read_descriptions,
)
from skillshelf.evals.engine import RunFolder
from skillshelf.evals.report import choice_as_json, choice_table, choice_verdict, plain, rich, summarize, write_run
from skillshelf.skillmd import render
from skillshelf.text import to_json

_CHOICE_FILE = "choice.json"
_NOT_HERE = ("baseline", "junit", "github", "update_golden")
_FAULTS_SHOWN = 3


def choose(args: argparse.Namespace, out: Output) -> int:
    """Nothing of the skill is changed: the author puts the description in, or does not."""
    for name in _NOT_HERE:
        if getattr(args, name):
            raise EvalError(f"choose takes no --{name.replace('_', '-')}")
    if len(args.paths) != 1 or not args.descriptions:
        raise EvalError(
            "choose takes the folder of one skill, and descriptions for it",
            "skillshelf eval choose SKILL --descriptions FILE",
        )
    skill = present_skill(args.paths[0])
    descriptions = read_descriptions(args.descriptions, skill.text.description)
    cases = wanted_cases(args, out)
    if not cases:
        return 2
    queries = queries_among(cases, skill.name)
    if (aside := len(cases) - len(queries)) and not args.json:
        complain(
            f"skillshelf: {plural(aside, 'case')} left aside. Descriptions are told apart by cases of {skill.name} "
            "with `should_trigger`, and without a script."
        )
    choosing = _Choosing(skill, descriptions, queries)
    return carry_through(
        lambda stage: choosing.plan(stage, args.repeat),
        lambda run, plan, begun: _show(choosing, run, begun, args, out),
        args,
        out,
    )


class _Choosing:
    """What is tried, and what came of it."""

    def __init__(self, skill: Present, descriptions: Sequence[str], queries: Sequence[Case]) -> None:
        self.skill, self.queries = skill, tuple(queries)
        self._descriptions = descriptions
        self._candidates: tuple[Candidate, ...] = ()

    def plan(self, stage: str, repeats: int) -> Plan:
        self._candidates = make_candidates(self.skill, self._descriptions, self.queries, stage)
        return plan_of(self._candidates, repeats)

    def decision(self, run: Run) -> Decision:
        return decide(self.queries, self._candidates, run.outcomes)

    def runs(self, run: Run) -> list[Run]:
        """One for each description, as if it had been the skill's own: reports and `compare` take them as any."""
        infos, skills = Plan(self.queries, ()).infos, {self.skill.name: self.skill.file}
        found = []
        for one in self._candidates:
            names = {case.id: query.id for case, query in zip(one.cases, self.queries, strict=True)}
            own = tuple(replace(each, case=names[each.case]) for each in run.outcomes if each.case in names)
            found.append(replace(run, id=f"{run.id}-{one.number}", cases=infos, outcomes=own, skills=skills))
        return found


def _show(choosing: _Choosing, run: Run, begun: RunFolder, args: argparse.Namespace, out: Output) -> int:
    """Files first: what is printed can be printed again. The exit code."""
    for number, one in enumerate(choosing.runs(run), 1):
        write_run(one, os.path.join(begun.path, f"description-{number}"))
    decision = choosing.decision(run)
    code = 0 if decision.choice else 3
    told = {"run": run.id, "folder": begun.path, "exit_code": code, **choice_as_json(decision)}
    with open(os.path.join(begun.path, _CHOICE_FILE), "w", encoding="utf-8") as file:
        file.write(to_json(told, indent=1) + "\n")
    if args.json:
        out.json(told)
        return code
    _print(decision, out)
    _print_faults(run, begun, out)
    _print_best(decision, choosing.skill, out)
    out.styled(f"{shown_path(begun.path)}/description-*/report.html  (run {run.id})", "dim")
    return code


def _print(decision: Decision, out: Output) -> None:
    if out.terminal:
        out.show(rich([choice_table(decision)]))
    else:
        out.write(plain([choice_table(decision)]))
    for line in choice_verdict(decision):
        out.styled(line)
    out.text()


def _print_faults(run: Run, begun: RunFolder, out: Output) -> None:
    faults = summarize(run).faults
    for one in faults[:_FAULTS_SHOWN]:
        said = one.message.replace(f" {AGAIN}", "")  # below, once
        out.styled(f"{plural(one.times, 'trial')} could not be made: {said}", "yellow")
    if more := faults[_FAULTS_SHOWN:]:
        trials = plural(sum(one.times for one in more), "trial")
        out.styled(f"and {trials} more, for {plural(len(more), 'other reason')}", "yellow")
    missing = [AGAIN in one.message for one in faults]
    if any(missing):  # what is not recorded is not there the next time either
        out.styled("`skillshelf eval choose` with --record for --replay asks the model what is missing.", "yellow")
    if not all(missing):
        out.styled(f"`skillshelf eval --resume {shown_path(begun.path)}` tries again what could not be made.", "yellow")
    if faults:
        out.text()


def _print_best(decision: Decision, skill: Present, out: Output) -> None:
    """As it stands in a frontmatter."""
    if decision.best is None or decision.best.number == 1:
        return
    out.styled(f"For {shown_path(skill.file)}:", "dim")
    out.text(render({"description": decision.best.description}, "").removeprefix("---\n").removesuffix("---\n\n"))
