"""A turn: one user message to its final answer. It caches loaded text and records what entered the conversation."""

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillshelf.errors import AmbiguousReferenceError, ReferenceNotAllowedError, SkillUnreadableError
from skillshelf.files import Page, make_lock
from skillshelf.shelf.pages import PAGE_BYTES, decode_page, wrong_offset
from skillshelf.skills import Activation, Candidate, Delta, Place, SkillDescriptor
from skillshelf.text import text_for_model, unify_lines

if TYPE_CHECKING:
    from skillshelf.shelf._shelf import Shelf

MAX_CACHED_BYTES = 16 * 1024 * 1024
"""Text that a turn keeps at hand."""

_MAX_LISTED_REFERENCES = 100
"""Names of references below the instructions."""

Requester: TypeAlias = Literal["model", "user"]

current_turn: "ContextVar[Turn | None]" = ContextVar("skillshelf_turn", default=None)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Text that a load brought in: a skill's instructions, or a page of a reference."""

    skill: str
    reference: str
    """Empty for the instructions."""
    text: str
    """Empty for a binary file. Hidden characters are written out as `<U+200B>`, every line ending is a line feed."""
    size: int
    """Bytes of the whole file, or of the instructions as they were read."""
    offset: int = 0
    next_offset: int | None = None
    """Where the next page begins; None at the end."""
    references: tuple[str, ...] = ()
    """With the instructions: the references that can be loaded."""
    media_type: str = "text/markdown"
    binary: bool = False
    hidden: bool = False
    """Whether hidden characters were written out."""

    def __str__(self) -> str:
        """Return the text for the model."""
        if self.binary:
            return f"{self.reference} is binary ({self.media_type}, {self.size} bytes) and cannot be shown as text."

        if self.next_offset is not None:
            left = self.size - self.next_offset
            return f"{self.text}\n\n[{left} of {self.size} bytes are left: load again with offset={self.next_offset}]"

        if self.references:
            heading = "References of this skill (load_skill_instructions with `reference`):"
            return "\n".join([f"{self.text.rstrip()}\n", heading, *list_references(self.references)])

        return self.text


def list_references(references: Sequence[str]) -> list[str]:
    """Return a line for each of the first references, by folder, and one that counts the others."""
    listed = sorted(references[:_MAX_LISTED_REFERENCES], key=os.path.split)
    lines = [f"- {path}" for path in listed]
    omitted = len(references) - len(lines)
    if omitted:
        lines.append(f"… and {omitted} more, which load by name, too")
    return lines


class _Cached(NamedTuple):
    descriptor: SkillDescriptor
    loaded: Loaded
    size: int
    """Bytes of the text."""


class _Observer(NamedTuple):
    observe: Callable[[Activation], None]
    repeats: bool


class Observers:
    """Functions that are called when a skill's text enters a conversation."""

    def __init__(self) -> None:
        self._observers: tuple[_Observer, ...] = ()
        self._lock = make_lock()

    def add(self, observe: Callable[[Activation], None], *, repeats: bool = False) -> Callable[[], None]:
        """Call `observe` for each activation from now on, until the returned function is called.

        With `repeats`, also when a turn loads the same text again; such an activation is marked `repeated`.
        """
        observer = _Observer(observe, repeats)
        with self._lock:
            self._observers = (*self._observers, observer)

        def end() -> None:
            with self._lock:
                self._observers = tuple(each for each in self._observers if each is not observer)

        return end

    def report(self, activation: Activation) -> None:
        """Call the observers. One that fails is logged."""
        for observer in self._observers:
            if activation.repeated and not observer.repeats:
                continue
            try:
                observer.observe(activation)
            except Exception:
                import logging  # takes 6 ms, which only a failing observer pays

                # The text is in the conversation already, and an observer cannot take it back.
                logging.getLogger("skillshelf").exception("an observer of activations failed")


class Turn:
    """One user message to its final answer.

    Loads are cached until the turn ends, so a skill does not change while a model works with it. Inside `with turn:`
    the find-skills tools belong to this turn.
    """

    def __init__(self, shelf: "Shelf", invoked: Collection[str] = ()) -> None:
        """Open a turn. `invoked` names the skills that the user asked for earlier in the conversation."""
        self.shelf = shelf
        self.invoked = set(invoked)
        """Skills that the user asked for by name. The model may load these even if they are for the user alone."""
        self.hits = 0
        """Loads that were answered without reading a file."""
        self.activations: list[Activation] = []
        """The texts that entered the conversation, each once."""
        self.repeats: list[Activation] = []
        """Loads of a text that the conversation already had, in the order in which they came."""
        self._cache: dict[tuple[Place, str, str, int], _Cached] = {}
        self._cached_bytes = 0
        self._lock = threading.Lock()
        self._token: Token[Turn | None] | None = None

    def __enter__(self) -> "Turn":
        self._token = current_turn.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token:
            current_turn.reset(self._token)

    def load(self, name: str, reference: str = "", *, offset: int = 0, by: Requester = "model") -> Loaded:
        """Load a skill's instructions, or a page of one of its references. The same load again reads no file."""
        with self._lock:  # two calls at once read once
            cached, is_new = self._load(name, reference, offset)
            loaded = cached.loaded
            activation = Activation(loaded.skill, loaded.reference, by, cached.size, repeated=not is_new)
            if is_new:
                self.activations.append(activation)
            else:
                self.hits += 1
                self.repeats.append(activation)

        if by == "user":
            self.invoked.add(loaded.skill)
        # After the lock is released: an observer may load, too.
        self.shelf.observers.report(activation)
        return loaded

    def wrote(self, path: str | os.PathLike[str]) -> Delta:
        """Record that the agent wrote a file: its skill is read again when it is next loaded, and the shelf reloads."""
        written = os.path.realpath(path)
        for key, cached in list(self._cache.items()):
            if written.startswith(_folder_prefix(cached.descriptor)):
                self._forget(key)
        return self.shelf.reload(changed=[path])

    def _load(self, name: str, reference: str, offset: int) -> tuple[_Cached, bool]:
        """Return the cached text, and whether it was not there before."""
        candidate = self.shelf.catalog.find(name)
        descriptor = candidate.descriptor
        path = resolve_reference(descriptor, reference) if reference else ""

        # The name belongs to the key: a reload may have put another skill at the place.
        key = (candidate.place, descriptor.name, path, offset)
        cached = self._cache.get(key)
        if cached is not None:
            return cached, False

        loaded = self._read(candidate, path, offset)
        cached = _Cached(descriptor, loaded, _count_bytes(loaded.text))
        self._remember(key, cached)
        return cached, True

    def _read(self, candidate: Candidate, path: str, offset: int) -> Loaded:
        place = candidate.place
        descriptor = candidate.descriptor
        if not path:
            if offset:
                raise SkillUnreadableError(descriptor.name, "they have no pages; only a reference takes an offset")
            return _load_instructions(descriptor, self.shelf.instructions(candidate))

        if offset < 0:
            raise wrong_offset(descriptor.name, path, offset)
        source = self.shelf.sources[place.source]
        return _load_page(descriptor, path, source.reference(place.key, descriptor, path, offset, PAGE_BYTES))

    def _remember(self, key: tuple[Place, str, str, int], cached: _Cached) -> None:
        """Cache a load. The oldest make room: a model that pages through a large file does not go back to its start."""
        self._cached_bytes += cached.size
        while self._cached_bytes > MAX_CACHED_BYTES and self._cache:
            self._forget(next(iter(self._cache)))
        self._cache[key] = cached

    def _forget(self, key: tuple[Place, str, str, int]) -> None:
        self._cached_bytes -= self._cache.pop(key).size


def current_turn_of(shelf: "Shelf") -> Turn | None:
    """Return the turn of this shelf that the caller has opened, if any."""
    turn = current_turn.get()
    if turn is None or turn.shelf is not shelf:
        return None
    return turn


@contextmanager
def use_turn(turn: Turn | None) -> Iterator[None]:
    """Make calls inside the block part of this turn. Unlike `with turn:`, several calls may do so at once."""
    token = current_turn.set(turn)
    try:
        yield
    finally:
        current_turn.reset(token)


def resolve_reference(descriptor: SkillDescriptor, reference: str, *, any_case: bool = True) -> str:
    """Return the listed path that a request means: the path itself, its last parts, or an unambiguous file name.

    If none of them has the request's case, one that differs in nothing else is meant, unless `any_case` is false.
    """
    listed = descriptor.references
    if reference in listed:
        return reference

    matches: list[str] = []
    # A code skill may list long paths from its top package; the part below the skill's folder is enough.
    can_be_end = not reference.startswith(("/", ".")) or "/" not in reference
    end = f"/{reference}"
    if can_be_end:
        matches = [path for path in listed if path.endswith(end)]
    if not matches and any_case:
        matches = [path for path in listed if _is_same_but_for_case(path, reference)]
    if not matches and any_case and can_be_end:
        matches = [path for path in listed if _is_same_but_for_case(path[-len(end) :], end)]

    if len(matches) > 1:
        raise AmbiguousReferenceError(descriptor.name, reference, matches)
    if not matches:
        raise ReferenceNotAllowedError(descriptor.name, reference, listed)
    return matches[0]


def _is_same_but_for_case(path: str, other: str) -> bool:
    """Compare in both cases: a Kelvin sign becomes `k` in lower case, but stays itself in upper case."""
    return path.lower() == other.lower() and path.upper() == other.upper()


def _folder_prefix(descriptor: SkillDescriptor) -> str:
    """Return the path of a skill's folder with a slash at its end, or a text that no path begins with."""
    module = sys.modules.get(descriptor.location.partition(":")[0])
    file = getattr(module, "__file__", None) or descriptor.location  # a module that was typed in has no file
    if not os.path.isabs(file):
        return "\0"
    return os.path.dirname(os.path.realpath(file)) + "/"


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _load_instructions(descriptor: SkillDescriptor, text: str) -> Loaded:
    shown = text_for_model(text)
    return Loaded(
        skill=descriptor.name,
        reference="",
        text=shown,
        size=_count_bytes(text),
        references=descriptor.references,
        hidden=shown != unify_lines(text),
    )


def _load_page(descriptor: SkillDescriptor, path: str, page: Page) -> Loaded:
    decoded = decode_page(descriptor.name, path, page)
    if decoded.text is None:
        return Loaded(
            skill=descriptor.name,
            reference=path,
            text="",
            size=page.size,
            offset=page.offset,
            media_type=decoded.media_type,
            binary=True,
        )

    text = decoded.text
    if page.offset == 0:
        text = text.removeprefix("\ufeff")
    shown = text_for_model(text)
    return Loaded(
        skill=descriptor.name,
        reference=path,
        text=shown,
        size=page.size,
        offset=page.offset,
        next_offset=decoded.next_offset,
        media_type=decoded.media_type,
        hidden=shown != unify_lines(text),
    )
