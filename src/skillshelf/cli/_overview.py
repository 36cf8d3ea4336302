"""`skillshelf` without a command: what is here, and what to do next."""

import argparse
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from skillshelf import __version__
from skillshelf.agent import ModelPreview, WorkspaceSkills, preview_model
from skillshelf.cli._output import Output
from skillshelf.cli._problems import Problems, find_problems
from skillshelf.cli._workspace import all_candidates, locate_workspace, open_shelf
from skillshelf.errors import SkillError
from skillshelf.explain import describe_waiting
from skillshelf.settings import load_settings
from skillshelf.shelf import Shelf
from skillshelf.sources import BUNDLED
from skillshelf.text import clean_line, count_noun
from skillshelf.trust import Pending, Trust, describe_kinds
from skillshelf.workspace import relative

_MAX_GROUPS = 6


@dataclass(frozen=True, slots=True)
class SkillGroup:
    """Skills that come from one folder, one package or skillshelf itself."""

    path: str
    package: str
    source: str
    count: int


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command that fits the situation."""

    command: str
    purpose: str


def run(args: argparse.Namespace, out: Output) -> int:
    shelf = open_shelf(args)
    groups = group_skills(shelf)
    problems = find_problems(shelf, locate_workspace(args).folder)
    pending = find_pending(args)
    model = preview_model(load_settings({}))
    steps = _choose_next_steps(groups, problems, pending, model, args.workspace)
    if args.json:
        out.print_json(
            {
                "version": __version__,
                "workspace": locate_workspace(args).folder,
                "groups": [asdict(group) for group in groups],
                "severities": dict(Counter(note.severity for note in problems.diagnostics)) if problems else {},
                "pending_count": len(pending),
                "model": model.name if model.name and model.has_key else None,
                "next": [asdict(step) for step in steps],
            }
        )
        return 0

    out.print_styled(f"skillshelf {__version__}", "bold")
    _print_groups(groups, out)
    if problems:
        where = " in your skills" if problems.is_checked else ""
        out.print_styled(f"{problems.summary}{where}", "yellow")
    if pending:
        out.print_styled(describe_pending(pending), "yellow")
    out.print(_describe_model(model))
    out.print()
    width = max(len(step.command) for step in steps)
    for step in steps:
        out.print_styled(f"  {step.command:{width}}   {step.purpose}")
    return 0


def group_skills(shelf: Shelf) -> list[SkillGroup]:
    """Return where the skills come from, in order of precedence."""
    counts: Counter[SkillGroup] = Counter()
    for candidate in all_candidates(shelf.catalog):
        skill = candidate.descriptor
        path = ""
        package = ""
        if os.path.isabs(skill.location):
            path = os.path.dirname(os.path.dirname(skill.location))
        elif skill.source != BUNDLED:
            package = skill.location.partition(".")[0]
        counts[SkillGroup(path, package, skill.source, 0)] += 1

    order = {source.name: rank for rank, source in reversed(list(enumerate(shelf.sources)))}
    groups = [replace(group, count=count) for group, count in counts.items()]
    return sorted(
        groups, key=lambda group: (order.get(group.source, len(order)), -group.count, group.path, group.package)
    )


def find_pending(args: argparse.Namespace) -> Sequence[Pending]:
    """Return the skills and instruction files of the workspace that wait for the user's review."""
    try:
        return WorkspaceSkills(locate_workspace(args), trust=Trust.open()).pending
    except SkillError:  # `doctor` says what is wrong with the record of approvals
        return ()


def describe_pending(pending: Sequence[Pending]) -> str:
    """Return a sentence such as `2 skills and AGENTS.md are waiting for your review, and can't be used until then`."""
    return describe_waiting(describe_kinds(pending), len(pending))


def _print_groups(groups: list[SkillGroup], out: Output) -> None:
    own = [group for group in groups if group.source != BUNDLED]
    if not own:
        out.print("No skills of yours here yet.")
    for group in own[:_MAX_GROUPS]:
        out.print(f"{count_noun(group.count, 'skill')} in {name_group(group)}")
    if len(own) > _MAX_GROUPS:
        rest = own[_MAX_GROUPS:]
        skills = count_noun(sum(group.count for group in rest), "skill")
        out.print(f"{skills} in {count_noun(len(rest), 'other place')}")


def name_group(group: SkillGroup) -> str:
    """Return where the skills of a group come from, in words."""
    if group.package:
        return f"the package {clean_line(group.package)}"
    if not group.path:
        return "skillshelf"
    shown = clean_line(relative(group.path))
    home = os.path.expanduser("~")
    if shown.startswith(f"{home}/"):
        shown = f"~{shown.removeprefix(home)}"
    return shown


def _describe_model(model: ModelPreview) -> str:
    if model.name and model.has_key:
        return f"Model: {clean_line(model.name)}"
    if model.name:
        return f"Model: {clean_line(model.name)}, but {' or '.join(model.key_variables)} is not set"
    if model.alternatives:
        return "No model is chosen, and the keys of several providers are set."
    return "No model is set up; only `chat` and `eval` need one."


def _choose_next_steps(
    groups: list[SkillGroup],
    problems: Problems | None,
    pending: Sequence[Pending],
    model: ModelPreview,
    workspace: str | None,
) -> list[NextStep]:
    """Return three commands, the most useful first, for the workspace that was given with -C."""
    option = f" -C {shlex.quote(workspace)}" if workspace is not None else ""
    can_chat = bool(model.name) and model.has_key
    if all(group.source == BUNDLED for group in groups):
        last = NextStep(f"skillshelf doctor{option}", "see how skillshelf is set up")
        if can_chat:
            last = NextStep(f"skillshelf chat{option}", "talk to an agent; it can write a skill for you")
        return [
            NextStep("skillshelf demo", "watch a skill at work, in half a minute and without a key"),
            NextStep(f"skillshelf new my-skill{option}", "create your first skill"),
            last,
        ]

    first = NextStep(f"skillshelf list{option}", "list the skills")
    if pending:
        first = NextStep(f"skillshelf trust{option}", "review new and changed skills")
    check = NextStep(f"skillshelf check{option}", "find mistakes in your skills")
    if problems:
        shown = problems.summary if problems.is_checked else "the problems"
        check = NextStep(problems.command, f"see {shown}, each with a fix")
    chat = NextStep(f"skillshelf chat{option}", "talk to an agent that uses them")
    if not can_chat:
        chat = NextStep("skillshelf demo", "watch the agent at work; `skillshelf doctor` helps to set up a model")
    return [first, check, chat]
