"""`skillshelf` without a command: what is here, and what to do next."""

import argparse
import os
from collections import Counter
from dataclasses import asdict, dataclass

from skillshelf import __version__
from skillshelf.agent import ModelPreview, WorkspaceSkills, preview_model
from skillshelf.cli._diagnostics import count_by_severity
from skillshelf.cli._output import Output, relative
from skillshelf.cli._workspace import all_candidates, open_shelf
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import SkillError
from skillshelf.settings import load_settings
from skillshelf.shelf import Shelf
from skillshelf.text import clean_line, count_noun
from skillshelf.trust import Trust

_MAX_PLACES = 6


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, a package or skillshelf itself, and how many skills come from it."""

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
    places = find_places(shelf)
    diagnostics = shelf.catalog.diagnostics
    pending = count_pending(args)
    model = _find_model()
    steps = _choose_next_steps(places, diagnostics, pending, model)
    if args.json:
        out.print_json(
            {
                "version": __version__,
                "workspace": os.path.realpath(args.workspace),
                "places": [asdict(place) for place in places],
                "severities": dict(Counter(note.severity for note in diagnostics)),
                "pending_count": pending,
                "model": model.name if model and model.name and model.has_key else None,
                "next": [asdict(step) for step in steps],
            }
        )
        return 0

    out.print_styled(f"skillshelf {__version__}", "bold")
    _print_places(places, out)
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


def find_places(shelf: Shelf) -> list[Place]:
    """Return where the skills come from, in order of precedence."""
    counts: Counter[tuple[str, str]] = Counter()
    for candidate in all_candidates(shelf.catalog):
        skill = candidate.descriptor
        path = ""
        if os.path.isabs(skill.location):
            path = os.path.dirname(os.path.dirname(skill.location))
        counts[skill.source, path] += 1

    order = {source.name: rank for rank, source in reversed(list(enumerate(shelf.sources)))}
    places = [Place(path, source, count) for (source, path), count in counts.items()]
    return sorted(places, key=lambda place: (order.get(place.source, len(order)), -place.count, place.path))


def count_pending(args: argparse.Namespace) -> int:
    """Return how many skills and instruction files of the workspace wait for the user's review."""
    try:
        return len(WorkspaceSkills(args.workspace, trust=Trust.open()).pending)
    except SkillError:  # `doctor` says what is wrong with the record of approvals
        return 0


def _find_model() -> ModelPreview | None:
    try:
        return preview_model(load_settings({}))
    except SkillError:  # `doctor` says what is wrong with the settings
        return None


def _print_places(places: list[Place], out: Output) -> None:
    own = [place for place in places if place.source != "bundled"]
    if not own:
        out.print("No skills of yours here yet.")
    for place in own[:_MAX_PLACES]:
        out.print(f"{count_noun(place.count, 'skill')} in {_name_place(place)}")
    if len(own) > _MAX_PLACES:
        rest = own[_MAX_PLACES:]
        skills = count_noun(sum(place.count for place in rest), "skill")
        out.print(f"{skills} in {count_noun(len(rest), 'other place')}")


def _name_place(place: Place) -> str:
    if not place.path:
        return place.source
    shown = clean_line(relative(place.path))
    home = os.path.expanduser("~")
    if shown.startswith(f"{home}/"):
        shown = f"~{shown.removeprefix(home)}"
    return shown


def _describe_model(model: ModelPreview | None) -> str:
    if model is None:
        return "The settings cannot be read: `skillshelf doctor` says why."
    if model.name and model.has_key:
        return f"Model: {clean_line(model.name)}"
    if model.name:
        return f"Model: {clean_line(model.name)}, but {' or '.join(model.key_variables)} is not set"
    if model.alternatives:
        return "No model is chosen, and the keys of several providers are set."
    return "No model is set up; only `chat` and `eval` need one."


def _choose_next_steps(
    places: list[Place], diagnostics: tuple[Diagnostic, ...], pending: int, model: ModelPreview | None
) -> list[NextStep]:
    """Return three commands, the most useful first."""
    can_chat = model is not None and bool(model.name) and model.has_key
    if all(place.source == "bundled" for place in places):
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
