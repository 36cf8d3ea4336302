"""Completion of prompt arguments and of the variables in resource templates."""

from collections.abc import Sequence

from mcp import types

from skillshelf.mcp._pagination import is_for_model
from skillshelf.mcp._prompts import argument_names
from skillshelf.mcp._refresher import RequestContext, run_in_thread
from skillshelf.mcp._resources import FILE_TEMPLATE, SKILL_TEMPLATE
from skillshelf.mcp._skill_files import list_files
from skillshelf.shelf import Shelf
from skillshelf.slash import Names, rank

MAX_VALUES = 100
"""Values that the protocol allows in one answer."""


class Completions:
    """Handles `completion/complete`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def complete(self, ctx: RequestContext, params: types.CompleteRequestParams) -> types.CompleteResult:
        values = await run_in_thread(self._find_values, params)
        completion = types.Completion(
            values=values[:MAX_VALUES],
            total=len(values),
            has_more=len(values) > MAX_VALUES,
        )
        return types.CompleteResult(completion=completion)

    def _find_values(self, params: types.CompleteRequestParams) -> list[str]:
        if isinstance(params.ref, types.PromptReference):
            return self._complete_prompt(params.ref.name, params.argument)
        if params.ref.uri not in (FILE_TEMPLATE, SKILL_TEMPLATE):
            return []
        if params.argument.name == "name":
            return self._complete_skill_name(params.argument.value)
        if params.argument.name == "path":
            other_arguments = (params.context and params.context.arguments) or {}
            return self._complete_path(other_arguments.get("name", ""), params.argument.value)
        return []

    def _complete_prompt(self, name: str, argument: types.CompletionArgument) -> list[str]:
        skill = self._shelf.catalog.get(name)
        if skill is None or not skill.user_invocable or argument.name not in argument_names(skill):
            return []
        return _rank_paths(skill.references, argument.value)

    def _complete_skill_name(self, typed: str) -> list[str]:
        skills = [skill for skill in self._shelf.catalog.values() if is_for_model(skill)]
        names = [skill.name for skill in skills]
        descriptions = [skill.description for skill in skills]
        return [names[index] for index in rank(typed, Names(names, names, descriptions), len(names))]

    def _complete_path(self, name: str, typed: str) -> list[str]:
        skill = self._shelf.catalog.get(name)
        if skill is None or not is_for_model(skill):
            return []
        return _rank_paths(list_files(skill), typed)


def _rank_paths(paths: Sequence[str], typed: str) -> list[str]:
    file_names = [path.rpartition("/")[2] for path in paths]
    names = Names(file_names, paths, [""] * len(paths))
    return [paths[index] for index in rank(typed, names, len(paths))]
