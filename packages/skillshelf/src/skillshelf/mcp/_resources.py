"""Each skill and each of its references as a resource; the list has the main references only."""

import base64
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from mcp import MCPError, types
from mcp.types import INVALID_PARAMS
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from skillshelf.errors import ReferenceNotAllowedError, ReferenceNotFoundError, SkillError, SkillNotFoundError
from skillshelf.listing import Listing
from skillshelf.mcp._limits import MAX_AGE, MAX_ECHO, MAX_ECHO_IN_DATA, RESOURCES_PER_PAGE
from skillshelf.mcp._refresher import RequestContext, ShelfRefresher, run_in_thread
from skillshelf.mcp._skill_files import (
    LISTING_URI,
    SKILL_FILE,
    FileAddress,
    find_skill,
    format_uri,
    list_files,
    paginate_files,
    parse_uri,
    read_served_file,
)
from skillshelf.shelf import Shelf
from skillshelf.shelf.pages import guess_media_type
from skillshelf.skills import SkillDescriptor

FILE_TEMPLATE = "skill://{name}/{+path}"
SKILL_TEMPLATE = "skill://{name}/SKILL.md"
NEXT_URI_KEY = "skillshelf/nextUri"
SIZE_KEY = "skillshelf/size"
FOLDER_TYPE = "inode/directory"
FRESHNESS = {"ttlMs": 0, "cacheScope": "private"}
"""In every answer of the Skills extension: the next request sees an edit, and a token may have been needed."""
RESOURCE_NOT_FOUND = -32002
"""The code for a resource that is not served, up to revision 2025-11-25; later ones use -32602."""
_NOT_FOUND_ERRORS = (SkillNotFoundError, ReferenceNotAllowedError, ReferenceNotFoundError)


class FolderParams(types.PaginatedRequestParams):
    """The parameters of `resources/directory/read`."""

    uri: str


class Resources:
    """Handles `resources/list`, `resources/read`, their templates, and `resources/directory/read`."""

    def __init__(
        self,
        shelf: Shelf,
        refresher: ShelfRefresher,
        make_listing: Callable[[], Listing],
        page_size: int = RESOURCES_PER_PAGE,
    ) -> None:
        self._shelf = shelf
        self._make_listing = make_listing
        self._refresher = refresher
        self._page_size = page_size

    async def list(self, ctx: RequestContext, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        await self._refresher.refresh()
        resources = []
        is_first_page = params is None or not params.cursor
        if is_first_page:
            resources.append(_describe_listing())

        files, cursor = paginate_files(self._shelf.catalog, params, self._page_size)
        resources += [_describe_file(skill, path) for skill, path in files]
        return types.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def list_templates(
        self, ctx: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        skill = types.ResourceTemplate(
            uri_template=SKILL_TEMPLATE,
            name="skill",
            description="The instructions of a skill.",
            mime_type="text/markdown",
        )
        file = types.ResourceTemplate(
            uri_template=FILE_TEMPLATE,
            name="file",
            description="A file of a skill: its SKILL.md, or one of its references.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[skill, file])

    async def read(self, ctx: RequestContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if params.uri == LISTING_URI:
            return await self._read_listing()

        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        not_found = INVALID_PARAMS if is_modern else RESOURCE_NOT_FOUND
        data = {"uri": params.uri[:MAX_ECHO_IN_DATA]}
        address = parse_uri(params.uri)
        if address is None:
            raise MCPError(not_found, _explain_unserved(params.uri), data)

        await self._refresher.refresh(MAX_AGE)
        try:
            contents = await run_in_thread(_read_contents, self._shelf, params.uri, address)
        except SkillError as error:
            code = not_found if isinstance(error, _NOT_FOUND_ERRORS) else INVALID_PARAMS
            raise MCPError(code, str(error), data) from None
        return types.ReadResourceResult(contents=[contents])

    async def _read_listing(self) -> types.ReadResourceResult:
        await self._refresher.refresh()
        listing = await run_in_thread(self._make_listing)
        contents = types.TextResourceContents(uri=LISTING_URI, mime_type="text/markdown", text=listing.text)
        return types.ReadResourceResult(contents=[contents])

    async def read_folder(self, ctx: RequestContext, params: FolderParams) -> dict[str, Any]:
        """Answer `resources/directory/read` with the files and folders directly in a folder of a skill."""
        address = parse_uri(params.uri)
        if address is None:
            raise MCPError(INVALID_PARAMS, _explain_unserved(params.uri))

        await self._refresher.refresh()
        try:
            candidate = await run_in_thread(find_skill, self._shelf, address.name)
        except SkillError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None

        children = _list_children(candidate.descriptor, address.path.removesuffix("/"))
        if not children:
            raise MCPError(INVALID_PARAMS, f"{params.uri[:MAX_ECHO]} is not a directory resource")

        paths = sorted(children)
        start = bisect_right(paths, params.cursor or "")
        end = start + self._page_size
        resources = [children[path] for path in paths[start:end]]
        result: dict[str, Any] = {
            "resultType": "complete",
            "resources": [each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in resources],
            **FRESHNESS,
        }
        if end < len(paths):
            result["nextCursor"] = paths[end - 1]
        return result


def _explain_unserved(uri: str) -> str:
    return f"No skill is served at {uri[:MAX_ECHO]!r}: addresses are {FILE_TEMPLATE}"


def _describe_listing() -> types.Resource:
    return types.Resource(
        uri=LISTING_URI,
        name="listing",
        description="The Available Skills, for the system prompt: a host reads it before each model call.",
        mime_type="text/markdown",
    )


def _describe_file(skill: SkillDescriptor, path: str) -> types.Resource:
    uri = format_uri(skill.name, path)
    media_type = guess_media_type(path)
    if path == SKILL_FILE:
        return types.Resource(uri=uri, name=skill.name, description=skill.description, mime_type=media_type)
    return types.Resource(uri=uri, name=path.rpartition("/")[2], mime_type=media_type)


def _describe_folder(skill: SkillDescriptor, path: str) -> types.Resource:
    return types.Resource(uri=format_uri(skill.name, path), name=path.rpartition("/")[2], mime_type=FOLDER_TYPE)


def _list_children(skill: SkillDescriptor, folder: str) -> dict[str, types.Resource]:
    """Return the files and folders directly in a folder of a skill, by path."""
    prefix = f"{folder}/" if folder else ""
    children = {}
    for path in list_files(skill):
        if not path.startswith(prefix):
            continue
        name, slash, _ = path.removeprefix(prefix).partition("/")
        if slash:
            children[prefix + name] = _describe_folder(skill, prefix + name)
        else:
            children[path] = _describe_file(skill, path)
    return children


def _read_contents(
    shelf: Shelf, uri: str, address: FileAddress
) -> types.TextResourceContents | types.BlobResourceContents:
    """Return a file's contents: as text if its bytes are exactly that text in UTF-8, otherwise as a blob."""
    file = read_served_file(shelf, address)
    meta: dict[str, Any] | None = None
    if file.next_offset is not None:
        next_uri = format_uri(address.name, address.path, file.next_offset)
        meta = {NEXT_URI_KEY: next_uri, SIZE_KEY: file.size}

    if file.text is not None:
        return types.TextResourceContents(uri=uri, mime_type=file.media_type, text=file.text, _meta=meta)
    blob = base64.b64encode(file.data).decode()
    return types.BlobResourceContents(uri=uri, mime_type=file.media_type, blob=blob, _meta=meta)
