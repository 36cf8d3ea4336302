"""What the adapters share: the turn of a run, a tool call in it, the shelf as a conversation knows it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from skillshelf.discovery import SkillDiscoverySkill
from skillshelf.errors import ToolFailedError
from skillshelf.listing import Feed
from skillshelf.results import text_of
from skillshelf.tools import Errors, Tool, typed_errors
from skillshelf.turn import Turn, current_turn_of, use_turn

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


def feeds(
    shelf: Shelf,
    disclosure: Disclosure,
    budget: int,
    tokens: Callable[[Sequence[Any]], int],
    mark: Callable[[Any], Hashable] = repr,
) -> Kept[Any, Feed]:
    """What each conversation was told of the shelf. One that was dropped is told anew if it goes on."""
    return Kept(partial(Feed, shelf, tokens, mark, disclosure=disclosure, budget=budget))


async def opened(shelf: Shelf, listing: Callable[[], object]) -> Turn:
    """The turn that the caller opened, or else a new one. `listing`: what the run tells, which then is at hand."""
    from skillshelf.threads import in_thread  # stands on anyio, which comes with each of the extras

    def begin() -> Turn:
        turn = current_turn_of(shelf) or shelf.turn()
        listing()
        return turn

    # A look at every skill is milliseconds in which nothing else would answer.
    return await in_thread(begin, "files")


async def call_tool(
    tool: Tool,
    arguments: Mapping[str, Any],
    turn: Turn | None,
    *,
    approved: bool,
    reraise: Errors = (),
    wrap_error: Callable[[str], Exception] | None = None,
    encode: Callable[[Any], Any] = text_of,
) -> Any:
    """Run a tool in this turn and return its result in a form for the model. Raises as `typed_errors`."""
    from skillshelf.threads import in_thread

    def run() -> Any:
        try:
            return tool.call(arguments, approved=approved)
        except KeyboardInterrupt as error:  # in a thread nobody but the tool raises it
            raise ToolFailedError(tool.name, error) from error

    own = isinstance(getattr(tool.method, "__self__", None), SkillDiscoverySkill)
    with use_turn(turn), typed_errors(tool, reraise, wrap_error):
        # A tool that reads files or waits must not hold up everything else on the loop, nor the loads of others.
        result = run() if tool.is_async else await in_thread(run, "files" if own else "tools")
        return encode(await result if isawaitable(result) else result)
