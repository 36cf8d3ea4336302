"""The listing over a conversation: what each model call learns about the shelf.

A provider caches the beginning of a prompt. So the section that was sent stays as it is, byte for byte, and a note at
the end of the conversation reports what changed since, or describes skills that fit the user's next message. If there
is no cache to lose, the section itself is brought up to date.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillshelf.listing._difference import describe_change, merge_listings
from skillshelf.text.tokens import DEFAULT_BUDGET

if TYPE_CHECKING:
    from skillshelf.listing._section import Listing
    from skillshelf.shelf import Shelf, Turn
    from skillshelf.shelf.routing import Route
    from skillshelf.skills import Activation, ListingForm

# Providers cache no prompt shorter than this many tokens, and forget one after this many seconds.
_MIN_CACHED_TOKENS = 1024
_CACHE_SECONDS = 300.0
_MAX_LOADED = 20
"""Names of loaded skills that are remembered."""


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
        """The listing that the section and the notes report."""
        self._known: Listing | None = None
        """The same with everything that the model has seen of each skill, even if a later listing shows less."""
        self._last_call = 0.0
        self._route: Route | None = None
        self._loaded: dict[str, None] = {}
        """The names of skills that turns before the current one loaded, the last at the end."""
        self._activations: list[Activation] | None = None
        """Those of the current turn. The turn itself would keep the texts that it loaded in memory."""
        self.notes: tuple[Note, ...] = ()

    def renew(self) -> None:
        """Send a fresh section next time: the conversation starts over, or its beginning was rewritten."""
        self._sent = None

    def turn_begins(self) -> None:
        """Drop the notes of the last turn, for a host that may shorten a request after it has left our hands."""
        if self.notes:
            self.renew()

    def route(self, turn: "Turn", text: str) -> "Listing":
        """Choose the skills that the listing describes first, for the user's message that this turn answers.

        The choice holds until another turn has one. It does not change if the user invoked a skill with the message.
        """
        if turn.activations is self._activations:
            return self.listing()
        self.pin(activation.skill for activation in self._activations or ())
        self._activations = turn.activations
        if not text.strip() or any(activation.by == "user" for activation in turn.activations):
            return self.listing()

        is_cached = self._sent is not None and self._clock() - self._last_call < _CACHE_SECONDS
        self._route = self._shelf.route(
            text,
            loaded=self._loaded,
            previous=self._route,
            keep=is_cached,
            disclosure=self._disclosure,
            budget=self._budget,
        )
        return self._route.listing

    def pin(self, names: Iterable[str]) -> None:
        """Describe these skills, which the conversation has loaded, as long as there is room."""
        for name in names:
            self._loaded.pop(name, None)
            self._loaded[name] = None
        for oldest in list(self._loaded)[:-_MAX_LOADED]:
            del self._loaded[oldest]

    def listing(self) -> "Listing":
        """Return the listing as it is now."""
        if self._route is None:
            return self._shelf.listing(self._disclosure, self._budget)
        return self._shelf.listing(self._disclosure, self._budget, ranking=self._route.ranking)

    def section(self, messages: Sequence[Any]) -> str:
        """Return the section for the next model call of a conversation of these messages, and update the notes."""
        now = self.listing()
        last_call = self._last_call
        self._last_call = self._clock()

        if self._sent is None or self._known is None:
            return self._send(now)
        if now is self._reported and not self.notes:
            return self._sent.text

        is_recent = self._last_call - last_call < _CACHE_SECONDS
        is_cached = is_recent and self._tokens(messages) >= _MIN_CACHED_TOKENS
        if not is_cached or not self.fits(messages):
            return self._send(now)

        if now is not self._reported:
            news = describe_change(self._known, now)
            self._reported = now
            self._known = merge_listings(self._known, now)
            if news:
                self.notes = (*self.notes, Note(len(messages) - 1, self._mark(messages[-1]), news))
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
        self._known = listing
        self.notes = ()
        return listing.text
