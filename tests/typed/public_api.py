"""A program that uses every public name of skillshelf. Type checkers must know what each of them gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, assert_type

import skillshelf
from skillshelf import (
    Activation,
    AmbiguousReferenceError,
    Audio,
    BaseSkill,
    Catalog,
    Delta,
    Diagnostic,
    DirectorySource,
    Image,
    InvalidSkillError,
    Loaded,
    MemorySource,
    MissingExtraError,
    PackageSource,
    PolicyError,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    Shelf,
    SkillDescriptor,
    SkillDiscoverySkill,
    SkillError,
    SkillNotFoundError,
    SkillUnreadableError,
    SourceError,
    Tool,
    ToolArgumentError,
    ToolFailedError,
    ToolResultError,
    Turn,
    tool,
)

assert_type(skillshelf.__version__, str)


class Charts(BaseSkill):
    name = "charts"
    description = "Draws charts."
    instructions = "Call `draw`."

    @tool
    def draw(self, title: str, width: int = 640) -> Image:
        """Draw a chart."""
        return Image(f"{title}{width}".encode())

    @tool(name="hum_a_tune")
    async def hum(self) -> Audio:
        """Hum a tune."""
        return Audio(b"RIFF")


def call_tools(skill: Charts) -> None:
    # A marked method stays the method that it was.
    assert_type(skill.draw("Sales"), Image)
    skill.draw(3)  # type: ignore[arg-type]  # pyright: ignore
    assert_type(skill.tools(), tuple[Tool, ...])
    for one in skill.tools():
        assert_type(one.name, str)
        assert_type(one.is_async, bool)
        assert_type(one.call({"title": "Sales"}), Any)
    assert_type(Charts.descriptor(), SkillDescriptor)
    assert_type(skill.with_policy({"draw": "ask"}), Charts)


def build() -> Shelf:
    memory = MemorySource({"pdf": "---\nname: pdf\ndescription: Forms.\n---\n", "csv": {"SKILL.md": b"", "a.md": ""}})
    shelf = Shelf([DirectorySource(Path("skills"), "project", cache=False), PackageSource("company_skills"), memory])
    assert_type(Shelf.open("."), Shelf)
    assert_type(Shelf.open(Path("."), skills=[Charts()], counter=len), Shelf)
    return shelf


def look(shelf: Shelf) -> None:
    catalog = shelf.catalog
    assert_type(catalog, Catalog)
    assert_type(catalog["pdf"], SkillDescriptor)
    assert_type(catalog.diagnostics, tuple[Diagnostic, ...])
    assert_type(catalog.shadowed, tuple[SkillDescriptor, ...])
    for name, skill in catalog.items():
        assert_type(name, str)
        assert_type(skill.references, tuple[str, ...])
    for note in catalog.diagnostics:
        assert_type(note.line, int)
        assert_type(note.fix, str)
    assert_type(shelf.listing("catalog", 800).text, str)
    shelf.listing("some")  # type: ignore[arg-type]  # pyright: ignore
    assert_type(shelf.search("fill in a form")[0].descriptor, SkillDescriptor)


def load(shelf: Shelf) -> str:
    def observe(activation: Activation) -> None:
        assert_type(activation.by, Literal["model", "user"])

    assert_type(shelf.observers.add(observe), Callable[[], None])
    with shelf.turn() as turn:
        assert_type(turn, Turn)
        loaded = turn.load("pdf", "forms.md", offset=10, by="user")
        assert_type(loaded, Loaded)
        assert_type(loaded.next_offset, int | None)
        assert_type(turn.wrote("skills/pdf/SKILL.md"), Delta)
    return loaded.text


def reload(shelf: Shelf) -> tuple[str, ...]:
    delta = shelf.reload([Path("skills/pdf/SKILL.md")])
    assert_type(delta, Delta)
    assert_type(delta.removed, tuple[str, ...])
    return delta.added


def discover(shelf: Shelf) -> dict[str, Tool]:
    return {one.name: one for one in SkillDiscoverySkill(shelf).tools()}


def explain(error: SkillError) -> str:
    """Return a word for an error. Every public error is a SkillError."""
    match error:
        case SkillNotFoundError() | ReferenceNotFoundError():
            return "missing"
        case AmbiguousReferenceError():
            return f"one of {error.candidates}"
        case ReferenceNotAllowedError() | PolicyError():
            return "not allowed"
        case SkillUnreadableError() | ReferenceUnreadableError() | SourceError() | InvalidSkillError():
            return "broken"
        case ToolArgumentError() | ToolResultError() | ToolFailedError():
            return "tool"
        case MissingExtraError():
            return error.extra
        case _:
            return str(error)
