"""`skills/list` and `skills/get` of the Skills extension (SEP-2640): each skill with the digests of its files."""

import hashlib
import logging
from typing import Any

from mcp import MCPError, types
from mcp.types import INVALID_PARAMS

from skillshelf.catalog import Candidate
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import InvalidSkillError, SkillError, SkillNotFoundError
from skillshelf.lint import check_name, find_entry_faults
from skillshelf.mcp import _files as files
from skillshelf.mcp._files import MAX_WHOLE_FILE, SkillFile
from skillshelf.mcp._looks import Looks, in_thread
from skillshelf.mcp._pages import files_of, for_the_model, page_of
from skillshelf.mcp._resources import FRESHNESS
from skillshelf.mcp._turns import Context
from skillshelf.mcp._uris import SKILL_FILE, parse, uri_of
from skillshelf.shelf import Shelf

EXTENSION = "io.modelcontextprotocol/skills"
# Every file of a page is read for its digest.
PAGE = 20
MAX_FILES = 512
"""Files of a skill whose digests are published. Every host that follows the extension takes as many."""
MAX_BYTES = 16 * 1024 * 1024
"""Bytes of a skill's files together whose digests are published. Every host takes as many."""
# As much as most files have: those are opened once, and the size of the others is known before they are read.
_GLANCE = 64 * 1024
_NAMED = 10
"""Withheld skills that one line of the log names."""

log = logging.getLogger(__name__)


class SkillParams(types.RequestParams):
    """Of `skills/get`."""

    uri: str


class Skills:
    """Answers the requests of the extension that are about whole skills."""

    def __init__(self, shelf: Shelf, looks: Looks) -> None:
        self._shelf = shelf
        self._looks = looks
        self._logged: dict[str, str] = {}
        """Why a skill was withheld, by its name, as the log has it."""

    async def list(self, ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        await self._looks.look()
        skills, cursor = page_of(self._shelf.catalog, params, PAGE, for_the_model)
        entries, withheld = await in_thread(_make_entries, self._shelf, [skill.name for skill in skills])
        self._log_withheld(withheld)
        result = {"resultType": "complete", "skills": entries, **FRESHNESS}
        return {**result, "nextCursor": cursor} if cursor else result

    async def get(self, ctx: Context, params: SkillParams) -> dict[str, Any]:
        address = parse(params.uri)
        if address is None or address.path != SKILL_FILE or address.offset:
            raise MCPError(INVALID_PARAMS, f"No skill is served at {params.uri[:200]!r}")
        await self._looks.look()
        try:
            entry = await in_thread(_get_entry, self._shelf, address.name)
        except SkillError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        return {"resultType": "complete", "skill": entry, **FRESHNESS}

    def _log_withheld(self, withheld: dict[str, str]) -> None:
        """Log once for each skill why it is not in the list: a host asks again and again."""
        new = {name: reason for name, reason in withheld.items() if self._logged.get(name) != reason}
        if not new:
            return
        self._logged |= new
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(new.items())[:_NAMED])
        more = f"; and {len(new) - _NAMED} more" if len(new) > _NAMED else ""
        log.warning(
            "Skills left out of skills/list: %d. A host may refuse the whole list for one of them (%s%s). "
            "`skillshelf check` says what to change. The tools and resources/read serve them all the same.",
            len(new),
            reasons,
            more,
        )


def _make_entries(shelf: Shelf, names: list[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the entries of these skills, and for each skill that has none the reason."""
    entries = []
    withheld = {}
    for name in names:
        try:
            found = files.find(shelf, name)
            file = files.skill_file(shelf, found)
            reason = _find_refusal(found, file)
            if reason:
                withheld[name] = reason
            else:
                entries.append(_make_entry(shelf, found, file))
        except SkillNotFoundError:  # gone since the page was made
            continue
        except Exception as error:  # a user's own source may raise anything
            withheld[name] = f"it cannot be read ({type(error).__name__})"
    return entries, withheld


def _find_refusal(found: Candidate, file: SkillFile) -> str:
    """Return why a strict host would refuse the skill's entry, and with it the list; nothing if it would not."""
    faults = find_entry_faults(file.frontmatter)
    if faults:
        return faults[0].problem
    odd = next((path for path in files_of(found.descriptor) if not _can_be_addressed(path)), None)
    return f"a host cannot address its file {odd!r}" if odd is not None else ""


def _can_be_addressed(path: str) -> bool:
    """Return False for a path that a URI parser changes or refuses: a user's own source may name a file so."""
    return "\0" not in path and not {"", ".", ".."}.intersection(path.split("/"))


def _get_entry(shelf: Shelf, name: str) -> dict[str, Any]:
    """Return a skill's entry, listed or not: the host that asked for it decides what it takes. Raises SkillError."""
    found = files.find(shelf, name)
    fault = _fault_of(name)
    if fault:
        raise InvalidSkillError(f"Skill {name!r} is not published: {fault.message}. As its author, {fault.fix}.")
    return _make_entry(shelf, found, files.skill_file(shelf, found))


def _make_entry(shelf: Shelf, found: Candidate, file: SkillFile) -> dict[str, Any]:
    """Return a skill's entry: its frontmatter, and every file with its digest. Raises SkillError."""
    name = found.descriptor.name
    resources: Any = _digest_files(shelf, found, file)
    if resources is None:
        resources = "dynamic"  # the extension's word for a skill whose digests are not published
    return {"uri": uri_of(name, SKILL_FILE), "frontmatter": file.frontmatter, "resources": resources}


def _digest_files(shelf: Shelf, found: Candidate, file: SkillFile) -> list[dict[str, Any]] | None:
    """Return every file with its digest; None if they are too many, too much, or one is too long to be served whole."""
    name = found.descriptor.name
    _, *references = files_of(found.descriptor)
    if len(references) >= MAX_FILES:
        return None
    resources = [_digest(name, SKILL_FILE, file.data)]
    left = MAX_BYTES - len(file.data)
    for path in references:
        try:
            data = _read_whole(shelf, found, path, min(left, MAX_WHOLE_FILE))
        except SkillError:  # gone, or not a plain file: it is not served either
            continue
        if data is None:
            return None
        left -= len(data)
        resources.append(_digest(name, path, data))
    return resources


def _read_whole(shelf: Shelf, found: Candidate, path: str, limit: int) -> bytes | None:
    """Return the file; None if it is longer than the limit, and then only its beginning is read. Raises SkillError."""
    page = files.read_bytes(shelf, found, path, 0, _GLANCE)
    if len(page.data) < page.size <= limit:
        page = files.read_bytes(shelf, found, path, 0, limit + 1)
    return page.data if len(page.data) == page.size <= limit else None


def _fault_of(name: str) -> Diagnostic | None:
    """Why a skill cannot be published under its name. In a URI it stands where a host's does, which has no capitals
    and no spaces: a parser that knows this makes another name of it, or refuses the list it is in."""
    return next((fault for fault in check_name(name) if fault.severity == "error"), None)


def _digest(name: str, path: str, data: bytes) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {"uri": uri_of(name, path), "digest": digest, "size": len(data)}
