"""The schema of a tool's parameters, and the conversion of a model's arguments."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest

from skillshelf.errors import InvalidSkillError, ToolArgumentError
from skillshelf.skills import BaseSkill, tool

if TYPE_CHECKING:
    from decimal import Decimal


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Filter(TypedDict):
    field: str
    exact: NotRequired[bool]


class Partial(TypedDict, total=False):
    field: str


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: Annotated[int, "Upwards."] = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x must not be negative")


@dataclasses.dataclass
class Line:
    start: Point
    end: Point
    tags: list[str] = dataclasses.field(default_factory=list)
    length: float = dataclasses.field(init=False, default=0.0)


@dataclasses.dataclass
class Tree:
    children: list[Tree]


def make(method: Any) -> Any:
    """The tool made from a method of a skill."""
    skill = type("MadeSkill", (BaseSkill,), {"name": "made", "description": "Made for a test.", "use": tool(method)})
    return skill().tools()[0]


def with_hint(hint: Any, *default: Any) -> Any:
    """The tool of a method that takes one `value` of that hint and returns it."""

    def use(self, value):
        return value

    use.__annotations__, use.__defaults__ = {"value": hint}, default
    return make(use)


POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "description": "Upwards.", "default": 0}},
    "required": ["x"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045
        (int | str | None, {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array", "items": {}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": {}}),
        (dict, {"type": "object", "additionalProperties": {}}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (
            Filter,
            {
                "type": "object",
                "properties": {"field": {"type": "string"}, "exact": {"type": "boolean"}},
                "required": ["field"],
                "additionalProperties": False,
            },
        ),
        (
            Partial,
            {"type": "object", "properties": {"field": {"type": "string"}}, "additionalProperties": False},
        ),
        (Point, POINT),
        (
            Line,
            {
                "type": "object",
                "properties": {"start": POINT, "end": POINT, "tags": {"type": "array", "items": {"type": "string"}}},
                "required": ["start", "end"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_hint_becomes_json_schema(hint: Any, schema: dict[str, Any]) -> None:
    """Each supported hint has its JSON Schema, inside an object that names what is required and admits nothing else."""
    assert with_hint(hint).parameters == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("hint", "default", "schema"),
    [
        (int, 5, {"type": "integer", "default": 5}),
        (str | None, None, {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}),
        (Colour, Colour.RED, {"type": "string", "enum": ["red", "blue"], "default": "red"}),
        (tuple[int, ...], (1, 2), {"type": "array", "items": {"type": "integer"}, "default": [1, 2]}),
        (Point, Point(1), POINT),
        (float, float("inf"), {"type": "number"}),
    ],
)
def test_a_default_makes_a_parameter_optional(hint: Any, default: Any, schema: dict[str, Any]) -> None:
    """The schema includes the default if JSON can write it."""
    parameters = with_hint(hint, default).parameters
    assert parameters == {"type": "object", "properties": {"value": schema}, "additionalProperties": False}
    json.dumps(parameters, allow_nan=False)


@pytest.mark.parametrize(
    ("hint", "given", "wanted"),
    [
        (str, "a", "a"),
        (int, 3.0, 3),
        (float, 3, 3.0),
        (int | None, None, None),
        (Any, {"a": [1]}, {"a": [1]}),
        (Literal[1, "1"], "1", "1"),
        (Colour, "blue", Colour.BLUE),
        (Colour, Colour.BLUE, Colour.BLUE),
        (Level, 2, Level.HIGH),
        (list[Colour], ["red"], [Colour.RED]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, Colour], [1, "red"], (1, Colour.RED)),
        (set[int], [1, 1], {1}),
        (dict[str, Point], {"a": {"x": 1}}, {"a": Point(1)}),
        (Line, {"start": {"x": 0}, "end": {"x": 3, "y": 4}}, Line(Point(0), Point(3, 4))),
        (Point, Point(1), Point(1)),
        (Filter, {"field": "a"}, {"field": "a"}),
        (Point | str, "here", "here"),
    ],
)
def test_arguments_arrive_as_the_hint_says(hint: Any, given: Any, wanted: Any) -> None:
    """JSON values are converted to the type that the hint names."""
    received = with_hint(hint).call({"value": given})
    assert (received, type(received)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    ("hint", "given", "reason"),
    [
        (str, 1, "'value' must be a string, not 1"),
        (int, "ten", "'value' must be an integer, not 'ten'"),
        (int, True, "'value' must be an integer, not True"),
        (int, 3.5, "'value' must be an integer, not 3.5"),
        (float, "1", "'value' must be a number, not '1'"),
        (float, 10**400, "'value' must be a number, not 1000"),
        (bool, "true", "'value' must be true or false, not 'true'"),
        (int | None, "x", "'value' must be an integer, not 'x'"),
        (int | bool, "x", "'value' must be an integer or true or false, not 'x'"),
        (Literal[1], True, "'value' must be one of 1, not True"),
        (Colour, "green", "'value' must be one of 'red', 'blue', not 'green'"),
        (list[int], "abc", "'value' must be an array, not 'abc'"),
        (list[int], [1, "b"], "'value[1]' must be an integer, not 'b'"),
        (tuple[int, int], [1], "'value' must be an array of 2, not [1]"),
        (set[Any], [[1]], "'value' was refused: unhashable type"),
        (dict[str, int], [], "'value' must be an object, not []"),
        (dict[str, int], {"a": "b"}, "'value.a' must be an integer, not 'b'"),
        (Line, {"start": {"x": 0}, "end": {"x": "3"}}, "'value.end.x' must be an integer, not '3'"),
        (Point, {"y": 0}, "'value' needs the field 'x'; it takes 'x' (required), 'y'"),
        (Point, {"x": 0, "z": 0}, "'value' has no field 'z'; it takes 'x' (required), 'y'"),
        (Point, {"x": -1}, "'value' was refused: x must not be negative"),
        (int, "x" * 10_000, "'value' must be an integer, not 'xxxx"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_would_be_right(hint: Any, given: Any, reason: str) -> None:
    """The ToolArgumentError names the tool, the argument, the expected type and the value."""
    with pytest.raises(ToolArgumentError) as raised:
        with_hint(hint).call({"value": given})
    assert str(raised.value).startswith(f"Tool 'use' cannot take these arguments: {reason}")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "the tool needs the argument 'query'; it takes 'query' (required), 'limit'"),
        ({"query": "a", "limits": 3}, "the tool has no argument 'limits'; it takes 'query' (required), 'limit'"),
        (["a"], "'the arguments' must be an object, not ['a']"),
    ],
)
def test_unknown_and_missing_arguments_are_refused(arguments: Any, reason: str) -> None:
    """The call is refused before the method runs, and the error names the valid arguments."""

    def search(self, query: str, limit: int = 5) -> None:
        raise AssertionError("must not run")

    with pytest.raises(ToolArgumentError) as raised:
        make(search).call(arguments)
    assert (raised.value.tool, raised.value.reason) == ("search", reason)


def test_fields_may_have_any_name() -> None:
    """Names such as `build`, `value` or `where` do not clash with our own."""

    def use(self, build: int, where: int, value: int, name: int, method: int) -> tuple[int, ...]:
        return build, where, value, name, method

    assert make(use).call({"build": 1, "where": 2, "value": 3, "name": 4, "method": 5}) == (1, 2, 3, 4, 5)


def google(self, query: str, limit: int, other: Annotated[str, "Said by the hint."]) -> None:
    """Searches.

    Use it first.

    Args:
        query (str, optional): What to look for,
            in full words: no code.
        limit: How many.
        other: Said by the docstring.

    Returns:
        query: not this.
    """


def numpy(self, query: str, limit: int, other: Annotated[str, "Said by the hint."]) -> None:
    """Searches.

    Use it first.

    Parameters
    ----------
    query : str
        What to look for,
        in full words: no code.
    limit, unrelated : int
        How many.

    Returns
    -------
    query
        Not this.
    """


def sphinx(self, query: str, limit: int, other: Annotated[str, "Said by the hint."]) -> None:
    """Searches.

    Use it first.

    :param query: What to look for,
        in full words: no code.
    :type query: str
    :param int limit: How many.
    :returns: query: not this.
    """


@pytest.mark.parametrize("method", [google, numpy, sphinx])
def test_docstrings_describe_the_tool_and_its_parameters(method: Any) -> None:
    """The text before the sections describes the tool, each style describes the parameters, and a hint's word wins."""
    made = make(method)
    described = {name: schema["description"] for name, schema in made.parameters["properties"].items()}
    assert (made.description, described) == (
        "Searches.\n\nUse it first.",
        {"query": "What to look for, in full words: no code.", "limit": "How many.", "other": "Said by the hint."},
    )


def test_a_docstring_without_sections_is_all_description() -> None:
    """Prose that merely mentions arguments does not open a section; a missing docstring is empty."""

    def prose(self, query: str) -> None:
        """Args: see the manual. Returns: nothing.

        Parameters are described there."""

    def bare(self, query: str) -> None: ...

    assert make(prose).description == "Args: see the manual. Returns: nothing.\n\nParameters are described there."
    assert make(bare).description == ""


def test_types_nested_in_the_skill_can_be_named_by_postponed_hints() -> None:
    """A postponed hint may name a type that the skill's class, or a base of it, defines."""

    class BaseSkillWithMode(BaseSkill):
        class Mode(enum.Enum):
            FAST = "fast"

        @tool
        def run(self, mode: Mode) -> Mode:
            """Runs."""
            return mode

    class RunSkill(BaseSkillWithMode):
        name = "run"
        description = "Runs."

    assert RunSkill().tools()[0].call({"mode": "fast"}) is BaseSkillWithMode.Mode.FAST


def untyped(self, query): ...
def opaque(self, when: Path): ...
def bytes_list(self, parts: list[bytes]): ...
def int_keys(self, table: dict[int, str]): ...
def recursive(self, tree: Tree): ...
def for_checkers_only(self, price: Decimal): ...
def positional(self, query: str, /): ...
def star(self, *queries: str): ...
def keywords(self, **queries: str): ...
def not_a_type(self, query: [str]): ...
def selfless(): ...


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (untyped, "MadeSkill.untyped(), parameter 'query': it has no type hint. Write `query: str`"),
        (opaque, "MadeSkill.opaque(), parameter 'when': the hint Path has no JSON form. Use str, int"),
        (bytes_list, "MadeSkill.bytes_list(), parameter 'parts': the hint bytes has no JSON form"),
        (int_keys, "parameter 'table': a JSON object has only strings as keys. Write dict[str, …]"),
        (recursive, "parameter 'tree', field 'children': Tree holds itself"),
        (for_checkers_only, "MadeSkill.for_checkers_only(): its hints cannot be resolved (NameError: name 'Decimal'"),
        (positional, "parameter 'query': a model gives arguments by name"),
        (star, "parameter 'queries': a model gives arguments by name"),
        (keywords, "parameter 'queries': a model gives arguments by name"),
        (not_a_type, "the hint [<class 'str'>] has no JSON form"),
        (selfless, "MadeSkill.selfless(): a tool is a method, but it has no first parameter. Write `self`"),
    ],
)
def test_an_unsupported_hint_says_where_and_what_would_be_right(method: Any, message: str) -> None:
    """A method that cannot become a tool is an InvalidSkillError naming class, method, parameter and remedy."""
    with pytest.raises(InvalidSkillError) as raised:
        make(method)
    assert message in str(raised.value)


def test_enum_values_without_json_form_are_refused() -> None:
    """An Enum is offered by its values, so they must be ones that JSON can write."""
    odd = enum.Enum("Odd", {"A": object()})
    with pytest.raises(
        InvalidSkillError, match=r"has no JSON form\. Use values that are str, int, float, bool or None"
    ):
        with_hint(odd)


def test_each_caller_gets_a_schema_of_its_own() -> None:
    """A framework that edits the schema of one tool does not change another's."""
    first = with_hint(str)
    first.parameters["properties"]["value"]["type"] = "spoilt"
    assert with_hint(str).parameters["properties"]["value"] == {"type": "string"}
