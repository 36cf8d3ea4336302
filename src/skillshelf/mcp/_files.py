"""A skill's files as the server gives them out. Whole or in pages, each time from the source."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from skillshelf.catalog import Candidate
from skillshelf.descriptor import SkillDescriptor, thaw
from skillshelf.errors import ReferenceNotAllowedError, SkillError, SkillNotFoundError
from skillshelf.files import Page
from skillshelf.mcp._pages import files_of
from skillshelf.mcp._parts import Part, part_of
from skillshelf.mcp._uris import SKILL_FILE, Address
from skillshelf.pages import PAGE_BYTES, wrong_offset
from skillshelf.shelf import Shelf
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read, render
from skillshelf.text import clean, text_for_model

MAX_WHOLE_FILE = 4 * 1024 * 1024
"""Bytes of the longest file that `resources/read` gives whole; a longer one comes in pages.

In base64 that is 5.6 MB. The official TypeScript client drops a stdio connection for a message over 10 MiB.
"""
# Notes of the lenient reader on a SKILL.md that every other reader of YAML understands just the same.
_READ_ALIKE = frozenset({"bom", "comment-cuts-value", "description-too-long", "field-invalid"})


class SkillFile(NamedTuple):
    """A SKILL.md as it is served."""

    data: bytes
    frontmatter: dict[str, Any]


def find(shelf: Shelf, name: str) -> Candidate:
    """The skill of that name. One that its author kept from the model is for prompts only, and is not found here."""
    found = shelf.catalog.find(name)
    if found.descriptor.name != name or found.descriptor.disclosure == "manual":
        raise SkillNotFoundError(name)
    return found


def read_part(shelf: Shelf, address: Address) -> Part:
    """Return the file that `resources/read` gives, or a page of one that is too long. Raises SkillError."""
    found = find(shelf, address.name)
    skill = found.descriptor
    if address.path == SKILL_FILE:
        if address.offset:
            raise wrong_offset(skill.name, address.path, address.offset)
        data = skill_file(shelf, found).data
        return Part(data, data.decode(), "text/markdown", size=len(data))
    # By equality with the list, before any path is made of it.
    if address.path not in skill.references:
        raise ReferenceNotAllowedError(skill.name, address.path, files_of(skill))
    page = read_bytes(shelf, found, address.path, address.offset, PAGE_BYTES)
    if address.offset == 0 and len(page.data) < page.size <= MAX_WHOLE_FILE:
        page = read_bytes(shelf, found, address.path, 0, MAX_WHOLE_FILE)
    return part_of(skill, address, page)


def read_bytes(shelf: Shelf, found: Candidate, path: str, offset: int, limit: int) -> Page:
    """Raises SkillError."""
    place = found.place
    return shelf.sources[place.source].reference(place.key, found.descriptor, path, offset, limit)


def skill_file(shelf: Shelf, found: Candidate) -> SkillFile:
    """Return the file itself if any reader of YAML finds in it what the shelf did, else a file made of what it found.

    A code skill has no file, and a host that reads strictly would find something else in a file that needed repairs.
    """
    skill = found.descriptor
    values = None
    try:
        data = read_bytes(shelf, found, skill.location.rpartition("/")[2], 0, MAX_FILE + 1).data
        text = read(decode(data))
        strict = text.typed_values()
        agrees = strict is not None and _says(strict, skill)
        if strict and agrees and all(note.code in _READ_ALIKE for note in text.diagnostics):
            return SkillFile(data, strict)
        if text.description == skill.description:  # else it is being edited, and an earlier version serves on
            values = _others(strict if strict and agrees else text.values)
    except (SkillError, Unreadable):
        pass
    values = {"name": skill.name, "description": skill.description} | (_card(skill) if values is None else values)
    instructions = text_for_model(shelf.instructions(skill.name))
    return SkillFile(render(values, instructions).encode(), values)


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
