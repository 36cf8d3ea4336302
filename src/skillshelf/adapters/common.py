"""What the adapters do alike: the tools of a shelf, the turn of a run, a call in it, what a conversation was told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from skillshelf.discovery import SkillDiscoverySkill
from skillshelf.listing.feed import Feed
from skillshelf.tools import Tool
from skillshelf.turn import Turn, current_turn

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

Disclosure = Literal["auto", "catalog", "full"]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
_KEPT = 1000


class Kept(dict[Key, Value]):
    """One for each key, up to a number: a run that breaks off and a conversation that ends say so to nobody."""

    def __init__(self, make: Callable[[], Value]) -> None:
        super().__init__()
        self.make = make

    def of(self, key: Key) -> Value:
        """The one of this key, new if there was none."""
        if (found := self.get(key)) is not None:
            return found
        for oldest in list(self)[: max(0, len(self) - _KEPT + 1)]:
            self.pop(oldest, None)
        return self.setdefault(key, self.make())


def feeds(shelf: Shelf, disclosure: Disclosure, budget: int) -> Kept[Any, Feed]:
    """What each conversation was told of the shelf. One that was dropped is told anew if it goes on."""
    return Kept(partial(Feed, shelf, disclosure, budget))


def offered(shelf: Shelf) -> tuple[Tool, ...]:
    """The find-skills tools, and those of the shelf's code skills."""
    return (*SkillDiscoverySkill(shelf).tools(), *shelf.tools())


def joined(shelf: Shelf) -> Turn | None:
    """The turn that the caller opened."""
    turn = current_turn.get()
    return turn if turn and turn.shelf is shelf else None


async def opened(shelf: Shelf) -> Turn:
    """The turn that the caller opened, or else a new one."""
    from anyio import to_thread  # every framework brings it

    if turn := joined(shelf):
        return turn
    # A sweep stats every skill, which is milliseconds in which nothing else would answer.
    return await to_thread.run_sync(shelf.turn)


async def called(tool: Tool, arguments: Mapping[str, Any], turn: Turn | None, *, approved: bool) -> Any:
    """The tool's result, in this turn. Raises what the tool raises."""
    from anyio import to_thread

    token = current_turn.set(turn)
    try:
        run = partial(tool.call, arguments, approved=approved)
        # A tool that reads files or waits must not hold up everything else on the loop.
        return await (run() if tool.is_async else to_thread.run_sync(run))
    finally:
        current_turn.reset(token)
