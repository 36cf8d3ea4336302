"""The scenario through one face: its steps in order, each within a time limit."""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from skillshelf.errors import MissingExtraError
from skillshelf.testing.conformance._face import Face, FaceConversation, Report, StepOutcome, exceptions_of
from skillshelf.testing.conformance._stage import Stage
from skillshelf.testing.conformance._steps import STEPS, Scene, UnmetExpectation

T = TypeVar("T")
OnOutcome = Callable[[StepOutcome], None]
STEP_SECONDS = 30.0


class StepTimeout(UnmetExpectation):
    """The time limit ran out. The state of the conversation is unknown."""


async def run(face: Face, *, limit: float = STEP_SECONDS, on_outcome: OnOutcome = lambda outcome: None) -> Report:
    """Run the whole scenario through one face, on a shelf of its own. A step that fails does not end it.

    A step may take `limit` seconds. `on_outcome` is called after each step.
    """
    outcomes: list[StepOutcome] = []

    def add_outcome(outcome: StepOutcome) -> None:
        outcomes.append(outcome)
        on_outcome(outcome)

    with tempfile.TemporaryDirectory(prefix="skillshelf-conformance-") as folder:
        stage = Stage(os.path.realpath(folder))
        stage.write("alpha", "First skill.", "Body of alpha.")
        stage.write("beta", "Second skill.", "Body of beta.")
        stage.shelf.reload()

        try:
            conversation = await _await_within(limit, face.open(stage.shelf))
        except MissingExtraError as error:
            return Report(face.name, missing=str(error))
        except Exception as error:  # a framework may raise anything: that is the finding
            _skip_steps(add_outcome, 0, f"the conversation did not open: {_describe(error)}")
            return Report(face.name, tuple(outcomes))

        await _run_steps(Scene(stage, conversation, exceptions_of(face)), limit, add_outcome)
        outcomes[-1] = await _close(conversation, limit, outcomes[-1])
        return Report(face.name, tuple(outcomes))


async def _run_steps(scene: Scene, limit: float, add_outcome: OnOutcome) -> None:
    for index, (name, step) in enumerate(STEPS.items()):
        scene.notes.clear()
        try:
            await _await_within(limit, step(scene))
        except StepTimeout as error:
            add_outcome(StepOutcome(name, str(error)))
            _skip_steps(add_outcome, index + 1, f"not tried, because {name!r} did not end")
            return
        except Exception as error:  # as above
            add_outcome(StepOutcome(name, _describe(error)))
        else:
            add_outcome(StepOutcome(name, note="; ".join(scene.notes)))


def _skip_steps(add_outcome: OnOutcome, first: int, reason: str) -> None:
    for name in list(STEPS)[first:]:
        add_outcome(StepOutcome(name, reason))


async def _close(conversation: FaceConversation, limit: float, last: StepOutcome) -> StepOutcome:
    """Close the conversation. Return the last step's outcome, with the problem of closing if it had none itself."""
    try:
        await _await_within(limit, conversation.close())
    except Exception as error:  # as above
        if not last.problem:
            return StepOutcome(last.step, f"the conversation did not close: {_describe(error)}")
    return last


async def _await_within(seconds: float, work: Awaitable[T]) -> T:
    # In the same task: a face may close in one step what it opened in another, which anyio allows in one task only.
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds) as limit:
            result = await work
    except TimeoutError:
        if limit.expired():
            raise StepTimeout(f"expected an answer; none came within {seconds:g} seconds") from None
        raise

    if time.monotonic() - began > seconds:
        raise UnmetExpectation(
            f"expected an answer within {seconds:g} seconds; it came later, and held up the event loop"
        )
    return result


def _describe(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):  # anyio wraps the real error, and says nothing about it
        return "; ".join(_describe(inner) for inner in error.exceptions)
    if isinstance(error, UnmetExpectation):
        return str(error)
    return f"{type(error).__name__}: {error}"
