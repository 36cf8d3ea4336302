"""`skills/list` and `skills/get` of the Skills extension (SEP-2640): each skill with the digests of its files."""

import hashlib
from contextlib import suppress
from typing import Any

from mcp import MCPError, types
from mcp.types import INVALID_PARAMS

from skillshelf.catalog import Candidate
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import InvalidSkillError, SkillError
from skillshelf.lint.names import check_name
from skillshelf.mcp import files
from skillshelf.mcp.looks import Looks, in_thread
from skillshelf.mcp.pages import files_of, for_the_model, page_of
from skillshelf.mcp.turns import Context
from skillshelf.mcp.uris import SKILL_FILE, parse, uri_of
from skillshelf.shelf import Shelf

EXTENSION = "io.modelcontextprotocol/skills"
# Every file of a page is read for its digest.
PAGE = 20
# What every host that follows the extension can take; digests of more are not worth the reading.
MAX_FILES, MAX_BYTES = 512, 16 * 1024 * 1024
# As much as most files have: those are opened once, and the size of the others is known before they are read.
_GLANCE = 64 * 1024
# An edit is seen at once by whoever asks; nothing here is anybody's secret, but a token may have been needed.
_FRESHNESS = {"ttlMs": 0, "cacheScope": "private"}


class SkillParams(types.RequestParams):
    """Of `skills/get`."""

    uri: str


class Skills:
    def __init__(self, shelf: Shelf, looks: Looks) -> None:
        self._shelf, self._looks = shelf, looks

    async def list(self, ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        await self._looks.look()
        skills, cursor = page_of(self._shelf.catalog, params, PAGE, for_the_model)
        entries = await in_thread(_entries, self._shelf, [skill.name for skill in skills])
        result = {"resultType": "complete", "skills": entries, **_FRESHNESS}
        return {**result, "nextCursor": cursor} if cursor else result

    async def get(self, ctx: Context, params: SkillParams) -> dict[str, Any]:
        address = parse(params.uri)
        if address is None or address.path != SKILL_FILE or address.offset:
            raise MCPError(INVALID_PARAMS, f"No skill is served at {params.uri[:200]!r}")
        await self._looks.look()
        try:
            skill = await in_thread(lambda: entry_of(self._shelf, files.find(self._shelf, address.name)))
        except SkillError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        return {"resultType": "complete", "skill": skill, **_FRESHNESS}


def _entries(shelf: Shelf, names: list[str]) -> list[dict[str, Any]]:
    entries = []
    for name in names:
        with suppress(Exception):  # not published, gone meanwhile, or whatever a source of somebody's own may raise
            entries.append(entry_of(shelf, files.find(shelf, name)))
    return entries


def entry_of(shelf: Shelf, found: Candidate) -> dict[str, Any]:
    """A skill's entry: its frontmatter, and every file with its digest. Raises SkillError."""
    name = found.descriptor.name
    fault = _fault_of(name)
    if fault:
        raise InvalidSkillError(f"Skill {name!r} is not published: {fault.message}. As its author, {fault.fix}.")
    file, (_, *references) = files.skill_file(shelf, found), files_of(found.descriptor)
    resources = [_digest(name, SKILL_FILE, file.text.encode())]
    left = MAX_BYTES - resources[0]["size"]
    too_much = len(references) >= MAX_FILES
    for path in () if too_much else references:
        try:
            data = _whole(shelf, found, path, left)
        except SkillError:  # gone, or no plain file: it is not served either
            continue
        if data is None:
            too_much = True
            break
        left -= len(data)
        resources.append(_digest(name, path, data))
    # The extension's word for a skill whose digests are not published.
    manifest: Any = "dynamic" if too_much else resources
    return {"uri": uri_of(name, SKILL_FILE), "frontmatter": file.frontmatter, "resources": manifest}


def _whole(shelf: Shelf, found: Candidate, path: str, most: int) -> bytes | None:
    """The file; None for one that is longer than that, of which only the beginning is read. Raises SkillError."""
    page = files.read_bytes(shelf, found, path, 0, _GLANCE)
    if len(page.data) < page.size <= most:
        page = files.read_bytes(shelf, found, path, 0, most + 1)
    return page.data if len(page.data) == page.size <= most else None


def _fault_of(name: str) -> Diagnostic | None:
    """Why a skill cannot be published under its name. In a URI it stands where a host's does, which has no capitals
    and no spaces: a parser that knows this makes another name of it, or refuses the list it is in."""
    return next((fault for fault in check_name(name) if fault.severity == "error"), None)


def _digest(name: str, path: str, data: bytes) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {"uri": uri_of(name, path), "digest": digest, "size": len(data)}
