"""The shelf: the sources of skills and the current catalog. The one thing that changes."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog import Catalog, Place
from skillshelf.descriptor import Activation, Delta, Found
from skillshelf.files import user_skill_folders
from skillshelf.locks import ForkSafeLock
from skillshelf.skill import BaseSkill, Tool
from skillshelf.sources import DirectorySource, EntryPointSource, ObjectSource, PackageSource, Source
from skillshelf.tokens import DEFAULT_BUDGET, Counter, estimate
from skillshelf.turn import Turn

if TYPE_CHECKING:
    from skillshelf.listing import Listing, ListingForm
    from skillshelf.search import Match
    from skillshelf.watch import Watch


class Shelf:
    """File skills and code skills in one place.

    Sources come in order of precedence. Reading needs no lock: `catalog` is an immutable snapshot that a reload
    replaces in one step.
    """

    def __init__(self, sources: Sequence[Source], *, counter: Counter = estimate) -> None:
        self.sources = tuple(sources)
        self.counter = counter
        self._catalog = Catalog()
        self._lock = ForkSafeLock()
        self._listings: dict[tuple[str, int], tuple[int, Listing]] = {}
        """The last listing of each disclosure and budget, with the generation of the catalog it was made from."""
        self._observers: tuple[Callable[[Activation], None], ...] = ()
        self.reload()

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str] = ".",
        *,
        skills: Sequence[BaseSkill] = (),
        packages: Sequence[str] = (),
        entry_points: bool = False,
        counter: Counter = estimate,
    ) -> "Shelf":
        """Open the skills of a workspace: the program's own, then the project's, the user's, and the bundled ones.

        `skills` are code skills that the program constructed. `packages` names packages of code skills, which come
        next to these. With `entry_points`, the skills that installed distributions announce come after the user's.
        Packages and entry points are imported, which runs their code.
        """
        project = DirectorySource(root, "project")
        sources = workspace_sources(project, project.root, skills, packages=packages, entry_points=entry_points)
        return cls(sources, counter=counter)

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
                    changes[Place(rank, key)] = found

            self._catalog, delta = self._catalog.apply(changes)
            if failure:
                raise failure
            return delta

    def listing(
        self, disclosure: "ListingForm" = "auto", budget: int = DEFAULT_BUDGET, *, ranking: Sequence[str] = ()
    ) -> "Listing":
        """Return the Available Skills section. It is byte-identical until a reload changes something.

        `ranking` names the skills that matter most, best first: they come first when the budget is spent.
        """
        catalog = self._catalog
        cached = self._listings.get((disclosure, budget))
        if cached and cached[0] == catalog.generation and not ranking:
            return cached[1]

        from skillshelf.listing import make_listing

        listing = make_listing(
            catalog, disclosure, budget, self.counter, lambda skill: self.instructions(skill.name), ranking
        )
        if not ranking:
            self._listings[disclosure, budget] = (catalog.generation, listing)
        return listing

    def search(self, query: str, limit: int = 5) -> "list[Match]":
        """Return the skills that fit a query in words, best first."""
        from skillshelf.search import search

        return search(self._catalog, query, limit)

    def turn(self) -> Turn:
        """Open a turn: one user message to its final answer. Opening it picks up changes on disk."""
        self.reload()
        return Turn(self)

    def instructions(self, name: str) -> str:
        """Return a skill's instructions as they are on disk now. `Turn.load` caches and records what it reads."""
        candidate = self._catalog.find(name)
        source = self.sources[candidate.place.source]
        return source.instructions(candidate.place.key, candidate.descriptor)

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of the code skills that were given to this shelf, under their policies."""
        return tuple(tool for source in self.sources if isinstance(source, ObjectSource) for tool in source.tools())

    def openai_tools(self, form: Literal["chat", "responses"]) -> list[Any]:
        """Return the find-skills tools and those of the code skills as dicts for `tools=` of an OpenAI-shaped API.

        `form` is the API: Chat Completions or Responses. Run the calls that the model makes with `dispatch`.
        """
        from skillshelf.loop import openai_tools

        return openai_tools(self, form)

    def dispatch(
        self,
        name: str,
        arguments: str | Mapping[str, Any],
        *,
        approve: Callable[[Tool, Mapping[str, Any]], bool] | None = None,
    ) -> str:
        """Run the tool that a model called and return the text to give back to it.

        `arguments` are a mapping, or JSON text as the model wrote it. `approve` asks the user about a call of a tool
        whose permission is `ask`; without it such a call is refused. Inside `with shelf.turn():` the call belongs to
        that turn, otherwise it has a turn of its own.

        A model's mistake never raises: an unknown tool, wrong arguments, a refused call and a tool that fails come
        back as text that the model can act on.
        """
        from skillshelf.loop import dispatch

        return dispatch(self, name, arguments, approve)

    async def dispatch_async(
        self,
        name: str,
        arguments: str | Mapping[str, Any],
        *,
        approve: Callable[[Tool, Mapping[str, Any]], bool | Awaitable[bool]] | None = None,
    ) -> str:
        """Do what `dispatch` does without holding up the event loop. `approve` may be async, too."""
        from skillshelf.loop import dispatch_async

        return await dispatch_async(self, name, arguments, approve)

    def on_activation(self, observe: Callable[[Activation], None]) -> Callable[[], None]:
        """Call `observe` whenever a skill's text enters a conversation, in any turn.

        Returns a function that ends the observation.
        """
        with self._lock:
            self._observers = (*self._observers, observe)

        def end() -> None:
            with self._lock:
                self._observers = tuple(each for each in self._observers if each is not observe)

        return end

    def report_activation(self, activation: Activation) -> None:
        """Pass on to the observers that a turn brought text in."""
        for observe in self._observers:
            try:
                observe(activation)
            except Exception:
                import logging  # takes 6 ms, which only a failing observer pays

                # The text is in the conversation already, and an observer cannot take it back.
                logging.getLogger("skillshelf").exception("an observer of activations failed")

    def watch(self, on_change: Callable[[Delta], None] | None = None) -> "Watch":
        """Reload whenever files change, until the watch is closed. Needs the extra `watch`."""
        from skillshelf.watch import Watch

        return Watch(self, on_change)


def workspace_sources(
    project: Source,
    root: str,
    skills: Sequence[BaseSkill] = (),
    *,
    packages: Sequence[str] = (),
    entry_points: bool = False,
) -> list[Source]:
    """Return the sources of a workspace whose own skills come from `project`, in order of precedence."""
    sources: list[Source] = []
    if skills:
        sources.append(ObjectSource(skills))
    sources += [PackageSource(package) for package in packages]
    sources.append(project)

    user_roots: set[str] = set()
    for folder in map(os.path.realpath, user_skill_folders()):
        # One of them is often a link to another, or lies in the project: each skill comes once.
        is_in_project = (folder + "/").startswith(root + "/")
        if os.path.isdir(folder) and folder not in user_roots and not is_in_project:
            user_roots.add(folder)
            sources.append(DirectorySource(folder, "user"))

    if entry_points:
        sources.append(EntryPointSource(without=packages))
    sources.append(PackageSource("skillshelf.bundled", name="bundled"))
    return sources
