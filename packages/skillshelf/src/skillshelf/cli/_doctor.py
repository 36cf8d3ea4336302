"""`skillshelf doctor`: how skillshelf is set up here, what is missing, and what to do about it.

`skillshelf` without a command prints the short form. Nothing is changed, and nothing is asked over the network. Keys
and passwords are never shown.
"""

import argparse
import os
import platform
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import Literal

from skillshelf import __version__
from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.cli._problems import Problems, find_problems
from skillshelf.cli._workspace import all_candidates, locate_workspace, open_shelf
from skillshelf.errors import SettingsError, SkillError, TrustError
from skillshelf.explain import describe_waiting
from skillshelf.files import cache_home, state_home, user_skill_folders
from skillshelf.sandbox import find_sandbox
from skillshelf.settings import (
    Settings,
    load_choices,
    load_settings,
    settings_file,
    trace_settings,
    without_secrets,
)
from skillshelf.shelf import Shelf
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.sources import BUNDLED
from skillshelf.sources.entry_points import EntryPoint, find_entry_points
from skillshelf.sources.workspace import Workspace, relative
from skillshelf.text import clean_line, count_noun, list_names
from skillshelf.trust import Pending, Trust, describe_kinds

EXAMPLES = """
  skillshelf doctor                     explain the setup of this folder
  skillshelf doctor -C ~/src/app        explain the setup of another one
  skillshelf doctor --json              for another program; exit code 1 if something is broken
"""
Status = Literal["ok", "note", "problem"]
ENTRY_POINTS = "skillshelf.doctor"
"""The group of entry points of other packages: functions that take the settings and yield remarks."""
_STYLES: dict[Status, str] = {"ok": "green", "note": "cyan", "problem": "red"}
_MAX_GROUPS = 6
_MAX_CHOICES = 10


EXTRAS = {
    "chat": "skillshelf chat",
    "evals": "skillshelf eval",
    "mcp": "skillshelf serve",
    "tokens": "exact token counts",
    "watch": "edits picked up at once",
    "search": "search by meaning",
    "skills": "skills with tools that are attached by name (--with)",
}
"""What each optional part of skillshelf is for."""
SKILL_EXTRAS = (
    "fetch", "rag", "rag-azure", "rag-neo4j", "rag-postgres", "authentication-gates", "browser", "database",
    "execution-debugging", "pdf-extraction", "weather",
)  # fmt: skip
"""Extras that only users of one bundled skill miss."""
ADAPTER_EXTRAS = ("pydantic-ai", "langchain", "openai-agents", "claude-agent", "google-adk", "agent-framework")
"""Extras that only users of one framework miss."""
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w.,-]+)\])?[^;]*;.*extra == [\"'](?P<extra>[\w.-]+)")


@dataclass(frozen=True, slots=True)
class Remark:
    """One line of the report."""

    area: str
    status: Status
    message: str
    fix: str = ""
    value: str = ""
    """What the remark is about, for a program: the name of the model, for instance."""


def add_arguments(parser: Parser) -> None:
    """Add nothing: the shared options suffice."""


def run(args: argparse.Namespace, out: Output) -> int:
    remarks = list(_examine(args))
    if args.json:
        out.print_json({"version": __version__, "remarks": [asdict(remark) for remark in remarks]})
    else:
        _print_remarks(remarks, out)
    return 1 if any(remark.status == "problem" for remark in remarks) else 0


def _examine(args: argparse.Namespace) -> Iterator[Remark]:
    workspace = locate_workspace(args)
    yield from _examine_installation()
    yield from _examine_settings()
    yield from _examine_workspace(args, workspace)
    yield from _examine_trust(args, workspace)
    yield from _examine_sandbox()
    yield from _examine_folders()


def _examine_installation() -> Iterator[Remark]:
    area = "installation"
    yield Remark(area, "ok", f"skillshelf {__version__} on Python {platform.python_version()} ({sys.executable})")
    names = (*EXTRAS, *SKILL_EXTRAS, *ADAPTER_EXTRAS)
    installed = [name for name in names if _is_installed("skillshelf", name)]
    if installed:
        yield Remark(area, "ok", f"extras: {', '.join(installed)}")

    for name, purpose in EXTRAS.items():
        if name not in installed:
            message = f"the extra {name} is not installed: {purpose}"
            yield Remark(area, "note", message, f"pip install 'skillshelf[{name}]'")
    groups = {"libraries of bundled skills": SKILL_EXTRAS, "adapters for other frameworks": ADAPTER_EXTRAS}
    for group, members in groups.items():
        missing = [name for name in members if name not in installed]
        if missing:
            message = f"{group} are not installed: {', '.join(missing)}"
            yield Remark(area, "note", message, "pip install 'skillshelf[NAME]' with the one you use")


def _is_installed(package: str, extra: str) -> bool:
    """Return True if a package is installed with everything that this extra of it needs."""
    try:
        requirements = metadata.requires(package) or ()
    except metadata.PackageNotFoundError:
        return False
    for requirement in map(_REQUIREMENT.match, requirements):
        if requirement is None or requirement["extra"] != extra:
            continue
        extras = (requirement["extras"] or "").split(",")
        if not all(_is_installed(requirement["name"], each) for each in extras):
            return False
    return True


def _examine_settings() -> Iterator[Remark]:
    area = "settings"
    path = settings_file()
    if path is None:
        yield Remark(area, "note", "this user has no home, so there is no settings file")
    elif os.path.lexists(path):
        yield Remark(area, "ok", f"file: {path}")
    else:
        yield Remark(area, "ok", f"no settings file; it would be {path}")

    try:
        traced = trace_settings({})
        settings = load_settings({})
    except SettingsError as error:
        yield Remark(area, "problem", str(error), "Correct the setting, or remove it.")
        return
    for name, chosen in traced.items():
        if chosen.origin != "default":
            yield Remark(area, "ok", f"{name} = {_show_value(name, chosen.value)}, from {chosen.origin}")
    yield from _examine_choices()
    yield from _examine_packages(settings)


def _examine_choices() -> Iterator[Remark]:
    """Yield what the user chose for single skills with `skillshelf set`."""
    area = "settings"
    try:
        choices = load_choices()
    except SettingsError as error:
        yield Remark(area, "problem", str(error), "Correct the file, or remove it.")
        return
    if choices:
        chosen = [f"{name} {choice}" for name, choice in sorted(choices.items())]
        message = f"your choices for single skills: {list_names(chosen, _MAX_CHOICES)}"
        yield Remark(area, "ok", message, "`skillshelf set` lists them, `skillshelf set NAME auto` removes one.")


def _show_value(name: str, value: object) -> str:
    if name == "base_url":
        return without_secrets(str(value))
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()  # as TOML has it
    return str(value)


def _examine_packages(settings: Settings) -> Iterator[Remark]:
    """Yield the remarks of other packages, such as the agent's on its model."""
    for point in find_entry_points(ENTRY_POINTS):
        yield from _ask_package(point, settings)


def _ask_package(point: EntryPoint, settings: Settings) -> Iterator[Remark]:
    try:
        yield from point.load()(settings)
    except Exception as error:  # it may be what is broken
        message = f"{point.value} failed: {type(error).__name__}: {error}"
        yield Remark("packages", "problem", message, "Update the package that has it, or uninstall it.")


def _examine_workspace(args: argparse.Namespace, workspace: Workspace) -> Iterator[Remark]:
    area = "skills"
    for searched in workspace.searched:
        yield Remark(area, "ok", f"project skills: {searched.path} ({searched.reason})")
    for note in workspace.notes:
        yield Remark(area, "note", note)
    for folder in user_skill_folders():
        if os.path.isdir(folder):
            yield Remark(area, "ok", f"your own skills: {folder}")

    try:
        shelf = open_shelf(args)
    except SettingsError:  # reported above
        return
    yield from _describe_groups(_group_skills(shelf))
    yield from _describe_problems(find_problems(shelf))


def _examine_trust(args: argparse.Namespace, workspace: Workspace) -> Iterator[Remark]:
    area = "trust"
    try:
        trust = Trust.open()
    except TrustError as error:
        yield Remark(area, "problem", str(error), "Update skillshelf.")
        return
    for problem in trust.problems:
        yield Remark(area, "problem", problem)
    refusal = trust.refusal(workspace.root)
    if refusal:
        yield Remark(area, "problem", refusal)
    else:
        approved = count_noun(len(trust.approvals.trees), "approved version")
        yield Remark(area, "ok", f"record of approvals: {trust.path} ({approved})")
    own = trust.find_own(workspace.root)
    if own:
        message = (
            f"{workspace.root} has been your own repository since {own.since[:10]}: its skills apply as they change"
        )
        yield Remark(area, "ok", message, "`skillshelf trust --not-mine` takes that back.")
    lost = trust.explain_lost_own(workspace.root)
    if lost:
        yield Remark(area, "note", lost)
    yield from _describe_pending(_find_pending(args))


def _examine_sandbox() -> Iterator[Remark]:
    sandbox = find_sandbox()
    if sandbox:
        higher = f"No higher level: {sandbox.reason}." if sandbox.reason else ""
        yield Remark(
            "sandbox",
            "ok",
            f"a command of the agent can write in this folder only (level: {sandbox.level}). "
            f"Still open: {'; '.join(sandbox.stays_open)}.",
            higher,
        )
    else:
        fix = "The agent asks before every command; answer with care."
        yield Remark("sandbox", "note", f"there is no sandbox for commands here: {sandbox.reason}", fix)


def _examine_folders() -> Iterator[Remark]:
    area = "folders"
    for home, purpose in ((state_home(), "sessions and approvals"), (cache_home(), "caches")):
        if home is None:
            yield Remark(area, "note", f"there is no folder for {purpose}: this user has no home", "Set HOME.")
        elif not _is_writable(home):
            yield Remark(area, "problem", f"{home} ({purpose}) cannot be written", "Correct its owner and its mode.")
        elif not os.path.isdir(home):
            yield Remark(area, "ok", f"{purpose}: none yet; they would be in {home}")
        else:
            yield Remark(area, "ok", f"{purpose}: {home} ({_measure(home)})")


def _is_writable(folder: str) -> bool:
    """Return True if the folder can be written, or can be created."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _measure(folder: str) -> str:
    size = 0
    files = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(parent, name)).st_size
                files += 1
            except OSError:  # removed meanwhile
                continue
    return f"{count_noun(files, 'file')}, {size / 1024:,.0f} KB"


def _print_remarks(remarks: list[Remark], out: Output) -> None:
    area = ""
    for remark in remarks:
        if remark.area != area:
            if area:
                out.print()
            area = remark.area
            out.print_styled(area.capitalize(), "bold")
        out.print_styled(f"{remark.status:7} {clean_line(remark.message)}", _STYLES[remark.status], indent=2)
        if remark.fix:
            out.print_styled(clean_line(remark.fix), "dim", indent=10)
    out.print()
    problems = sum(remark.status == "problem" for remark in remarks)
    if problems:
        out.print_styled(f"{count_noun(problems, 'problem')} to solve", "red")
    else:
        out.print_styled("Nothing is broken.", "green")


# -- the skills of a workspace, for both forms -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SkillGroup:
    """Skills that come from one folder, one package or skillshelf itself."""

    path: str
    package: str
    source: str
    count: int

    def __str__(self) -> str:
        """Return the number of skills and where they come from."""
        place = "skillshelf"
        if self.package:
            place = f"the package {clean_line(self.package)}"
        elif self.path:
            place = clean_line(relative(self.path))
            home = os.path.expanduser("~")
            if place.startswith(f"{home}/"):
                place = f"~{place.removeprefix(home)}"
        return f"{count_noun(self.count, 'skill')} in {place} ({self.source})"


def _group_skills(shelf: Shelf) -> list[SkillGroup]:
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


def _describe_groups(groups: Sequence[SkillGroup]) -> Iterator[Remark]:
    for group in groups[:_MAX_GROUPS]:
        yield Remark("skills", "ok", str(group))
    rest = groups[_MAX_GROUPS:]
    if rest:
        skills = count_noun(sum(group.count for group in rest), "skill")
        yield Remark("skills", "ok", f"{skills} in {count_noun(len(rest), 'other place')}")


def _describe_problems(problems: Problems | None) -> Iterator[Remark]:
    if problems:
        status: Status = "problem" if problems.has_errors else "note"
        yield Remark("skills", status, problems.summary, problems.command)


def _find_pending(args: argparse.Namespace) -> Sequence[Pending]:
    """Return the skills and instruction files of the workspace that wait for the user's review."""
    try:
        return WorkspaceSkills(locate_workspace(args), trust=Trust.open(), environment=True).pending
    except SkillError:  # another remark says what is wrong with the record of approvals
        return ()


def _describe_pending(pending: Sequence[Pending]) -> Iterator[Remark]:
    if pending:
        message = describe_waiting(describe_kinds(pending), len(pending))
        yield Remark("trust", "note", message, "skillshelf trust")


# -- the short form ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command that fits the situation."""

    command: str
    purpose: str


def run_short(args: argparse.Namespace, out: Output) -> int:
    """Print what is here and what to do next."""
    shelf = open_shelf(args)
    groups = _group_skills(shelf)
    problems = find_problems(shelf)
    pending = _find_pending(args)
    remarks = list(_examine_packages(load_settings({})))
    model = next((remark for remark in remarks if remark.area == "model"), None)
    can_chat = model is not None and model.status == "ok"
    steps = _choose_next_steps(groups, problems, pending, can_chat, args.workspace)
    if args.json:
        out.print_json(
            {
                "version": __version__,
                "workspace": locate_workspace(args).folder,
                "groups": [asdict(group) for group in groups],
                "problem_count": problems.files if problems else 0,
                "pending_count": len(pending),
                "model": model.value if model and can_chat else None,
                "next": [asdict(step) for step in steps],
            }
        )
        return 0

    out.print_styled(f"skillshelf {__version__}", "bold")
    if all(group.source == BUNDLED for group in groups):
        out.print("No skills of yours here yet.")
    for remark in (*_describe_groups(groups), *_describe_problems(problems), *_describe_pending(pending)):
        out.print_styled(remark.message, "" if remark.status == "ok" else "yellow")
    if model:
        out.print(f"Model: {clean_line(model.message)}")
    out.print()
    width = max(len(step.command) for step in steps)
    for step in steps:
        out.print_styled(f"  {step.command:{width}}   {step.purpose}")
    return 0


def _choose_next_steps(
    groups: Sequence[SkillGroup],
    problems: Problems | None,
    pending: Sequence[Pending],
    can_chat: bool,
    workspace: str | None,
) -> list[NextStep]:
    """Return three commands, the most useful first, for the workspace that was given with -C."""
    option = f" -C {shlex.quote(workspace)}" if workspace is not None else ""
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
        check = NextStep(problems.command, "see the problems, each with a fix")
    chat = NextStep(f"skillshelf chat{option}", "talk to an agent that uses them")
    if not can_chat:
        chat = NextStep("skillshelf demo", "watch the agent at work; `skillshelf doctor` helps to set up a model")
    return [first, check, chat]
