"""The shelf: sources and the current catalog. The one thing that changes."""

import gc
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog import Catalog, place_of
from skillshelf.descriptor import Activation, Delta
from skillshelf.files import user_skill_folders
from skillshelf.found import Found
from skillshelf.skill import BaseSkill, Tool
from skillshelf.sources import DirectorySource, ObjectSource, PackageSource, Source
from skillshelf.tokens import DEFAULT_BUDGET, Counter, estimate
from skillshelf.turn import Turn

if TYPE_CHECKING:
    from skillshelf.listing import Listing
    from skillshelf.search import Match
    from skillshelf.watch import Watch

_SHELVES: "weakref.WeakSet[Shelf]" = weakref.WeakSet()


class Shelf:
    """File skills and code skills in one place.

    Sources come in order of precedence. Reading needs no lock: `catalog` is an immutable snapshot that a reload swaps
    at once.
    """

    def __init__(self, sources: Sequence[Source], *, counter: Counter = estimate) -> None:
        self.sources = tuple(sources)
        self.counter = counter
        self._catalog = Catalog()
        self._known: list[dict[str, Found]] = [{} for _ in self.sources]
        self._lock = threading.RLock()
        self._listing: dict[tuple[str, int], tuple[int, Listing]] = {}
        self._observers: tuple[Callable[[Activation], None], ...] = ()
        _SHELVES.add(self)
        with _collecting_later():
            self.reload()

    @classmethod
    def open(
        cls, root: str | os.PathLike[str] = ".", *, skills: Sequence[BaseSkill] = (), counter: Counter = estimate
    ) -> "Shelf":
        """The skills of a workspace: the program's own, then the project's, the user's, and the bundled ones."""
        project = DirectorySource(root, "project")
        return cls(sources_around(project, project.root, skills), counter=counter)

    def __repr__(self) -> str:
        return f"<Shelf: {len(self._catalog)} skills from {', '.join(source.name for source in self.sources)}>"

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    def reload(self, changed: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] | None = None) -> Delta:
        """Bring the catalog up to date. `changed`: paths the caller knows to have changed; without it, all is checked.

        Only what changed is read. A file that is broken now keeps its last good version.
        """
        if isinstance(changed, str | os.PathLike):
            changed = [changed]
        paths = None if changed is None else [os.path.abspath(path) for path in changed]
        with self._lock:
            changes, failed = [], None
            for rank, (source, known) in enumerate(zip(self.sources, self._known, strict=True)):
                try:
                    told = source.refresh(paths)
                except Exception as error:  # raised in the end: the others have changes of their own to tell
                    failed = failed or error
                    continue
                for key, now in told.items():
                    changes.append((place_of(rank, key), known.pop(key, None), now))
                    if now:
                        known[key] = now
            self._catalog, delta = self._catalog.apply(changes)
            if failed:
                raise failed
            return delta

    def listing(
        self, disclosure: Literal["auto", "catalog", "full"] = "auto", budget: int = DEFAULT_BUDGET
    ) -> "Listing":
        """The Available Skills section: byte-identical until a reload changes something."""
        catalog = self._catalog
        cached = self._listing.get((disclosure, budget))
        if cached and cached[0] == catalog.generation:
            return cached[1]
        from skillshelf.listing import make_listing

        listing = make_listing(catalog, disclosure, budget, self.counter, lambda skill: self.instructions(skill.name))
        self._listing[disclosure, budget] = (catalog.generation, listing)
        return listing

    def search(self, query: str, limit: int = 5) -> "list[Match]":
        """The skills that fit a query in words, best first."""
        from skillshelf.search import search

        return search(self._catalog, query, limit)

    def turn(self) -> Turn:
        """A turn: one user message to its final answer. Opening it sweeps for what changed on disk."""
        self.reload()
        return Turn(self)

    def instructions(self, name: str) -> str:
        """A skill's instructions as they are on disk now. A turn's `load` is the cached and recorded way."""
        found = self._catalog.find(name)
        return self.sources[found.place.source].instructions(found.place.key, found.descriptor)

    def tools(self) -> tuple[Tool, ...]:
        """The tools of the code skills that were given to this shelf, under their policies."""
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
        """Be told whenever a skill's text enters a conversation, in any turn. What is returned ends it."""
        with self._lock:
            self._observers = (*self._observers, observe)

        def end() -> None:
            with self._lock:
                self._observers = tuple(one for one in self._observers if one is not observe)

        return end

    def activated(self, activation: Activation) -> None:
        """A turn brought text in."""
        for observe in self._observers:
            try:
                observe(activation)
            except Exception:
                import logging  # 6 ms that nobody else pays

                # The text is in the conversation already: who only watches cannot take it back.
                logging.getLogger("skillshelf").exception("an observer of activations failed")

    def watch(self, on_change: Callable[[Delta], None] | None = None) -> "Watch":
        """Reload by itself when files change, until the watch is closed. Needs the extra `watch`."""
        from skillshelf.watch import Watch

        return Watch(self, on_change)


def sources_around(project: Source, root: str, skills: Sequence[BaseSkill] = ()) -> list[Source]:
    """The sources of a workspace whose own skills come from `project`, in order of precedence."""
    sources: list[Source] = [ObjectSource(skills)] if skills else []
    sources.append(project)
    roots: set[str] = set()
    for folder in map(os.path.realpath, user_skill_folders()):
        # One of them is often a link to another, or lies in the project: each skill comes once.
        if os.path.isdir(folder) and folder not in roots and not (folder + "/").startswith(root + "/"):
            roots.add(folder)
            sources.append(DirectorySource(folder, "user"))
    sources.append(PackageSource("skillshelf.bundled", name="bundled"))
    return sources


@contextmanager
def _collecting_later() -> Iterator[None]:
    """A garbage collection amid a hundred thousand new objects finds nothing and walks them all, time and again.

    Freezing and unfreezing moves what is there to the oldest generation without walking it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # else the program has frozen objects of its own, which must stay so
            gc.freeze()
            gc.unfreeze()
        if was_on:
            gc.enable()


def _renew_locks() -> None:
    """A fork while another thread reloads would leave the child a lock that nobody releases."""
    for shelf in _SHELVES:
        shelf._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_locks)
