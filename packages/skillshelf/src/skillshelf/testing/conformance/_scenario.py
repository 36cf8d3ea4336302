"""Run the scenario through one face: its steps in order, each with a time limit."""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from skillshelf.testing.conformance._face import Face, FaceConversation, exceptions_of
from skillshelf.testing.conformance._stage import Stage
from skillshelf.testing.conformance._steps import STEPS, Scene, UnmetExpectation

T = TypeVar("T")


class StepTimeout(UnmetExpectation):
    """The time limit ran out. The state of the conversation is unknown."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How one step went."""

    step: str
    problem: str = ""
    """Empty if it passed; otherwise what was expected and what came."""
    note: str = ""
    """The exception that the face declares, if this step would have asked for it."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a face went through the scenario."""

    face: str
    outcomes: tuple[StepOutcome, ...]

    @property
    def passed(self) -> bool:
        return not any(outcome.problem for outcome in self.outcomes)

    def __str__(self) -> str:
        problems = "; ".join(f"{outcome.step}: {outcome.problem}" for outcome in self.outcomes if outcome.problem)
        return f"{self.face}: {problems or 'passed'}"


async def run(face: Face, *, limit: float = 30.0) -> Report:
    """Run the whole scenario through one face, on a shelf of its own. A failed step doesn't end it.

    Each step may take `limit` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="skillshelf-conformance-") as folder:
        stage = Stage(os.path.realpath(folder))
        stage.write("alpha", "First skill.", "Body of alpha.")
        stage.write("beta", "Second skill.", "Body of beta.")
        stage.shelf.reload()

        try:
            conversation = await _await_within(limit, face.open(stage.shelf))
        except Exception as error:  # a framework may raise anything: that is the finding
            return Report(face.name, _skip_steps(0, f"the conversation did not open: {_describe(error)}"))

        outcomes = await _run_steps(Scene(stage, conversation, exceptions_of(face)), limit)
        outcomes[-1] = await _close(conversation, limit, outcomes[-1])
        return Report(face.name, tuple(outcomes))


async def _run_steps(scene: Scene, limit: float) -> list[StepOutcome]:
    outcomes: list[StepOutcome] = []
    for name, step in STEPS.items():
        scene.notes.clear()
        try:
            await _await_within(limit, step(scene))
        except StepTimeout as error:
            outcomes.append(StepOutcome(name, str(error)))
            outcomes += _skip_steps(len(outcomes), f"not tried, because {name!r} did not end")
            break
        except Exception as error:  # as above
            outcomes.append(StepOutcome(name, _describe(error)))
        else:
            outcomes.append(StepOutcome(name, note="; ".join(scene.notes)))
    return outcomes


def _skip_steps(first: int, reason: str) -> tuple[StepOutcome, ...]:
    return tuple(StepOutcome(name, reason) for name in list(STEPS)[first:])


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
