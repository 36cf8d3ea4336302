"""The shelf of the workspace that a command works on."""

import argparse
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from skillshelf.cli._output import complain
from skillshelf.errors import SkillError, SourceError
from skillshelf.settings import load_choices, load_settings
from skillshelf.shelf import Shelf, environment_source, project_sources, workspace_sources
from skillshelf.skills import BaseSkill, Candidate, Catalog, Choice, SkillDescriptor
from skillshelf.sources import Source
from skillshelf.sources.workspace import Workspace, choose_workspace, relative
from skillshelf.text import count_noun
from skillshelf.text.streams import keep_output_clean
from skillshelf.text.tokens import Counter, estimate

_ALWAYS_SHOWN = ("name", "description", "source", "location", "references", "size")
_SLOW_TO_INDEX = 1_000
"""Skills that take a second or more to index."""


def open_shelf(
    args: argparse.Namespace,
    counter: Counter = estimate,
    *,
    further: Sequence[Source] = (),
    without: Collection[str] = (),
) -> Shelf:
    """Open the shelf of the workspace, with `further` sources at its end and `without` skills of these names.

    Raises SourceError if there is no folder.
    """
    workspace = locate_workspace(args)
    project = project_sources(workspace)
    off: dict[str, Choice] = dict.fromkeys(without, "off")
    with keep_output_clean():
        sources = workspace_sources(
            workspace,
            project,
            attach_skills(args),
            packages=find_packages(args),
            entry_points=True,
            environment=environment_source(workspace, args.python),
            authoring=True,
        )
        return Shelf([*sources, *further], counter=counter, choices={**load_choices(), **off}, here=workspace.folder)


def prepare_search(shelf: Shelf) -> None:
    """Bring the index of a shelf up to date. In a terminal, say so if it takes seconds."""

    def announce(count: int) -> None:
        if count >= _SLOW_TO_INDEX and sys.stderr.isatty():
            complain(f"Indexing {count_noun(count, 'skill')} for the first search…")

    shelf.prepare_search(announce)


def find_packages(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the packages of code skills that the user named: with --package, then in the settings.

    Raises SettingsError. The workspace has no say, because importing a package runs its code.
    """
    settings = load_settings({})
    return tuple(dict.fromkeys([*args.packages, *settings.packages]))


def attach_skills(args: argparse.Namespace) -> list[BaseSkill]:
    """Return the skills that the user attached with --with. Raises SettingsError."""
    if not args.attached:
        return []
    from skillshelf.sources.attachable import attach_skill  # what it needs is imported only if it is used

    return [attach_skill(text) for text in args.attached]


def locate_workspace(args: argparse.Namespace) -> Workspace:
    """Return the workspace: the folder given with -C as it is, or what is found around the current folder.

    Raises SourceError if there is no such folder.
    """
    if args.workspace is not None and not os.path.isdir(args.workspace):
        raise SourceError(f"There is no folder {args.workspace!r} to use as the workspace.")
    return choose_workspace(args.workspace)


def list_searched(args: argparse.Namespace) -> list[str]:
    """Return the folders whose skills a command without paths works on, as a user would give them."""
    return [relative(folder) for folder in locate_workspace(args).folders]


def all_candidates(catalog: Catalog) -> Iterator[Candidate]:
    """Yield every skill by name, each followed by the skills it shadows."""
    for name in catalog:
        yield from catalog.candidates(name)


def read_instructions(shelf: Shelf, candidate: Candidate) -> str | None:
    """Return the instructions of a skill, or None if its file cannot be read now."""
    try:
        return shelf.instructions(candidate)
    except SkillError:
        return None


def skill_as_json(skill: SkillDescriptor) -> dict[str, Any]:
    """Return the fields of a descriptor for another program, without those that are empty."""
    fields = {field: getattr(skill, field) for field in SkillDescriptor.__dataclass_fields__}
    return {field: value for field, value in fields.items() if field in _ALWAYS_SHOWN or value}
