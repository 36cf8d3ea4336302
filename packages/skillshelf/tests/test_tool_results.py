"""Results of tools as a model gets them: text, JSON, images and sound."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypedDict

import pytest

from skillshelf import Audio, Image, ToolResultError
from skillshelf.skills.results import (
    MAX_MEDIA,
    data_of,
    data_url,
    has_media,
    has_nested_bytes,
    parts_of,
    structure_of,
    text_of,
)
from skillshelf.skills.schema import Mismatch

IMAGE = Image(b"png")


class Color(Enum):
    RED = "red"


@dataclass
class Order:
    number: str
    color: Color = Color.RED
    picture: Image | None = None


class Price(TypedDict):
    amount: int


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("plain", "plain"),
        ("half \ud800 a pair", "half \ufffd a pair"),
        ({"größe": 3}, '{"größe": 3}'),
        ([1, None, True], "[1, null, true]"),
        ({"rate": math.nan}, '{"rate": null}'),
        ({"a"}, '["a"]'),
        (Order("A-17"), '{"number": "A-17", "color": "red", "picture": null}'),
        (Color.RED, '"red"'),
        (IMAGE, "[image/png, 3 bytes: it cannot be shown here]"),
        (Audio(bytes(2_000)), "[audio/wav, 2 kB: it cannot be shown here]"),
        (["Look:", IMAGE], "Look:\n\n[image/png, 3 bytes: it cannot be shown here]"),
        ({"chart": IMAGE}, '{"chart": "[image/png, 3 bytes: it cannot be shown here]"}'),
        (3 + 4j, '"(3+4j)"'),
    ],
)
def test_a_result_becomes_text(result: Any, text: str) -> None:
    assert text_of(result) == text


def test_a_result_becomes_json_values() -> None:
    assert data_of("half \ud800") == "half \ufffd"
    assert data_of(Order("A-17")) == {"number": "A-17", "color": "red", "picture": None}


def test_images_and_sound_are_parts_of_their_own() -> None:
    assert parts_of("only text") == ["only text"]
    assert parts_of(IMAGE) == [IMAGE]
    assert parts_of(("Look:", IMAGE, {"june": 4})) == ["Look:", IMAGE, '{"june": 4}']


def test_too_much_of_them_is_refused() -> None:
    half = Image(bytes(MAX_MEDIA // 2 + 1))
    assert parts_of([half]) == [half]
    with pytest.raises(ToolResultError, match="at most 5,242,880 can be given to a model"):
        parts_of([half, half])


@pytest.mark.parametrize(
    ("result", "at_the_top", "anywhere"),
    [
        (IMAGE, True, True),
        ([1, IMAGE], True, True),
        ({"a": [IMAGE]}, False, True),
        ([Order("A-17", picture=IMAGE)], False, True),
        (frozenset({"a"}), False, False),
        (Order, False, False),
    ],
)
def test_media_is_found_at_the_top_or_inside(result: Any, at_the_top: bool, anywhere: bool) -> None:
    assert (has_media(result), has_nested_bytes(result)) == (at_the_top, anywhere)


def test_an_image_has_an_address_of_its_own() -> None:
    assert data_url(IMAGE) == "data:image/png;base64,cG5n"


@pytest.mark.parametrize(("kind", "media_type"), [(Image, "audio/wav"), (Audio, "image/png"), (Image, "image/")])
def test_a_media_type_must_fit(kind: type[Image] | type[Audio], media_type: str) -> None:
    with pytest.raises(ValueError, match="media_type must begin with"):
        kind(b"", media_type)


def test_the_data_of_an_image_is_bytes() -> None:
    with pytest.raises(TypeError, match=r"Image\.data must be bytes, not str"):
        Image("png")  # type: ignore[arg-type]


def test_an_annotation_promises_a_structure() -> None:
    def price() -> Price:
        return {"amount": 3}

    def name() -> str:
        return "x"

    structure = structure_of(price)
    assert structure is not None
    assert structure.schema["properties"] == {"amount": {"type": "integer"}}
    assert structure.encode({"amount": 3}) == {"amount": 3}
    with pytest.raises(Mismatch):
        structure.encode({"amount": "three"})
    assert structure_of(name) is None


def test_a_pydantic_model_promises_its_own_structure() -> None:
    pydantic = pytest.importorskip("pydantic")
    model: Any = pydantic.create_model("Ticket", number=(int, ...))
    listed: Any = pydantic.RootModel[list[int]]

    def ticket() -> Any:
        raise NotImplementedError

    ticket.__annotations__["return"] = model
    structure = structure_of(ticket)
    assert structure is not None
    assert structure.encode(model(number=4)) == {"number": 4}
    with pytest.raises(Mismatch, match="it must be a Ticket, not a dict"):
        structure.encode({"number": 4})
    ticket.__annotations__["return"] = listed
    assert structure_of(ticket) is None
