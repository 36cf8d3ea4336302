"""The shelf: the sources of skills and the current catalog. The one thing that changes."""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skillshelf.errors import SkillError, SourceError
from skillshelf.files import is_at_or_inside, make_lock, split_below, user_skill_folders
from skillshelf.shelf._chosen import ChosenSkills
from skillshelf.shelf._discovery import refuse_own_names
from skillshelf.shelf._toolbox import Toolbox, collect_tools
from skillshelf.shelf._turn import Observers, Turn
from skillshelf.skills import BaseSkill, Candidate, Catalog, Choice, Delta, Found, Permission, Place, Tool
from skillshelf.sources import (
    BUNDLED,
    Cacheable,
    EntryPointSource,
    InFolder,
    ObjectSource,
    PackageSource,
    Source,
)
from skillshelf.text.tokens import DEFAULT_BUDGET, Counter, estimate

if TYPE_CHECKING:
    from skillshelf.listing import Listing, ListingForm
    from skillshelf.registry import LockedSource
    from skillshelf.search import Match, SkillSearch
    from skillshelf.shelf.routing import Route
    from skillshelf.shelf.watch import Watch
    from skillshelf.sources import EnvironmentSource
    from skillshelf.sources.workspace import Workspace


_KEPT_LISTINGS = 4
"""A conversation uses three for each message: without a ranking, with the last message's, and with its own."""


class Shelf:
    """File skills and code skills in one place.

    Sources come in order of precedence. Reading needs no lock: `catalog` is an immutable snapshot that a reload
    replaces in one step.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        counter: Counter = estimate,
        choices: Mapping[str, Choice] | None = None,
        here: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open these sources.

        `choices` are the user's for single skills, by name or `name@source`: see `skillshelf.settings`. `here` is the
        folder that the user works in: of skills with one name, the nearest to it comes first.
        """
        self.sources = tuple(sources)
        self.counter = counter
        self.chosen = ChosenSkills(choices or {})
        """The user's choices for single skills, and the skills that they switch off."""
        self.observers = Observers()
        """Functions that are called when a skill's text enters a conversation, in any turn."""
        self._catalog = Catalog(here=[_key_below(source, here) for source in sources])
        self._toolbox = Toolbox()
        self._reserved_tools: frozenset[str] = frozenset()
        self._lock = make_lock()
        self._listings: dict[tuple[Any, ...], Listing] = {}
        """The last few listings, by what they were made from."""
        self._search: SkillSearch | None = None
        """Made at the first search: it reads every skill's instructions."""
        with pause_gc():
            self.reload()

    @classmethod
    def open(
        cls,
        root: "str | os.PathLike[str] | Workspace | None" = None,
        *,
        skills: Sequence[BaseSkill] = (),
        packages: Sequence[str] = (),
        entry_points: bool = False,
        environment: bool | str | os.PathLike[str] = False,
        counter: Counter = estimate,
        choices: Mapping[str, Choice] | None = None,
    ) -> "Shelf":
        """Open the skills of a workspace: the program's own, then the project's and the user's.

        A `root` is taken as it is. Without one, the workspace is found around the current folder: the whole repository,
        or the folder and the skills folders of its parents. `find_workspace(folder)` does the same for another folder.

        `skills` are code skills that the program constructed. `packages` names packages of code skills, which come
        next to these. With `entry_points`, the skills that installed distributions announce come after the user's.
        Packages and entry points are imported, which runs their code.

        With `environment`, the skills in installed packages that the workspace's pyproject.toml names come before those
        of entry points. Nothing of these packages is imported. A path stands for another Python, such as
        `.venv/bin/python`.
        """
        from skillshelf.sources.workspace import choose_workspace

        workspace = choose_workspace(root)
        project = project_sources(workspace)
        installed = None
        if environment:
            installed = environment_source(workspace, None if environment is True else environment)
        sources = workspace_sources(
            workspace, project, skills, packages=packages, entry_points=entry_points, environment=installed
        )
        return cls(sources, counter=counter, choices=choices, here=workspace.folder)

    def __repr__(self) -> str:
        return f"<Shelf: {len(self._catalog)} skills from {', '.join(source.name for source in self.sources)}>"

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    def reload(self, changed: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] | None = None) -> Delta:
        """Bring the catalog up to date and return the difference.

        `changed` names paths that the caller knows to have changed; without it, every source looks for itself. Only
        changed files are read. A file that is broken now keeps its last good version.
        """
        if isinstance(changed, str | os.PathLike):
            changed = [changed]
        paths = None if changed is None else [os.path.abspath(path) for path in changed]

        with self._lock:
            changes: dict[Place, Found | None] = {}
            failure: Exception | None = None
            for rank, source in enumerate(self.sources):
                try:
                    refreshed = source.refresh(paths)
                except Exception as error:  # raised below: the other sources have changes of their own
                    failure = failure or error
                    continue
                for key, found in refreshed.items():
                    place = Place(rank, key)
                    changes[place] = self.chosen.apply(place, found)

            delta = self._apply(changes)
            if failure:
                raise failure
            return delta

    def _apply(self, changes: Mapping[Place, Found | None]) -> Delta:
        """Replace the catalog by the next one, and the toolbox with it."""
        catalog, delta = self._catalog.apply(changes)
        if catalog is self._catalog:
            return delta

        toolbox = self._collect_tools(catalog)
        known = set(self._toolbox.diagnostics)
        fresh = tuple(note for note in toolbox.diagnostics if note not in known)
        self._toolbox = toolbox
        self._catalog = catalog.with_notes(toolbox.diagnostics)
        return delta._replace(diagnostics=delta.diagnostics + fresh)

    def _collect_tools(self, catalog: Catalog) -> Toolbox:
        toolbox = collect_tools(self.sources, catalog, self._reserved_tools)
        if list(map(id, toolbox.tools)) == list(map(id, self._toolbox.tools)):
            # The same tuple as before tells a host that there is nothing to rebuild.
            return toolbox._replace(tools=self._toolbox.tools)
        return toolbox

    def attach(self, skill: BaseSkill) -> Delta:
        """Add a code skill to this shelf, beside those that the program passed to `Shelf.open`.

        The next listing has it, and its tools are among `tools()` at once. Raises InvalidSkillError or PolicyError for
        a skill that `Shelf.open` would refuse, and SourceError if the shelf has no place for skills of the program.
        """
        with self._lock:
            source = next((source for source in self.sources if isinstance(source, ObjectSource)), None)
            if source is None:
                raise SourceError(
                    "This shelf has no source for skills that the program constructs. Give it one, at the place in the "
                    "order that attached skills should have: Shelf([ObjectSource(), …])."
                )
            if isinstance(skill, BaseSkill):
                refuse_own_names(skill.tools())
            source.add(skill)
            return self.reload(changed=())

    def listing(
        self, disclosure: "ListingForm" = "auto", budget: int = DEFAULT_BUDGET, *, ranking: Sequence[str] = ()
    ) -> "Listing":
        """Return the Available Skills section. It is byte-identical until a reload changes something.

        `ranking` names the skills that matter most, best first: they get their descriptions before the budget is spent
        on others. `route` finds one for a message.
        """
        catalog = self._catalog
        key = (catalog.generation, disclosure, budget, tuple(ranking))
        cached = self._listings.get(key)
        if cached is not None:
            return cached

        from skillshelf.listing import make_listing

        listing = make_listing(
            catalog,
            disclosure,
            budget,
            self.counter,
            lambda skill: self.instructions(skill.name),
            ranking=ranking,
            choose=self.chosen.choice_for,
        )
        for oldest in list(self._listings)[: -_KEPT_LISTINGS + 1]:
            self._listings.pop(oldest, None)
        self._listings[key] = listing
        return listing

    def route(
        self,
        text: str,
        *,
        loaded: Iterable[str] = (),
        previous: "Route | None" = None,
        keep: bool = True,
        disclosure: "ListingForm" = "auto",
        budget: int = DEFAULT_BUDGET,
    ) -> "Route":
        """Choose the skills that a listing describes first, for a user's message. `route.listing` is that listing.

        Nothing changes if every skill's description fits. `loaded` names the skills that the conversation has loaded,
        the last one at the end. `previous` is the route of the message before: its choice stays if it describes the
        skill that fits this message best, so that a cached prompt is not lost for nothing. With `keep=False` the choice
        is made again in any case.
        """
        from skillshelf.shelf.routing import choose_route

        return choose_route(
            self, text, loaded=loaded, previous=previous, keep=keep, disclosure=disclosure, budget=budget
        )

    def choose(self, choices: Mapping[str, Choice]) -> Delta:
        """Follow these choices from now on, and return the difference."""
        with self._lock:
            changes = self.chosen.replace_choices(choices, self._catalog)
            return self._apply(changes)

    def search(self, query: str, limit: int = 5, *, min_score: float = 0.0) -> "list[Match]":
        """Return the skills that fit a query, best first, each with the reasons.

        Those that hardly fit are marked: `match.is_weak`. `min_score` leaves them out. With the extra `search`, similar
        meanings count beside equal words.

        The first search reads the instructions of every skill; later ones only those of skills that changed. The index
        of a larger shelf is kept in the user's cache, so that the next process need not build it.
        """
        return self._open_search().search(self._catalog, query, limit, min_score=min_score)

    def prepare_search(self, announce: Callable[[int], None] | None = None) -> None:
        """Build the index that `search` uses, or bring it up to date. Call it from a thread of its own if you like.

        `announce` is called with the number of skills that are about to be indexed, if there are any.
        """
        self._open_search().prepare(self._catalog, announce)

    def _open_search(self) -> "SkillSearch":
        with self._lock:
            if self._search is None:
                from skillshelf.search import SkillSearch

                self._search = SkillSearch(self._read_plain_instructions, path=self._find_index_file())
            return self._search

    def _find_index_file(self) -> str | None:
        """Return the file in the user's cache for the index of these sources; None if it must stay in memory."""
        from skillshelf.search import find_index_file

        in_folders = [source for source in self.sources if isinstance(source, Cacheable)]
        if not in_folders or not all(source.uses_cache for source in in_folders):
            return None
        names = []
        for source in self.sources:
            root = source.root if isinstance(source, InFolder) else ""
            # A folder has other skills if it is served through its approvals.
            names.append(f"{type(source).__qualname__}\0{source.name}\0{root}")
        return find_index_file(names)

    def _read_plain_instructions(self, candidate: Candidate) -> str:
        place = candidate.place
        return self.sources[place.source].instructions(place.key, candidate.descriptor)

    def turn(self) -> Turn:
        """Open a turn: one user message to its final answer. Opening it picks up changes on disk."""
        self.reload()
        return Turn(self)

    def instructions(self, skill: str | Candidate) -> str:
        """Return a skill's instructions as they are on disk now, with a note if the model lacks tools of it.

        A name means the skill that is used; a candidate may be shadowed. `Turn.load` caches and records what it reads.
        """
        candidate = self._catalog.find(skill) if isinstance(skill, str) else skill
        return self._toolbox.add_note(candidate.place, self._read_plain_instructions(candidate))

    def count_instructions(self, name: str) -> int | None:
        """Return the tokens of a skill's instructions, or None if they cannot be read."""
        try:
            return self.counter(self.instructions(name))
        except SkillError:
            return None

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of the code skills, under their policies: the same tuple until one is attached or changes.

        Tools that a policy blocks are not among them: a model is not offered what it may never call. Skills of packages
        and entry points have theirs here if they could be constructed; a diagnostic says which could not.
        """
        return self._toolbox.tools

    def blocked_tools(self) -> tuple[Tool, ...]:
        """Return the tools of the code skills that a policy blocks. `call` of each says so."""
        return tuple(tool for tools in self._toolbox.by_place.values() for tool in tools if tool.is_blocked)

    def permissions_of(self, name: str) -> dict[str, Permission]:
        """Return the permission of each tool of a skill, also of blocked ones. Raises SkillNotFoundError.

        A tool without one is not available, because the skill could not be constructed or the name is taken.
        """
        tools = self._toolbox.by_place.get(self._catalog.find(name).place, ())
        return {tool.name: tool.permission for tool in tools}

    def reserve_tools(self, names: Iterable[str]) -> None:
        """Keep names for tools of the host: a code skill's tool of such a name is left out, and reported."""
        with self._lock:
            self._reserved_tools |= frozenset(names)
            self._toolbox = self._collect_tools(self._catalog)
            self._catalog = self._catalog.with_notes(self._toolbox.diagnostics)
            self._listings.clear()  # instructions may have a note now, though no skill changed

    def watch(self, on_change: Callable[[Delta], None] | None = None) -> "Watch":
        """Reload whenever files change, until the watch is closed. Needs the extra `watch`."""
        from skillshelf.shelf.watch import Watch

        return Watch(self, on_change)


@contextmanager
def pause_gc() -> Iterator[None]:
    """Collect no garbage while a shelf is filled or libraries are imported: a sixth of a start, and all objects stay.

    Freezing and unfreezing moves them to the oldest generation, so that the next collections don't visit them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # otherwise the program has frozen objects of its own
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


def project_sources(workspace: "Workspace", *, frozen: bool = False) -> "list[LockedSource]":
    """Return the sources of the project's own skills: the root's, then those of parents, nearest first.

    If `frozen`, skills that are not as skills.lock pins them cannot be loaded.
    """
    from skillshelf.registry import LockedSource  # a program with sources of its own needs none of it

    outer = [LockedSource(folder, "parent", frozen=frozen) for folder in workspace.outer]
    return [LockedSource(workspace.root, "project", frozen=frozen), *outer]


def environment_source(
    workspace: "Workspace", python: str | os.PathLike[str] | None = None
) -> "EnvironmentSource | None":
    """Return the source of installed packages that the workspace's pyproject.toml names: the nearest one.

    Without one there is none, unless the user named a Python. Raises SourceError if that is not one.
    """
    for folder in reversed(workspace.levels()):
        if os.path.lexists(f"{folder}/pyproject.toml"):
            break
    else:
        if python is None:
            return None

    from skillshelf.sources import EnvironmentSource  # 3 ms, which only such projects pay

    return EnvironmentSource(folder, python)


def workspace_sources(
    workspace: "Workspace",
    project: Sequence[Source],
    skills: Sequence[BaseSkill] = (),
    *,
    packages: Sequence[str] = (),
    entry_points: bool = False,
    environment: Source | None = None,
    authoring: bool = False,
    frozen: bool = False,
) -> list[Source]:
    """Return the sources of a workspace in order of precedence. `project` are those of the project's own skills.

    With `authoring`, the bundled skill about writing skills comes last. `frozen`: as for `project_sources`.
    """
    from skillshelf.registry import LockedSource

    if isinstance(packages, str):
        packages = [packages]  # its letters are not names of packages
    sources: list[Source] = [ObjectSource(skills)]
    sources += [PackageSource(package) for package in packages]
    sources += project

    user_roots: set[str] = set()
    for folder in map(os.path.realpath, user_skill_folders()):
        # One of them is often a link to another, or is in the project: each skill comes once.
        is_in_project = is_at_or_inside(folder, workspace.root)
        if os.path.isdir(folder) and folder not in user_roots and not is_in_project:
            user_roots.add(folder)
            sources.append(LockedSource(folder, "user", frozen=frozen))

    if environment:
        sources.append(environment)
    if entry_points:
        sources.append(EntryPointSource(without=packages))
    if authoring:
        sources.append(PackageSource("skillshelf.skill_authoring", name=BUNDLED))
    return sources


def _key_below(source: Source, folder: str | os.PathLike[str] | None) -> str:
    """Return the path of a folder below a source's own; empty if it is not in it."""
    if folder is None or not isinstance(source, InFolder):
        return ""
    return "/".join(split_below(source.root, os.path.realpath(folder)) or ())
