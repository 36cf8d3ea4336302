"""Test the behaviour that all adapters share."""

import asyncio
import json
import threading
from enum import Enum
from typing import Any

import pytest

from skillshelf import BaseSkill, InvalidSkillError, MemorySource, Shelf, SkillError, tool
from skillshelf.adapters import call_tool
from skillshelf.adapters._common import BoundedDict
from skillshelf.shelf import all_tools
from skillshelf.skills.results import data_of, text_of
from skillshelf.sources import ObjectSource


class Fragile(BaseSkill):
    name, description, instructions = "fragile", "Breaks.", "Break."

    @tool
    def crack(self) -> str:
        """Crack."""
        raise ValueError("kaput")

    @tool
    async def shatter(self) -> str:
        """Shatter."""
        raise RuntimeError


class Impostor(BaseSkill):
    name, description, instructions = "impostor", "Loads.", "Load."

    @tool
    def load_skill_instructions(self, skill_name: str) -> str:
        """Load."""
        return "mine"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("crack", "Tool 'crack' failed: ValueError: kaput"), ("shatter", "Tool 'shatter' failed: Runti")],
)
def test_an_exception_in_a_tool_becomes_a_skill_error(name: str, expected: str) -> None:
    """Every adapter turns a SkillError into an answer."""
    shelf = Shelf([ObjectSource([Fragile()])])
    [failing_tool] = [tool for tool in all_tools(shelf) if tool.name == name]
    with pytest.raises(SkillError, match=expected):
        asyncio.run(call_tool(failing_tool, {}, shelf.turn(), approved=False))


def test_exceptions_of_the_framework_pass_through() -> None:
    shelf = Shelf([ObjectSource([Fragile()])])
    [failing_tool] = [tool for tool in all_tools(shelf) if tool.name == "crack"]
    with pytest.raises(ValueError, match=r"^kaput$"):
        asyncio.run(call_tool(failing_tool, {}, shelf.turn(), approved=False, reraise=(ValueError,)))


class Waiting(BaseSkill):
    name, description, instructions = "waiting", "Waits.", "Wait."

    def __init__(self) -> None:
        self.end = threading.Event()

    @tool
    def wait(self) -> bool:
        """Wait."""
        return self.end.wait(60)


def test_blocking_tools_do_not_delay_loads() -> None:
    """Tools have threads of their own."""
    waiting = Waiting()
    shelf = Shelf([ObjectSource([waiting]), MemorySource({"a": "---\nname: a\ndescription: A.\n---\nBody of a.\n"})])
    tools = {tool.name: tool for tool in all_tools(shelf)}

    async def both() -> str:
        turn = shelf.turn()
        waits = [asyncio.create_task(call_tool(tools["wait"], {}, turn, approved=False)) for _ in range(100)]
        await asyncio.sleep(0.01)
        loaded = await call_tool(tools["load_skill_instructions"], {"skill_name": "a"}, turn, approved=False)
        waiting.end.set()
        assert await asyncio.gather(*waits) == ["true"] * 100
        return str(loaded)

    assert "Body of a." in asyncio.run(both())


def test_a_code_skill_cannot_replace_the_shelfs_own_tools() -> None:
    with pytest.raises(InvalidSkillError, match="load_skill_instructions"):
        all_tools(Shelf([ObjectSource([Impostor()])]))


def test_the_number_of_remembered_conversations_is_limited() -> None:
    """The oldest conversation is dropped first, and created anew if it returns."""
    conversations: BoundedDict[int, list[int]] = BoundedDict(list, capacity=3)
    first = conversations.get_or_make(0)
    assert conversations.get_or_make(0) is first
    for number in (1, 2, 3):
        conversations.get_or_make(number)
    assert len(conversations) == 3
    assert conversations.get_or_make(0) is not first


class Color(Enum):
    RED = "red"


class Plain:
    def __str__(self) -> str:
        return "plain"


def test_results_that_are_not_text_become_json() -> None:
    """Dataclasses and pydantic models are written by field, anything else as it prints."""
    from dataclasses import dataclass

    from pydantic import BaseModel

    @dataclass
    class Point:
        x: int

    class Model(BaseModel):
        y: int

    value: Any = {"a": Point(1), "b": Model(y=2), "c": Plain(), "d": "ü", 1: {2}, "e": Color.RED, "f": float("nan")}
    text = '{"a": {"x": 1}, "b": {"y": 2}, "c": "plain", "d": "ü", "1": [2], "e": "red", "f": null}'
    assert text_of(value) == text
    assert data_of(value) == json.loads(text)
    assert (text_of("as it is"), text_of(MemorySource)) == ("as it is", f'"{MemorySource}"')
