"""`skills/list` and `skills/get` of the Skills extension (SEP-2640): each skill with the digests of its files."""

import hashlib
import logging
from typing import Any

from mcp import MCPError, types
from mcp.types import INVALID_PARAMS

from skillshelf.errors import InvalidSkillError, SkillError, SkillNotFoundError
from skillshelf.mcp._limits import MAX_WHOLE_FILE, SKILLS_PER_PAGE
from skillshelf.mcp._refresher import RequestContext, ShelfRefresher, run_in_thread
from skillshelf.mcp._resources import FRESHNESS
from skillshelf.mcp._skill_files import (
    SKILL_FILE,
    SkillMarkdown,
    find_skill,
    format_uri,
    is_for_model,
    list_files,
    paginate_skills,
    parse_uri,
    read_skill_markdown,
    read_skill_page,
)
from skillshelf.shelf import Shelf
from skillshelf.skills import Candidate, Diagnostic
from skillshelf.sources import MAX_SKILL_BYTES, MAX_SKILL_FILES

EXTENSION = "io.modelcontextprotocol/skills"
_FIRST_READ = 64 * 1024
"""Bytes of the first read. Most files are not longer and are opened once; of the others the size is known then."""
_MAX_LOGGED_NAMES = 10
"""Withheld skills that one line of the log names."""

logger = logging.getLogger(__name__)


class SkillParams(types.RequestParams):
    """The parameters of `skills/get`."""

    uri: str


class SkillsExtension:
    """Answers the requests of the extension that are about whole skills."""

    def __init__(self, shelf: Shelf, refresher: ShelfRefresher) -> None:
        self._shelf = shelf
        self._refresher = refresher
        self._logged: dict[str, str] = {}
        """The reason that the log gives for each withheld skill, by name."""

    async def list(self, ctx: RequestContext, params: types.PaginatedRequestParams) -> dict[str, Any]:
        await self._refresher.refresh()
        skills, cursor = paginate_skills(self._shelf.catalog, params, SKILLS_PER_PAGE, is_for_model)
        entries, withheld = await run_in_thread(_make_entries, self._shelf, [skill.name for skill in skills])
        self._log_withheld(withheld)
        result: dict[str, Any] = {"resultType": "complete", "skills": entries, **FRESHNESS}
        if cursor:
            result["nextCursor"] = cursor
        return result

    async def get(self, ctx: RequestContext, params: SkillParams) -> dict[str, Any]:
        address = parse_uri(params.uri)
        if address is None or address.path != SKILL_FILE or address.offset:
            raise MCPError(INVALID_PARAMS, f"No skill is served at {params.uri[:200]!r}")
        await self._refresher.refresh()
        try:
            entry = await run_in_thread(_get_entry, self._shelf, address.name)
        except SkillError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        return {"resultType": "complete", "skill": entry, **FRESHNESS}

    def _log_withheld(self, withheld: dict[str, str]) -> None:
        """Log once for each skill why it is not in the list: a host asks again and again."""
        new = {name: reason for name, reason in withheld.items() if self._logged.get(name) != reason}
        if not new:
            return
        self._logged |= new
        reasons = [f"{name}: {reason}" for name, reason in new.items()]
        shown = "; ".join(reasons[:_MAX_LOGGED_NAMES])
        if len(reasons) > _MAX_LOGGED_NAMES:
            shown += f"; and {len(reasons) - _MAX_LOGGED_NAMES} more"
        logger.warning(
            "Skills left out of skills/list: %d. A host may refuse the whole list for one of them (%s). "
            "`skillshelf check` says what to change. The tools and resources/read serve them all the same.",
            len(new),
            shown,
        )


def _make_entries(shelf: Shelf, names: list[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the entries of these skills, and for each skill that has none the reason."""
    entries = []
    withheld = {}
    for name in names:
        try:
            candidate = find_skill(shelf, name)
            markdown = read_skill_markdown(shelf, candidate)
            reason = _find_refusal(candidate, markdown)
            if reason:
                withheld[name] = reason
            else:
                entries.append(_make_entry(shelf, candidate, markdown))
        except SkillNotFoundError:  # gone since the page was made
            continue
        except Exception as error:  # a user's own source may raise anything
            withheld[name] = f"it cannot be read ({type(error).__name__})"
    return entries, withheld


def _find_refusal(candidate: Candidate, markdown: SkillMarkdown) -> str:
    """Return why a strict host would refuse the skill's entry, and with it the whole list. Empty if it would not."""
    from skillshelf.lint import find_entry_faults  # takes 16 ms, which hosts without this extension need not wait for

    faults = find_entry_faults(markdown.frontmatter)
    if faults:
        return faults[0].problem
    for path in list_files(candidate.descriptor):
        if not _can_be_addressed(path):
            return f"a host cannot address its file {path!r}"
    return ""


def _can_be_addressed(path: str) -> bool:
    """Return False for a path that a URI parser changes or refuses: a user's own source may name a file so."""
    return "\0" not in path and not {"", ".", ".."}.intersection(path.split("/"))


def _get_entry(shelf: Shelf, name: str) -> dict[str, Any]:
    """Return a skill's entry, listed or not: the host that asked for it decides what it takes. Raises SkillError."""
    candidate = find_skill(shelf, name)
    fault = _find_name_fault(name)
    if fault:
        raise InvalidSkillError(f"Skill {name!r} is not published: {fault.message}. As its author, {fault.fix}.")
    return _make_entry(shelf, candidate, read_skill_markdown(shelf, candidate))


def _make_entry(shelf: Shelf, candidate: Candidate, markdown: SkillMarkdown) -> dict[str, Any]:
    """Return a skill's entry: its frontmatter, and every file with its digest. Raises SkillError."""
    name = candidate.descriptor.name
    resources: Any = _digest_files(shelf, candidate, markdown)
    if resources is None:
        resources = "dynamic"  # the extension's word for a skill whose digests are not published
    return {"uri": format_uri(name, SKILL_FILE), "frontmatter": markdown.frontmatter, "resources": resources}


def _digest_files(shelf: Shelf, candidate: Candidate, markdown: SkillMarkdown) -> list[dict[str, Any]] | None:
    """Return every file with its digest, or None if they are too many or too long to be served whole."""
    name = candidate.descriptor.name
    _, *references = list_files(candidate.descriptor)
    if len(references) >= MAX_SKILL_FILES:
        return None
    resources = [_digest(name, SKILL_FILE, markdown.data)]
    room = MAX_SKILL_BYTES - len(markdown.data)
    for path in references:
        try:
            data = _read_whole(shelf, candidate, path, min(room, MAX_WHOLE_FILE))
        except SkillError:  # gone, or not a plain file: it is not served either
            continue
        if data is None:
            return None
        room -= len(data)
        resources.append(_digest(name, path, data))
    return resources


def _read_whole(shelf: Shelf, candidate: Candidate, path: str, limit: int) -> bytes | None:
    """Return the file, or None if it is longer than the limit: then only its beginning is read. Raises SkillError."""
    page = read_skill_page(shelf, candidate, path, 0, _FIRST_READ)
    if len(page.data) < page.size <= limit:
        page = read_skill_page(shelf, candidate, path, 0, limit + 1)
    is_whole = len(page.data) == page.size
    return page.data if is_whole and page.size <= limit else None


def _find_name_fault(name: str) -> Diagnostic | None:
    """Return why a skill cannot be published under its name, or None.

    In a URI the name takes the place of a host name, which has no capitals and no spaces. A strict parser changes such
    a name or refuses the list it is in.
    """
    from skillshelf.lint import check_name

    for fault in check_name(name):
        if fault.severity == "error":
            return fault
    return None


def _digest(name: str, path: str, data: bytes) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {"uri": format_uri(name, path), "digest": digest, "size": len(data)}
