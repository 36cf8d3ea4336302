"""A turn: one user message to its final answer. It owns the cache of what was loaded, and records what came in."""

import os
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from skillshelf.catalog import Place
from skillshelf.descriptor import Activation, Delta, SkillDescriptor
from skillshelf.errors import (
    AmbiguousReferenceError,
    ReferenceNotAllowedError,
    ReferenceUnreadableError,
    SkillUnreadableError,
)
from skillshelf.files import Page
from skillshelf.text import decode_text, text_for_model, unify_lines

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

PAGE_BYTES = 512 * 1024
HELD_BYTES = 16 * 1024 * 1024
"""Of text that a turn keeps at hand."""
# A folder of ten thousand files must not fill the conversation with their names.
_NAMED = 200
# Characters without a place to end a page at, before it ends anywhere.
_LONGEST_SEQUENCE = 1_000
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
    """With the instructions: what else can be loaded."""
    media_type: str = "text/markdown"
    binary: bool = False
    hidden: bool = False
    """Whether hidden characters were written out."""

    def __str__(self) -> str:
        """What the model is given."""
        if self.binary:
            return f"{self.reference} is binary ({self.media_type}, {self.size} bytes) and cannot be shown as text."
        if self.next_offset is not None:
            left = self.size - self.next_offset
            return f"{self.text}\n\n[{left} of {self.size} bytes are left: load again with offset={self.next_offset}]"
        if self.references:
            names = "\n".join(f"- {path}" for path in self.references[:_NAMED])
            more = len(self.references) - _NAMED
            rest = f"\n… and {more} more, whose names the instructions give" if more > 0 else ""
            heading = "References of this skill (load_skill_instructions with `reference`):"
            return f"{self.text.rstrip()}\n\n{heading}\n{names}{rest}"
        return self.text


def current_turn_of(shelf: "Shelf") -> "Turn | None":
    """Return the turn of this shelf that the caller has opened, if any."""
    turn = current_turn.get()
    if turn is None or turn.shelf is not shelf:
        return None
    return turn


@contextmanager
def inside(turn: "Turn | None") -> "Iterator[None]":
    """What is called here is in this turn. Unlike a turn's own `with`, several calls may be in one at once."""
    token = current_turn.set(turn)
    try:
        yield
    finally:
        current_turn.reset(token)


class Turn:
    """Use as a context manager, so that the find-skills tools called inside share its cache."""

    def __init__(self, shelf: "Shelf", invoked: Collection[str] = ()) -> None:
        """`invoked`: the skills that the person asked for earlier in the conversation."""
        self.shelf = shelf
        self.invoked = set(invoked)
        """Skills that the person asked for by name: the model may load what belongs to them."""
        self.hits = 0
        """Loads that were answered without reading a file."""
        self.activations: list[Activation] = []
        self._asked: dict[tuple[str, str, int], Loaded] = {}
        """By the words of the request: the short way to what is in `_read`."""
        self._read: dict[tuple[Place, str, str, int], tuple[SkillDescriptor, Loaded]] = {}
        self._held = 0
        self._token: Token[Turn | None] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> "Turn":
        self._token = current_turn.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token:
            current_turn.reset(self._token)

    def load(
        self, name: str, reference: str = "", *, offset: int = 0, by: Literal["model", "user", "shelf"] = "model"
    ) -> Loaded:
        """A skill's instructions, or a page of one of its references. The same load again reads no file."""
        asked = (name, reference, offset)
        loaded = self._asked.get(asked)
        activation = None
        if loaded is not None:
            self.hits += 1
        else:
            with self._lock:  # two calls at once read once
                loaded, activation = self._load(asked, by)
        if by == "user":
            self.invoked.add(loaded.skill)
        if activation:  # not under the lock: an observer may load, too
            self.shelf.report_activation(activation)
        return loaded

    def _load(
        self, asked: tuple[str, str, int], by: Literal["model", "user", "shelf"]
    ) -> tuple[Loaded, Activation | None]:
        name, reference, offset = asked
        candidate = self.shelf.catalog.find(name)
        place, descriptor = candidate.place, candidate.descriptor
        path = resolve(descriptor, reference) if reference else ""
        # With the name: a reload may have put another skill at the place.
        canonical = (place, descriptor.name, path, offset)
        activation = None
        if canonical in self._read:
            self.hits += 1
        else:
            loaded = self._bring(place, descriptor, path, offset)
            activation = Activation(descriptor.name, path, by, _bytes(loaded.text))
            self.activations.append(activation)
            self._make_room(activation.size)
            self._read[canonical] = descriptor, loaded
        self._asked[asked] = self._read[canonical][1]
        return self._asked[asked], activation

    def _make_room(self, size: int) -> None:
        """Drops what was read first. Whoever pages through a large file does not ask for its first pages again."""
        self._held += size
        while self._held > HELD_BYTES and self._read:
            _, dropped = self._read.pop(next(iter(self._read)))
            self._held -= _bytes(dropped.text)
            self._asked.clear()

    def _bring(self, place: Place, descriptor: SkillDescriptor, path: str, offset: int) -> Loaded:
        source = self.shelf.sources[place.source]
        if not path:
            if offset:
                raise SkillUnreadableError(descriptor.name, "they come whole; an offset goes with a reference only")
            return _instructions(descriptor, source.instructions(place.key, descriptor))
        if offset < 0:
            raise wrong_offset(descriptor, path, offset)
        return _page(descriptor, path, source.reference(place.key, descriptor, path, offset, PAGE_BYTES))

    def wrote(self, path: str | os.PathLike[str]) -> Delta:
        """The agent itself wrote this file: what was loaded of its skill is read again, and the shelf reloads."""
        written = os.path.realpath(path)
        for key, (descriptor, _) in list(self._read.items()):
            if written.startswith(_folder(descriptor)):
                self._held -= _bytes(self._read.pop(key)[1].text)
        self._asked.clear()
        return self.shelf.reload(changed=[path])


def resolve(descriptor: SkillDescriptor, reference: str) -> str:
    """The listed path a request means: the path itself, the part below the skill's folder, or an unambiguous name."""
    listed = descriptor.references
    if reference in listed:
        return reference
    if "/" not in reference:
        candidates = [path for path in listed if path.rpartition("/")[2] == reference]
    else:
        # A code skill may list long paths from its top package; the part below the skill's folder is enough.
        candidates = [path for path in listed if path.endswith("/" + reference)] if reference[0] not in "/." else []
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise AmbiguousReferenceError(descriptor.name, reference, candidates)
    raise ReferenceNotAllowedError(descriptor.name, reference, listed)


def _folder(descriptor: SkillDescriptor) -> str:
    """The folder of a skill, with a slash at its end; no path begins with that of a skill which has none."""
    module = sys.modules.get(descriptor.location.partition(":")[0])
    file = getattr(module, "__file__", None) or descriptor.location  # a module typed in has no file
    return os.path.dirname(os.path.realpath(file)) + "/" if os.path.isabs(file) else "\0"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _instructions(descriptor: SkillDescriptor, text: str) -> Loaded:
    shown = text_for_model(text)
    has_hidden = shown != unify_lines(text)
    return Loaded(descriptor.name, "", shown, _bytes(text), references=descriptor.references, hidden=has_hidden)


def _page(descriptor: SkillDescriptor, path: str, page: Page) -> Loaded:
    import mimetypes  # reads the system's tables, 5 ms

    media_type = mimetypes.guess_type(path)[0] or "text/plain"
    data = page.data
    end = page.offset + len(data)
    inside_a_character = page.offset > 0 and data and data[0] & 0xC0 == 0x80
    if page.offset > page.size or inside_a_character:
        raise wrong_offset(descriptor, path, page.offset)
    text = decode_text(data, is_whole=end >= page.size)
    if text is None:
        if media_type.startswith("text/"):
            media_type = "application/octet-stream"
        return Loaded(descriptor.name, path, "", page.size, page.offset, media_type=media_type, binary=True)
    if end < page.size:
        text = text[: _end_of_page(text)]
    end = page.offset + len(text.encode())
    if page.offset == 0:
        text = text.removeprefix("\ufeff")
    shown = text_for_model(text)
    return Loaded(
        descriptor.name,
        path,
        shown,
        page.size,
        page.offset,
        end if end < page.size else None,
        media_type=media_type,
        hidden=shown != unify_lines(text),
    )


def _end_of_page(text: str) -> int:
    """Return where a page ends that another follows, so that the pages together read as the whole file would.

    That is after a line feed: nothing that is written out or unified reaches over one. In a text without lines it is
    between two characters that hide nothing, where neither a CR LF nor a sequence of emoji is cut in two.
    """
    line_feed = text.rfind("\n", len(text) // 2)
    if line_feed >= 0:
        return line_feed + 1

    from skillshelf.hidden import HIDDEN

    for end in range(len(text) - 1, max(0, len(text) - _LONGEST_SEQUENCE), -1):
        around = text[end - 1 : end + 1]
        if around != "\r\n" and not HIDDEN.search(around):
            return end
    return len(text)


def wrong_offset(descriptor: SkillDescriptor, path: str, offset: int) -> ReferenceUnreadableError:
    """Return the error for an offset at which no page begins."""
    reason = f"no page begins at offset {offset}; begin at 0 and go on where each answer says"
    return ReferenceUnreadableError(descriptor.name, path, reason)
