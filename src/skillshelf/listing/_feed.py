"""The listing over a conversation: what each model call learns about the shelf.

A provider caches the beginning of a prompt. So the section that was sent stays as it is, byte for byte, and a note at
the end of the conversation reports what changed since. If there is no cache to lose, the section itself is brought up
to date.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillshelf.listing._markup import escape_name, render
from skillshelf.tokens import DEFAULT_BUDGET

if TYPE_CHECKING:
    from skillshelf.descriptor import ListingForm
    from skillshelf.listing._section import Listing
    from skillshelf.shelf import Shelf

# Providers cache no prompt shorter than this many tokens, and forget one after this many seconds.
_MIN_CACHED_TOKENS = 1024
_CACHE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Note:
    """A report of changes at the end of one message of the conversation, in every later request."""

    message: int
    """The message's index."""
    mark: Hashable
    """Identifies that message: a host may drop the first messages, or put a summary in their place."""
    text: str


class Feed:
    """One conversation's view of a shelf. Notes go into requests only; the history holds none of them."""

    def __init__(
        self,
        shelf: "Shelf",
        tokens: Callable[[Sequence[Any]], int],
        mark: Callable[[Any], Hashable] = repr,
        *,
        disclosure: "ListingForm" = "auto",
        budget: int = DEFAULT_BUDGET,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tokens` estimates the tokens of some messages. `mark` identifies a message."""
        self._shelf = shelf
        self._tokens = tokens
        self._mark = mark
        self._disclosure = disclosure
        self._budget = budget
        self._clock = clock
        self._sent: Listing | None = None
        """The listing whose text is in the section."""
        self._reported: Listing | None = None
        """The listing that the model knows from the section and the notes."""
        self._last_call = 0.0
        self.notes: tuple[Note, ...] = ()

    def renew(self) -> None:
        """Send a fresh section next time: the conversation begins anew, or its beginning was rewritten."""
        self._sent = None

    def turn_begins(self) -> None:
        """Drop the notes of the last turn, for a host that may shorten a request after it has left our hands."""
        if self.notes:
            self.renew()

    def listing(self) -> "Listing":
        """Return the listing as it is now."""
        return self._shelf.listing(self._disclosure, self._budget)

    def section(self, messages: Sequence[Any]) -> str:
        """Return the section for the next model call of a conversation of these messages, and update the notes."""
        now = self.listing()
        last_call = self._last_call
        self._last_call = self._clock()

        if self._sent is None or self._reported is None:
            return self._send(now)
        if now is self._reported and not self.notes:
            return self._sent.text

        is_recent = self._last_call - last_call < _CACHE_SECONDS
        is_cached = is_recent and self._tokens(messages) >= _MIN_CACHED_TOKENS
        if not is_cached or not self.fits(messages):
            return self._send(now)

        if now.text != self._reported.text:
            note = Note(len(messages) - 1, self._mark(messages[-1]), describe_change(self._reported, now))
            self.notes = (*self.notes, note)
            self._reported = now
            if sum(len(note.text) for note in self.notes) >= len(now.text):  # as long as the section itself
                return self._send(now)
        return self._sent.text

    def fits(self, messages: Sequence[Any]) -> bool:
        """Return whether every note finds its message."""
        for note in self.notes:
            if note.message >= len(messages) or self._mark(messages[note.message]) != note.mark:
                return False
        return True

    def _send(self, listing: "Listing") -> str:
        self._sent = listing
        self._reported = listing
        self.notes = ()
        return listing.text


def describe_change(old: "Listing", new: "Listing") -> str:
    """Return a note for a conversation that knows `old`: the difference, or all of `new` if that is shorter."""
    if not new.text:
        return "No skills are available any more."
    difference = _describe_difference(old, new)
    return difference if len(difference) < len(new.text) else new.text


def _describe_difference(old: "Listing", new: "Listing") -> str:
    before = {entry.name: entry for entry in old.entries}
    after = {entry.name: entry for entry in new.entries}
    added = [entry for name, entry in after.items() if name not in before]
    changed = [entry for name, entry in after.items() if name in before and before[name] != entry]

    sentences: list[str] = []
    for label, names in (
        ("Added", [entry.name for entry in added]),
        ("Changed", [entry.name for entry in changed]),
        ("Removed", [name for name in before if name not in after]),
    ):
        if names:
            sentences.append(f"{label}: {', '.join(map(escape_name, names))}.")
    if not sentences:
        sentences.append("Those not named above: `search_skills(query)` finds them.")

    note = f"The available skills changed. {' '.join(sentences)}"
    # A model that was shown every skill in full does not know yet how to load one.
    if new.introduction != old.introduction:
        note += f"\n{new.introduction}"
    if added or changed:
        note += f"\n{render([*added, *changed])}"
    return note
