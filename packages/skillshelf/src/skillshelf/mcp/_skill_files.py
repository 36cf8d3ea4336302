"""What the server gives out: addresses and contents of skills' files, and pages of lists.

A cursor names the last item of a page, so a reload between two pages does no harm.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from mcp import types

from skillshelf.errors import ReferenceNotAllowedError, SkillError, SkillNotFoundError
from skillshelf.files import Page
from skillshelf.mcp._limits import MAX_WHOLE_FILE
from skillshelf.shelf import Shelf
from skillshelf.shelf.pages import PAGE_BYTES, decode_page, wrong_offset
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read, render_skill
from skillshelf.skills import Candidate, Catalog, SkillDescriptor
from skillshelf.text import clean, text_for_model

SKILL_FILE = "SKILL.md"
LISTING_URI = "skill://listing"
_SCHEME = "skill://"
_OFFSET = re.compile(r"offset=([0-9]{1,15})")
_CONTROLS = re.compile(rb"[\x00-\x07\x0b\x0e-\x1f]")
"""JSON writes each of these bytes with six characters. A long file of them, sent as text, would be over the 10 MiB that
some clients accept; as a blob it is not."""
_HARMLESS_NOTES = frozenset({"bom", "comment-cuts-value", "description-too-long", "field-invalid"})
"""Codes of the lenient reader's notes on a SKILL.md that every other YAML reader understands just the same."""


# Addresses


class FileAddress(NamedTuple):
    """A parsed `skill://` URI. The path is decoded once and not normalized: it is compared with a list, not opened."""

    name: str
    path: str
    """Empty for the skill's folder."""
    offset: int = 0


def format_uri(name: str, path: str = "", offset: int = 0) -> str:
    """Return the URI of a skill's file, or of its folder without a path."""
    uri = _SCHEME + quote(name, safe="@")
    if path:
        uri += f"/{quote(path)}"
    if offset:
        uri += f"?offset={offset}"
    return uri


def parse_uri(uri: str) -> FileAddress | None:
    """Return the address that a URI names, or None if it cannot name a skill's file."""
    if not uri.startswith(_SCHEME):
        return None

    location, _, query = uri.removeprefix(_SCHEME).partition("?")
    offset = 0
    if query:
        match = _OFFSET.fullmatch(query)
        if not match:
            return None
        offset = int(match[1])

    name, _, path = location.partition("/")
    try:
        return FileAddress(unquote(name, errors="strict"), unquote(path, errors="strict"), offset)
    except UnicodeDecodeError:
        return None


def list_files(skill: SkillDescriptor) -> list[str]:
    """Return the paths of a skill's files: SKILL.md first, even if its author lists it as a reference, then the others
    in order."""
    return _sort_files(skill.references)


def _sort_files(references: Sequence[str]) -> list[str]:
    return [SKILL_FILE, *sorted({*references} - {SKILL_FILE})]


def find_skill(shelf: Shelf, name: str) -> Candidate:
    """Return the skill of exactly that name. Raises SkillNotFoundError, even for one that is kept from the model."""
    try:
        candidate = shelf.catalog.find(name)
    except SkillNotFoundError as error:
        from skillshelf.explain import explain_to_model  # loads the approvals, which only a mistake pays

        raise explain_to_model(shelf, error) from None
    skill = candidate.descriptor
    if skill.name != name or skill.disclosure == "manual":
        raise SkillNotFoundError(name)
    return candidate


# Files


class ServedFile(NamedTuple):
    """A file, or a page of it, as `resources/read` gives it."""

    data: bytes
    text: str | None
    """None if the file is not text."""
    media_type: str
    next_offset: int | None = None
    """Where the next page begins; None at the end."""
    size: int = 0
    """Bytes of the whole file."""


def read_served_file(shelf: Shelf, address: FileAddress) -> ServedFile:
    """Read a skill's file, or a page of one that is too long to send whole. Raises SkillError."""
    candidate = find_skill(shelf, address.name)
    skill = candidate.descriptor
    if address.path == SKILL_FILE:
        if address.offset:
            raise wrong_offset(skill.name, address.path, address.offset)
        data = read_skill_markdown(shelf, candidate).data
        return ServedFile(data, data.decode(), "text/markdown", size=len(data))

    # The path must equal one of the list before it is used as a path.
    if address.path not in skill.references:
        raise ReferenceNotAllowedError(skill.name, address.path, list_files(skill))

    page = read_skill_page(shelf, candidate, address.path, address.offset, PAGE_BYTES)
    is_cut = len(page.data) < page.size
    if address.offset == 0 and is_cut and page.size <= MAX_WHOLE_FILE:
        page = read_skill_page(shelf, candidate, address.path, 0, MAX_WHOLE_FILE)
    return _serve_page(skill, address, page)


def read_skill_page(shelf: Shelf, candidate: Candidate, path: str, offset: int, limit: int) -> Page:
    """Read at most `limit` bytes of a skill's file. Raises SkillError."""
    place = candidate.place
    source = shelf.sources[place.source]
    return source.reference(place.key, candidate.descriptor, path, offset, limit)


def _serve_page(skill: SkillDescriptor, address: FileAddress, page: Page) -> ServedFile:
    """Return a page as text or bytes. Raises ReferenceUnreadableError if no page begins at its offset."""
    decoded = decode_page(skill.name, address.path, page)
    text = decoded.text
    media_type = decoded.media_type
    if text is not None and len(page.data) > PAGE_BYTES and _CONTROLS.search(page.data):
        text = None
        if media_type.startswith("text/"):
            media_type = "application/octet-stream"
    return ServedFile(page.data, text, media_type, decoded.next_offset, page.size)


# SKILL.md


class SkillMarkdown(NamedTuple):
    """A SKILL.md as it is served."""

    data: bytes
    frontmatter: dict[str, Any]


def read_skill_markdown(shelf: Shelf, candidate: Candidate) -> SkillMarkdown:
    """Return the file itself if any YAML reader finds in it what the shelf found. Otherwise, write it out again.

    A code skill has no file, and a host that reads strictly would find something else in a file that needed repairs.
    """
    skill = candidate.descriptor
    other_fields = None
    try:
        data = read_skill_page(shelf, candidate, skill.location.rpartition("/")[2], 0, MAX_FILE + 1).data
        text = read(decode(data))
        strict = text.typed_values()
        if strict and not _agrees(strict, skill):
            strict = None
        if strict and all(note.code in _HARMLESS_NOTES for note in text.diagnostics):
            return SkillMarkdown(data, strict)
        if text.description == skill.description:  # otherwise the file is being edited: the earlier version stays
            other_fields = _visible_fields(strict or text.values)
    except (SkillError, Unreadable):
        pass

    if other_fields is None:
        other_fields = _descriptor_fields(skill)
    frontmatter = {"name": skill.name, "description": skill.description, **other_fields}
    instructions = text_for_model(shelf.instructions(skill.name))
    return SkillMarkdown(render_skill(frontmatter, instructions).encode(), frontmatter)


def _agrees(frontmatter: dict[str, Any], skill: SkillDescriptor) -> bool:
    """Return True if a strict reader finds the skill's name and description in the frontmatter."""
    description = frontmatter.get("description")
    if frontmatter.get("name") != skill.name or not isinstance(description, str):
        return False
    # A block scalar ends in a line break, which the descriptor does not keep.
    return description.strip() == skill.description


def _visible_fields(frontmatter: dict[str, Any]) -> dict[str, Any]:
    """Return the fields besides name and description that hide no characters.

    In a repaired frontmatter every value is text, so `true` and `false` become booleans again.
    """
    booleans = {"true": True, "false": False}
    fields = {}
    for key, value in frontmatter.items():
        if key in ("name", "description"):
            continue
        if any(clean(text) != text for text in _texts_in([key, value])):
            continue
        fields[key] = booleans.get(value, value) if isinstance(value, str) else value
    return fields


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    else:
        yield str(value)


def _descriptor_fields(skill: SkillDescriptor) -> dict[str, Any]:
    """Return the other fields of a skill that has no file, or none that can be read now."""
    fields = {
        "license": skill.license,
        "compatibility": skill.compatibility,
        "allowed-tools": " ".join(skill.allowed_tools),
        "metadata": skill.metadata,
        **skill.fields,
    }
    return {key: value for key, value in fields.items() if value}


def is_for_model(skill: SkillDescriptor) -> bool:
    return skill.disclosure != "manual"


def is_for_user(skill: SkillDescriptor) -> bool:
    return skill.user_invocable


def paginate_skills(
    catalog: Catalog,
    params: types.PaginatedRequestParams | None,
    size: int,
    is_wanted: Callable[[SkillDescriptor], bool],
) -> tuple[list[SkillDescriptor], str | None]:
    """Return the wanted skills after the request's cursor, and the next cursor if there are more."""
    names = list(catalog)
    page: list[SkillDescriptor] = []
    for name in names[bisect_right(names, _cursor_of(params)) :]:
        skill = catalog[name]
        if not is_wanted(skill):
            continue
        if len(page) == size:
            return page, page[-1].name
        page.append(skill)
    return page, None


def paginate_files(
    catalog: Catalog, params: types.PaginatedRequestParams | None, size: int
) -> tuple[list[tuple[SkillDescriptor, str]], str | None]:
    """Return the main files of the model's skills after the request's cursor, and the next cursor if there are more.

    A cursor is `<name>/<path>`; no name has a slash.
    """
    names = list(catalog)
    last_name, _, last_path = _cursor_of(params).partition("/")
    page: list[tuple[SkillDescriptor, str]] = []
    for name in names[bisect_left(names, last_name) :]:
        skill = catalog[name]
        if not is_for_model(skill):
            continue

        paths = _sort_files(skill.main_references)
        if name == last_name:
            paths = paths[_index_after(paths, last_path) :]
        for path in paths:
            if len(page) == size:
                last_skill, last_path = page[-1]
                return page, f"{last_skill.name}/{last_path}"
            page.append((skill, path))
    return page, None


def _cursor_of(params: types.PaginatedRequestParams | None) -> str:
    if params is None:
        return ""
    return params.cursor or ""


def _index_after(paths: Sequence[str], last_path: str) -> int:
    """Return where to go on in a skill's files after this one, which may be gone by now."""
    if last_path == SKILL_FILE:
        return 1
    return bisect_right(paths, last_path, lo=1)
