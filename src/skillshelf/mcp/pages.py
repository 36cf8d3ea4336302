"""Long lists in pages. A cursor is the name that came last, so that a reload between two pages does no harm."""

from bisect import bisect_right
from collections.abc import Callable

from mcp import types

from skillshelf.catalog import Catalog
from skillshelf.descriptor import SkillDescriptor

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
