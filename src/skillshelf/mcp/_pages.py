"""Long lists in pages. A cursor is what came last, so that a reload between two pages does no harm."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from mcp import types

from skillshelf.catalog import Catalog
from skillshelf.descriptor import SkillDescriptor
from skillshelf.mcp._uris import SKILL_FILE

Page = tuple[list[SkillDescriptor], str | None]


def for_the_model(skill: SkillDescriptor) -> bool:
    return skill.disclosure != "manual"


def for_the_person(skill: SkillDescriptor) -> bool:
    return skill.user_invocable


def page_of(
    catalog: Catalog,
    params: types.PaginatedRequestParams | None,
    size: int,
    wanted: Callable[[SkillDescriptor], bool],
) -> Page:
    """The wanted skills from a cursor on, and the next cursor."""
    names = list(catalog)
    page: list[SkillDescriptor] = []
    for name in names[bisect_right(names, (params and params.cursor) or "") :]:
        skill = catalog[name]
        if wanted(skill):
            if len(page) == size:
                return page, page[-1].name
            page.append(skill)
    return page, None


def files_page(
    catalog: Catalog, params: types.PaginatedRequestParams | None, size: int
) -> tuple[list[tuple[SkillDescriptor, str]], str | None]:
    """The files of the skills for the model from a cursor on, and the next cursor: `<name>/<path>`, for no name has
    a slash in it."""
    names = list(catalog)
    name, _, last = ((params and params.cursor) or "").partition("/")
    page: list[tuple[SkillDescriptor, str]] = []
    for at in range(bisect_left(names, name), len(names)):
        skill = catalog[names[at]]
        if not for_the_model(skill):
            continue
        paths = files_of(skill)
        for path in paths[place_after(paths, last) if skill.name == name else 0 :]:
            if len(page) == size:
                return page, f"{page[-1][0].name}/{page[-1][1]}"
            page.append((skill, path))
    return page, None


def files_of(skill: SkillDescriptor) -> list[str]:
    """SKILL.md first, then the references in order; each once, though an author may list SKILL.md as well."""
    return [SKILL_FILE, *sorted({*skill.references} - {SKILL_FILE})]


def place_after(paths: Sequence[str], last: str) -> int:
    """Where to go on in the files of a skill after this one, which may be gone by now."""
    return bisect_right(paths, last, lo=1) if last != SKILL_FILE else 1
