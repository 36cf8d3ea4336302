"""Check that no result of a code skill's tool ends a run: the model gets an answer and can continue."""

import asyncio
import sys
from typing import Any

import pytest

from faces import FACES
from skillshelf import BaseSkill, Shelf, tool
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import Call, Reply

# The other faces have their shelf in another process.
IN_PROCESS = sorted(FACES.keys() - {"mcp-stdio", "mcp-http"})


class Odd(BaseSkill):
    name, description, instructions = "odd", "Odd results.", "Ask."

    @tool
    def pairs(self) -> Any:
        """Return keys that no JSON object can have."""
        return {(1, 2): 3}

    @tool
    def circle(self) -> Any:
        """Return a list that contains itself."""
        around: list[Any] = []
        around.append(around)
        return around

    @tool
    def thing(self) -> Any:
        """Return an object of an arbitrary class."""
        return Thing()

    @tool
    def half(self) -> Any:
        """Return a file name that is not UTF-8."""
        return ["caf\udce9"]

    @tool
    def fault(self) -> Any:
        """Raise an error that names such a file."""
        raise OSError("no caf\udce9")

    @tool
    def leave(self) -> Any:
        """Exit as argparse does after wrong arguments."""
        sys.exit(2)


class Thing:
    def __str__(self) -> str:
        return "a thing"


async def ask(face: str, *names: str) -> Reply:
    conversation = await FACES[face]().open(Shelf([ObjectSource([Odd()])]))
    try:
        return await conversation.say("hi", [Call(name, {}) for name in names], "Done.")
    finally:
        await conversation.close()


@pytest.mark.parametrize("face", IN_PROCESS)
def test_odd_results_and_errors_become_answers(face: str) -> None:
    """They are JSON if possible, otherwise a sentence about the tool, and always valid Unicode."""
    reply = asyncio.run(ask(face, "pairs", "circle", "thing", "half", "fault", "leave"))
    assert reply.answer == "Done."
    pairs, circle, thing, half, fault, leave = (result.text for result in reply.results)
    assert "3" in pairs or "Tool 'pairs' failed: TypeError" in pairs
    assert "Tool 'circle' failed: ValueError" in circle
    assert "a thing" in thing
    assert "caf\ufffd" in half
    assert "Tool 'fault' failed: OSError: no caf\ufffd" in fault
    assert "Tool 'leave' failed: SystemExit: 2" in leave
