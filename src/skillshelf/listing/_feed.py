"""The listing over a conversation: what each model call is told of the shelf.

A provider keeps the beginning of a prompt in its cache, so the section that was sent stays as it is, byte for byte, and
what changed since is told in a note at the end. Where there is no cache to lose, the section itself is brought up to
date.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.listing._markup import OPENING, escaped, parse, render
from skillshelf.tokens import DEFAULT_BUDGET

if TYPE_CHECKING:
    from skillshelf.listing._choose import Listing
    from skillshelf.shelf import Shelf

# Providers cache no prompt shorter than this many tokens, and forget one after these many seconds.
_CACHED_FROM, _CACHED_FOR = 1024, 300.0


@dataclass(frozen=True, slots=True)
class Note:
    """What changed, told at the end of the conversation's message of this number, and there from then on."""

    message: int
    mark: Hashable
    """Tells that message from others: a host may drop the first ones, or put a summary in their place."""
    text: str


class Feed:
    """One conversation's view of a shelf. Notes are for the requests only: the history holds none of this."""

    def __init__(
        self,
        shelf: "Shelf",
        tokens: Callable[[Sequence[Any]], int],
        mark: Callable[[Any], Hashable] = repr,
        *,
        disclosure: Literal["auto", "catalog", "full"] = "auto",
        budget: int = DEFAULT_BUDGET,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tokens`: about how many some messages have. `mark`: what tells a message from others."""
        self._shelf, self._disclosure, self._budget = shelf, disclosure, budget
        self._tokens, self._mark, self._clock = tokens, mark, clock
        self._sent: Listing | None = None
        self._told: Listing | None = None
        self._called = 0.0
        self.notes: tuple[Note, ...] = ()

    def renew(self) -> None:
        """The conversation begins anew, or its beginning was rewritten."""
        self._sent = None

    def turn_begins(self) -> None:
        """For a host that may shorten a request once it is out of our hands: notes hold for a turn, no longer."""
        if self.notes:
            self.renew()

    def listing(self) -> "Listing":
        """The section as it would be now."""
        return self._shelf.listing(self._disclosure, self._budget)

    def section(self, messages: Sequence[Any]) -> str:
        """For the next model call of a conversation of these messages."""
        now = self.listing()
        called, self._called = self._called, self._clock()
        if self._sent is None or self._told is None:
            self._renewed(now)
        elif now is not self._told or self.notes:
            kept = self._called - called < _CACHED_FOR and self._tokens(messages) >= _CACHED_FROM
            if not kept or not self.fits(messages):
                self._renewed(now)
            elif now.text != self._told.text:
                self._tell(now, messages)
        assert self._sent is not None
        return self._sent.text

    def _renewed(self, now: "Listing") -> None:
        self._sent = self._told = now
        self.notes = ()

    def fits(self, messages: Sequence[Any]) -> bool:
        """Whether every note finds the message that it was told at."""
        return all(one.message < len(messages) and self._mark(messages[one.message]) == one.mark for one in self.notes)

    def _tell(self, now: "Listing", messages: Sequence[Any]) -> None:
        assert self._told is not None
        note = Note(len(messages) - 1, self._mark(messages[-1]), change(self._told, now))
        self.notes, self._told = (*self.notes, note), now
        if sum(len(note.text) for note in self.notes) >= len(now.text):  # as long as the section itself
            self._renewed(now)


def change(old: "Listing", new: "Listing") -> str:
    """For a conversation that was told `old`: what changed, or all of it if that is shorter."""
    if not new.text:
        return "No skills are available any more."
    difference = _difference(old, new)
    return difference if len(difference) < len(new.text) else new.text


def _difference(old: "Listing", new: "Listing") -> str:
    before, after = ({entry.name: entry for entry in parse(listing.text)} for listing in (old, new))
    added = [entry for name, entry in after.items() if name not in before]
    changed = [entry for name, entry in after.items() if name in before and before[name] != entry]
    removed = [name for name in before if name not in after]
    lines = [_names("added", [entry.name for entry in added]), _names("changed", [entry.name for entry in changed])]
    lines.append(_names("removed", removed))
    block = "\n" + render([*added, *changed]) if added or changed else ""
    # How skills are used: where all of them were shown in full, nothing was said of loading one.
    how, known = (listing.text.partition(OPENING)[0] for listing in (new, old))
    block = f"\n{how}{block}" if how != known else block
    said = " ".join(filter(None, lines)) or "Those not named above: `search_skills(query)` finds them."
    return f"The available skills changed. {said}{block}"


def _names(what: str, names: list[str]) -> str:
    return f"{what.capitalize()}: {', '.join(map(escaped, names))}." if names else ""
