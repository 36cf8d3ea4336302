"""The tools that a shelf's code skills give to the model, and those that they cannot give."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from skillshelf.shelf._discovery import own_tool_names
from skillshelf.skills import Catalog, Diagnostic, Place, SkillDescriptor, Tool
from skillshelf.sources import ClassSource, ObjectSource, Source


class Toolbox(NamedTuple):
    """The tools of the code skills on a shelf, each with a name of its own."""

    tools: tuple[Tool, ...] = ()
    """The tools that the model has: all but the blocked ones."""
    by_place: Mapping[Place, tuple[Tool, ...]] = MappingProxyType({})
    """The same tools and the blocked ones, by the place of their skill."""
    missing: Mapping[Place, tuple[str, ...]] = MappingProxyType({})
    """The tools that a skill's instructions speak of and the model does not have, by the skill's place."""
    diagnostics: tuple[Diagnostic, ...] = ()

    def add_note(self, place: Place, instructions: str) -> str:
        """Return a skill's instructions, after a note for the model if it does not have all of the skill's tools."""
        names = [name for name in self.missing.get(place, ()) if name in instructions]
        if not names:
            return instructions
        listed = ", ".join(f"`{name}`" for name in names)
        return (
            f"Note: these tools are not available here: {listed}. Take the instructions as guidance, and tell the user "
            f"if the task needs one of the tools.\n\n{instructions}"
        )


def collect_tools(sources: Sequence[Source], catalog: Catalog, reserved: Collection[str]) -> Toolbox:
    """Return the tools of the code skills, constructing skills of packages if that takes no argument.

    The first skill with a tool of a name has it; `reserved` names and those of the find-skills tools belong to the
    host. A skill that another one of its name comes before is not constructed, unless the program has done so.
    """
    owners = dict.fromkeys(reserved, "")
    by_place: dict[Place, tuple[Tool, ...]] = {}
    missing: dict[Place, tuple[str, ...]] = {}
    diagnostics: list[Diagnostic] = []

    for skill in _find_code_skills(sources, catalog):
        name = skill.descriptor.name
        is_first = catalog.candidates(name)[0].place == skill.place
        if not is_first and not skill.is_from_program:
            missing[skill.place] = skill.descriptor.tools
            continue

        bound = skill.source.bind_tools(skill.place.key)
        if isinstance(bound, Diagnostic):
            missing[skill.place] = skill.descriptor.tools
            diagnostics.append(bound)
            continue

        if not skill.is_from_program:  # of the program's own skills, `all_tools` refuses these names
            owners = dict.fromkeys(own_tool_names(), "") | owners
        taken = tuple(tool.name for tool in bound if tool.name in owners)
        diagnostics += [_report_taken(skill.descriptor, tool, owners[tool]) for tool in taken]

        free = tuple(tool for tool in bound if tool.name not in owners)
        by_place[skill.place] = free
        missing[skill.place] = taken + tuple(tool.name for tool in free if tool.is_blocked)
        owners |= dict.fromkeys((tool.name for tool in free), name)

    tools = tuple(tool for free in by_place.values() for tool in free if not tool.is_blocked)
    return Toolbox(tools, by_place, missing, tuple(diagnostics))


class _CodeSkill(NamedTuple):
    """A code skill that has tools, and its place on the shelf."""

    source: ClassSource
    place: Place
    descriptor: SkillDescriptor

    @property
    def is_from_program(self) -> bool:
        """True if the program constructed the skill itself."""
        return isinstance(self.source, ObjectSource)


def _find_code_skills(sources: Sequence[Source], catalog: Catalog) -> Iterator[_CodeSkill]:
    """Yield the code skills that have tools, in the order of their sources."""
    for rank, source in enumerate(sources):
        if not isinstance(source, ClassSource):
            continue
        for key in source.classes:
            place = Place(rank, key)
            descriptor = catalog.descriptor_at(place)
            if descriptor is not None and descriptor.tools:
                yield _CodeSkill(source, place, descriptor)


def _report_taken(skill: SkillDescriptor, tool: str, owner: str) -> Diagnostic:
    other = "that name belongs to the program itself"
    if owner:
        other = f"the skill {owner!r} has a tool of that name"
    return Diagnostic(
        "warning",
        "tool-taken",
        f"the model does not have its tool {tool!r}: {other}",
        skill.location,
        fix='give it another name: @tool(name="…")',
    )
