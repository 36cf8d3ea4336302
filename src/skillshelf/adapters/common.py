"""What the adapters do alike: the tools of a shelf, the turn of a run, a call in it, what a conversation was told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from skillshelf.discovery import SkillDiscoverySkill
from skillshelf.errors import InvalidSkillError, SkillError, ToolFailedError
from skillshelf.listing.feed import Feed
from skillshelf.tools import Tool
from skillshelf.turn import Turn, current_turn, inside

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

Errors: TypeAlias = tuple[type[Exception], ...]
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


def feeds(
    shelf: Shelf,
    disclosure: Disclosure,
    budget: int,
    tokens: Callable[[Sequence[Any]], int],
    mark: Callable[[Any], Hashable] = repr,
) -> Kept[Any, Feed]:
    """What each conversation was told of the shelf. One that was dropped is told anew if it goes on."""
    return Kept(partial(Feed, shelf, tokens, mark, disclosure=disclosure, budget=budget))


def offered(shelf: Shelf) -> tuple[Tool, ...]:
    """The find-skills tools, and those of the shelf's code skills. Raises InvalidSkillError."""
    own, others = SkillDiscoverySkill(shelf).tools(), shelf.tools()
    for name in {tool.name for tool in own} & {tool.name for tool in others}:
        raise InvalidSkillError(f"A code skill has a tool {name!r}, as every shelf has. Rename it with @tool(name=…).")
    return (*own, *others)


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


async def called(
    tool: Tool, arguments: Mapping[str, Any], turn: Turn | None, *, approved: bool, passing: Errors = ()
) -> Any:
    """The tool's result, in this turn. Raises SkillError."""
    from anyio import to_thread

    run = partial(tool.call, arguments, approved=approved)
    with inside(turn), typed_errors(tool, passing):
        # A tool that reads files or waits must not hold up everything else on the loop.
        return await (run() if tool.is_async else to_thread.run_sync(run))


@contextmanager
def typed_errors(tool: Tool, passing: Errors = ()) -> Iterator[None]:
    """Whatever a tool raises, as a SkillError: the model is told, and the run goes on.

    `passing`: by which the framework stops or asks in the middle of a tool. They are not for the model.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (SkillError, *passing)):
            raise
        raise ToolFailedError(tool.name, error) from error
