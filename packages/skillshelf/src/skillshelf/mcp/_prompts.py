"""Each skill that the user may invoke as a prompt, and completion of what a client types."""

import hmac
import secrets
from collections.abc import Mapping, Sequence

from mcp import MCPError, types
from mcp.types import INVALID_PARAMS

from skillshelf.errors import PolicyError, SkillError, SkillNotFoundError
from skillshelf.mcp._limits import MAX_COMPLETIONS, PROMPTS_PER_PAGE
from skillshelf.mcp._refresher import PendingSkills, RequestContext, ShelfRefresher, add_pending_notice, run_in_thread
from skillshelf.mcp._resources import FILE_TEMPLATE, SKILL_TEMPLATE
from skillshelf.mcp._skill_files import is_for_model, is_for_user, list_files, paginate_skills
from skillshelf.shelf import Shelf, Turn
from skillshelf.skills import SkillDescriptor
from skillshelf.slash import NameIndex, apply_message, rank

_ONLY_ARGUMENT = "arguments"
"""The one argument of a skill that names none."""
_KEY_MARK = "#"
_KEY_DIGITS = 10


class SkillKeys:
    """Names with a key (`deploy#1f0c6e2a9b`), for skills that only the user may invoke.

    The prompt gives the model such a name, and with it the model loads the skill's references. So the server need not
    remember who invoked what, and a client may reconnect or use several connections. Keys are valid as long as the
    server runs.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)

    def sign(self, name: str) -> str:
        """Return the name with its key."""
        return f"{name}{_KEY_MARK}{self._key_of(name)}"

    def verify(self, signed: object) -> str | None:
        """Return the name without its key, or None if it is not a name with the right key."""
        if not isinstance(signed, str) or _KEY_MARK not in signed:
            return None
        name, _, key = signed.rpartition(_KEY_MARK)
        is_right = hmac.compare_digest(_encode(key), _encode(self._key_of(name)))
        return name if is_right else None

    def _key_of(self, name: str) -> str:
        return hmac.new(self._secret, _encode(name), "sha256").hexdigest()[:_KEY_DIGITS]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Prompts:
    """Handles `prompts/list` and `prompts/get`."""

    def __init__(self, shelf: Shelf, refresher: ShelfRefresher, keys: SkillKeys, pending: PendingSkills | None) -> None:
        self._shelf = shelf
        self._refresher = refresher
        self._keys = keys
        self._pending = pending

    async def list(self, ctx: RequestContext, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        await self._refresher.refresh()
        skills, cursor = paginate_skills(self._shelf.catalog, params, PROMPTS_PER_PAGE, is_for_user)
        return types.ListPromptsResult(prompts=[_describe(skill) for skill in skills], next_cursor=cursor)

    async def get(self, ctx: RequestContext, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        await self._refresher.refresh()
        try:
            return await run_in_thread(self._apply_skill, params.name, params.arguments or {})
        except SkillError as error:
            raise MCPError(INVALID_PARAMS, add_pending_notice(error, self._pending)) from None

    def _apply_skill(self, name: str, values: Mapping[str, str]) -> types.GetPromptResult:
        try:
            skill = self._shelf.catalog.find(name).descriptor
        except SkillNotFoundError as error:
            from skillshelf.explain import explain_to_model  # loads the approvals, which only a mistake pays

            raise explain_to_model(self._shelf, error) from None
        if not skill.user_invocable:
            raise PolicyError(f"Skill {skill.name!r} is for the model alone: its author set `user-invocable: false`.")

        arguments = join_arguments(skill, values)
        instructions = Turn(self._shelf).load(name, by="user").text
        if skill.disclosure == "manual":
            name = self._keys.sign(name)
        text = apply_message(skill, instructions, arguments, reach=name)
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=skill.description, messages=[message])


def argument_names(skill: SkillDescriptor) -> tuple[str, ...]:
    """Return the names of a prompt's arguments."""
    return skill.arguments or (_ONLY_ARGUMENT,)


def join_arguments(skill: SkillDescriptor, values: Mapping[str, str]) -> str:
    """Return the arguments in one line, as the user would type them after the skill's name. Raises PolicyError."""
    names = argument_names(skill)
    for name in values:
        if name not in names:
            raise PolicyError(f"Skill {skill.name!r} takes no argument {name[:200]!r}. It takes: {', '.join(names)}.")
    if not skill.arguments:
        return values.get(_ONLY_ARGUMENT, "")

    words = [values.get(name, "") for name in names]
    while words and not words[-1]:
        words.pop()
    return " ".join(_quote(word) for word in words)


def _quote(word: str) -> str:
    is_plain = not any(char.isspace() or char in "\"'\\" for char in word)
    if word and is_plain:
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _describe(skill: SkillDescriptor) -> types.Prompt:
    hint = skill.argument_hint or None
    arguments = [types.PromptArgument(name=name, description=hint, required=False) for name in argument_names(skill)]
    return types.Prompt(name=skill.name, description=skill.description, arguments=arguments)


class Completions:
    """Handles `completion/complete`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def complete(self, ctx: RequestContext, params: types.CompleteRequestParams) -> types.CompleteResult:
        values = await run_in_thread(self._find_values, params)
        completion = types.Completion(
            values=values[:MAX_COMPLETIONS],
            total=len(values),
            has_more=len(values) > MAX_COMPLETIONS,
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
        summaries = [skill.summary for skill in skills]
        return [names[index] for index in rank(typed, NameIndex(names, names, summaries), len(names))]

    def _complete_path(self, name: str, typed: str) -> list[str]:
        skill = self._shelf.catalog.get(name)
        if skill is None or not is_for_model(skill):
            return []
        return _rank_paths(list_files(skill), typed)


def _rank_paths(paths: Sequence[str], typed: str) -> list[str]:
    file_names = [path.rpartition("/")[2] for path in paths]
    names = NameIndex(file_names, paths, [""] * len(paths))
    return [paths[index] for index in rank(typed, names, len(paths))]
