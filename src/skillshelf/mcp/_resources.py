"""Each skill and each of its references as a resource."""

import base64
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from mcp import MCPError, types
from mcp.types import INVALID_PARAMS
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from skillshelf.descriptor import SkillDescriptor
from skillshelf.errors import ReferenceNotAllowedError, ReferenceNotFoundError, SkillError, SkillNotFoundError
from skillshelf.mcp import _files as files
from skillshelf.mcp._looks import LOOK_SECONDS, Looks, in_thread
from skillshelf.mcp._pages import files_of, files_page
from skillshelf.mcp._turns import Context
from skillshelf.mcp._uris import LISTING, SKILL_FILE, Address, parse, uri_of
from skillshelf.pages import guess_media_type
from skillshelf.shelf import Shelf

PAGE = 500
FILE_TEMPLATE = "skill://{name}/{+path}"
SKILL_TEMPLATE = "skill://{name}/SKILL.md"
NEXT_URI, SIZE = "skillshelf/nextUri", "skillshelf/size"
FOLDER = "inode/directory"
FRESHNESS = {"ttlMs": 0, "cacheScope": "private"}
"""In every answer of the Skills extension: an edit is seen by the next request, and a token may have been needed."""
RESOURCE_NOT_FOUND = -32002
"""The code for a resource that is not served, up to revision 2025-11-25; later ones use -32602."""
_MAX_ECHO = 2_000
"""Characters of an address that an error repeats."""
_NOT_FOUND = (SkillNotFoundError, ReferenceNotAllowedError, ReferenceNotFoundError)


class FolderParams(types.PaginatedRequestParams):
    """Of `resources/directory/read`."""

    uri: str


class Resources:
    def __init__(self, shelf: Shelf, looks: Looks) -> None:
        self._shelf, self._looks = shelf, looks

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        await self._looks.look()
        page, cursor = files_page(self._shelf.catalog, params, PAGE)
        found = [] if params and params.cursor else [_listing()]
        found += [_resource(skill, path) for skill, path in page]
        return types.ListResourcesResult(resources=found, next_cursor=cursor)

    async def templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=SKILL_TEMPLATE,
                    name="skill",
                    description="The instructions of a skill.",
                    mime_type="text/markdown",
                ),
                types.ResourceTemplate(
                    uri_template=FILE_TEMPLATE,
                    name="file",
                    description="A file of a skill: its SKILL.md, or one of its references.",
                ),
            ]
        )

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if params.uri == LISTING:
            await self._looks.look()
            text = await in_thread(lambda: self._shelf.listing().text)
            listing = types.TextResourceContents(uri=LISTING, mime_type="text/markdown", text=text)
            return types.ReadResourceResult(contents=[listing])
        data = {"uri": params.uri[:_MAX_ECHO]}
        not_found = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else RESOURCE_NOT_FOUND
        address = parse(params.uri)
        if address is None:
            raise MCPError(not_found, _not_served(params.uri), data)
        await self._looks.look(LOOK_SECONDS)  # as a tool call does: the card that rules the read may be of yesterday
        try:
            contents = await in_thread(_read, self._shelf, params.uri, address)
        except SkillError as error:
            code = not_found if isinstance(error, _NOT_FOUND) else INVALID_PARAMS
            raise MCPError(code, str(error), data) from None
        return types.ReadResourceResult(contents=[contents])

    async def folder(self, ctx: Context, params: FolderParams) -> dict[str, Any]:
        """Answer `resources/directory/read` with the files and folders directly in a folder of a skill."""
        address = parse(params.uri)
        if address is None:
            raise MCPError(INVALID_PARAMS, _not_served(params.uri))
        await self._looks.look()
        try:
            skill = (await in_thread(files.find, self._shelf, address.name)).descriptor
        except SkillError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        folder = address.path.removesuffix("/")
        children = dict(_children(skill, f"{folder}/" if folder else ""))
        if not children:
            raise MCPError(INVALID_PARAMS, f"{params.uri[:200]} is not a directory resource")
        paths = sorted(children)
        start = bisect_right(paths, params.cursor or "")
        page = paths[start : start + PAGE]
        found = [_resource(skill, path) if children[path] else _folder(skill, path) for path in page]
        dumped = [one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in found]
        result: dict[str, Any] = {"resultType": "complete", "resources": dumped, **FRESHNESS}
        return {**result, "nextCursor": page[-1]} if start + PAGE < len(paths) else result


def _not_served(uri: str) -> str:
    return f"No skill is served at {uri[:200]!r}: addresses are {FILE_TEMPLATE}"


def _listing() -> types.Resource:
    about = "The Available Skills, for the system prompt: a host reads it before each model call."
    return types.Resource(uri=LISTING, name="listing", description=about, mime_type="text/markdown")


def _resource(skill: SkillDescriptor, path: str) -> types.Resource:
    uri = uri_of(skill.name, path)
    if path == SKILL_FILE:
        return types.Resource(uri=uri, name=skill.name, description=skill.description, mime_type=guess_media_type(path))
    return types.Resource(uri=uri, name=path.rpartition("/")[2], mime_type=guess_media_type(path))


def _folder(skill: SkillDescriptor, path: str) -> types.Resource:
    return types.Resource(uri=uri_of(skill.name, path), name=path.rpartition("/")[2], mime_type=FOLDER)


def _children(skill: SkillDescriptor, below: str) -> Iterator[tuple[str, bool]]:
    """The paths directly in a folder, each with whether it is a file."""
    for path in files_of(skill):
        if path.startswith(below):
            name, slash, _ = path.removeprefix(below).partition("/")
            yield below + name, not slash


def _read(shelf: Shelf, uri: str, address: Address) -> types.TextResourceContents | types.BlobResourceContents:
    """Return a file's contents: as text if its bytes are those of the text in UTF-8, and else as a blob."""
    part = files.read_part(shelf, address)
    meta: dict[str, Any] | None = None
    if part.next_offset is not None:
        meta = {NEXT_URI: uri_of(address.name, address.path, part.next_offset), SIZE: part.size}
    if part.text is not None:
        return types.TextResourceContents(uri=uri, mime_type=part.media_type, text=part.text, _meta=meta)
    blob = base64.b64encode(part.data).decode()
    return types.BlobResourceContents(uri=uri, mime_type=part.media_type, blob=blob, _meta=meta)
