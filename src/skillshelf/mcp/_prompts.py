"""Each skill that a person may invoke as a prompt, which gives the Apply Skill message."""

from collections.abc import Mapping

from mcp import MCPError, types
from mcp.types import INVALID_PARAMS

from skillshelf.descriptor import SkillDescriptor
from skillshelf.errors import PolicyError, SkillError
from skillshelf.mcp._keys import Keys
from skillshelf.mcp._looks import Looks, in_thread
from skillshelf.mcp._pages import for_the_person, page_of
from skillshelf.mcp._pending import PendingSkills, explain_error
from skillshelf.mcp._turns import Context, stands_alone
from skillshelf.shelf import Shelf
from skillshelf.slash import apply_message
from skillshelf.turn import Turn

PAGE = 100
WHOLE = "arguments"
"""The one argument of a skill that names none."""


class Prompts:
    def __init__(self, shelf: Shelf, looks: Looks, keys: Keys, pending: PendingSkills | None) -> None:
        self._shelf = shelf
        self._looks = looks
        self._keys = keys
        self._pending = pending

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        await self._looks.look()
        skills, cursor = page_of(self._shelf.catalog, params, PAGE, for_the_person)
        return types.ListPromptsResult(prompts=[_prompt(skill) for skill in skills], next_cursor=cursor)

    async def get(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        await self._looks.look()
        client, alone = ctx.lifespan_context.clients.of(ctx), stands_alone(ctx)
        try:
            async with client.reading():
                turn = client.begin().turn  # the person has spoken
                text, about = await in_thread(self._message, turn, params.name, params.arguments or {}, alone)
        except SkillError as error:
            raise MCPError(INVALID_PARAMS, explain_error(error, self._pending)) from None
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=about, messages=[message])

    def _message(self, turn: Turn, name: str, values: Mapping[str, str], alone: bool) -> tuple[str, str]:
        """`alone`: what the client asks for later comes without a sign that it is the same."""
        skill = self._shelf.catalog.find(name).descriptor
        if not skill.user_invocable:
            raise PolicyError(f"Skill {skill.name!r} is for the model alone: its author set `user-invocable: false`.")
        arguments = joined(skill, values)
        reach = self._keys.with_key(name) if alone and skill.disclosure == "manual" else name
        return apply_message(skill, turn.load(name, by="user").text, arguments, reach=reach), skill.description


def argument_names(skill: SkillDescriptor) -> tuple[str, ...]:
    return skill.arguments or (WHOLE,)


def joined(skill: SkillDescriptor, values: Mapping[str, str]) -> str:
    """The arguments in one line, as a person would type them after the skill's name. Raises PolicyError."""
    names = argument_names(skill)
    for name in values:
        if name not in names:
            raise PolicyError(f"Skill {skill.name!r} takes no argument {name[:200]!r}. It takes: {', '.join(names)}.")
    if not skill.arguments:
        return values.get(WHOLE, "")
    given = [values.get(name, "") for name in names]
    while given and not given[-1]:
        given.pop()
    return " ".join(map(_word, given))


def _word(value: str) -> str:
    if value and not any(char.isspace() or char in "\"'\\" for char in value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _prompt(skill: SkillDescriptor) -> types.Prompt:
    hint = skill.argument_hint or None
    arguments = [types.PromptArgument(name=name, description=hint, required=False) for name in argument_names(skill)]
    return types.Prompt(name=skill.name, description=skill.description, arguments=arguments)
