"""`/skills:<name>`: one command for each skill that a user may invoke."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from typing import Generic, NamedTuple

from skillshelf.catalog import Catalog
from skillshelf.descriptor import SkillDescriptor
from skillshelf.slash._commands import Command, FaceT, NameMatch, Suggestion, find_name, parse_command, strip_separator
from skillshelf.slash._completion import quote_path

Invoke = Callable[[FaceT, str, str], Awaitable[None] | None]
"""Called with the face, the name that leads to the skill, and the arguments."""
Count = Callable[[str], int | None]
"""Returns the tokens of a skill, by the name that leads to it, or None if they are not known."""
SKILL_PREFIX = "skills:"
"""The prefix of the commands that invoke skills."""


class Invocation(NamedTuple):
    """A message that asks for a skill by name."""

    skill: str
    arguments: str
    """Verbatim from the first word or the next line on."""


def parse_invocation(text: str, catalog: Catalog) -> Invocation | None:
    """Read a message as `/skills:<name> [arguments]`. Return None if it does not begin like that.

    If no skill has the name, the first word is taken for it.
    """
    if parse_command(text) is None or not text.startswith(f"/{SKILL_PREFIX}"):
        return None

    typed = text.removeprefix(f"/{SKILL_PREFIX}")
    match = find_name(typed, catalog)
    if match is None:
        first_word = (typed.split(maxsplit=1) or [""])[0]
        match = NameMatch(first_word, len(first_word))
    return Invocation(match.name, strip_separator(typed[match.end :]))


def skill_commands(
    catalog: Callable[[], Catalog], invoke: Invoke[FaceT], count: Count | None = None
) -> Callable[[], Sequence[Command[FaceT]]]:
    """Return a function for `register("skills:", …)` that lists a command for each skill; shadowed skills come last.

    `count` returns the tokens of a skill's instructions, which completion shows, such as `Shelf.count_instructions`.
    """
    return _SkillCommands(catalog, invoke, count).list


class _SkillCommands(Generic[FaceT]):
    """The commands of a catalog. A command is made once for each version of a skill."""

    def __init__(self, catalog: Callable[[], Catalog], invoke: Invoke[FaceT], count: Count | None) -> None:
        self._get_catalog = catalog
        self._invoke = invoke
        self._count = count
        self._catalog: Catalog | None = None
        self._made: dict[str, _SkillCommand[FaceT]] = {}
        self._commands: tuple[Command[FaceT], ...] = ()

    def list(self) -> Sequence[Command[FaceT]]:
        catalog = self._get_catalog()
        if catalog is not self._catalog:
            self._catalog = catalog
            self._made = {name: self._make(name, skill) for name, skill in _list_invocable(catalog)}
            self._commands = tuple(made.command for made in self._made.values())
        return self._commands

    def _make(self, name: str, skill: SkillDescriptor) -> "_SkillCommand[FaceT]":
        made = self._made.get(name)
        if made is not None and made.skill is skill:
            return made

        def run(face: FaceT, arguments: str) -> Awaitable[None] | None:
            return self._invoke(face, name, arguments)

        def complete(_: str) -> Sequence[Suggestion]:
            return _suggest_references(skill.references)

        command = Command(
            name,
            skill.description,
            run,
            usage=skill.argument_hint or " ".join(f"[{argument}]" for argument in skill.arguments),
            complete=complete if skill.references else None,
            cost=self._count(name) if self._count else None,
        )
        return _SkillCommand(skill, command)


class _SkillCommand(NamedTuple, Generic[FaceT]):
    """A command, and the version of the skill that it was made for."""

    skill: SkillDescriptor
    command: Command[FaceT]


def _list_invocable(catalog: Catalog) -> Iterator[tuple[str, SkillDescriptor]]:
    """Yield the skills that a user may invoke, each with the name that leads to it."""
    shadowed = []
    for name in catalog:
        first, *rest = catalog.candidates(name)
        if first.descriptor.user_invocable:
            yield name, first.descriptor
        shadowed += rest
    for candidate in shadowed:
        if candidate.descriptor.user_invocable:
            yield catalog.reach(candidate), candidate.descriptor


@lru_cache(maxsize=4)
def _suggest_references(paths: tuple[str, ...]) -> tuple[Suggestion, ...]:
    return tuple(Suggestion(quote_path(path), label=path) for path in paths)
