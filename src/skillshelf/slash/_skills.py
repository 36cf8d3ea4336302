"""One command for each skill a person may invoke, as the catalog is at the moment."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache

from skillshelf.catalog import Catalog
from skillshelf.descriptor import SkillDescriptor
from skillshelf.slash._command import Candidate, Command, Host
from skillshelf.slash._completion import quoted

Invoke = Callable[[Host, str, str], Awaitable[None] | None]
"""Given the host, the name that leads to the skill, and the arguments."""
# Bytes of English to a token, roughly: the instructions are not read for a menu.
_BYTES_PER_TOKEN = 4


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
        skill.size // _BYTES_PER_TOKEN,
    )


@lru_cache(maxsize=4)
def _references(paths: tuple[str, ...]) -> tuple[Candidate, ...]:
    return tuple(Candidate(quoted(path), 0, path) for path in paths)
