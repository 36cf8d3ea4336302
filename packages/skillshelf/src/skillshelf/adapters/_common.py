"""Shared by the adapters: the turn of a run, tool calls in it, and the listing as each conversation knows it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from skillshelf.errors import ToolFailedError
from skillshelf.listing import Feed, ListingForm
from skillshelf.shelf import SkillDiscoverySkill, Turn, all_tools, current_turn_of, use_turn
from skillshelf.skills import Errors, Tool, typed_errors
from skillshelf.skills.results import Part, parts_of, text_of

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Encoded = TypeVar("Encoded")

MAX_REMEMBERED = 1000
"""Runs or conversations of one adapter. Frameworks do not say when a conversation ends or a run breaks off."""


class BoundedDict(dict[Key, Value]):
    """A dictionary that makes missing values, and drops the oldest ones beyond its capacity."""

    def __init__(self, make: Callable[[], Value], capacity: int = MAX_REMEMBERED) -> None:
        super().__init__()
        self.make = make
        self._capacity = capacity

    def get_or_make(self, key: Key) -> Value:
        """Return the value of this key. Make one if there is none."""
        value = self.get(key)
        if value is not None:
            return value

        excess = len(self) + 1 - self._capacity
        if excess > 0:
            for oldest in list(self)[:excess]:
                self.pop(oldest, None)
        return self.setdefault(key, self.make())


class FrameworkTools(Generic[Value]):
    """The tools of a shelf as a framework takes them. They are made again once a skill was attached to the shelf."""

    def __init__(self, shelf: Shelf, make: Callable[[Tool], Value]) -> None:
        self._shelf = shelf
        self._make = make
        self._made_from: tuple[Tool, ...] | None = None
        self._made: list[Value] = []
        self.current()  # raises InvalidSkillError here, where the program can correct it

    def current(self) -> list[Value]:
        """Return the tools as they are now."""
        tools = self._shelf.tools()
        if tools is not self._made_from:
            self._made = [self._make(tool) for tool in all_tools(self._shelf)]
            self._made_from = tools
        return self._made


def make_feeds(
    shelf: Shelf,
    disclosure: ListingForm,
    budget: int,
    count_tokens: Callable[[Sequence[Any]], int],
    mark: Callable[[Any], Hashable] = repr,
) -> BoundedDict[Any, Feed]:
    """Return the feed of each conversation. A dropped one starts over if its conversation goes on."""
    return BoundedDict(partial(Feed, shelf, count_tokens, mark, disclosure=disclosure, budget=budget))


async def open_turn(shelf: Shelf, make_listing: Callable[[Turn], object]) -> Turn:
    """Return the turn that the caller has opened, or a new one. Its listing is made, so that it is at hand."""
    from skillshelf.adapters.threads import in_thread  # needs anyio, which comes with each of the extras

    def open_now() -> Turn:
        turn = current_turn_of(shelf) or shelf.turn()
        make_listing(turn)
        return turn

    # Checking every skill takes milliseconds, in which the event loop would do nothing else.
    return await in_thread(open_now, "files")


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
    """Run a tool in this turn and return its encoded result. Raises the same errors as `typed_errors`."""
    from skillshelf.adapters.threads import in_thread

    def run() -> Any:
        try:
            return tool.call(arguments, approved=approved)
        except KeyboardInterrupt as error:  # in a thread, only the tool itself raises it
            raise ToolFailedError(tool.name, error) from error

    with use_turn(turn), typed_errors(tool, reraise, wrap_error):
        if tool.is_async:
            result = run()
        else:
            # In a thread, so that a tool that waits does not stop the event loop. Loads have threads of their own.
            is_own = isinstance(getattr(tool.method, "__self__", None), SkillDiscoverySkill)
            result = await in_thread(run, "files" if is_own else "tools")
        if isawaitable(result):
            result = await result
        return encode(result)


def encode_parts(result: Any, encode_part: Callable[[Part], Encoded]) -> str | list[Encoded]:
    """Return a tool's result as text if it is nothing else, otherwise as a list of encoded parts."""
    parts = parts_of(result)
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return [encode_part(part) for part in parts]
