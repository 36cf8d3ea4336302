"""Whatever a tool of a code skill gives, no way in breaks off: the model is told, and can go on."""

import asyncio
import sys
from typing import Any

import pytest

from skillshelf import BaseSkill, Shelf, tool
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import FACES, Call, Reply

# Their shelf is in another process.
IN_PROCESS = sorted(FACES.keys() - {"mcp-stdio", "mcp-http"})


class Odd(BaseSkill):
    name, description, instructions = "odd", "Odd results.", "Ask."

    @tool
    def pairs(self) -> Any:
        """What no JSON object has: keys that are no text."""
        return {(1, 2): 3}

    @tool
    def circle(self) -> Any:
        """A list in itself."""
        around: list[Any] = []
        around.append(around)
        return around

    @tool
    def thing(self) -> Any:
        """An object of some class."""
        return Thing()

    @tool
    def half(self) -> Any:
        """The name of a file that is not in UTF-8."""
        return ["caf\udce9"]

    @tool
    def fault(self) -> Any:
        """The same in an error."""
        raise OSError("no caf\udce9")

    @tool
    def leave(self) -> Any:
        """What argparse does with wrong words."""
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
def test_odd_results_and_errors_are_told(face: str) -> None:
    """In JSON where they can be, else by a sentence on the tool; and always in whole characters."""
    said = asyncio.run(ask(face, "pairs", "circle", "thing", "half", "fault", "leave"))
    assert said.answer == "Done."
    pairs, circle, thing, half, fault, leave = (result.text for result in said.results)
    assert "3" in pairs or "Tool 'pairs' failed: TypeError" in pairs
    assert "Tool 'circle' failed: ValueError" in circle
    assert "a thing" in thing
    assert "caf\ufffd" in half
    assert "Tool 'fault' failed: OSError: no caf\ufffd" in fault
    assert "Tool 'leave' failed: SystemExit: 2" in leave
