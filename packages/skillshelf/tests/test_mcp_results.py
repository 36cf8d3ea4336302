"""Test the results of code skills' tools over MCP: text, images, sound, and structures that match their schema."""

import base64
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypedDict

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from mcp import types
from pydantic import BaseModel

from mcp_kit import talk
from skillshelf import Audio, BaseSkill, Image, Shelf, tool
from skillshelf.sources import ObjectSource

PNG = b"\x89PNG\r\n\x1a\n"


class State(Enum):
    SENT = "sent"


@dataclass
class Line:
    item: str
    count: int = 1


@dataclass
class Order:
    number: str
    state: State
    lines: list[Line]
    total: float = field(init=False, default=4.5)


class Totals(TypedDict):
    orders: int


class Customer(BaseModel):
    name: str
    age: int | None = None


class Shop(BaseSkill):
    name = "shop"
    description = "Orders."
    instructions = "Ask."

    @tool
    def order(self) -> Order:
        """Return a dataclass."""
        return Order("A-17", State.SENT, [Line("tea", 2)])

    @tool
    async def totals(self) -> Totals:
        """Return a TypedDict."""
        return {"orders": 3}

    @tool
    def customer(self) -> Customer:
        """Return a pydantic model."""
        return Customer(name="Ada")

    @tool
    def anything(self) -> dict[str, Any]:
        """Return a dict."""
        return {"tags": {"new"}}

    @tool
    def wrong(self) -> Totals:
        """Return another type than the annotation promises."""
        return {"orders": "three"}  # type: ignore[typeddict-item]

    @tool
    def not_a_customer(self) -> Customer:
        """Return another type than the annotation promises."""
        return {"name": "Ada"}  # type: ignore[return-value]

    @tool
    def text(self) -> str:
        """Return text."""
        return "three"

    @tool
    def rows(self) -> list[Line]:
        """Return a list."""
        return [Line("tea")]

    @tool
    def perhaps(self) -> Totals | None:
        """Return a structure or None."""
        return None

    @tool
    def unknown(self) -> "Missing":  # type: ignore[name-defined]  # noqa: F821
        """Use an annotation that only a type checker resolves."""
        return {"a": 1}

    @tool
    def picture(self) -> list[str | Image | Audio]:
        """Return media."""
        return ["A chart.", Image(PNG, "image/webp"), Audio(b"RIFF")]


SHELF = Shelf([ObjectSource([Shop()])])


def call(name: str) -> types.CallToolResult:
    """Call a tool with a client that checks each answer against the announced schema."""

    async def use(client: Any) -> Any:
        await client.list_tools()
        return await client.call_tool(name, {})

    result: types.CallToolResult = talk(SHELF, use)
    return result


def texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("order", {"number": "A-17", "state": "sent", "lines": [{"item": "tea", "count": 2}], "total": 4.5}),
        ("totals", {"orders": 3}),
        ("customer", {"name": "Ada", "age": None}),
        ("anything", {"tags": ["new"]}),
    ],
)
def test_an_object_comes_as_structured_content_and_as_text(name: str, structure: dict[str, Any]) -> None:
    """The client checks the structure against the tool's outputSchema."""
    import json

    result = call(name)
    assert result.structured_content == structure
    assert [json.loads(text) for text in texts(result)] == [structure]
    assert not result.is_error


def test_only_tools_that_promise_an_object_have_an_output_schema() -> None:
    """The tools that find skills have none."""

    async def use(client: Any) -> Any:
        return await client.list_tools()

    schemas = {each.name: each.output_schema for each in talk(SHELF, use).tools}
    promised = {name for name, schema in schemas.items() if schema is not None}
    assert promised == {"order", "totals", "customer", "anything", "wrong", "not_a_customer"}
    assert schemas["totals"] == {
        "type": "object",
        "properties": {"orders": {"type": "integer"}},
        "required": ["orders"],
        "additionalProperties": False,
    }
    assert schemas["order"]["required"] == ["number", "state", "lines", "total"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("wrong", '{"orders": "three"}', "'result.orders' must be an integer, not 'three'"),
        ("not_a_customer", '{"name": "Ada"}', "it must be a Customer, not a dict"),
    ],
)
def test_a_result_that_breaks_its_annotation_is_an_error_with_its_text(name: str, text: str, reason: str) -> None:
    """A structure that violates the schema is never sent, but the model still sees the returned text."""
    result = call(name)
    assert result.structured_content is None
    assert texts(result) == [text, f"This result is not what the tool's return annotation says: {reason}."]
    assert result.is_error


@pytest.mark.parametrize(
    ("name", "text"),
    [("text", "three"), ("rows", '[{"item": "tea", "count": 1}]'), ("perhaps", "null"), ("unknown", '{"a": 1}')],
)
def test_other_results_are_text_alone(name: str, text: str) -> None:
    result = call(name)
    assert (texts(result), result.structured_content, bool(result.is_error)) == ([text], None, False)


def test_images_and_sound_are_separate_content() -> None:
    """They keep the order of the list."""
    text, image, sound = call("picture").content
    assert isinstance(text, types.TextContent)
    assert isinstance(image, types.ImageContent)
    assert isinstance(sound, types.AudioContent)
    assert (text.text, image.mime_type, sound.mime_type) == ("A chart.", "image/webp", "audio/wav")
    assert (base64.b64decode(image.data), base64.b64decode(sound.data)) == (PNG, b"RIFF")
