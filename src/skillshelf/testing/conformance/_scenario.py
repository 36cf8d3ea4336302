"""The scenario through one face: its steps in order, each within a time limit."""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from skillshelf.errors import MissingExtraError
from skillshelf.testing.conformance._face import Conversation, Face, exceptions_of
from skillshelf.testing.conformance._report import Outcome, Report
from skillshelf.testing.conformance._scene import Scene, Unmet
from skillshelf.testing.conformance._stage import Stage
from skillshelf.testing.conformance._steps import STEPS

T = TypeVar("T")
STEP_SECONDS = 30.0


class TooSlow(Unmet):
    """The time limit ran out: what state the conversation is in, nobody knows."""


async def run(
    face: Face, *, limit: float = STEP_SECONDS, on_outcome: Callable[[Outcome], None] = lambda outcome: None
) -> Report:
    """The whole scenario through one face, on a shelf of its own. A step that fails does not end it.

    `limit`: seconds that a step may take. `on_outcome` is told of each step when it is over.
    """
    with tempfile.TemporaryDirectory(prefix="skillshelf-conformance-") as folder:
        stage = Stage(os.path.realpath(folder))
        stage.write("alpha", "First skill.", "Body of alpha.")
        stage.write("beta", "Second skill.", "Body of beta.")
        stage.shelf.reload()
        outcomes: list[Outcome] = []

        def over(outcome: Outcome) -> None:
            outcomes.append(outcome)
            on_outcome(outcome)

        try:
            conversation = await _within(limit, face.open(stage.shelf))
        except MissingExtraError as error:
            return Report(face.name, missing=str(error))
        except Exception as error:  # a framework may raise anything: that is the finding
            _not_tried(over, 0, f"the conversation did not open: {_words(error)}")
            return Report(face.name, tuple(outcomes))
        await _play(Scene(stage, conversation, exceptions_of(face)), limit, over)
        return Report(face.name, (*outcomes[:-1], await _closed(conversation, limit, outcomes[-1])))


async def _play(scene: Scene, limit: float, over: Callable[[Outcome], None]) -> None:
    for at, (name, step) in enumerate(STEPS.items()):
        scene.notes.clear()
        try:
            await _within(limit, step(scene))
        except TooSlow as error:
            over(Outcome(name, str(error)))
            _not_tried(over, at + 1, f"not tried, because {name!r} did not end")
            return
        except Exception as error:  # as above
            over(Outcome(name, _words(error)))
        else:
            over(Outcome(name, note="; ".join(scene.notes)))


def _not_tried(over: Callable[[Outcome], None], first: int, why: str) -> None:
    for name in list(STEPS)[first:]:
        over(Outcome(name, why))


async def _closed(conversation: Conversation, limit: float, last: Outcome) -> Outcome:
    """The last step's outcome, and with it that of the end."""
    try:
        await _within(limit, conversation.close())
    except Exception as error:  # as above
        return last if last.problem else Outcome(last.step, f"the conversation did not close: {_words(error)}")
    return last


async def _within(seconds: float, work: Awaitable[T]) -> T:
    # In the same task: what a face opens in one step it may close in another, which anyio allows in one task only.
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds) as limit:
            done = await work
    except TimeoutError:
        if limit.expired():
            raise TooSlow(f"expected an answer; none came within {seconds:g} seconds") from None
        raise
    if time.monotonic() - began > seconds:
        raise Unmet(f"expected an answer within {seconds:g} seconds; it came later, and held up the event loop")
    return done


def _words(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):  # anyio wraps what went wrong, and says nothing of it
        return "; ".join(map(_words, error.exceptions))
    return str(error) if isinstance(error, Unmet) else f"{type(error).__name__}: {error}"
