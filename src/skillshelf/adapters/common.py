"""What the adapters do alike: the tools of a shelf, the turn of a run, a call in it, what a conversation was told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from skillshelf.discovery import SkillDiscoverySkill
from skillshelf.errors import InvalidSkillError, SkillError, ToolFailedError
from skillshelf.listing.feed import Feed
from skillshelf.tools import Tool, text_of
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


async def opened(shelf: Shelf, listing: Callable[[], object]) -> Turn:
    """The turn that the caller opened, or else a new one. `listing`: what the run tells, which then is at hand."""
    from skillshelf.threads import in_thread  # stands on anyio, which comes with each of the extras

    def begin() -> Turn:
        turn = joined(shelf) or shelf.turn()
        listing()
        return turn

    # A look at every skill is milliseconds in which nothing else would answer.
    return await in_thread(begin, "files")


async def called(
    tool: Tool,
    arguments: Mapping[str, Any],
    turn: Turn | None,
    *,
    approved: bool,
    passing: Errors = (),
    raised: Callable[[str], Exception] | None = None,
    form: Callable[[Any], Any] = text_of,
) -> Any:
    """The tool's result in a form that the model can be given, in this turn. Raises as `typed_errors`."""
    from skillshelf.threads import in_thread

    def run() -> Any:
        try:
            return tool.call(arguments, approved=approved)
        except KeyboardInterrupt as error:  # in a thread nobody but the tool raises it
            raise ToolFailedError(tool.name, error) from error

    own = isinstance(getattr(tool.method, "__self__", None), SkillDiscoverySkill)
    with inside(turn), typed_errors(tool, passing, raised):
        # A tool that reads files or waits must not hold up everything else on the loop, nor the loads of others.
        result = run() if tool.is_async else await in_thread(run, "files" if own else "tools")
        return form(await result if isawaitable(result) else result)


@contextmanager
def typed_errors(tool: Tool, passing: Errors = (), raised: Callable[[str], Exception] | None = None) -> Iterator[None]:
    """Whatever a tool raises, as a SkillError or as the framework's own error: the model is told, and the run goes on.

    `passing`: by which the framework stops or asks in the middle of a tool. They are not for the model.
    """
    try:
        yield
    except passing:
        raise
    except SkillError as error:
        if raised is None:
            raise
        raise raised(str(error)) from error
    except (Exception, SystemExit) as error:  # argparse in a tool leaves the program, if it may
        told = ToolFailedError(tool.name, error)
        raise (raised(str(told)) if raised else told) from error
