"""A skill's files as the server gives them out. Whole or in pages, each time from the source."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from skillshelf.catalog import Candidate
from skillshelf.characters import clean, show_hidden
from skillshelf.descriptor import SkillDescriptor, thaw
from skillshelf.errors import ReferenceNotAllowedError, SkillError, SkillNotFoundError
from skillshelf.files import Page
from skillshelf.mcp.pages import files_of
from skillshelf.mcp.parts import Part, part_of, wrong_offset
from skillshelf.mcp.uris import SKILL_FILE, Address
from skillshelf.shelf import Shelf
from skillshelf.skillmd import MAX_FILE, SkillText, Unreadable, decode, read, render
from skillshelf.turn import PAGE_BYTES


class SkillFile(NamedTuple):
    """A SKILL.md as it is served."""

    text: str
    frontmatter: dict[str, Any]


def find(shelf: Shelf, name: str) -> Candidate:
    """The skill of that name. One that its author kept from the model is for prompts only, and is not found here."""
    found = shelf.catalog.find(name)
    if found.descriptor.name != name or found.descriptor.disclosure == "manual":
        raise SkillNotFoundError(name)
    return found


def read_part(shelf: Shelf, address: Address) -> Part:
    """What `resources/read` gives. Raises SkillError."""
    found = find(shelf, address.name)
    skill = found.descriptor
    if address.path == SKILL_FILE:
        if address.offset:
            raise wrong_offset(skill, address)
        text = skill_file(shelf, found).text
        return Part(text.encode(), text, "text/markdown", size=len(text.encode()))
    # By equality with the list, before any path is made of it.
    if address.path not in skill.references:
        raise ReferenceNotAllowedError(skill.name, address.path, files_of(skill))
    return part_of(skill, address, read_bytes(shelf, found, address.path, address.offset, PAGE_BYTES))


def read_bytes(shelf: Shelf, found: Candidate, path: str, offset: int, limit: int) -> Page:
    """Raises SkillError."""
    place = found.place
    return shelf.sources[place.source].reference(place.key, found.descriptor, path, offset, limit)


def skill_file(shelf: Shelf, found: Candidate) -> SkillFile:
    """The file itself where any reader of YAML finds in it what the shelf did; else one written from what it found.

    A code skill has no file, and one with repairs would say something else to a host that reads it strictly. Hidden
    characters are written out: a host puts this text before its model.
    """
    skill, values = found.descriptor, None
    try:
        data = read_bytes(shelf, found, skill.location.rpartition("/")[2], 0, MAX_FILE + 1).data
        text = read(decode(data))
        strict = _values(text)
        agrees = strict is not None and _says(strict, skill)
        if strict and agrees and not text.diagnostics and show_hidden(text.text) == text.text:
            return SkillFile(text.text, strict)
        if text.description == skill.description:  # else it is being edited, and an earlier version serves on
            values = _others(strict if strict and agrees else text.values)
    except (SkillError, Unreadable):
        pass
    values = {"name": skill.name, "description": skill.description} | (_card(skill) if values is None else values)
    return SkillFile(render(values, show_hidden(shelf.instructions(skill.name))), values)


def _others(values: dict[str, Any]) -> dict[str, Any]:
    """Every other field that hides nothing. Of repaired ones all are text: what is plainly a flag is one again."""
    flags = {"true": True, "false": False}
    return {
        key: flags.get(value, value) if isinstance(value, str) else value
        for key, value in values.items()
        if key not in ("name", "description") and all(clean(text) == text for text in _texts([key, value]))
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)
    else:
        yield str(value)


def _card(skill: SkillDescriptor) -> dict[str, Any]:
    """The other fields of a skill that has no file, or none that can be read now."""
    fields = {
        "license": skill.license,
        "compatibility": skill.compatibility,
        "allowed-tools": " ".join(skill.allowed_tools),
        "metadata": thaw(skill.metadata),
        **thaw(skill.fields),
    }
    return {key: value for key, value in fields.items() if value}


def _says(values: dict[str, Any], skill: SkillDescriptor) -> bool:
    # A block scalar ends in a line break, which the card does not keep.
    described = values.get("description")
    return values.get("name") == skill.name and isinstance(described, str) and described.strip() == skill.description


def _values(text: SkillText) -> dict[str, Any] | None:
    """The frontmatter as a host's YAML reader has it, with numbers as numbers; None where it is not JSON."""
    import yaml

    block = text.text[: text.body].strip().removeprefix("---").removesuffix("---")
    if "<<" in block:  # merge keys can take the power of their number; all else `read` has bounded
        return None
    try:
        values = yaml.load(block, _loader())
        json.dumps(values, allow_nan=False)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


@cache
def _loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("Loader", (base,), {})
    # JSON has no dates: they stay as written.
    loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)
    return loader
