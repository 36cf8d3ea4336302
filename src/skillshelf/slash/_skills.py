"""One command for each skill a person may invoke, as the catalog is at the moment."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from skillshelf.catalog import Catalog
from skillshelf.descriptor import SkillDescriptor
from skillshelf.slash._command import Candidate, Command, Host, arguments_of, parse, split_name
from skillshelf.slash._completion import quoted
from skillshelf.tokens import estimate_unread

Invoke = Callable[[Host, str, str], Awaitable[None] | None]
"""Given the host, the name that leads to the skill, and the arguments."""
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
    if parse(text) is None or not text.startswith(f"/{SKILL_PREFIX}"):
        return None

    typed = text.removeprefix(f"/{SKILL_PREFIX}")
    match = split_name(typed, catalog)
    if match is None:
        first_word = (typed.split(maxsplit=1) or [""])[0]
        match = first_word, len(first_word)
    name, end = match
    return Invocation(name, arguments_of(typed[end:]))


def skill_commands(catalog: Callable[[], Catalog], invoke: Invoke[Host]) -> Callable[[], Sequence[Command[Host]]]:
    """For `register("skills:", …)`. A command is made once for each version of a skill; shadowed skills come last."""
    seen: Catalog | None = None
    listed: tuple[Command[Host], ...] = ()
    made: dict[str, tuple[SkillDescriptor, Command[Host]]] = {}

    def made_of(name: str, skill: SkillDescriptor) -> tuple[SkillDescriptor, Command[Host]]:
        before = made.get(name)
        return before if before and before[0] is skill else (skill, _command(name, skill, invoke))

    def commands() -> Sequence[Command[Host]]:
        nonlocal seen, listed, made
        now = catalog()
        if now is not seen:
            made = {name: made_of(name, skill) for name, skill in _invocable(now)}
            seen, listed = now, tuple(command for _, command in made.values())
        return listed

    return commands


def _invocable(catalog: Catalog) -> Iterator[tuple[str, SkillDescriptor]]:
    """The skills by the names that lead to them."""
    shadowed = []
    for name in catalog:
        first, *rest = catalog.candidates(name)
        skill = first.descriptor
        if skill.user_invocable:
            yield name, skill
        shadowed += rest
    yield from ((catalog.reach(one), one.descriptor) for one in shadowed if one.descriptor.user_invocable)


def _command(name: str, skill: SkillDescriptor, invoke: Invoke[Host]) -> Command[Host]:
    usage = skill.argument_hint or " ".join(f"[{argument}]" for argument in skill.arguments)
    return Command(
        name,
        skill.description,
        lambda host, arguments: invoke(host, name, arguments),
        usage,
        (lambda _: _references(skill.references)) if skill.references else None,
        estimate_unread(skill.size),
    )


@lru_cache(maxsize=4)
def _references(paths: tuple[str, ...]) -> tuple[Candidate, ...]:
    return tuple(Candidate(quoted(path), 0, path) for path in paths)
