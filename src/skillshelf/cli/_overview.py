"""`skillshelf` without a command: what is here, and what to do next."""

import argparse
import os
from collections import Counter
from dataclasses import asdict, dataclass

from skillshelf import __version__
from skillshelf.agent import ModelPreview, WorkspaceSkills, preview_model
from skillshelf.cli._diagnostics import count_by_severity
from skillshelf.cli._output import Output, relative
from skillshelf.cli._workspace import all_candidates, locate_workspace, open_shelf
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import SkillError
from skillshelf.settings import load_settings
from skillshelf.shelf import Shelf
from skillshelf.text import clean_line, count_noun
from skillshelf.trust import Trust

_MAX_GROUPS = 6


@dataclass(frozen=True, slots=True)
class SkillGroup:
    """Skills that come from one folder, one package or skillshelf itself."""

    path: str
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
    diagnostics = shelf.catalog.diagnostics
    pending = count_pending(args)
    model = preview_model(load_settings({}))
    steps = _choose_next_steps(groups, diagnostics, pending, model)
    if args.json:
        out.print_json(
            {
                "version": __version__,
                "workspace": locate_workspace(args).folder,
                "groups": [asdict(group) for group in groups],
                "severities": dict(Counter(note.severity for note in diagnostics)),
                "pending_count": pending,
                "model": model.name if model.name and model.has_key else None,
                "next": [asdict(step) for step in steps],
            }
        )
        return 0

    out.print_styled(f"skillshelf {__version__}", "bold")
    _print_groups(groups, out)
    if diagnostics:
        out.print_styled(f"{count_by_severity(diagnostics)} in your skills", "yellow")
    if pending:
        noun = "skill waits" if pending == 1 else "skills wait"
        out.print_styled(f"{pending:,} {noun} for your review before the agent uses them", "yellow")
    out.print(_describe_model(model))
    out.print()
    width = max(len(step.command) for step in steps)
    for step in steps:
        out.print_styled(f"  {step.command:{width}}   {step.purpose}")
    return 0


def group_skills(shelf: Shelf) -> list[SkillGroup]:
    """Return where the skills come from, in order of precedence."""
    counts: Counter[tuple[str, str]] = Counter()
    for candidate in all_candidates(shelf.catalog):
        skill = candidate.descriptor
        path = ""
        if os.path.isabs(skill.location):
            path = os.path.dirname(os.path.dirname(skill.location))
        counts[skill.source, path] += 1

    order = {source.name: rank for rank, source in reversed(list(enumerate(shelf.sources)))}
    groups = [SkillGroup(path, source, count) for (source, path), count in counts.items()]
    return sorted(groups, key=lambda group: (order.get(group.source, len(order)), -group.count, group.path))


def count_pending(args: argparse.Namespace) -> int:
    """Return how many skills and instruction files of the workspace wait for the user's review."""
    try:
        return len(WorkspaceSkills(locate_workspace(args), trust=Trust.open()).pending)
    except SkillError:  # `doctor` says what is wrong with the record of approvals
        return 0


def _print_groups(groups: list[SkillGroup], out: Output) -> None:
    own = [group for group in groups if group.source != "bundled"]
    if not own:
        out.print("No skills of yours here yet.")
    for group in own[:_MAX_GROUPS]:
        out.print(f"{count_noun(group.count, 'skill')} in {_name_group(group)}")
    if len(own) > _MAX_GROUPS:
        rest = own[_MAX_GROUPS:]
        skills = count_noun(sum(group.count for group in rest), "skill")
        out.print(f"{skills} in {count_noun(len(rest), 'other place')}")


def _name_group(group: SkillGroup) -> str:
    if not group.path:
        return group.source
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
    groups: list[SkillGroup], diagnostics: tuple[Diagnostic, ...], pending: int, model: ModelPreview
) -> list[NextStep]:
    """Return three commands, the most useful first."""
    can_chat = bool(model.name) and model.has_key
    if all(group.source == "bundled" for group in groups):
        last = NextStep("skillshelf doctor", "see how skillshelf is set up")
        if can_chat:
            last = NextStep("skillshelf chat", "talk to an agent; it can write a skill for you")
        return [
            NextStep("skillshelf demo", "watch a skill at work, in half a minute and without a key"),
            NextStep("skillshelf new my-skill", "create your first skill"),
            last,
        ]

    first = NextStep("skillshelf list", "list the skills")
    if pending:
        first = NextStep("skillshelf trust", "review new and changed skills")
    check = NextStep("skillshelf check", "find mistakes in your skills")
    if diagnostics:
        check = NextStep("skillshelf check", f"see {count_by_severity(diagnostics)}, each with a fix")
    chat = NextStep("skillshelf chat", "talk to an agent that uses them")
    if not can_chat:
        chat = NextStep("skillshelf demo", "watch the agent at work; `skillshelf doctor` helps to set up a model")
    return [first, check, chat]
