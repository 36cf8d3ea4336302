"""Long lists in pages. A cursor names the last item, so a reload between two pages does no harm."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from mcp import types

from skillshelf.catalog import Catalog
from skillshelf.descriptor import SkillDescriptor
from skillshelf.mcp._skill_files import SKILL_FILE, list_files


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
    """Return the files of the model's skills after the request's cursor, and the next cursor if there are more.

    A cursor is `<name>/<path>`; no name has a slash.
    """
    names = list(catalog)
    last_name, _, last_path = _cursor_of(params).partition("/")
    page: list[tuple[SkillDescriptor, str]] = []
    for name in names[bisect_left(names, last_name) :]:
        skill = catalog[name]
        if not is_for_model(skill):
            continue

        paths = list_files(skill)
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
