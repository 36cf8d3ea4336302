"""Completion of prompt arguments and of the variables in resource templates."""

from collections.abc import Sequence

from mcp import types

from skillshelf.catalog import Catalog
from skillshelf.descriptor import SkillDescriptor
from skillshelf.mcp._looks import in_thread
from skillshelf.mcp._pages import files_of
from skillshelf.mcp._prompts import argument_names
from skillshelf.mcp._resources import FILE_TEMPLATE, SKILL_TEMPLATE
from skillshelf.mcp._turns import Context
from skillshelf.shelf import Shelf
from skillshelf.slash import Names, rank

MOST = 100
"""What the protocol allows in one answer."""


class Completions:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._named: tuple[Catalog, list[str], Names] | None = None

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        given = (params.context and params.context.arguments) or {}
        values = await in_thread(self._values, params.ref, params.argument, given.get("name", ""))
        shown = values[:MOST]
        more = types.Completion(values=shown, total=len(values), has_more=len(values) > MOST)
        return types.CompleteResult(completion=more)

    def _values(
        self,
        ref: types.ResourceTemplateReference | types.PromptReference,
        argument: types.CompletionArgument,
        name: str,
    ) -> list[str]:
        if isinstance(ref, types.PromptReference):
            skill = self._shelf.catalog.get(ref.name)
            known = skill and skill.user_invocable and argument.name in argument_names(skill)
            return _paths(skill.references, argument.value) if known else []
        if ref.uri not in (FILE_TEMPLATE, SKILL_TEMPLATE):
            return []
        if argument.name == "name":
            return self._skills(argument.value)
        skill = self._shelf.catalog.get(name)
        if argument.name != "path" or skill is None or skill.disclosure == "manual":
            return []
        return _paths(files_of(skill), argument.value)

    def _skills(self, typed: str) -> list[str]:
        catalog = self._shelf.catalog
        if self._named is None or self._named[0] is not catalog:
            shown: list[SkillDescriptor] = [skill for skill in catalog.values() if skill.disclosure != "manual"]
            names = [skill.name for skill in shown]
            self._named = catalog, names, Names(names, names, [skill.description for skill in shown])
        _, names, prepared = self._named
        return [names[at] for at in rank(typed, prepared, len(names))]


def _paths(paths: Sequence[str], typed: str) -> list[str]:
    names = Names([path.rpartition("/")[2] for path in paths], paths, [""] * len(paths))
    return [paths[at] for at in rank(typed, names, len(paths))]
